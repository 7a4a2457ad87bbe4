// Every statement of this floor but those of administration (statements_admin.hpp).
//
// A moment that is compared with an index stands in a sub-select, `(SELECT {now_us})`: a server
// reads its clock anew for each row otherwise, and cannot use the index.
//
// Mail and activities that are due at once are marked so: their moment is the time of the request
// minus 10^18 microseconds, which is below 0. They are due at any reading of the clock, so a clock
// that is set back does not hide them, and their order is kept. A claim merges the two ranges of
// the index, those due at once and those whose moment has passed, by the time since when they wait.
//
// Leases of instances and sessions, and the moments at which activities become available again, are
// times of the lease clock; starts, timers and displayed times are times of the wall clock.
#pragma once

#include <holdfast/sql/statement.hpp>

namespace holdfast::flow::statements {

using sql::FencedStatement;
using sql::Statement;

inline constexpr std::string_view instance_token =
    "SELECT lock_token FROM flow_instances WHERE instance_id = $1";

// --- starting
// -------------------------------------------------------------------------------------

// The mailbox and message statements after it apply only if this start created the instance.
inline constexpr Statement create_instance{
    "flow.create_instance",
    "INSERT INTO flow_instances (instance_id, name, version, execution, status, origin, "
    "lock_token, locked_until_us, starts_at_us, last_event, history_bytes, suspended, parent_id, "
    "parent_execution, parent_event, status_version, created_us, updated_us, cron) "
    "VALUES ($1, $2, $3, 1, 'pending', $4, $5, 0, "
    "CASE WHEN $6 > 0 THEN {now_us} + $6 ELSE 0 END, 0, 0, FALSE, $7, $8, $9, 0, "
    "{now_us}, {now_us}, $10) ON CONFLICT (instance_id) DO NOTHING RETURNING instance_id"};
// One that has a history from the beginning: it is imported, or starts together with its first
// turn.
inline constexpr Statement create_advanced{
    "flow.create_advanced",
    "INSERT INTO flow_instances (instance_id, name, version, execution, status, origin, "
    "lock_token, locked_until_us, starts_at_us, last_event, history_bytes, engine, suspended, "
    "parent_id, parent_execution, parent_event, output, custom_status, status_version, created_us, "
    "started_us, updated_us, completed_us) VALUES ($1, $2, $3, 1, $4, $5, $5, 0, 0, $6, $7, $8, "
    "FALSE, $9, $10, $11, $12, $14, $15, {now_us}, {now_us}, {now_us}, "
    "CASE WHEN $13 THEN {now_us} ELSE NULL END) "
    "ON CONFLICT (instance_id) DO NOTHING RETURNING instance_id"};
inline constexpr Statement adopt_mailbox{
    "flow.adopt_mailbox",
    "INSERT INTO flow_mailboxes (instance_id, arrivals, ready_at_us, early, created_us) "
    "SELECT $1, 0, CASE WHEN $3 > 0 THEN {now_us} + $3 ELSE {now_us} - 1000000000000000000 END, "
    "FALSE, {now_us} WHERE EXISTS "
    "(SELECT 1 FROM flow_instances WHERE instance_id = $1 AND lock_token = $2) "
    "ON CONFLICT (instance_id) DO UPDATE SET early = FALSE, "
    "ready_at_us = CASE WHEN flow_mailboxes.ready_at_us < excluded.ready_at_us "
    "THEN flow_mailboxes.ready_at_us ELSE excluded.ready_at_us END"};
inline constexpr Statement add_start{
    "flow.add_start",
    "INSERT INTO flow_messages (instance_id, position, visible_at_us, execution, timer, body, "
    "attempts) SELECT $1, 0, CASE WHEN $3 > 0 THEN {now_us} + $3 "
    "ELSE {now_us} - 1000000000000000000 END, 0, 0, $4, 0 WHERE EXISTS "
    "(SELECT 1 FROM flow_instances WHERE instance_id = $1 AND lock_token = $2)"};
inline constexpr Statement find_origin{
    "flow.find_origin",
    "SELECT origin, parent_id, parent_execution, parent_event FROM flow_instances "
    "WHERE instance_id = $1"};

// --- mail
// -------------------------------------------------------------------------------------------

// $3 is when the earliest new message is visible: 0 is at once, below 0 is none. Without new mail
// this only locks the mailbox. A timer that is due keeps its place when mail joins it.
inline constexpr Statement announce_mail{
    "flow.announce_mail",
    "UPDATE flow_mailboxes SET arrivals = arrivals + $2, ready_at_us = CASE "
    "WHEN $3 < 0 OR ready_at_us <= $3 THEN ready_at_us "
    "WHEN $3 > 0 THEN $3 "
    "WHEN ready_at_us <= {now_us} THEN ready_at_us - 1000000000000000000 "
    "ELSE {now_us} - 1000000000000000000 END "
    "WHERE instance_id = $1 RETURNING arrivals, early"};
inline constexpr Statement open_early_mailbox{
    "flow.open_early_mailbox",
    "INSERT INTO flow_mailboxes (instance_id, arrivals, ready_at_us, early, created_us) "
    "VALUES ($1, $2, CASE WHEN $3 > 0 THEN $3 ELSE {now_us} - 1000000000000000000 END, "
    "TRUE, {now_us}) "
    "ON CONFLICT (instance_id) DO UPDATE SET arrivals = flow_mailboxes.arrivals + $2, "
    "ready_at_us = CASE WHEN flow_mailboxes.ready_at_us < excluded.ready_at_us "
    "THEN flow_mailboxes.ready_at_us ELSE excluded.ready_at_us END RETURNING arrivals, early"};
inline constexpr Statement instance_exists{
    "flow.instance_exists", "SELECT count(*) FROM flow_instances WHERE instance_id = $1"};
inline constexpr Statement add_message{
    "flow.add_message",
    "INSERT INTO flow_messages (instance_id, position, visible_at_us, execution, timer, body, "
    "attempts) VALUES ($1, $2, CASE WHEN $3 > 0 THEN $3 "
    "ELSE {now_us} - 1000000000000000000 END, $4, $5, $6, 0)"};
// Behind announce_mail of one message, in the same round trip. Without a mailbox it does nothing.
inline constexpr Statement post_message{
    "flow.post_message",
    "INSERT INTO flow_messages (instance_id, position, visible_at_us, execution, timer, body, "
    "attempts) SELECT instance_id, arrivals, CASE WHEN $2 > 0 THEN $2 "
    "ELSE {now_us} - 1000000000000000000 END, "
    "$3, $4, $5, 0 FROM flow_mailboxes WHERE instance_id = $1"};
// Requires: this transaction has changed the mailbox before, so that no arrival can be missed.
inline constexpr Statement settle_mailbox{
    "flow.settle_mailbox",
    "UPDATE flow_mailboxes SET ready_at_us = "
    "(SELECT min(visible_at_us) FROM flow_messages WHERE instance_id = $1) "
    "WHERE instance_id = $1"};
// For an instance that starts with its first turn; $3 as for announce_mail. No row: there is early
// mail, which belongs into that turn.
inline constexpr Statement open_new_mailbox{
    "flow.open_new_mailbox",
    "INSERT INTO flow_mailboxes (instance_id, arrivals, ready_at_us, early, created_us) "
    "VALUES ($1, $2, CASE WHEN $3 > 0 THEN $3 "
    "WHEN $3 = 0 THEN {now_us} - 1000000000000000000 ELSE NULL END, FALSE, "
    "{now_us}) ON CONFLICT (instance_id) DO NOTHING RETURNING arrivals, early"};
// Returns whether there is mail to be dropped: then the time of visibility is not null.
inline constexpr Statement close_mailbox{
    "flow.close_mailbox",
    "DELETE FROM flow_mailboxes WHERE instance_id = $1 RETURNING ready_at_us"};
inline constexpr Statement drop_messages{"flow.drop_messages",
                                         "DELETE FROM flow_messages WHERE instance_id = $1"};
inline constexpr Statement drop_execution_messages{
    "flow.drop_execution_messages",
    "DELETE FROM flow_messages WHERE instance_id = $1 AND execution = $2"};
inline constexpr Statement drop_timers{
    "flow.drop_timers",
    "DELETE FROM flow_messages WHERE instance_id = $1 AND execution = $2 AND timer <> 0"};
// Before all other mail; what settles the mailbox comes after.
inline constexpr Statement schedule_start{
    "flow.schedule_start",
    "INSERT INTO flow_messages (instance_id, position, visible_at_us, execution, timer, body, "
    "attempts) VALUES ($1, 0, $2, 0, 0, $3, 0)"};
// Returns a row if there is a start that was not due, and now is.
inline constexpr Statement hurry_start{
    "flow.hurry_start",
    "UPDATE flow_messages SET visible_at_us = {now_us} - 1000000000000000000 "
    "WHERE instance_id = $1 AND position = 0 "
    "AND visible_at_us > {now_us} RETURNING position"};
inline constexpr Statement consume_messages{
    "flow.consume_messages",
    "DELETE FROM flow_messages WHERE instance_id = $1 AND position BETWEEN $2 AND $3"};
inline constexpr Statement delay_messages{
    "flow.delay_messages",
    "UPDATE flow_messages SET visible_at_us = CASE WHEN $4 > 0 THEN {now_us} + $4 "
    "ELSE visible_at_us END, "
    "attempts = CASE WHEN attempts > $5 THEN attempts - $5 ELSE 0 END "
    "WHERE instance_id = $1 AND position BETWEEN $2 AND $3"};
inline constexpr Statement cancel_timers{
    "flow.cancel_timers",
    "DELETE FROM flow_messages WHERE instance_id = $1 AND execution = $2 "
    "AND timer IN ($3, $4, $5, $6, $7, $8, $9, $10)"};
// Without an answer there is no mail, or some of it was claimed $4 times before.
inline constexpr Statement count_attempts{
    "flow.count_attempts",
    "UPDATE flow_messages SET attempts = attempts + 1 WHERE instance_id = $1 AND position IN "
    "(SELECT position FROM flow_messages WHERE instance_id = $1 AND visible_at_us <= {now_us} "
    "ORDER BY position LIMIT $3) AND EXISTS "
    "(SELECT 1 FROM flow_instances WHERE instance_id = $1 AND lock_token = $2) AND NOT EXISTS "
    "(SELECT 1 FROM (SELECT attempts FROM flow_messages WHERE instance_id = $1 "
    "AND visible_at_us <= {now_us} ORDER BY position LIMIT $3) AS first WHERE first.attempts >= "
    "$4) "
    "RETURNING position, execution, attempts, body"};
inline constexpr Statement read_mail{
    "flow.read_mail",
    "SELECT position, execution, attempts, body FROM flow_messages "
    "WHERE instance_id = $1 AND visible_at_us <= {now_us} ORDER BY position LIMIT $2"};

// --- claiming instances -------------------------------------------------------------------------

// CROSS JOIN keeps SQLite from turning the join around; it walks along the index by readiness.
inline constexpr Statement find_ready{
    "flow.find_ready",
    "SELECT r.instance_id, r.lock_token, r.name, r.version, r.execution, r.status, r.last_event, "
    "{now_us}, r.blocked_tries FROM (SELECT * FROM (SELECT i.instance_id, i.lock_token, i.name, "
    "i.version, "
    "i.execution, i.status, i.last_event, i.blocked_tries, m.ready_at_us + 1000000000000000000 AS "
    "since_us "
    "FROM flow_mailboxes m CROSS JOIN flow_instances i "
    "WHERE i.instance_id = m.instance_id AND m.ready_at_us < 0 "
    "AND i.locked_until_us <= (SELECT {lease_us}) AND NOT i.suspended "
    "AND i.starts_at_us <= (SELECT {now_us}) "
    "AND i.status IN ('pending', 'running') AND (i.engine IS NULL "
    "OR i.engine BETWEEN $2 AND $3 OR i.engine BETWEEN $4 AND $5 "
    "OR i.engine BETWEEN $6 AND $7 OR i.engine BETWEEN $8 AND $9) "
    "AND (i.blocked IS NULL OR i.blocked_by <> $10 OR i.blocked_until_us <= (SELECT {lease_us})) "
    "ORDER BY m.ready_at_us LIMIT $1) at_once "
    "UNION ALL SELECT * FROM (SELECT i.instance_id, i.lock_token, i.name, i.version, "
    "i.execution, i.status, i.last_event, i.blocked_tries, m.ready_at_us AS since_us "
    "FROM flow_mailboxes m CROSS JOIN flow_instances i "
    "WHERE i.instance_id = m.instance_id "
    "AND m.ready_at_us >= 0 AND m.ready_at_us <= (SELECT {now_us}) "
    "AND i.locked_until_us <= (SELECT {lease_us}) AND NOT i.suspended "
    "AND i.starts_at_us <= (SELECT {now_us}) "
    "AND i.status IN ('pending', 'running') AND (i.engine IS NULL "
    "OR i.engine BETWEEN $2 AND $3 OR i.engine BETWEEN $4 AND $5 "
    "OR i.engine BETWEEN $6 AND $7 OR i.engine BETWEEN $8 AND $9) "
    "AND (i.blocked IS NULL OR i.blocked_by <> $10 OR i.blocked_until_us <= (SELECT {lease_us})) "
    "ORDER BY m.ready_at_us LIMIT $1) timed) r "
    "ORDER BY r.since_us LIMIT $1"};
// The same, without rows that another claim has locked. Rows in WITH are not locked, so that
// sending mail does not wait.
inline constexpr Statement find_ready_unlocked{
    "flow.find_ready_unlocked",
    "WITH ready AS MATERIALIZED (SELECT * FROM (SELECT i.instance_id, "
    "m.ready_at_us + 1000000000000000000 AS since_us "
    "FROM flow_mailboxes m CROSS JOIN flow_instances i "
    "WHERE i.instance_id = m.instance_id AND m.ready_at_us < 0 "
    "AND i.locked_until_us <= (SELECT {lease_us}) AND NOT i.suspended "
    "AND i.starts_at_us <= (SELECT {now_us}) "
    "AND i.status IN ('pending', 'running') AND (i.engine IS NULL "
    "OR i.engine BETWEEN $2 AND $3 OR i.engine BETWEEN $4 AND $5 "
    "OR i.engine BETWEEN $6 AND $7 OR i.engine BETWEEN $8 AND $9) "
    "AND (i.blocked IS NULL OR i.blocked_by <> $11 OR i.blocked_until_us <= (SELECT {lease_us})) "
    "ORDER BY m.ready_at_us LIMIT $10) at_once "
    "UNION ALL SELECT * FROM (SELECT i.instance_id, m.ready_at_us AS since_us "
    "FROM flow_mailboxes m CROSS JOIN flow_instances i "
    "WHERE i.instance_id = m.instance_id "
    "AND m.ready_at_us >= 0 AND m.ready_at_us <= (SELECT {now_us}) "
    "AND i.locked_until_us <= (SELECT {lease_us}) AND NOT i.suspended "
    "AND i.starts_at_us <= (SELECT {now_us}) "
    "AND i.status IN ('pending', 'running') AND (i.engine IS NULL "
    "OR i.engine BETWEEN $2 AND $3 OR i.engine BETWEEN $4 AND $5 "
    "OR i.engine BETWEEN $6 AND $7 OR i.engine BETWEEN $8 AND $9) "
    "AND (i.blocked IS NULL OR i.blocked_by <> $11 OR i.blocked_until_us <= (SELECT {lease_us})) "
    "ORDER BY m.ready_at_us LIMIT $10) timed) "
    "SELECT i.instance_id, i.lock_token, i.name, i.version, i.execution, i.status, i.last_event, "
    "{now_us}, i.blocked_tries FROM ready r JOIN flow_instances i ON i.instance_id = r.instance_id "
    "WHERE i.locked_until_us <= (SELECT {lease_us}) AND NOT i.suspended "
    "ORDER BY r.since_us LIMIT $1 {skip_locked}"};
inline constexpr FencedStatement claim_instance{
    "flow.claim_instance",
    "UPDATE flow_instances SET lock_token = $3, locked_until_us = {lease_us} + $4 "
    "WHERE instance_id = $1 AND lock_token = $2 AND locked_until_us <= {lease_us} "
    "AND starts_at_us <= {now_us} AND NOT suspended",
    instance_token};
inline constexpr FencedStatement release_instance{
    "flow.release_instance",
    "UPDATE flow_instances SET lock_token = $3, locked_until_us = 0 "
    "WHERE instance_id = $1 AND lock_token = $2",
    instance_token};
// No worker could take its turn: it is free, but held back for a while. $4 is for other builds
// than $8, $5 for that one.
inline constexpr FencedStatement block_instance{
    "flow.block_instance",
    "UPDATE flow_instances SET lock_token = $3, locked_until_us = {lease_us} + $4, "
    "blocked_until_us = {lease_us} + $5, "
    "blocked_since_us = CASE WHEN blocked IS NULL THEN {now_us} ELSE blocked_since_us END, "
    "blocked = $6, blocked_why = $7, blocked_by = $8, "
    "blocked_tries = COALESCE(blocked_tries, 0) + 1 "
    "WHERE instance_id = $1 AND lock_token = $2",
    instance_token};
// Hides it from claims: there may be many like it. The next mail makes it visible again.
inline constexpr Statement hold_mailbox{"flow.hold_mailbox",
                                        "UPDATE flow_mailboxes SET ready_at_us = {now_us} + $2 "
                                        "WHERE instance_id = $1 AND ready_at_us < {now_us} + $2"};
// A new token keeps a concurrent worker from blocking it again.
inline constexpr FencedStatement retry_instance{
    "flow.retry_instance",
    "UPDATE flow_instances SET lock_token = $3, locked_until_us = 0, blocked_until_us = 0 "
    "WHERE instance_id = $1 AND lock_token = $2 AND blocked IS NOT NULL",
    instance_token};
inline constexpr Statement find_blocked{
    "flow.find_blocked",
    "SELECT instance_id, lock_token, name, version, blocked, blocked_by FROM flow_instances "
    "WHERE blocked IS NOT NULL AND blocked_until_us > {lease_us} AND instance_id > $1 "
    "ORDER BY instance_id LIMIT $2"};
inline constexpr FencedStatement hurry_instance{
    "flow.hurry_instance",
    "UPDATE flow_instances SET starts_at_us = 0 "
    "WHERE instance_id = $1 AND lock_token = $2 AND status = 'pending'",
    instance_token};
inline constexpr FencedStatement renew_instance{
    "flow.renew_instance",
    "UPDATE flow_instances SET locked_until_us = {lease_us} + $3 "
    "WHERE instance_id = $1 AND lock_token = $2 AND locked_until_us > {lease_us}",
    instance_token};
inline constexpr Statement peek_instance{
    "flow.peek_instance",
    "SELECT name, version, execution, status, last_event, {now_us} FROM flow_instances "
    "WHERE instance_id = $1 AND lock_token = $2 AND locked_until_us <= {lease_us} "
    "AND starts_at_us <= {now_us} AND NOT suspended"};

// --- turns
// ----------------------------------------------------------------------------------------

// The key and the tokens, the new values ($3 to $6), and the expected ones ($7 to $9). A turn
// without events neither moves nor compares the last one: it is below 0.
inline constexpr FencedStatement advance{
    "flow.advance",
    "UPDATE flow_instances SET lock_token = $3, locked_until_us = 0, starts_at_us = 0, "
    "status = $4, blocked = NULL, blocked_tries = NULL, "
    "last_event = CASE WHEN $5 < 0 THEN last_event ELSE $5 END, "
    "history_bytes = history_bytes + $6, updated_us = {now_us} "
    "WHERE instance_id = $1 AND lock_token = $2 AND execution = $7 "
    "AND ($8 < 0 OR last_event = $8) AND (NOT $9 OR locked_until_us > {lease_us})",
    instance_token};
inline constexpr FencedStatement advance_fully{
    "flow.advance_fully",
    "UPDATE flow_instances SET lock_token = $3, locked_until_us = 0, starts_at_us = 0, "
    "status = $4, blocked = NULL, blocked_tries = NULL, "
    "last_event = CASE WHEN $5 < 0 THEN last_event ELSE $5 END, "
    "history_bytes = history_bytes + $6, updated_us = {now_us}, "
    "name = COALESCE($10, name), version = COALESCE($11, version), "
    "engine = COALESCE($12, engine), "
    "started_us = CASE WHEN $10 IS NULL THEN started_us ELSE COALESCE(started_us, {now_us}) END, "
    "parent_id = COALESCE(parent_id, $13), "
    "parent_execution = COALESCE(parent_execution, $14), "
    "parent_event = COALESCE(parent_event, $15), "
    "output = $16, completed_us = CASE WHEN $17 THEN {now_us} ELSE completed_us END, "
    "custom_status = CASE WHEN $18 THEN $19 ELSE custom_status END, "
    "status_version = status_version + $20, suspended = COALESCE($21, suspended) "
    "WHERE instance_id = $1 AND lock_token = $2 AND execution = $7 "
    "AND ($8 < 0 OR last_event = $8) AND (NOT $9 OR locked_until_us > {lease_us})",
    instance_token};
// To the execution that follows, which begins at $18 if that is not 0; archive_execution came
// before.
inline constexpr FencedStatement advance_execution{
    "flow.advance_execution",
    "UPDATE flow_instances SET lock_token = $3, locked_until_us = 0, starts_at_us = $18, "
    "status = $4, blocked = NULL, blocked_tries = NULL, "
    "last_event = $5, history_bytes = $6, updated_us = {now_us}, "
    "started_us = CASE WHEN $18 > 0 THEN NULL ELSE {now_us} END, completed_us = NULL, "
    "execution = $10, name = COALESCE($11, name), version = $12, engine = $13, output = NULL, "
    "custom_status = CASE WHEN $14 THEN $15 ELSE custom_status END, "
    "status_version = status_version + $16, suspended = COALESCE($17, suspended) "
    "WHERE instance_id = $1 AND lock_token = $2 AND execution = $7 "
    "AND ($8 < 0 OR last_event = $8) AND (NOT $9 OR locked_until_us > {lease_us})",
    instance_token};
inline constexpr Statement archive_execution{
    "flow.archive_execution",
    "INSERT INTO flow_executions (instance_id, execution, version, status, output, last_event, "
    "history_bytes, engine, started_us, completed_us) "
    "SELECT instance_id, execution, COALESCE($3, version), $8, $4, "
    "CASE WHEN $5 < 0 THEN last_event ELSE $5 END, history_bytes + $6, COALESCE($7, engine), "
    "COALESCE(started_us, {now_us}), COALESCE(completed_us, {now_us}) FROM flow_instances "
    "WHERE instance_id = $1 AND lock_token = $2"};
// Waits for the lock of the row, so that a commit whose answer was lost is either done or not.
inline constexpr Statement look_at_turn{
    "flow.look_at_turn",
    "SELECT lock_token, CASE WHEN locked_until_us > {lease_us} THEN 1 ELSE 0 END "
    "FROM flow_instances WHERE instance_id = $1 {for_update}"};
inline constexpr Statement who_wrote{
    "flow.who_wrote",
    "SELECT written_by FROM flow_history "
    "WHERE instance_id = $1 AND execution = $2 AND first_event = $3"};
inline constexpr Statement add_history{
    "flow.add_history",
    "INSERT INTO flow_history (instance_id, execution, first_event, last_event, event_count, "
    "written_by, events) VALUES ($1, $2, $3, $4, $5, $6, $7)"};
inline constexpr Statement read_history{
    "flow.read_history",
    "SELECT events FROM flow_history WHERE instance_id = $1 AND execution = $2 "
    "AND last_event > $3 ORDER BY first_event"};
inline constexpr Statement read_seeds{
    "flow.read_seeds",
    "SELECT key, seed FROM flow_kv WHERE instance_id = $1 AND seed IS NOT NULL ORDER BY key"};

inline constexpr Statement set_kv{
    "flow.set_kv",
    "INSERT INTO flow_kv (instance_id, key, value, updated_us) VALUES ($1, $2, $3, {now_us}) "
    "ON CONFLICT (instance_id, key) DO UPDATE SET value = excluded.value, "
    "updated_us = excluded.updated_us"};
inline constexpr Statement erase_kv{
    "flow.erase_kv",
    "UPDATE flow_kv SET value = NULL, updated_us = {now_us} WHERE instance_id = $1 AND key = $2"};
inline constexpr Statement clear_kv{
    "flow.clear_kv",
    "UPDATE flow_kv SET value = NULL, updated_us = {now_us} WHERE instance_id = $1"};
inline constexpr Statement seed_kv{"flow.seed_kv",
                                   "UPDATE flow_kv SET seed = value WHERE instance_id = $1"};
inline constexpr Statement reset_kv{
    "flow.reset_kv",
    "UPDATE flow_kv SET value = seed, updated_us = {now_us} WHERE instance_id = $1"};
inline constexpr Statement bury_kv{"flow.bury_kv",
                                   "DELETE FROM flow_kv WHERE instance_id = $1 AND value IS NULL"};
inline constexpr Statement set_attribute{
    "flow.set_attribute",
    "INSERT INTO flow_attributes (instance_id, name, value) VALUES ($1, $2, $3) "
    "ON CONFLICT (instance_id, name) DO UPDATE SET value = excluded.value"};
inline constexpr Statement remove_attribute{
    "flow.remove_attribute", "DELETE FROM flow_attributes WHERE instance_id = $1 AND name = $2"};
inline constexpr Statement add_reply{
    "flow.add_reply",
    "INSERT INTO flow_replies (request_id, failed, body, created_us) "
    "VALUES ($1, $2, $3, {now_us}) ON CONFLICT (request_id) DO UPDATE SET "
    "failed = excluded.failed, body = excluded.body, created_us = excluded.created_us"};

// --- activities
// -----------------------------------------------------------------------------------

inline constexpr Statement add_activity{
    "flow.add_activity",
    "INSERT INTO flow_activities (instance_id, execution, event, name, input, workflow, version, "
    "tag, session, lock_token, available_at_us, queued_us, attempts, retry, failures) "
    "VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, "
    "CASE WHEN $11 > 0 THEN {lease_us} + $11 ELSE {now_us} + $11 - 1000000000000000000 END, "
    "CASE WHEN $13 THEN 0 - {now_us} ELSE {now_us} END, $12, $14, 0)"};
// $4: also those that must begin at once. Skips rows that another claim has locked, where the
// database can. It begins with SELECT, so that it may stand in a transaction that only reads.
inline constexpr Statement find_activities{
    "flow.find_activities",
    "SELECT r.instance_id, r.execution, r.event, r.name, r.input, r.workflow, r.version, r.tag, "
    "r.session, r.lock_token, r.heartbeat, {now_us}, r.since_us, r.queued_us, "
    "r.unserved_tries, r.retry, r.failures, r.last_failure FROM ("
    "WITH at_once AS (SELECT a.instance_id, a.execution, a.event, a.name, a.input, a.workflow, "
    "a.version, a.tag, a.session, a.lock_token, a.heartbeat, "
    "a.available_at_us + 1000000000000000000 AS since_us, a.queued_us, a.unserved_tries, a.retry, "
    "a.failures, a.last_failure FROM "
    "flow_activities a "
    "WHERE a.tag = $3 AND a.available_at_us < 0 AND ($4 OR a.queued_us > 0) "
    "AND (a.session IS NULL OR ($2 <> '' AND NOT EXISTS (SELECT 1 FROM flow_sessions s "
    "WHERE s.session_id = a.session AND s.worker_id <> $2 AND s.locked_until_us > {lease_us}))) "
    "ORDER BY a.available_at_us, a.event LIMIT $1 {skip_locked}), "
    "timed AS (SELECT a.instance_id, a.execution, a.event, a.name, a.input, a.workflow, "
    "a.version, a.tag, a.session, a.lock_token, a.heartbeat, "
    "a.available_at_us - {lease_epoch_us} AS since_us, a.queued_us, a.unserved_tries, a.retry, "
    "a.failures, a.last_failure FROM "
    "flow_activities a WHERE "
    "a.tag = $3 "
    "AND a.available_at_us >= 0 AND a.available_at_us <= (SELECT {lease_us}) "
    "AND ($4 OR a.queued_us > 0) "
    "AND (a.session IS NULL OR ($2 <> '' AND NOT EXISTS (SELECT 1 FROM flow_sessions s "
    "WHERE s.session_id = a.session AND s.worker_id <> $2 AND s.locked_until_us > {lease_us}))) "
    "ORDER BY a.available_at_us, a.event LIMIT $1 {skip_locked}) "
    "SELECT * FROM at_once UNION ALL SELECT * FROM timed) r "
    "ORDER BY r.since_us, r.event LIMIT $1"};
// Tags that have something to take, the longest waiting first: two steps along the index for each
// tag there is.
inline constexpr Statement activity_tags{
    "flow.activity_tags",
    "SELECT t.tag FROM "
    "(WITH RECURSIVE tags (tag) AS (SELECT min(tag) FROM flow_activities UNION ALL "
    "SELECT (SELECT min(a.tag) FROM flow_activities a WHERE a.tag > tags.tag) FROM tags "
    "WHERE tags.tag IS NOT NULL) SELECT tags.tag, (SELECT min(a.available_at_us) "
    "FROM flow_activities a WHERE a.tag = tags.tag) AS first_us FROM tags) t "
    "WHERE t.first_us <= (SELECT {lease_us}) ORDER BY CASE WHEN t.first_us < 0 "
    "THEN t.first_us + 1000000000000000000 ELSE t.first_us - {lease_epoch_us} END LIMIT $1"};
inline constexpr Statement claim_activity{
    "flow.claim_activity",
    "UPDATE flow_activities SET lock_token = $5, available_at_us = {lease_us} + $6, "
    "attempts = attempts + 1, "
    "unserved_tries = CASE WHEN unserved_tries > 0 THEN 0 - unserved_tries "
    "ELSE unserved_tries END WHERE instance_id = $1 AND execution = $2 AND event = $3 "
    "AND lock_token = $4 AND available_at_us <= {lease_us} RETURNING attempts"};
// Applies only under the claim, while it lasts. No row: the claim is lost.
inline constexpr Statement end_activity{
    "flow.end_activity",
    "DELETE FROM flow_activities WHERE instance_id = $1 AND execution = $2 AND event = $3 "
    "AND lock_token = $4 AND available_at_us > {lease_us} RETURNING session"};
// One that has not begun: not claimed, given back, or its owner's lease has run out. One that
// waits for its next attempt has begun.
inline constexpr Statement end_free_activity{
    "flow.end_free_activity",
    "DELETE FROM flow_activities WHERE instance_id = $1 AND execution = $2 AND event = $3 "
    "AND (lock_token = $4 OR available_at_us <= {lease_us}) AND failures = 0 RETURNING session"};
// An attempt has failed, and another follows. Applies only under the claim, like end_activity.
inline constexpr Statement await_attempt{
    "flow.await_attempt",
    "UPDATE flow_activities SET lock_token = $5, available_at_us = CASE WHEN $6 > 0 "
    "THEN {lease_us} + $6 ELSE {now_us} - 1000000000000000000 END, "
    "failures = failures + 1, last_failure = $7, unserved_tries = NULL "
    "WHERE instance_id = $1 AND execution = $2 AND event = $3 "
    "AND lock_token = $4 AND available_at_us > {lease_us} RETURNING session"};
inline constexpr Statement look_at_activity{
    "flow.look_at_activity",
    "SELECT lock_token FROM flow_activities "
    "WHERE instance_id = $1 AND execution = $2 AND event = $3 {for_update}"};
inline constexpr Statement renew_activity{
    "flow.renew_activity",
    "UPDATE flow_activities SET available_at_us = {lease_us} + $5 "
    "WHERE instance_id = $1 AND execution = $2 AND event = $3 "
    "AND lock_token = $4 AND available_at_us > {lease_us} RETURNING session"};
inline constexpr Statement keep_heartbeat{
    "flow.keep_heartbeat",
    "UPDATE flow_activities SET heartbeat = $5 "
    "WHERE instance_id = $1 AND execution = $2 AND event = $3 "
    "AND lock_token = $4 AND available_at_us > {lease_us}"};
inline constexpr Statement release_activity{
    "flow.release_activity",
    "UPDATE flow_activities SET lock_token = $5, available_at_us = "
    "CASE WHEN $6 > 0 THEN {lease_us} + $6 ELSE {now_us} - 1000000000000000000 END, "
    "attempts = CASE WHEN attempts > $7 THEN attempts - $7 ELSE 0 END "
    "WHERE instance_id = $1 AND execution = $2 AND event = $3 AND lock_token = $4"};
// Its worker has no such activity. The attempt does not count.
inline constexpr Statement leave_activity{
    "flow.leave_activity",
    "UPDATE flow_activities SET lock_token = $5, available_at_us = "
    "CASE WHEN $6 > 0 THEN {lease_us} + $6 ELSE {now_us} - 1000000000000000000 END, "
    "attempts = CASE WHEN attempts > 1 THEN attempts - 1 ELSE 0 END, "
    "unserved_tries = abs(COALESCE(unserved_tries, 0)) + 1 "
    "WHERE instance_id = $1 AND execution = $2 AND event = $3 AND lock_token = $4"};
inline constexpr Statement find_unserved{
    "flow.find_unserved",
    "SELECT instance_id, execution, event, name FROM flow_activities "
    "WHERE unserved_tries > 0 AND lock_token = $1 AND available_at_us > {lease_us} "
    "AND (instance_id, execution, event) > ($2, $3, $4) "
    "ORDER BY instance_id, execution, event LIMIT $5"};
inline constexpr Statement retry_activity{
    "flow.retry_activity",
    "UPDATE flow_activities SET available_at_us = {now_us} - 1000000000000000000 "
    "WHERE instance_id = $1 AND execution = $2 AND event = $3 AND lock_token = $4 "
    "AND available_at_us > {lease_us}"};
inline constexpr Statement drop_activity{
    "flow.drop_activity",
    "DELETE FROM flow_activities WHERE instance_id = $1 AND execution = $2 AND event = $3"};
inline constexpr Statement drop_activities{"flow.drop_activities",
                                           "DELETE FROM flow_activities WHERE instance_id = $1"};

// Those of an instance, for display. `due` and `now` are read from one clock, so that their
// difference is exact.
inline constexpr Statement list_activities{
    "flow.list_activities",
    "SELECT execution, event, name, tag, session, "
    "CASE WHEN lock_token <> $2 AND available_at_us > {lease_us} THEN 1 ELSE 0 END, attempts, "
    "CASE WHEN available_at_us < 0 THEN {lease_us} ELSE available_at_us END - {lease_epoch_us}, "
    "queued_us, retry, failures, last_failure, heartbeat, {lease_us} - {lease_epoch_us} "
    "FROM flow_activities WHERE instance_id = $1 ORDER BY execution, event LIMIT $3"};

inline constexpr Statement claim_session{
    "flow.claim_session",
    "INSERT INTO flow_sessions (session_id, worker_id, locked_until_us, last_activity_us) "
    "VALUES ($1, $2, {lease_us} + $3, {lease_us}) ON CONFLICT (session_id) DO UPDATE SET "
    "worker_id = excluded.worker_id, locked_until_us = excluded.locked_until_us, "
    "last_activity_us = excluded.last_activity_us "
    "WHERE flow_sessions.locked_until_us <= {lease_us} "
    "OR flow_sessions.worker_id = excluded.worker_id RETURNING session_id"};
inline constexpr Statement touch_session{"flow.touch_session",
                                         "UPDATE flow_sessions SET last_activity_us = {lease_us} "
                                         "WHERE session_id = $1 AND locked_until_us > {lease_us}"};
inline constexpr Statement renew_sessions{
    "flow.renew_sessions",
    "UPDATE flow_sessions SET locked_until_us = {lease_us} + $2 WHERE worker_id = $1 "
    "AND locked_until_us > {lease_us} AND last_activity_us > {lease_us} - $3 RETURNING session_id"};
inline constexpr Statement sweep_sessions{
    "flow.sweep_sessions",
    "DELETE FROM flow_sessions WHERE locked_until_us <= {lease_us} AND NOT EXISTS "
    "(SELECT 1 FROM flow_activities a WHERE a.session = flow_sessions.session_id)"};

// --- clients
// --------------------------------------------------------------------------------------

inline constexpr Statement read_info{
    "flow.read_info",
    "SELECT instance_id, name, version, execution, status, suspended, output, custom_status, "
    "status_version, parent_id, parent_execution, parent_event, last_event, history_bytes, "
    "created_us, updated_us, completed_us, cron, "
    "CASE WHEN status = 'pending' THEN starts_at_us ELSE 0 END, "
    "blocked, blocked_why, blocked_by, blocked_since_us, CASE WHEN blocked_until_us > 0 THEN "
    "blocked_until_us - {lease_epoch_us} "
    "ELSE blocked_until_us END, "
    "blocked_tries, (SELECT min(a.name) FROM flow_activities a "
    "WHERE a.instance_id = $1 AND a.unserved_tries > 0) "
    "FROM flow_instances WHERE instance_id = $1"};
// Returns a row if it is suspended, blocked, or both.
inline constexpr Statement is_held{
    "flow.is_held",
    "SELECT suspended, CASE WHEN blocked IS NULL THEN 0 ELSE 1 END FROM flow_instances "
    "WHERE instance_id = $1 AND (suspended OR blocked IS NOT NULL)"};
inline constexpr FencedStatement resume_instance{
    "flow.resume_instance",
    "UPDATE flow_instances SET suspended = FALSE, updated_us = {now_us} "
    "WHERE instance_id = $1 AND lock_token = $2",
    instance_token};
inline constexpr Statement read_kv{
    "flow.read_kv",
    "SELECT value FROM flow_kv WHERE instance_id = $1 AND key = $2 AND value IS NOT NULL"};
inline constexpr Statement read_all_kv{
    "flow.read_all_kv",
    "SELECT key, value, updated_us FROM flow_kv WHERE instance_id = $1 AND value IS NOT NULL"};
inline constexpr Statement find_reply{"flow.find_reply",
                                      "SELECT count(*) FROM flow_replies WHERE request_id = $1"};
inline constexpr Statement take_reply{
    "flow.take_reply", "DELETE FROM flow_replies WHERE request_id = $1 RETURNING failed, body"};
inline constexpr Statement read_clock{"flow.read_clock", "SELECT {now_us}"};
inline constexpr Statement earliest_activity{
    "flow.earliest_activity",
    "SELECT min((SELECT min(a.available_at_us) FROM flow_activities a WHERE a.tag = t.tag)), "
    "{lease_us} FROM "
    "(WITH RECURSIVE tags (tag) AS (SELECT min(tag) FROM flow_activities UNION ALL "
    "SELECT (SELECT min(a.tag) FROM flow_activities a WHERE a.tag > tags.tag) FROM tags "
    "WHERE tags.tag IS NOT NULL) SELECT tag FROM tags) t"};
inline constexpr Statement next_mail{
    "flow.next_mail",
    "SELECT min(ready_at_us), {now_us} FROM flow_mailboxes WHERE ready_at_us > (SELECT {now_us})"};
inline constexpr Statement next_activity{
    "flow.next_activity",
    "SELECT min((SELECT min(a.available_at_us) FROM flow_activities a "
    "WHERE a.tag = t.tag AND a.available_at_us > (SELECT {lease_us}))), {lease_us} FROM "
    "(WITH RECURSIVE tags (tag) AS (SELECT min(tag) FROM flow_activities UNION ALL "
    "SELECT (SELECT min(a.tag) FROM flow_activities a WHERE a.tag > tags.tag) FROM tags "
    "WHERE tags.tag IS NOT NULL) SELECT tag FROM tags) t"};

}  // namespace holdfast::flow::statements
