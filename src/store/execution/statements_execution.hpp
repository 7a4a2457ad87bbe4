// Runs, the rows that name the current runs, and buffered events.
#pragma once

#include "locking_read.hpp"

#include <holdfast/sql/statement.hpp>

namespace holdfast::store::statements {

using sql::FencedStatement;
using sql::Statement;

// ---- Runs -------------------------------------------------------------------------------------

inline constexpr Statement insert_execution{
    "store.insert_execution",
    "INSERT INTO executions (shard_id, run_id, namespace_id, workflow_id, next_event_id, "
    "last_write_version, data, data_encoding, state, state_encoding, db_record_version) "
    "VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)"};
inline constexpr FencedStatement update_execution{
    "store.update_execution",
    "UPDATE executions SET next_event_id = $5, last_write_version = $6, data = $7, "
    "data_encoding = $8, state = $9, state_encoding = $10, db_record_version = $11 "
    "WHERE shard_id = $1 AND run_id = $2 AND db_record_version = $3 AND next_event_id = $4",
    "SELECT db_record_version, next_event_id FROM executions "
    "WHERE shard_id = $1 AND run_id = $2"};
// The same where `data` stays as it is.
inline constexpr FencedStatement update_execution_state{
    "store.update_execution_state",
    "UPDATE executions SET next_event_id = $5, last_write_version = $6, state = $7, "
    "state_encoding = $8, db_record_version = $9 "
    "WHERE shard_id = $1 AND run_id = $2 AND db_record_version = $3 AND next_event_id = $4",
    "SELECT db_record_version, next_event_id FROM executions "
    "WHERE shard_id = $1 AND run_id = $2"};
inline constexpr Statement select_execution{
    "store.select_execution",
    "SELECT next_event_id, last_write_version, data, data_encoding, state, state_encoding, "
    "db_record_version, namespace_id, workflow_id FROM executions "
    "WHERE shard_id = $1 AND run_id = $2"};
inline constexpr Statement delete_execution{
    "store.delete_execution",
    "DELETE FROM executions "
    "WHERE shard_id = $1 AND run_id = $2 AND namespace_id = $3 AND workflow_id = $4"};
inline constexpr LockingRead lock_execution{
    "store.lock_execution",
    "SELECT db_record_version, next_event_id, last_write_version, namespace_id, workflow_id "
    "FROM executions WHERE shard_id = $1 AND run_id = $2 {for_update}"};

// ---- Current runs -----------------------------------------------------------------------------

inline constexpr Statement insert_current{
    "store.insert_current",
    "INSERT INTO current_executions (shard_id, namespace_id, workflow_digest, workflow_id, run_id, "
    "create_request_id, state, status, start_time, last_write_version, data, data_encoding) "
    "VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)"};
inline constexpr FencedStatement update_current{
    "store.update_current",
    "UPDATE current_executions SET run_id = $5, create_request_id = $6, state = $7, status = $8, "
    "start_time = $9, last_write_version = $10, data = $11, data_encoding = $12 "
    "WHERE shard_id = $1 AND namespace_id = $2 AND workflow_digest = $3 AND run_id = $4",
    "SELECT run_id FROM current_executions "
    "WHERE shard_id = $1 AND namespace_id = $2 AND workflow_digest = $3"};
inline constexpr Statement select_current{
    "store.select_current",
    "SELECT run_id, create_request_id, state, status, start_time, last_write_version, data, "
    "data_encoding, workflow_id FROM current_executions "
    "WHERE shard_id = $1 AND namespace_id = $2 AND workflow_digest = $3"};
inline constexpr LockingRead lock_current{
    "store.lock_current",
    "SELECT run_id, create_request_id, state, status, start_time, last_write_version, data, "
    "data_encoding, workflow_id FROM current_executions "
    "WHERE shard_id = $1 AND namespace_id = $2 AND workflow_digest = $3 {for_update}"};
inline constexpr FencedStatement delete_current{
    "store.delete_current",
    "DELETE FROM current_executions "
    "WHERE shard_id = $1 AND namespace_id = $2 AND workflow_digest = $3 AND run_id = $4",
    "SELECT run_id FROM current_executions "
    "WHERE shard_id = $1 AND namespace_id = $2 AND workflow_digest = $3"};

inline constexpr Statement insert_current_chasm{
    "store.insert_current_chasm",
    "INSERT INTO current_chasm_executions (shard_id, namespace_id, business_digest, archetype_id, "
    "business_id, run_id, create_request_id, state, status, start_time, last_write_version, data, "
    "data_encoding) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)"};
inline constexpr FencedStatement update_current_chasm{
    "store.update_current_chasm",
    "UPDATE current_chasm_executions SET run_id = $6, create_request_id = $7, state = $8, "
    "status = $9, start_time = $10, last_write_version = $11, data = $12, data_encoding = $13 "
    "WHERE shard_id = $1 AND namespace_id = $2 AND business_digest = $3 AND archetype_id = $4 "
    "AND run_id = $5",
    "SELECT run_id FROM current_chasm_executions "
    "WHERE shard_id = $1 AND namespace_id = $2 AND business_digest = $3 AND archetype_id = $4"};
inline constexpr Statement select_current_chasm{
    "store.select_current_chasm",
    "SELECT run_id, create_request_id, state, status, start_time, last_write_version, data, "
    "data_encoding, business_id FROM current_chasm_executions "
    "WHERE shard_id = $1 AND namespace_id = $2 AND business_digest = $3 AND archetype_id = $4"};
inline constexpr LockingRead lock_current_chasm{
    "store.lock_current_chasm",
    "SELECT run_id, create_request_id, state, status, start_time, last_write_version, data, "
    "data_encoding, business_id FROM current_chasm_executions "
    "WHERE shard_id = $1 AND namespace_id = $2 AND business_digest = $3 AND archetype_id = $4 "
    "{for_update}"};
inline constexpr FencedStatement delete_current_chasm{
    "store.delete_current_chasm",
    "DELETE FROM current_chasm_executions "
    "WHERE shard_id = $1 AND namespace_id = $2 AND business_digest = $3 AND archetype_id = $4 "
    "AND run_id = $5",
    "SELECT run_id FROM current_chasm_executions "
    "WHERE shard_id = $1 AND namespace_id = $2 AND business_digest = $3 AND archetype_id = $4"};

// ---- Buffered events --------------------------------------------------------------------------

// Requires: the run's row is locked, so that only one transaction counts at a time.
inline constexpr Statement insert_buffered_event{
    "store.insert_buffered_event",
    "INSERT INTO buffered_events (shard_id, run_id, id, data, "
    "data_encoding) SELECT $1, $2, coalesce(max(id), 0) + 1, $3, $4 FROM buffered_events "
    "WHERE shard_id = $1 AND run_id = $2"};
inline constexpr Statement select_buffered_events{
    "store.select_buffered_events",
    "SELECT data, data_encoding FROM buffered_events "
    "WHERE shard_id = $1 AND run_id = $2 ORDER BY id"};
inline constexpr Statement delete_buffered_events{"store.delete_buffered_events",
                                                  "DELETE FROM buffered_events "
                                                  "WHERE shard_id = $1 AND run_id = $2"};

}  // namespace holdfast::store::statements
