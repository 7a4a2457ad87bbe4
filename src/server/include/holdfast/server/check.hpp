// Looks for mistakes in what a server has stored.
//
// Reads every run that lists know, with its whole history, and says where its events contradict
// each other, or the run's state and its entry in the lists. It writes nothing, and a server may
// work on the database meanwhile.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace holdfast::sql {
class Database;
}

namespace holdfast::server {

struct CheckedRun {
    std::string namespace_name;
    std::string workflow_id;
    std::string run_id;
    std::int64_t events = 0;
    std::vector<std::string> problems;  // Sentences; none if it is right.
};

// How many runs there are, about.
[[nodiscard]] std::int64_t count_runs(sql::Database& db);

// Calls `seen` with each run, until it returns false. A run that is deleted meanwhile is left out.
// Requires: the schema of a server. Throws Error.
void check_runs(sql::Database& db, const std::function<bool(const CheckedRun&)>& seen);

}  // namespace holdfast::server
