// What people search executions by.
//
// A search walks along one of five indexes, chosen by what it asks for, from the newest run to the
// oldest; whatever else it asks for is compared row by row. All searches have the same parameters:
//   $1 namespace, $2 workflow id or '', $3 type or '', $4 status or 0, $5 the oldest time to sort
//   by, $6 to $8 the place before which rows are wanted, $9 and $10 the first and last start,
//   $11 to $18 names and values of attributes, or ''; pages have a size, $19.
#pragma once

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

// ---- Searches ---------------------------------------------------------------------------------

#define HOLDFAST_VISIBLE_COLUMNS                                                              \
    "v.namespace_id, v.run_id, v.version, v.start_time, v.execution_time, v.close_time, "     \
    "v.workflow_id, v.workflow_type_name, v.status, v.history_length, v.history_size_bytes, " \
    "v.execution_duration_us, v.state_transition_count, v.memo, v.memo_encoding, "            \
    "v.task_queue, v.search_attributes, v.parent_workflow_id, v.parent_run_id, "              \
    "v.root_workflow_id, v.root_run_id "
#define HOLDFAST_HAS_ATTRIBUTE(name, value)                                            \
    "AND (" name                                                                       \
    " = '' OR EXISTS (SELECT 1 FROM visibility_attributes x "                          \
    "WHERE x.namespace_id = v.namespace_id AND x.name = " name " AND x.value = " value \
    " "                                                                                \
    "AND x.sort_time = v.sort_time AND x.start_time = v.start_time AND x.run_id = v.run_id)) "
#define HOLDFAST_VISIBLE                                                                   \
    "WHERE v.namespace_id = $1 AND ($2 = '' OR v.workflow_id = $2) "                       \
    "AND ($3 = '' OR v.workflow_type_name = $3) AND ($4 = 0 OR v.status = $4) "            \
    "AND v.sort_time >= $5 AND (v.sort_time, v.start_time, v.run_id) < ($6, $7, $8) "      \
    "AND v.start_time >= $9 AND v.start_time <= $10 " HOLDFAST_HAS_ATTRIBUTE("$11", "$12") \
        HOLDFAST_HAS_ATTRIBUTE("$13", "$14") HOLDFAST_HAS_ATTRIBUTE("$15", "$16")          \
            HOLDFAST_HAS_ATTRIBUTE("$17", "$18")
#define HOLDFAST_WITH_ATTRIBUTE                                                         \
    "visibility_attributes a CROSS JOIN executions_visibility v " HOLDFAST_VISIBLE      \
    "AND a.namespace_id = $1 AND a.name = $11 AND a.value = $12 AND a.sort_time >= $5 " \
    "AND (a.sort_time, a.start_time, a.run_id) < ($6, $7, $8) AND v.run_id = a.run_id "

inline constexpr Statement find_visibility{
    "store.find_visibility",
    "SELECT " HOLDFAST_VISIBLE_COLUMNS
    "FROM executions_visibility v WHERE v.namespace_id = $1 AND v.run_id = $2"};

inline constexpr Statement list_by_time{
    "store.list_by_time",
    "SELECT " HOLDFAST_VISIBLE_COLUMNS "FROM executions_visibility v " HOLDFAST_VISIBLE
    "ORDER BY v.sort_time DESC, v.start_time DESC, v.run_id DESC LIMIT $19"};
inline constexpr Statement list_by_workflow{
    "store.list_by_workflow",
    "SELECT " HOLDFAST_VISIBLE_COLUMNS "FROM executions_visibility v " HOLDFAST_VISIBLE
    "AND v.workflow_id = $2 "
    "ORDER BY v.sort_time DESC, v.start_time DESC, v.run_id DESC LIMIT $19"};
inline constexpr Statement list_by_type{
    "store.list_by_type",
    "SELECT " HOLDFAST_VISIBLE_COLUMNS "FROM executions_visibility v " HOLDFAST_VISIBLE
    "AND v.workflow_type_name = $3 "
    "ORDER BY v.sort_time DESC, v.start_time DESC, v.run_id DESC LIMIT $19"};
inline constexpr Statement list_by_status{
    "store.list_by_status",
    "SELECT " HOLDFAST_VISIBLE_COLUMNS "FROM executions_visibility v " HOLDFAST_VISIBLE
    "AND v.status = $4 "
    "ORDER BY v.sort_time DESC, v.start_time DESC, v.run_id DESC LIMIT $19"};
inline constexpr Statement list_by_attribute{
    "store.list_by_attribute",
    "SELECT " HOLDFAST_VISIBLE_COLUMNS "FROM " HOLDFAST_WITH_ATTRIBUTE
    "ORDER BY a.sort_time DESC, a.start_time DESC, a.run_id DESC LIMIT $19"};

inline constexpr Statement count_by_time{
    "store.count_by_time",
    "SELECT v.status, count(*) FROM executions_visibility v " HOLDFAST_VISIBLE "GROUP BY v.status"};
inline constexpr Statement count_by_workflow{
    "store.count_by_workflow",
    "SELECT v.status, count(*) FROM executions_visibility v " HOLDFAST_VISIBLE
    "AND v.workflow_id = $2 GROUP BY v.status"};
inline constexpr Statement count_by_type{
    "store.count_by_type",
    "SELECT v.status, count(*) FROM executions_visibility v " HOLDFAST_VISIBLE
    "AND v.workflow_type_name = $3 GROUP BY v.status"};
inline constexpr Statement count_by_status{
    "store.count_by_status",
    "SELECT v.status, count(*) FROM executions_visibility v " HOLDFAST_VISIBLE
    "AND v.status = $4 GROUP BY v.status"};
inline constexpr Statement count_by_attribute{
    "store.count_by_attribute",
    "SELECT v.status, count(*) FROM " HOLDFAST_WITH_ATTRIBUTE "GROUP BY v.status"};

#undef HOLDFAST_VISIBLE_COLUMNS
#undef HOLDFAST_HAS_ATTRIBUTE
#undef HOLDFAST_VISIBLE
#undef HOLDFAST_WITH_ATTRIBUTE

}  // namespace holdfast::store::statements
