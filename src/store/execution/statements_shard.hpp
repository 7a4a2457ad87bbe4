// Shards: HistoryShard.
#pragma once

#include "locking_read.hpp"

#include <holdfast/sql/statement.hpp>

namespace holdfast::store::statements {

using sql::FencedStatement;
using sql::Statement;

inline constexpr Statement insert_shard{
    "store.insert_shard",
    "INSERT INTO shards (shard_id, range_id, data, data_encoding) VALUES ($1, $2, $3, $4)"};
// The same, where the row may exist.
inline constexpr Statement insert_shard_once{
    "store.insert_shard_once",
    "INSERT INTO shards (shard_id, range_id, data, data_encoding) VALUES ($1, $2, $3, $4) "
    "ON CONFLICT (shard_id) DO NOTHING"};
inline constexpr Statement select_shard{
    "store.select_shard", "SELECT range_id, data, data_encoding FROM shards WHERE shard_id = $1"};
// For writes under a lease: any number of them, side by side, where the database has a lock for
// that. A change of the range takes write_lock_shard first, so that it waits for them.
inline constexpr LockingRead read_lock_shard{
    "store.read_lock_shard", "SELECT range_id FROM shards WHERE shard_id = $1 {for_key_share}"};
inline constexpr LockingRead write_lock_shard{
    "store.write_lock_shard", "SELECT range_id FROM shards WHERE shard_id = $1 {for_update}"};
inline constexpr FencedStatement update_shard{
    "store.update_shard",
    "UPDATE shards SET range_id = $3, data = $4, data_encoding = $5 "
    "WHERE shard_id = $1 AND range_id = $2",
    "SELECT range_id FROM shards WHERE shard_id = $1"};

}  // namespace holdfast::store::statements
