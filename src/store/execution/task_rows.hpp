// Tasks inside a transaction of the caller.
#pragma once

#include <span>

#include <holdfast/sql/tx.hpp>
#include <holdfast/store/history_tasks.hpp>

namespace holdfast::store {

// Requires: the shard is locked and still the writer's.
void insert_tasks(sql::Tx& tx, ShardId shard, const Tasks& tasks);

// The same for tasks that are done. Those that are gone already are left alone.
void change_tasks(sql::Tx& tx, ShardId shard, std::span<const TaskChange> done);

}  // namespace holdfast::store
