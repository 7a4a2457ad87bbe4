// Looking at a database past everything that is tested: bare libpq, bare SQLite.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace holdfast::test {

using Table = std::vector<std::vector<std::optional<std::string>>>;

// Each runs a script of one or more statements on a connection of its own, and returns the rows of
// the last statement that had any.
Table run_on_postgres(const std::string& conninfo, const std::string& script);
Table run_on_sqlite(const std::string& file, const std::string& script);

}  // namespace holdfast::test
