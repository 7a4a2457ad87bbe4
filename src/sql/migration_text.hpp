// Migrations, from text to steps.
#pragma once

#include <string>
#include <vector>

#include <holdfast/sql/schema.hpp>

namespace holdfast::sql {

// The statements of a file for one dialect, holes filled, without comments. A statement ends with
// `;`. A line `-- only: sqlite` or `-- only: postgres dsql` before a statement limits it to those.
// Refuses an unknown hole or dialect and a statement without its `;`.
[[nodiscard]] std::vector<std::string> migration_steps(const MigrationFile& file,
                                                       const Dialect& dialect,
                                                       const TableNames* names = nullptr);

}  // namespace holdfast::sql
