// The row that says which run of a workflow is the current one.
#pragma once

#include <optional>

#include <holdfast/sql/tx.hpp>
#include <holdfast/store/execution.hpp>

namespace holdfast::sql {
class Database;
}

namespace holdfast::store {

// Requires: an id of 1 to id_bytes_max bytes, and an archetype other than 0. Else invalid_argument.
void require_workflow(const WorkflowKey& workflow);
// Requires: so is its workflow, and the request's id, if there is one, is a name. Else the same.
void require_run(const RunWrite& write);

[[nodiscard]] sql::LockedRow ask_current_run(sql::Tx& tx,
                                             ShardId shard,
                                             const WorkflowKey& workflow);
[[nodiscard]] std::optional<CurrentRun> read_current_run(const sql::Rows& rows,
                                                         const WorkflowKey& workflow);

void insert_current_run(sql::Tx& tx,
                        ShardId shard,
                        const WorkflowKey& workflow,
                        const CurrentRun& current);
// Requires: `locked` is of `workflow`, and names `previous`.
void move_current_run(sql::Tx& tx,
                      sql::LockedRow& locked,
                      const WorkflowKey& workflow,
                      RunId previous,
                      const CurrentRun& current);

[[nodiscard]] std::optional<CurrentRun> find_current_run(sql::Database& db,
                                                         ShardId shard,
                                                         const WorkflowKey& workflow,
                                                         const Call& call);
// If it names this run; another run stays the current one.
// Requires: `locked` is of `workflow`.
void remove_current_run(sql::Tx& tx,
                        sql::LockedRow& locked,
                        const WorkflowKey& workflow,
                        RunId run);

}  // namespace holdfast::store
