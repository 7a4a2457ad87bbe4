// Access to a database past the code under test: bare libpq, bare SQLite.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <holdfast/testing/postgres.hpp>

namespace holdfast::test {

using Table = std::vector<std::vector<std::optional<std::string>>>;

// Each runs a script of one or more statements on a connection of its own, and returns the rows of
// the last statement that had any.
Table run_on_postgres(const std::string& conninfo, const std::string& script);
Table run_on_sqlite(const std::string& file, const std::string& script);

// Databases of a server. The original of a copy must have no connections.
inline const std::string empty_database = "template1";
void copy_database(const PostgresAddress& server,
                   const std::string& original,
                   const std::string& name);
// Ends open connections. Does nothing if there is a database `to` already.
void rename_database(const PostgresAddress& server, const std::string& from, const std::string& to);
// Does nothing if the server is gone: the data go with its folder.
void drop_database(const PostgresAddress& server, const std::string& name) noexcept;

}  // namespace holdfast::test
