// The statements of administration: looking at many instances, and removing them.
#pragma once

#include "provider/statements.hpp"

namespace holdfast::flow::statements {

// An unused bound is empty or 0. A page begins after ($6, $7). Walks along the index by creation,
// from its end.
inline constexpr Statement list_instances{
    "flow.list_instances",
    "SELECT i.instance_id, i.name, i.version, i.execution, i.status, i.suspended, i.output, "
    "i.custom_status, i.status_version, i.parent_id, i.parent_execution, i.parent_event, "
    "i.last_event, i.history_bytes, i.created_us, i.updated_us, i.completed_us, i.cron, "
    "CASE WHEN i.status = 'pending' THEN i.starts_at_us ELSE 0 END, "
    "i.blocked, i.blocked_why, i.blocked_by, i.blocked_since_us, CASE WHEN i.blocked_until_us > 0 "
    "THEN i.blocked_until_us - {lease_epoch_us} "
    "ELSE i.blocked_until_us END, "
    "i.blocked_tries, (SELECT min(a.name) FROM flow_activities a "
    "WHERE a.instance_id = i.instance_id AND a.unserved_tries > 0) "
    "FROM flow_instances i WHERE ($1 = '' OR i.status = $1 "
    "OR ($1 = 'blocked' AND i.blocked IS NOT NULL) "
    "OR ($1 = 'suspended' AND i.suspended AND i.completed_us IS NULL)) "
    "AND ($2 = '' OR i.name = $2) AND ($9 = '' OR i.version = $9) "
    "AND ($3 = '' OR substr(i.instance_id, 1, length($3)) = $3) "
    "AND i.created_us >= $4 AND i.created_us < $5 AND (i.created_us, i.instance_id) < ($6, $7) "
    "ORDER BY i.created_us DESC, i.instance_id DESC LIMIT $8"};
// Those that have an attribute ($10, $11), found by it; up to three more are compared.
inline constexpr Statement list_by_attribute{
    "flow.list_by_attribute",
    "SELECT i.instance_id, i.name, i.version, i.execution, i.status, i.suspended, i.output, "
    "i.custom_status, i.status_version, i.parent_id, i.parent_execution, i.parent_event, "
    "i.last_event, i.history_bytes, i.created_us, i.updated_us, i.completed_us, i.cron, "
    "CASE WHEN i.status = 'pending' THEN i.starts_at_us ELSE 0 END, "
    "i.blocked, i.blocked_why, i.blocked_by, i.blocked_since_us, CASE WHEN i.blocked_until_us > 0 "
    "THEN i.blocked_until_us - {lease_epoch_us} "
    "ELSE i.blocked_until_us END, "
    "i.blocked_tries, (SELECT min(a.name) FROM flow_activities a "
    "WHERE a.instance_id = i.instance_id AND a.unserved_tries > 0) "
    "FROM flow_attributes t CROSS JOIN flow_instances i "
    "WHERE t.name = $10 AND t.value = $11 AND i.instance_id = t.instance_id "
    "AND ($1 = '' OR i.status = $1 "
    "OR ($1 = 'blocked' AND i.blocked IS NOT NULL) "
    "OR ($1 = 'suspended' AND i.suspended AND i.completed_us IS NULL)) "
    "AND ($2 = '' OR i.name = $2) AND ($9 = '' OR i.version = $9) "
    "AND ($3 = '' OR substr(i.instance_id, 1, length($3)) = $3) "
    "AND i.created_us >= $4 AND i.created_us < $5 AND (i.created_us, i.instance_id) < ($6, $7) "
    "AND ($12 = '' OR EXISTS (SELECT 1 FROM flow_attributes a "
    "WHERE a.instance_id = i.instance_id AND a.name = $12 AND a.value = $13)) "
    "AND ($14 = '' OR EXISTS (SELECT 1 FROM flow_attributes a "
    "WHERE a.instance_id = i.instance_id AND a.name = $14 AND a.value = $15)) "
    "AND ($16 = '' OR EXISTS (SELECT 1 FROM flow_attributes a "
    "WHERE a.instance_id = i.instance_id AND a.name = $16 AND a.value = $17)) "
    "ORDER BY i.created_us DESC, i.instance_id DESC LIMIT $8"};
inline constexpr Statement list_executions{
    "flow.list_executions",
    "SELECT execution, version, status, output, last_event, started_us, completed_us "
    "FROM flow_executions WHERE instance_id = $1 ORDER BY execution"};
inline constexpr Statement current_execution{
    "flow.current_execution",
    "SELECT execution, version, status, output, last_event, started_us, completed_us "
    "FROM flow_instances WHERE instance_id = $1"};
inline constexpr Statement list_children{
    "flow.list_children",
    "SELECT instance_id FROM flow_instances WHERE parent_id = $1 "
    "ORDER BY created_us, instance_id"};
inline constexpr Statement count_instances{
    "flow.count_instances",
    "SELECT status, count(*), CAST(sum(last_event) AS BIGINT) FROM flow_instances GROUP BY status"};
inline constexpr Statement count_rest{
    "flow.count_rest",
    "SELECT (SELECT count(*) FROM flow_executions), (SELECT count(*) FROM flow_messages), "
    "(SELECT count(*) FROM flow_activities), "
    "(SELECT count(*) FROM flow_mailboxes WHERE early), "
    "(SELECT min(r.since_us) FROM (SELECT min(ready_at_us) + 1000000000000000000 AS since_us "
    "FROM flow_mailboxes WHERE ready_at_us < 0 UNION ALL SELECT min(ready_at_us) "
    "FROM flow_mailboxes WHERE ready_at_us >= 0 AND ready_at_us <= (SELECT {now_us})) r), "
    "{now_us}, (SELECT CAST(COALESCE(sum(last_event), 0) AS BIGINT) FROM flow_executions), "
    "(SELECT count(*) FROM flow_activities WHERE unserved_tries > 0)"};
inline constexpr Statement count_blocked{
    "flow.count_blocked",
    "SELECT blocked, count(*) FROM flow_instances WHERE blocked IS NOT NULL GROUP BY blocked"};
inline constexpr Statement lock_instance{
    "flow.lock_instance",
    "SELECT lock_token, status, parent_id, execution FROM flow_instances "
    "WHERE instance_id = $1 {for_update}"};
inline constexpr FencedStatement delete_instance{
    "flow.delete_instance",
    "DELETE FROM flow_instances WHERE instance_id = $1 AND lock_token = $2",
    instance_token};
// How many rows it has beside its own.
inline constexpr Statement count_rows{
    "flow.count_rows",
    "SELECT (SELECT count(*) FROM flow_history WHERE instance_id = $1) "
    "+ (SELECT count(*) FROM flow_messages WHERE instance_id = $1) "
    "+ (SELECT count(*) FROM flow_executions WHERE instance_id = $1) "
    "+ (SELECT count(*) FROM flow_activities WHERE instance_id = $1) "
    "+ (SELECT count(*) FROM flow_kv WHERE instance_id = $1) "
    "+ (SELECT count(*) FROM flow_attributes WHERE instance_id = $1)"};
// Before it is deleted in several transactions, so that no worker continues a partial instance.
inline constexpr FencedStatement end_for_deletion{
    "flow.end_for_deletion",
    "UPDATE flow_instances SET lock_token = $3, locked_until_us = 0, status = 'cancelled', "
    "output = $4, completed_us = {now_us}, updated_us = {now_us}, suspended = FALSE, cron = NULL "
    "WHERE instance_id = $1 AND lock_token = $2",
    instance_token};
inline constexpr Statement shrink_history{
    "flow.shrink_history",
    "DELETE FROM flow_history WHERE instance_id = $1 AND (execution, first_event) IN "
    "(SELECT execution, first_event FROM flow_history WHERE instance_id = $1 "
    "ORDER BY execution, first_event LIMIT $2) RETURNING event_count"};
inline constexpr Statement shrink_messages{
    "flow.shrink_messages",
    "DELETE FROM flow_messages WHERE instance_id = $1 AND position IN "
    "(SELECT position FROM flow_messages WHERE instance_id = $1 ORDER BY position LIMIT $2) "
    "RETURNING position"};
inline constexpr Statement shrink_executions{
    "flow.shrink_executions",
    "DELETE FROM flow_executions WHERE instance_id = $1 AND execution IN "
    "(SELECT execution FROM flow_executions WHERE instance_id = $1 ORDER BY execution LIMIT $2) "
    "RETURNING execution"};
inline constexpr Statement shrink_activities{
    "flow.shrink_activities",
    "DELETE FROM flow_activities WHERE instance_id = $1 AND (execution, event) IN "
    "(SELECT execution, event FROM flow_activities WHERE instance_id = $1 "
    "ORDER BY execution, event LIMIT $2) RETURNING event"};
inline constexpr Statement delete_history{
    "flow.delete_history", "DELETE FROM flow_history WHERE instance_id = $1 RETURNING event_count"};
inline constexpr Statement delete_executions{
    "flow.delete_executions",
    "DELETE FROM flow_executions WHERE instance_id = $1 RETURNING execution"};
inline constexpr Statement delete_messages{
    "flow.delete_messages", "DELETE FROM flow_messages WHERE instance_id = $1 RETURNING position"};
inline constexpr Statement delete_kv{"flow.delete_kv",
                                     "DELETE FROM flow_kv WHERE instance_id = $1"};
inline constexpr Statement delete_attributes{"flow.delete_attributes",
                                             "DELETE FROM flow_attributes WHERE instance_id = $1"};
// Ended before a moment means created before it: so the index by creation bounds the search.
inline constexpr Statement find_ended{
    "flow.find_ended",
    "SELECT instance_id FROM flow_instances WHERE parent_id IS NULL "
    "AND status IN ('completed', 'failed', 'cancelled') "
    "AND created_us < $1 AND completed_us < $1 ORDER BY created_us, instance_id LIMIT $2"};
inline constexpr Statement is_ended{
    "flow.is_ended",
    "SELECT count(*) FROM flow_instances WHERE instance_id = $2 AND parent_id IS NULL "
    "AND status IN ('completed', 'failed', 'cancelled') AND completed_us < $1"};
inline constexpr Statement find_prunable{
    "flow.find_prunable",
    "SELECT execution FROM flow_executions WHERE instance_id = $1 AND execution <= $2 "
    "AND ($3 = 0 OR completed_us < $3) ORDER BY execution LIMIT $4"};
inline constexpr Statement find_prunable_instances{
    "flow.find_prunable_instances",
    "SELECT DISTINCT instance_id FROM flow_executions WHERE completed_us < $1 LIMIT $2"};
inline constexpr Statement prune_history{
    "flow.prune_history",
    "DELETE FROM flow_history WHERE instance_id = $1 AND execution = $2 AND first_event IN "
    "(SELECT first_event FROM flow_history WHERE instance_id = $1 AND execution = $2 "
    "ORDER BY first_event LIMIT $3) RETURNING event_count"};
inline constexpr Statement prune_execution{
    "flow.prune_execution",
    "DELETE FROM flow_executions WHERE instance_id = $1 AND execution = $2"};
// Skips those that a concurrent start is adopting. Where rows are not locked, the deletion of what
// is found conflicts with that start.
inline constexpr Statement find_early{
    "flow.find_early",
    "SELECT instance_id FROM flow_mailboxes WHERE early AND created_us <= {now_us} - $1 "
    "ORDER BY instance_id LIMIT $2 {skip_locked}"};
inline constexpr Statement sweep_replies{
    "flow.sweep_replies", "DELETE FROM flow_replies WHERE created_us <= (SELECT {now_us}) - $1"};
inline constexpr Statement import_instance{
    "flow.import_instance",
    "INSERT INTO flow_instances (instance_id, name, version, execution, status, origin, "
    "lock_token, locked_until_us, starts_at_us, last_event, history_bytes, engine, suspended, "
    "parent_id, parent_execution, parent_event, output, created_us, started_us, updated_us, "
    "completed_us, cron, custom_status, status_version) "
    "VALUES ($1, $2, $3, $14, $4, $5, $5, 0, 0, $6, $7, $8, "
    "FALSE, $9, $10, $11, $12, {now_us}, {now_us}, {now_us}, "
    "CASE WHEN $13 THEN {now_us} ELSE NULL END, $15, $16, $17) "
    "ON CONFLICT (instance_id) DO NOTHING RETURNING instance_id"};
inline constexpr Statement import_kv{
    "flow.import_kv",
    "INSERT INTO flow_kv (instance_id, key, value, updated_us, seed) "
    "VALUES ($1, $2, $3, {now_us}, $4)"};
inline constexpr Statement open_mailbox{
    "flow.open_mailbox",
    "INSERT INTO flow_mailboxes (instance_id, arrivals, ready_at_us, early, created_us) "
    "VALUES ($1, 0, NULL, FALSE, {now_us}) "
    "ON CONFLICT (instance_id) DO UPDATE SET early = FALSE"};

}  // namespace holdfast::flow::statements
