// Tasks inside a transaction of the caller.
#pragma once

#include <holdfast/sql/tx.hpp>
#include <holdfast/store/history_tasks.hpp>

namespace holdfast::store {

// Requires: the shard is locked and still the writer's.
void insert_tasks(sql::Tx& tx, ShardId shard, const Tasks& tasks);

// Throws ShardOwnershipLost unless the locked row, which read_lock_shard found, has the lease's
// range.
void require_lease(const sql::Rows& locked, const ShardLease& lease);

}  // namespace holdfast::store
