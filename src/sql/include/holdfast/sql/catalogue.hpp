// The statements that this floor runs, for the checks that read them all.
#pragma once

#include <string_view>

#include <holdfast/sql/statement.hpp>

namespace holdfast::sql {

[[nodiscard]] const Catalogue& catalogue() noexcept;
// The table of schema versions, which no migration makes.
[[nodiscard]] std::string_view create_schema_table() noexcept;

}  // namespace holdfast::sql
