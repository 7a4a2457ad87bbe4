// The rows of visibility. Searches are built, see visibility_query.hpp.
#pragma once

#include <string_view>

#include <holdfast/sql/statement.hpp>

namespace holdfast::store::statements {

using sql::Statement;

// ---- Rows -------------------------------------------------------------------------------------

inline constexpr Statement insert_visibility{
    "store.insert_visibility",
    "INSERT INTO executions_visibility (namespace_id, run_id, version, start_time, execution_time, "
    "close_time, sort_time, workflow_id, workflow_type_name, status, history_length, "
    "history_size_bytes, execution_duration_us, state_transition_count, memo, memo_encoding, "
    "task_queue, search_attributes, parent_workflow_id, parent_run_id, root_workflow_id, "
    "root_run_id) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, "
    "$17, $18, $19, $20, $21, $22) ON CONFLICT (namespace_id, run_id) DO NOTHING"};
inline constexpr Statement replace_visibility{
    "store.replace_visibility",
    "INSERT INTO executions_visibility (namespace_id, run_id, version, start_time, execution_time, "
    "close_time, sort_time, workflow_id, workflow_type_name, status, history_length, "
    "history_size_bytes, execution_duration_us, state_transition_count, memo, memo_encoding, "
    "task_queue, search_attributes, parent_workflow_id, parent_run_id, root_workflow_id, "
    "root_run_id) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, "
    "$17, $18, $19, $20, $21, $22) ON CONFLICT (namespace_id, run_id) DO UPDATE SET "
    "version = excluded.version, start_time = excluded.start_time, "
    "execution_time = excluded.execution_time, close_time = excluded.close_time, "
    "sort_time = excluded.sort_time, workflow_id = excluded.workflow_id, "
    "workflow_type_name = excluded.workflow_type_name, status = excluded.status, "
    "history_length = excluded.history_length, history_size_bytes = excluded.history_size_bytes, "
    "execution_duration_us = excluded.execution_duration_us, "
    "state_transition_count = excluded.state_transition_count, memo = excluded.memo, "
    "memo_encoding = excluded.memo_encoding, task_queue = excluded.task_queue, "
    "search_attributes = excluded.search_attributes, "
    "parent_workflow_id = excluded.parent_workflow_id, parent_run_id = excluded.parent_run_id, "
    "root_workflow_id = excluded.root_workflow_id, root_run_id = excluded.root_run_id "
    "WHERE executions_visibility.version < excluded.version"};
inline constexpr Statement delete_visibility{
    "store.delete_visibility",
    "DELETE FROM executions_visibility WHERE namespace_id = $1 AND run_id = $2"};

inline constexpr Statement insert_attribute{
    "store.insert_attribute",
    "INSERT INTO visibility_attributes (namespace_id, name, value, sort_time, start_time, run_id) "
    "VALUES ($1, $2, $3, $4, $5, $6)"};
inline constexpr Statement delete_attributes{
    "store.delete_attributes",
    "DELETE FROM visibility_attributes WHERE namespace_id = $1 AND run_id = $2"};

// ---- Reads ------------------------------------------------------------------------------------

#define HOLDFAST_VISIBLE_COLUMNS                                                              \
    "v.namespace_id, v.run_id, v.version, v.start_time, v.execution_time, v.close_time, "     \
    "v.workflow_id, v.workflow_type_name, v.status, v.history_length, v.history_size_bytes, " \
    "v.execution_duration_us, v.state_transition_count, v.memo, v.memo_encoding, "            \
    "v.task_queue, v.search_attributes, v.parent_workflow_id, v.parent_run_id, "              \
    "v.root_workflow_id, v.root_run_id"
inline constexpr std::string_view visible_columns = HOLDFAST_VISIBLE_COLUMNS;
inline constexpr Statement find_visibility{
    "store.find_visibility",
    "SELECT " HOLDFAST_VISIBLE_COLUMNS
    " FROM executions_visibility v WHERE v.namespace_id = $1 AND v.run_id = $2"};

#undef HOLDFAST_VISIBLE_COLUMNS

}  // namespace holdfast::store::statements
