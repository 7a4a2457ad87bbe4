// Queues, of both kinds.
#pragma once

#include "locking_read.hpp"

#include <holdfast/sql/statement.hpp>

namespace holdfast::store::statements {

using sql::FencedStatement;
using sql::Statement;

// ---- Queues with levels -------------------------------------------------------------------------

inline constexpr Statement insert_queue_metadata{
    "store.insert_queue_metadata",
    "INSERT INTO queue_metadata (queue_type, data, data_encoding, version) "
    "VALUES ($1, $2, $3, 0) ON CONFLICT (queue_type) DO NOTHING"};
inline constexpr Statement select_queue_metadata{
    "store.select_queue_metadata",
    "SELECT version, data, data_encoding FROM queue_metadata WHERE queue_type = $1"};
inline constexpr LockingRead lock_queue_metadata{
    "store.lock_queue_metadata",
    "SELECT version, data, data_encoding FROM queue_metadata WHERE queue_type = $1 {for_update}"};
inline constexpr FencedStatement update_queue_metadata{
    "store.update_queue_metadata",
    "UPDATE queue_metadata SET data = $3, data_encoding = $4, version = version + 1 "
    "WHERE queue_type = $1 AND version = $2",
    "SELECT version FROM queue_metadata WHERE queue_type = $1"};
// Requires: the queue's metadata are locked, so that only one transaction counts at a time.
inline constexpr Statement insert_message{
    "store.insert_message",
    "INSERT INTO queue (queue_type, message_id, message_payload, message_encoding) "
    "SELECT $1, coalesce(max(message_id), -1) + 1, $2, $3 FROM queue WHERE queue_type = $1 "
    "RETURNING message_id"};
inline constexpr Statement range_messages{
    "store.range_messages",
    "SELECT message_id, message_payload, message_encoding FROM queue "
    "WHERE queue_type = $1 AND message_id > $2 AND message_id <= $3 ORDER BY message_id LIMIT $4"};
inline constexpr Statement delete_message{
    "store.delete_message", "DELETE FROM queue WHERE queue_type = $1 AND message_id = $2"};
// All but the highest of the queue, $4 at most; a row for each.
inline constexpr Statement delete_messages{
    "store.delete_messages",
    "DELETE FROM queue WHERE queue_type = $1 AND message_id > $2 AND message_id <= $3 "
    "AND message_id < (SELECT max(message_id) FROM queue WHERE queue_type = $1) "
    "AND message_id <= coalesce((SELECT message_id FROM queue WHERE queue_type = $1 "
    "AND message_id > $2 ORDER BY message_id LIMIT 1 OFFSET $4 - 1), $3) RETURNING message_id"};

// ---- Named queues -------------------------------------------------------------------------------

inline constexpr Statement insert_queue{
    "store.insert_queue",
    "INSERT INTO queues (queue_type, queue_name, metadata_payload, metadata_encoding) "
    "VALUES ($1, $2, $3, $4)"};
inline constexpr Statement select_queue{"store.select_queue",
                                        "SELECT metadata_payload, metadata_encoding FROM queues "
                                        "WHERE queue_type = $1 AND queue_name = $2"};
inline constexpr LockingRead lock_queue{"store.lock_queue",
                                        "SELECT metadata_payload, metadata_encoding FROM queues "
                                        "WHERE queue_type = $1 AND queue_name = $2 {for_update}"};
inline constexpr FencedStatement update_queue{
    "store.update_queue",
    "UPDATE queues SET metadata_payload = $3, metadata_encoding = $4 "
    "WHERE queue_type = $1 AND queue_name = $2",
    "SELECT queue_name FROM queues WHERE queue_type = $1 AND queue_name = $2"};
inline constexpr Statement page_of_queues{
    "store.page_of_queues",
    "SELECT q.queue_name, q.metadata_payload, q.metadata_encoding, "
    "(SELECT max(m.message_id) FROM queue_messages m WHERE m.queue_type = q.queue_type "
    "AND m.queue_name = q.queue_name AND m.queue_partition = 0) FROM queues q "
    "WHERE q.queue_type = $1 AND q.queue_name > $2 ORDER BY q.queue_name LIMIT $3"};
// Requires: the queue is locked, so that only one transaction counts at a time.
inline constexpr Statement insert_named_message{
    "store.insert_named_message",
    "INSERT INTO queue_messages (queue_type, queue_name, queue_partition, message_id, "
    "message_payload, message_encoding) "
    "SELECT $1, $2, 0, coalesce(max(message_id), -1) + 1, $3, $4 FROM queue_messages "
    "WHERE queue_type = $1 AND queue_name = $2 AND queue_partition = 0 RETURNING message_id"};
inline constexpr Statement last_named_message{
    "store.last_named_message",
    "SELECT max(message_id) FROM queue_messages "
    "WHERE queue_type = $1 AND queue_name = $2 AND queue_partition = 0"};
inline constexpr Statement range_named_messages{
    "store.range_named_messages",
    "SELECT message_id, message_payload, message_encoding FROM queue_messages "
    "WHERE queue_type = $1 AND queue_name = $2 AND queue_partition = 0 AND message_id >= $3 "
    "ORDER BY message_id LIMIT $4"};
// All before $3 but the highest of the queue, $4 at most.
inline constexpr Statement delete_named_messages{
    "store.delete_named_messages",
    "DELETE FROM queue_messages WHERE queue_type = $1 AND queue_name = $2 AND queue_partition = 0 "
    "AND message_id < $3 AND message_id < (SELECT max(message_id) FROM queue_messages "
    "WHERE queue_type = $1 AND queue_name = $2 AND queue_partition = 0) "
    "AND message_id <= coalesce((SELECT message_id FROM queue_messages "
    "WHERE queue_type = $1 AND queue_name = $2 AND queue_partition = 0 "
    "ORDER BY message_id LIMIT 1 OFFSET $4 - 1), $3)"};

}  // namespace holdfast::store::statements
