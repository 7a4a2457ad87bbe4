#include <holdfast/sql/catalogue.hpp>

#include <array>

#include "statements.hpp"

namespace holdfast::sql {

const Catalogue& catalogue() noexcept {
    static constexpr std::array<const Statement*, 7> plain{
        &statements::now,
        &statements::schema_table_sqlite,
        &statements::schema_table_postgres,
        &statements::schema_index,
        &statements::schema_index_jobs,
        &statements::schema_read,
        &statements::schema_insert,
    };
    static constexpr std::array<const FencedStatement*, 1> fenced{&statements::schema_advance};
    static constexpr std::array<std::string_view, 2> tokens{"version", "step"};
    static constexpr std::array<GuardedTable, 1> guarded{GuardedTable{"holdfast_schema", tokens}};
    static constexpr Catalogue all =
        checked({.floor = "sql", .statements = plain, .fenced = fenced, .guarded = guarded});
    return all;
}

std::string_view create_schema_table() noexcept {
    return statements::create_schema_table;
}

}  // namespace holdfast::sql
