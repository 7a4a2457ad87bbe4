// Tasks of the history service: a dedicated table for four categories, two tables for all others.
//
// Immediate tasks are ordered by their id, scheduled ones by (time, id). A range is half open.
// Ranges are deleted up to $n rows at a time: a database bounds what a transaction may change. The
// last row of a chunk is looked up once; a list of all its rows would be looked through for each.
#pragma once

#include <holdfast/sql/statement.hpp>

namespace holdfast::store::statements {

using sql::Statement;

// ---- HistoryImmediateTask

inline constexpr Statement insert_immediate_task{
    "store.insert_immediate_task",
    "INSERT INTO history_immediate_tasks (shard_id, category_id, task_id, data, data_encoding) "
    "VALUES ($1, $2, $3, $4, $5)"};
inline constexpr Statement range_immediate_task{
    "store.range_immediate_task",
    "SELECT task_id, data, data_encoding FROM history_immediate_tasks "
    "WHERE shard_id = $1 AND category_id = $2 AND task_id >= $3 AND task_id < $4 "
    "ORDER BY task_id LIMIT $5"};
inline constexpr Statement update_immediate_task{
    "store.update_immediate_task",
    "UPDATE history_immediate_tasks SET data = $4, data_encoding = $5 "
    "WHERE shard_id = $1 AND category_id = $2 AND task_id = $3"};
inline constexpr Statement delete_immediate_task{
    "store.delete_immediate_task",
    "DELETE FROM history_immediate_tasks WHERE shard_id = $1 AND category_id = $2 AND task_id = "
    "$3"};
inline constexpr Statement delete_range_immediate_task{
    "store.delete_range_immediate_task",
    "DELETE FROM history_immediate_tasks WHERE shard_id = $1 AND category_id = $2 "
    "AND task_id >= $3 AND task_id < $4 AND task_id <= coalesce("
    "(SELECT task_id FROM history_immediate_tasks WHERE shard_id = $1 AND category_id = $2 "
    "AND task_id >= $3 ORDER BY task_id LIMIT 1 OFFSET $5 - 1), $4)"};

// ---- HistoryScheduledTask

inline constexpr Statement insert_scheduled_task{
    "store.insert_scheduled_task",
    "INSERT INTO history_scheduled_tasks (shard_id, category_id, visibility_timestamp, task_id, "
    "data, data_encoding) VALUES ($1, $2, $3, $4, $5, $6)"};
inline constexpr Statement range_scheduled_task{
    "store.range_scheduled_task",
    "SELECT visibility_timestamp, task_id, data, data_encoding "
    "FROM history_scheduled_tasks WHERE shard_id = $1 AND category_id = $2 "
    "AND (visibility_timestamp, task_id) >= ($3, $4) AND visibility_timestamp < $5 "
    "ORDER BY visibility_timestamp, task_id LIMIT $6"};
inline constexpr Statement update_scheduled_task{
    "store.update_scheduled_task",
    "UPDATE history_scheduled_tasks SET data = $5, data_encoding = $6 "
    "WHERE shard_id = $1 AND category_id = $2 "
    "AND visibility_timestamp = $3 AND task_id = $4"};
inline constexpr Statement delete_scheduled_task{
    "store.delete_scheduled_task",
    "DELETE FROM history_scheduled_tasks WHERE shard_id = $1 AND category_id = $2 "
    "AND visibility_timestamp = $3 AND task_id = $4"};
inline constexpr Statement delete_range_scheduled_task{
    "store.delete_range_scheduled_task",
    "DELETE FROM history_scheduled_tasks WHERE shard_id = $1 AND category_id = $2 "
    "AND visibility_timestamp >= $3 AND visibility_timestamp < $4 "
    "AND (visibility_timestamp, task_id) <= (coalesce("
    "(SELECT visibility_timestamp FROM history_scheduled_tasks WHERE shard_id = $1 AND category_id "
    "= $2 "
    "AND visibility_timestamp >= $3 "
    "ORDER BY visibility_timestamp, task_id LIMIT 1 OFFSET $5 - 1)"
    ", $4), coalesce("
    "(SELECT task_id FROM history_scheduled_tasks WHERE shard_id = $1 AND category_id = $2 "
    "AND visibility_timestamp >= $3 "
    "ORDER BY visibility_timestamp, task_id LIMIT 1 OFFSET $5 - 1)"
    ", 9223372036854775807))"};

// ---- HistoryTransferTask

inline constexpr Statement insert_transfer_task{
    "store.insert_transfer_task",
    "INSERT INTO transfer_tasks (shard_id, task_id, data, data_encoding) "
    "VALUES ($1, $2, $3, $4)"};
inline constexpr Statement range_transfer_task{
    "store.range_transfer_task",
    "SELECT task_id, data, data_encoding FROM transfer_tasks "
    "WHERE shard_id = $1 AND task_id >= $2 AND task_id < $3 "
    "ORDER BY task_id LIMIT $4"};
inline constexpr Statement update_transfer_task{
    "store.update_transfer_task",
    "UPDATE transfer_tasks SET data = $3, data_encoding = $4 "
    "WHERE shard_id = $1 AND task_id = $2"};
inline constexpr Statement delete_transfer_task{
    "store.delete_transfer_task",
    "DELETE FROM transfer_tasks WHERE shard_id = $1 AND task_id = $2"};
inline constexpr Statement delete_range_transfer_task{
    "store.delete_range_transfer_task",
    "DELETE FROM transfer_tasks WHERE shard_id = $1 "
    "AND task_id >= $2 AND task_id < $3 AND task_id <= coalesce("
    "(SELECT task_id FROM transfer_tasks WHERE shard_id = $1 "
    "AND task_id >= $2 ORDER BY task_id LIMIT 1 OFFSET $4 - 1), $3)"};

// ---- HistoryTimerTask

inline constexpr Statement insert_timer_task{
    "store.insert_timer_task",
    "INSERT INTO timer_tasks (shard_id, visibility_timestamp, task_id, "
    "data, data_encoding) VALUES ($1, $2, $3, $4, $5)"};
inline constexpr Statement range_timer_task{
    "store.range_timer_task",
    "SELECT visibility_timestamp, task_id, data, data_encoding "
    "FROM timer_tasks WHERE shard_id = $1 "
    "AND (visibility_timestamp, task_id) >= ($2, $3) AND visibility_timestamp < $4 "
    "ORDER BY visibility_timestamp, task_id LIMIT $5"};
inline constexpr Statement update_timer_task{
    "store.update_timer_task",
    "UPDATE timer_tasks SET data = $4, data_encoding = $5 "
    "WHERE shard_id = $1 AND visibility_timestamp = $2 AND task_id = $3"};
inline constexpr Statement delete_timer_task{"store.delete_timer_task",
                                             "DELETE FROM timer_tasks WHERE shard_id = $1 "
                                             "AND visibility_timestamp = $2 AND task_id = $3"};
inline constexpr Statement delete_range_timer_task{
    "store.delete_range_timer_task",
    "DELETE FROM timer_tasks WHERE shard_id = $1 "
    "AND visibility_timestamp >= $2 AND visibility_timestamp < $3 "
    "AND (visibility_timestamp, task_id) <= (coalesce("
    "(SELECT visibility_timestamp FROM timer_tasks WHERE shard_id = $1 "
    "AND visibility_timestamp >= $2 "
    "ORDER BY visibility_timestamp, task_id LIMIT 1 OFFSET $4 - 1)"
    ", $3), coalesce("
    "(SELECT task_id FROM timer_tasks WHERE shard_id = $1 "
    "AND visibility_timestamp >= $2 "
    "ORDER BY visibility_timestamp, task_id LIMIT 1 OFFSET $4 - 1)"
    ", 9223372036854775807))"};

// ---- HistoryReplicationTask

inline constexpr Statement insert_replication_task{
    "store.insert_replication_task",
    "INSERT INTO replication_tasks (shard_id, task_id, data, data_encoding) "
    "VALUES ($1, $2, $3, $4)"};
inline constexpr Statement range_replication_task{
    "store.range_replication_task",
    "SELECT task_id, data, data_encoding FROM replication_tasks "
    "WHERE shard_id = $1 AND task_id >= $2 AND task_id < $3 "
    "ORDER BY task_id LIMIT $4"};
inline constexpr Statement update_replication_task{
    "store.update_replication_task",
    "UPDATE replication_tasks SET data = $3, data_encoding = $4 "
    "WHERE shard_id = $1 AND task_id = $2"};
inline constexpr Statement delete_replication_task{
    "store.delete_replication_task",
    "DELETE FROM replication_tasks WHERE shard_id = $1 AND task_id = $2"};
inline constexpr Statement delete_range_replication_task{
    "store.delete_range_replication_task",
    "DELETE FROM replication_tasks WHERE shard_id = $1 "
    "AND task_id >= $2 AND task_id < $3 AND task_id <= coalesce("
    "(SELECT task_id FROM replication_tasks WHERE shard_id = $1 "
    "AND task_id >= $2 ORDER BY task_id LIMIT 1 OFFSET $4 - 1), $3)"};

// ---- HistoryVisibilityTask

inline constexpr Statement insert_visibility_task{
    "store.insert_visibility_task",
    "INSERT INTO visibility_tasks (shard_id, task_id, data, data_encoding) "
    "VALUES ($1, $2, $3, $4)"};
inline constexpr Statement range_visibility_task{
    "store.range_visibility_task",
    "SELECT task_id, data, data_encoding FROM visibility_tasks "
    "WHERE shard_id = $1 AND task_id >= $2 AND task_id < $3 "
    "ORDER BY task_id LIMIT $4"};
inline constexpr Statement update_visibility_task{
    "store.update_visibility_task",
    "UPDATE visibility_tasks SET data = $3, data_encoding = $4 "
    "WHERE shard_id = $1 AND task_id = $2"};
inline constexpr Statement delete_visibility_task{
    "store.delete_visibility_task",
    "DELETE FROM visibility_tasks WHERE shard_id = $1 AND task_id = $2"};
inline constexpr Statement delete_range_visibility_task{
    "store.delete_range_visibility_task",
    "DELETE FROM visibility_tasks WHERE shard_id = $1 "
    "AND task_id >= $2 AND task_id < $3 AND task_id <= coalesce("
    "(SELECT task_id FROM visibility_tasks WHERE shard_id = $1 "
    "AND task_id >= $2 ORDER BY task_id LIMIT 1 OFFSET $4 - 1), $3)"};

// ---- HistoryReplicationDLQTask

inline constexpr Statement insert_dlq_task{
    "store.insert_dlq_task",
    "INSERT INTO replication_tasks_dlq (source_cluster_name, shard_id, task_id, data, "
    "data_encoding) "
    "VALUES ($1, $2, $3, $4, $5)"};
inline constexpr Statement insert_dlq_task_once{
    "store.insert_dlq_task_once",
    "INSERT INTO replication_tasks_dlq (source_cluster_name, shard_id, task_id, data, "
    "data_encoding) "
    "VALUES ($1, $2, $3, $4, $5) "
    "ON CONFLICT (source_cluster_name, shard_id, task_id) DO NOTHING"};
inline constexpr Statement range_dlq_task{
    "store.range_dlq_task",
    "SELECT task_id, data, data_encoding FROM replication_tasks_dlq "
    "WHERE source_cluster_name = $1 AND shard_id = $2 AND task_id >= $3 AND task_id < $4 "
    "ORDER BY task_id LIMIT $5"};
inline constexpr Statement delete_dlq_task{
    "store.delete_dlq_task",
    "DELETE FROM replication_tasks_dlq WHERE source_cluster_name = $1 AND shard_id = $2 AND "
    "task_id = $3"};
inline constexpr Statement delete_range_dlq_task{
    "store.delete_range_dlq_task",
    "DELETE FROM replication_tasks_dlq WHERE source_cluster_name = $1 AND shard_id = $2 "
    "AND task_id >= $3 AND task_id < $4 AND task_id <= coalesce("
    "(SELECT task_id FROM replication_tasks_dlq WHERE source_cluster_name = $1 AND shard_id = $2 "
    "AND task_id >= $3 ORDER BY task_id LIMIT 1 OFFSET $5 - 1), $4)"};

}  // namespace holdfast::store::statements
