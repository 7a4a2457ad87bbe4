// The statements that this floor runs, for the checks that read them all.
#pragma once

#include <holdfast/sql/statement.hpp>

namespace holdfast::lock {

[[nodiscard]] const sql::Catalogue& catalogue() noexcept;

}  // namespace holdfast::lock
