#include "parts.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <holdfast/base/error.hpp>
#include <holdfast/flow/sql_provider.hpp>

namespace holdfast::demo {
std::span<const sql::MigrationFile> schema_files();  // Made from schema/*.sql.
}

namespace holdfast::app {

std::span<const sql::SchemaPart> schema_parts() {
    static const std::array parts{
        flow::schema_part(),
        sql::SchemaPart{.name = "demo", .files = demo::schema_files(), .oldest = 1},
    };
    return parts;
}

const sql::SchemaPart& schema_part(std::string_view name) {
    const std::span<const sql::SchemaPart> parts = schema_parts();
    const auto found = std::ranges::find(parts, name, &sql::SchemaPart::name);
    if (found != parts.end()) {
        return *found;
    }
    std::vector<std::string_view> names;
    for (const sql::SchemaPart& part : parts) {
        names.push_back(part.name);
    }
    throw InvalidArgument(
        fmt::format("there is no schema part '{}'; choose from {}", name, fmt::join(names, ", ")));
}

}  // namespace holdfast::app
