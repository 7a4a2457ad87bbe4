// The rows of one run.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include <holdfast/sql/tx.hpp>
#include <holdfast/store/execution.hpp>

namespace holdfast::store {

// Shard and run are the key of its rows. The workflow stands in the run's own row, and is compared.
struct RunKey {
    ShardId shard{};
    Uuid ns;
    std::string workflow_id;
    Uuid run;
};
[[nodiscard]] RunKey key_of(ShardId shard, const WorkflowKey& workflow, RunId run);
[[nodiscard]] RunKey key_of(ShardId shard, const RunWrite& write);

// What a run's row holds.
struct RunTokens {
    std::int64_t db_record_version = 0;
    std::int64_t next_event_id = 0;
    std::int64_t last_write_version = 0;
    bool is_of_workflow = false;  // False: a run of another workflow has this id.
};
[[nodiscard]] sql::LockedRow ask_run(sql::Tx& tx, const RunKey& key);
[[nodiscard]] std::optional<RunTokens> read_run(const sql::Rows& rows, const WorkflowKey& workflow);

// Returns the guard for a write of the run's row. Throws ConditionFailed if there is no such run,
// WorkflowConditionFailed if it is not as the writer believes.
[[nodiscard]] sql::Guard require_tokens(const RunWrite& write, sql::LockedRow& locked);
// Throws WorkflowConditionFailed if the run exists.
void require_absent(const RunWrite& write, const std::optional<RunTokens>& found);

// All three queue their writes and wait for none. `guard` is that of the run's row, verified.
void insert_run(sql::Tx& tx, ShardId shard, const Snapshot& snapshot);
void replace_run(sql::Tx& tx, ShardId shard, const Snapshot& snapshot, const sql::Guard& guard);
void change_run(sql::Tx& tx, ShardId shard, const Mutation& mutation, const sql::Guard& guard);

// The run's row alone: no reader sees a part of the run, and no writer adds to the rest.
void delete_run(sql::Tx& tx, const RunKey& key);
// What it had open, at once.
void delete_items(sql::Tx& tx, const RunKey& key);
// The same in chunks, a statement for each kind of items. Counts the rows that it deleted.
[[nodiscard]] std::span<const sql::Statement* const> item_sheds() noexcept;
[[nodiscard]] std::int64_t shed_items(sql::Tx& tx, const sql::Statement& shed, const RunKey& key);
[[nodiscard]] std::optional<Execution> read_execution(sql::Tx& tx, const RunKey& key);

}  // namespace holdfast::store
