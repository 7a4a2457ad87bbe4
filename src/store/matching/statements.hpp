// Matching: task queues and their tasks, plain and fair, and what users have set for them.
#pragma once

#include "locking_read.hpp"

#include <holdfast/sql/statement.hpp>

namespace holdfast::store::statements {

using sql::FencedStatement;
using sql::Statement;

// ---- Plain queues

inline constexpr Statement insert_task_queue{
    "store.insert_task_queue",
    "INSERT INTO task_queues (range_hash, task_queue_id, task_queue_name, range_id, "
    "data, data_encoding) VALUES ($1, $2, $3, $4, $5, $6)"};
inline constexpr FencedStatement update_task_queue{
    "store.update_task_queue",
    "UPDATE task_queues SET range_id = $4, data = $5, data_encoding = $6 "
    "WHERE range_hash = $1 AND task_queue_id = $2 AND range_id = $3",
    "SELECT range_id FROM task_queues WHERE range_hash = $1 AND task_queue_id = $2"};
inline constexpr Statement select_task_queue{
    "store.select_task_queue",
    "SELECT range_id, data, data_encoding, task_queue_name FROM task_queues "
    "WHERE range_hash = $1 AND task_queue_id = $2"};
inline constexpr LockingRead lock_task_queue{
    "store.lock_task_queue",
    "SELECT range_id, task_queue_name FROM task_queues "
    "WHERE range_hash = $1 AND task_queue_id = $2 {for_update}"};
inline constexpr FencedStatement delete_task_queue{
    "store.delete_task_queue",
    "DELETE FROM task_queues "
    "WHERE range_hash = $1 AND task_queue_id = $2 AND range_id = $3",
    "SELECT range_id FROM task_queues WHERE range_hash = $1 AND task_queue_id = $2"};
inline constexpr Statement page_of_task_queues{
    "store.page_of_task_queues",
    "SELECT range_id, data, data_encoding, task_queue_name, range_hash, task_queue_id "
    "FROM task_queues WHERE (range_hash, task_queue_id) > ($1, $2) "
    "ORDER BY range_hash, task_queue_id LIMIT $3"};
inline constexpr Statement insert_task{
    "store.insert_task",
    "INSERT INTO tasks (range_hash, task_queue_id, task_id, data, data_encoding) "
    "VALUES ($1, $2, $3, $4, $5)"};
inline constexpr Statement range_tasks{
    "store.range_tasks",
    "SELECT task_id, data, data_encoding FROM tasks "
    "WHERE range_hash = $1 AND task_queue_id = $2 "
    "AND task_id >= $3 AND task_id < $4 ORDER BY task_id LIMIT $5"};
inline constexpr Statement delete_tasks{
    "store.delete_tasks",
    "DELETE FROM tasks WHERE range_hash = $1 AND task_queue_id = $2 "
    "AND task_id < $3 AND task_id <= coalesce((SELECT task_id FROM tasks "
    "WHERE range_hash = $1 AND task_queue_id = $2 ORDER BY task_id LIMIT 1 OFFSET $4 - 1), $3)"};

// ---- Fair queues

inline constexpr Statement insert_task_queue_v2{
    "store.insert_task_queue_v2",
    "INSERT INTO task_queues_v2 (range_hash, task_queue_id, task_queue_name, range_id, "
    "data, data_encoding) VALUES ($1, $2, $3, $4, $5, $6)"};
inline constexpr FencedStatement update_task_queue_v2{
    "store.update_task_queue_v2",
    "UPDATE task_queues_v2 SET range_id = $4, data = $5, data_encoding = $6 "
    "WHERE range_hash = $1 AND task_queue_id = $2 AND range_id = $3",
    "SELECT range_id FROM task_queues_v2 WHERE range_hash = $1 AND task_queue_id = $2"};
inline constexpr Statement select_task_queue_v2{
    "store.select_task_queue_v2",
    "SELECT range_id, data, data_encoding, task_queue_name FROM task_queues_v2 "
    "WHERE range_hash = $1 AND task_queue_id = $2"};
inline constexpr LockingRead lock_task_queue_v2{
    "store.lock_task_queue_v2",
    "SELECT range_id, task_queue_name FROM task_queues_v2 "
    "WHERE range_hash = $1 AND task_queue_id = $2 {for_update}"};
inline constexpr FencedStatement delete_task_queue_v2{
    "store.delete_task_queue_v2",
    "DELETE FROM task_queues_v2 "
    "WHERE range_hash = $1 AND task_queue_id = $2 AND range_id = $3",
    "SELECT range_id FROM task_queues_v2 WHERE range_hash = $1 AND task_queue_id = $2"};
inline constexpr Statement page_of_task_queues_v2{
    "store.page_of_task_queues_v2",
    "SELECT range_id, data, data_encoding, task_queue_name, range_hash, task_queue_id "
    "FROM task_queues_v2 WHERE (range_hash, task_queue_id) > ($1, $2) "
    "ORDER BY range_hash, task_queue_id LIMIT $3"};
inline constexpr Statement insert_task_v2{
    "store.insert_task_v2",
    "INSERT INTO tasks_v2 (range_hash, task_queue_id, pass, task_id, data, data_encoding) "
    "VALUES ($1, $2, $3, $4, $5, $6)"};
inline constexpr Statement range_tasks_v2{
    "store.range_tasks_v2",
    "SELECT pass, task_id, data, data_encoding FROM tasks_v2 "
    "WHERE range_hash = $1 AND task_queue_id = $2 "
    "AND (pass, task_id) >= ($3, $4) ORDER BY pass, task_id LIMIT $5"};
inline constexpr Statement delete_tasks_v2{
    "store.delete_tasks_v2",
    "DELETE FROM tasks_v2 WHERE range_hash = $1 AND task_queue_id = $2 "
    "AND (pass, task_id) < ($3, $4) AND (pass, task_id) <= (coalesce("
    "(SELECT pass FROM tasks_v2 WHERE range_hash = $1 AND task_queue_id = $2 "
    "ORDER BY pass, task_id LIMIT 1 OFFSET $5 - 1)"
    ", $3), coalesce("
    "(SELECT task_id FROM tasks_v2 WHERE range_hash = $1 AND task_queue_id = $2 "
    "ORDER BY pass, task_id LIMIT 1 OFFSET $5 - 1)"
    ", $4))"};

// ---- User data and builds

inline constexpr Statement select_user_data{
    "store.select_user_data",
    "SELECT version, data, data_encoding, task_queue_name FROM task_queue_user_data "
    "WHERE namespace_id = $1 AND task_queue_digest = $2"};
inline constexpr Statement insert_user_data{
    "store.insert_user_data",
    "INSERT INTO task_queue_user_data (namespace_id, task_queue_digest, task_queue_name, data, "
    "data_encoding, version) VALUES ($1, $2, $3, $4, $5, 1) "
    "ON CONFLICT (namespace_id, task_queue_digest) DO NOTHING RETURNING version"};
inline constexpr FencedStatement update_user_data{
    "store.update_user_data",
    "UPDATE task_queue_user_data SET version = version + 1, data = $4, data_encoding = $5 "
    "WHERE namespace_id = $1 AND task_queue_digest = $2 AND version = $3",
    "SELECT version FROM task_queue_user_data WHERE namespace_id = $1 AND task_queue_digest = $2"};
inline constexpr Statement page_of_user_data{
    "store.page_of_user_data",
    "SELECT task_queue_name, version, data, data_encoding FROM task_queue_user_data "
    "WHERE namespace_id = $1 AND task_queue_digest > $2 ORDER BY task_queue_digest LIMIT $3"};
inline constexpr Statement add_build{
    "store.add_build",
    "INSERT INTO build_id_to_task_queue (namespace_id, build_id, task_queue_digest, "
    "task_queue_name) VALUES ($1, $2, $3, $4) "
    "ON CONFLICT (namespace_id, build_id, task_queue_digest) DO NOTHING"};
inline constexpr Statement remove_build{
    "store.remove_build",
    "DELETE FROM build_id_to_task_queue "
    "WHERE namespace_id = $1 AND build_id = $2 AND task_queue_digest = $3"};
inline constexpr Statement queues_of_build{
    "store.queues_of_build",
    "SELECT task_queue_name FROM build_id_to_task_queue "
    "WHERE namespace_id = $1 AND build_id = $2 ORDER BY task_queue_name"};
inline constexpr Statement count_queues_of_build{"store.count_queues_of_build",
                                                 "SELECT count(*) FROM build_id_to_task_queue "
                                                 "WHERE namespace_id = $1 AND build_id = $2"};

}  // namespace holdfast::store::statements
