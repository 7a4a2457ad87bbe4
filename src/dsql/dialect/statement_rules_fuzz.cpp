// Any text is checked, and what is made from it is SQL again; lint points into it and comes to an
// end with its fixes.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "dialect/statement_rules.hpp"
#include "dialect/test/statement_rules_fixture.hpp"

#include <holdfast/dsql/lint.hpp>

namespace {

using namespace holdfast::dsql;

void require(bool belief) {
    if (!belief) {
        std::abort();
    }
}

void look_at(std::string_view sql, const CheckedStatement& checked) {
    constexpr std::size_t names_max = 1'000;  // Of subqueries, which are given to them.
    require(checked.offset <= sql.size());
    require(checked.offset + checked.text.size() <= sql.size() + names_max);
    require(!checked.refusal || checked.refusal->offset <= sql.size());
    const KnownTables tables;
    const Rules any{};
    if (!checked.rewrite.empty()) {
        const auto rewrite = check_statements(checked.rewrite, any, &tables);
        require(rewrite.size() == 1 && rewrite[0].kind == Kind::read);
    }
    for (const RowLock& lock : checked.row_locks) {
        if (!lock.touch.empty()) {
            const auto touch = check_statements(lock.touch, any, &tables);
            require(touch.size() == 1 && touch[0].kind == Kind::write);
            require(touch[0].target == lock.table);
        }
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view sql{reinterpret_cast<const char*>(data), size};
    const KnownTables tables;
    // The strict rules are lint's; these let more through to what is made of it.
    for (const CheckedStatement& checked :
         check_statements(sql, {.sync_create_index = true}, &tables)) {
        look_at(sql, checked);
    }
    for (const Finding& finding : lint_fix(sql).left) {
        require(finding.line >= 1 && finding.column >= 1 && !finding.rule.empty());
    }
    return 0;
}
