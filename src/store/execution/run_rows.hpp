// The rows of one run.
#pragma once

#include <optional>
#include <vector>

#include <holdfast/sql/tx.hpp>
#include <holdfast/store/execution.hpp>

namespace holdfast::store {

struct RunKey {
    ShardId shard{};
    Uuid ns;
    std::string workflow_id;
    Uuid run;
};
[[nodiscard]] RunKey key_of(ShardId shard, const RunWrite& write);

// What a run's row holds.
struct RunTokens {
    std::int64_t db_record_version = 0;
    std::int64_t next_event_id = 0;
    std::int64_t last_write_version = 0;
};
[[nodiscard]] sql::Answer ask_run(sql::Tx& tx, const RunKey& key);
[[nodiscard]] std::optional<RunTokens> read_run(const sql::Rows& rows);

// What was found. Throws ConditionFailed if there is no such run, WorkflowConditionFailed if it is
// not as the writer believes.
RunTokens require_tokens(const RunWrite& write, const std::optional<RunTokens>& found);
// Throws WorkflowConditionFailed if the run is there already.
void require_absent(const RunWrite& write, const std::optional<RunTokens>& found);

// Requires of all three: the run's row is locked, and is as it must be. Nothing is waited for.
void insert_run(sql::Tx& tx, ShardId shard, const Snapshot& snapshot);
void replace_run(sql::Tx& tx, ShardId shard, const Snapshot& snapshot, const RunTokens& found);
void change_run(sql::Tx& tx, ShardId shard, const Mutation& mutation, const RunTokens& found);

void delete_run(sql::Tx& tx, const RunKey& key);
// The same in many transactions. The run itself goes first, so nobody sees a part of it, and nobody
// adds to what is left.
void delete_run_in_chunks(sql::Database& db, const RunKey& key, const Call& call);
[[nodiscard]] std::optional<Execution> read_execution(sql::Tx& tx, const RunKey& key);

}  // namespace holdfast::store
