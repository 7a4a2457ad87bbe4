// Conflicts on a PostgreSQL that would meet none, as often as a test wants them.
#pragma once

#include <string>
#include <string_view>

#include <holdfast/testing/database.hpp>

namespace holdfast::test {

// From here on the first of every `every` transactions that change a table whose name begins with
// `prefix` is refused at its commit, with 40001. Each transaction counts once, however many rows it
// changes, and a repeat counts as another. Tables that hold schema versions are left alone.
void refuse_commits(const Database& db, int every, std::string_view prefix);

// Before a script, so that it passes the conflicts.
inline constexpr std::string_view past_conflicts = "SET session_replication_role = replica;";

}  // namespace holdfast::test
