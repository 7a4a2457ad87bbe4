// The commands that need a program's own workflows, for that program's main().
//
//   int main(int argc, char** argv) {
//       return flow::command_line(shop_registry(), argc, argv, dsql::every_database());
//   }
//
// The last argument says which databases --db accepts. Without it they are SQLite and PostgreSQL,
// and the program does not link Aurora DSQL and what it needs (<holdfast/dsql/every_database.hpp>).
//
//   shop run                      a worker, until SIGTERM or SIGINT; then it finishes what runs
//   shop start NAME               [--id ID] [--input '[7]'] [--delay 30s] [--wait 1m]
//                                 [--cron '*/5 * * * *'] [--version 1.2.0]
//                                 [--on-duplicate reject|use-existing|restart]
//   shop query ID NAME ['[7]']    [--timeout 10s]; update likewise
//   shop replay FILE              [--id ID] [--execution N]: checks that this build does what the
//                                 history of `holdfast flow export` says
//
// Each takes --db URL (or HOLDFAST_DB) and --json. All other commands need no
// handlers; the holdfast program has them: holdfast flow list, show, signal, cancel, ...
#pragma once

#include <holdfast/flow/registry.hpp>
#include <holdfast/sql/database.hpp>

namespace holdfast::flow {

// Returns the exit code of main(): 0 done, 1 refused, 2 usage, 3 unavailable, 4 internal. A failure
// is one sentence on standard error. The database of --db is opened with `options`.
// Requires: no other thread takes SIGTERM or SIGINT while `run` does; call it before starting any.
[[nodiscard]] int command_line(const Registry& registry,
                               int argc,
                               const char* const* argv,
                               const sql::DatabaseOptions& options = {});

}  // namespace holdfast::flow
