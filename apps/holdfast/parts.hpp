// The schema parts that this binary knows: the one list of them.
#pragma once

#include <span>
#include <string_view>

#include <holdfast/sql/schema.hpp>

namespace holdfast::app {

[[nodiscard]] std::span<const sql::SchemaPart> schema_parts();

// Requires: `name` is in the list. Else invalid_argument, which names those that are.
[[nodiscard]] const sql::SchemaPart& schema_part(std::string_view name);

}  // namespace holdfast::app
