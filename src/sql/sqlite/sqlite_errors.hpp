// SQLite's result codes as SQLSTATE values.
#pragma once

#include <holdfast/sql/error.hpp>

namespace holdfast::sql::sqlite {

// The state that PostgreSQL gives for the same error. Looks for the extended code first, then for
// the primary one; an unknown code is XX000.
[[nodiscard]] SqlState sql_state(int result_code) noexcept;

// Whether a COMMIT that failed with this code has certainly left nothing behind. After a failed
// write or flush of the log, the outcome is unknown.
[[nodiscard]] Outcome outcome_of_commit(int result_code) noexcept;

}  // namespace holdfast::sql::sqlite
