// The statements of this floor.
//
// Times are milliseconds of the lease clock, which cannot be set on SQLite; {lease_epoch_us}
// converts answers for people to wall time. `tolerance` is the last condition's parameter
// everywhere: a row is live while expires_at_ms > now - tolerance. A fence of 15 zeros marks a row
// without a holder: it keeps the key free for the first waiter.
#pragma once

#include <holdfast/lock/catalogue.hpp>
#include <holdfast/sql/statement.hpp>

namespace holdfast::lock::statements {

using sql::Statement;

// ---- PostgreSQL: one statement for each operation ---------------------------------------------

// $1 key, $2 fence key, $3 user key, $4 lock id, $5 ttl, $6 tolerance, $7 herd filter, $8 owner,
// $9 meta, $10 group id. Always one row.
//
// `f` is the gate: a call that passes the probe queues on the counter's row and holds it to the
// end. The clock is read after that, for each row of `f`. `l` decides: its condition is tested on
// the newest version of the row, whatever happened since the statement began. The next columns are
// for a refused call: the holder's expiry and the counter from before the statement, as hints, and
// the fence that was burned.
inline constexpr Statement take_at_once{"lock.take_at_once", R"(
WITH f AS (
    INSERT INTO {table.fences} AS c (fence_key, fence, key_debug)
    SELECT $2, 1, $3
    WHERE CASE WHEN EXISTS (SELECT 1 FROM {table.locks} h
                            WHERE h.key = $1 AND h.lock_id <> $4
                              AND h.expires_at_ms > {lease_us} / 1000 - $6) THEN false
               WHEN $7 THEN pg_try_advisory_xact_lock(hashtextextended($1, 5208209750384650315))
               ELSE true END
    ON CONFLICT (fence_key) DO UPDATE SET fence = c.fence + 1 WHERE c.fence < 900000000000000
    RETURNING c.fence),
l AS (
    INSERT INTO {table.locks} AS t
        (key, lock_id, expires_at_ms, acquired_at_ms, fence, user_key, owner, meta, group_id)
    SELECT $1, $4, n.ms + $5, n.ms, lpad(CAST(n.fence AS text), 15, '0'), $3, $8, $9, $10
    FROM (SELECT f.fence, {lease_us} / 1000 AS ms FROM f OFFSET 0) n
    ON CONFLICT (key) DO UPDATE
    SET lock_id = excluded.lock_id, expires_at_ms = excluded.expires_at_ms,
        acquired_at_ms = excluded.acquired_at_ms, fence = excluded.fence,
        user_key = excluded.user_key, owner = excluded.owner, meta = excluded.meta,
        group_id = excluded.group_id
    WHERE t.expires_at_ms <= excluded.acquired_at_ms - $6 OR t.lock_id = excluded.lock_id
    RETURNING t.expires_at_ms, t.fence)
SELECT l.expires_at_ms, l.fence,
       CASE WHEN l.fence IS NULL THEN (SELECT expires_at_ms FROM {table.locks} WHERE key = $1) END,
       CASE WHEN l.fence IS NULL THEN (SELECT fence FROM {table.fences} WHERE fence_key = $2) END,
       CASE WHEN l.fence IS NULL THEN (SELECT fence FROM f) END,
       {lease_us} / 1000
FROM (SELECT 1) one LEFT JOIN l ON true
)"};

// $1 lock id, $2 tolerance. Frees the lock unless its key has a waiter, at half the cost of the
// statement below, which is needed then. Always one row: the key if it was freed, and
// if it was not, the row's expiry before the statement. The commit need not be flushed: if it is
// lost, the lock stays held until it expires.
inline constexpr Statement free_unless_awaited{"lock.free_unless_awaited", R"(
WITH d AS (
    DELETE FROM {table.locks} AS t
    WHERE t.lock_id = $1 AND t.expires_at_ms > {lease_us} / 1000 - $2
      AND NOT EXISTS (SELECT 1 FROM {table.waiters} q
                      WHERE q.key = t.key AND q.until_ms > {lease_us} / 1000 AND q.lock_id <> $1)
    RETURNING t.key, set_config('synchronous_commit', 'off', true))
SELECT d.key,
       CASE WHEN d.key IS NULL
            THEN (SELECT expires_at_ms FROM {table.locks} WHERE lock_id = $1) END,
       {lease_us} / 1000
FROM (SELECT 1) one LEFT JOIN d ON true
)"};

// $1 lock id, $2 tolerance, $3 how long the key stays free for the first waiter, $4 channel.
// How many were freed, the row's expiry before the statement, the notified waiter, and the key if
// there was none. The commit need not be flushed either.
inline constexpr Statement free_at_once{"lock.free_at_once", R"(
WITH w AS (
    SELECT q.key, q.since_us, q.lock_id, q.waiter FROM {table.waiters} q
    WHERE q.key = (SELECT key FROM {table.locks} WHERE lock_id = $1)
      AND q.until_ms > {lease_us} / 1000 AND q.lock_id <> $1
    ORDER BY q.since_us, q.lock_id LIMIT 1),
r AS (
    UPDATE {table.locks} AS t
    SET lock_id = w.lock_id, fence = '000000000000000',
        expires_at_ms = {lease_us} / 1000 - $2 + $3, owner = NULL, meta = NULL, group_id = NULL
    FROM w
    WHERE t.lock_id = $1 AND t.expires_at_ms > {lease_us} / 1000 - $2
    RETURNING pg_notify($4, w.waiter)),
d AS (
    DELETE FROM {table.locks}
    WHERE lock_id = $1 AND expires_at_ms > {lease_us} / 1000 - $2 AND NOT EXISTS (SELECT 1 FROM w)
    RETURNING key),
p AS (
    DELETE FROM {table.waiters} AS q USING w
    WHERE q.key = w.key AND q.since_us = w.since_us AND q.lock_id = w.lock_id
      AND EXISTS (SELECT 1 FROM r)
    RETURNING 1)
SELECT (SELECT count(*) FROM r) + (SELECT count(*) FROM d),
       (SELECT expires_at_ms FROM {table.locks} WHERE lock_id = $1),
       (SELECT waiter FROM w WHERE EXISTS (SELECT 1 FROM r)),
       (SELECT key FROM d),
       set_config('synchronous_commit', 'off', true)
)"};

// $1 lock id, $2 tolerance, $3 ttl, $4 whether a longer lease stays. The clock stands in the
// condition, so that it is read again if the statement had to wait for the row.
inline constexpr Statement prolong_at_once{"lock.prolong_at_once", R"(
WITH u AS (
    UPDATE {table.locks}
    SET expires_at_ms = CASE WHEN $4 THEN greatest(expires_at_ms, {lease_us} / 1000 + $3)
                             ELSE {lease_us} / 1000 + $3 END
    WHERE lock_id = $1 AND expires_at_ms > {lease_us} / 1000 - $2 AND fence > '000000000000000'
    RETURNING expires_at_ms)
SELECT (SELECT expires_at_ms FROM u), (SELECT expires_at_ms FROM {table.locks} WHERE lock_id = $1),
       {lease_us} / 1000
)"};

// Concurrent purges never wait for each other, nor for a transaction that has asserted a dead lock.
inline constexpr Statement purge_skipping{"lock.purge_skipping", R"(
DELETE FROM {table.locks}
WHERE key IN (SELECT key FROM {table.locks} WHERE expires_at_ms < {lease_us} / 1000 - $1
              ORDER BY expires_at_ms LIMIT $2 FOR UPDATE SKIP LOCKED)
  AND expires_at_ms < {lease_us} / 1000 - $1
)"};

// $1 the table of counters, quoted. The last column: whether a crash leaves the table as it was.
inline constexpr Statement durability{"lock.durability", R"(
SELECT current_setting('synchronous_commit'), current_setting('fsync'),
       coalesce((SELECT c.relpersistence = 'p' AND c.relkind IN ('r', 'p')
                 FROM pg_class c WHERE c.oid = to_regclass($1)), true)
)"};

// SQLite's: 2 is FULL.
inline constexpr Statement synchronous{"lock.synchronous", R"(
SELECT synchronous FROM pragma_synchronous
)"};

// $1 table, $2 schema, or empty for the connection's own. Columns with their types, columns that
// have a unique index to themselves, and what kind of table it is.
inline constexpr Statement describe_server{"lock.describe_server", R"(
SELECT 'column', CAST(a.attname AS text), format_type(a.atttypid, a.atttypmod)
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_attribute a ON a.attrelid = c.oid
WHERE c.relname = $1 AND n.nspname = coalesce(nullif($2, ''), current_schema())
  AND a.attnum > 0 AND NOT a.attisdropped
UNION ALL
SELECT 'unique', CAST(a.attname AS text), ''
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_index i ON i.indrelid = c.oid
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = i.indkey[0]
WHERE c.relname = $1 AND n.nspname = coalesce(nullif($2, ''), current_schema())
  AND i.indisunique AND i.indisvalid AND i.indpred IS NULL AND i.indnkeyatts = 1
UNION ALL
SELECT 'table', CAST(c.relkind AS text), CAST(c.relpersistence AS text)
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relname = $1 AND n.nspname = coalesce(nullif($2, ''), current_schema())
)"};
// $1 table. The same of a file.
inline constexpr Statement describe_file{"lock.describe_file", R"(
SELECT 'column', c.name, lower(c.type) FROM pragma_table_info($1) AS c
UNION ALL
SELECT 'unique', i.name, '' FROM pragma_index_list($1) AS l
JOIN pragma_index_info(l.name) AS i ON true
WHERE l."unique" = 1 AND l.partial = 0
  AND (SELECT count(*) FROM pragma_index_info(l.name)) = 1
)"};

// $1 milliseconds, as text: for this transaction alone.
inline constexpr Statement bound_idleness{"lock.bound_idleness", R"(
SELECT set_config('idle_in_transaction_session_timeout', $1, true)
)"};

// ---- Everywhere else: a few statements in one transaction, with one reading of the clock --------

// $1 key, $2 lock id, $3 tolerance: the expiry of a live lock with another id.
inline constexpr Statement live_rival{"lock.live_rival", R"(
SELECT expires_at_ms, {lease_us} / 1000 FROM {table.locks}
WHERE key = $1 AND lock_id <> $2 AND expires_at_ms > {lease_us} / 1000 - $3
)"};
// $1 fence key, $2 user key, $3 key, $4 lock id, $5 tolerance.
inline constexpr Statement count_up{"lock.count_up", R"(
INSERT INTO {table.fences} AS c (fence_key, fence, key_debug)
SELECT $1, 1, $2
WHERE NOT EXISTS (SELECT 1 FROM {table.locks} h WHERE h.key = $3 AND h.lock_id <> $4
                  AND h.expires_at_ms > {lease_us} / 1000 - $5)
ON CONFLICT (fence_key) DO UPDATE SET fence = c.fence + 1
)"};
// $1 key, $2 fence key, $3 user key, $4 lock id, $5 ttl, $6 tolerance, $7 owner, $8 meta, $9 group.
// It repeats the condition of count_up: a rival lock that count_up has seen may be gone since, and
// the insertion would then succeed with the rival's fence.
inline constexpr Statement take{"lock.take", R"(
INSERT INTO {table.locks} AS t
    (key, lock_id, expires_at_ms, acquired_at_ms, fence, user_key, owner, meta, group_id)
SELECT $1, $4, {lease_us} / 1000 + $5, {lease_us} / 1000,
       substr(CAST(1000000000000000 + f.fence AS text), 2), $3, $7, $8, $9
FROM {table.fences} f
WHERE f.fence_key = $2
  AND NOT EXISTS (SELECT 1 FROM {table.locks} h WHERE h.key = $1 AND h.lock_id <> $4
                  AND h.expires_at_ms > {lease_us} / 1000 - $6)
ON CONFLICT (key) DO UPDATE
SET lock_id = excluded.lock_id, expires_at_ms = excluded.expires_at_ms,
    acquired_at_ms = excluded.acquired_at_ms, fence = excluded.fence,
    user_key = excluded.user_key, owner = excluded.owner, meta = excluded.meta,
    group_id = excluded.group_id
WHERE t.expires_at_ms <= excluded.acquired_at_ms - $6 OR t.lock_id = excluded.lock_id
)"};
inline constexpr Statement holder{"lock.holder", R"(
SELECT lock_id, expires_at_ms - {lease_epoch_us} / 1000, fence,
       {lease_us} / 1000 - {lease_epoch_us} / 1000
FROM {table.locks} WHERE key = $1
)"};
inline constexpr Statement by_id{"lock.by_id", R"(
SELECT key, expires_at_ms, {lease_us} / 1000 FROM {table.locks} WHERE lock_id = $1
)"};
inline constexpr Statement first_in_line{"lock.first_in_line", R"(
SELECT since_us, lock_id, waiter FROM {table.waiters}
WHERE key = $1 AND until_ms > {lease_us} / 1000 AND lock_id <> $2
ORDER BY since_us, lock_id LIMIT 1
)"};
// $1 lock id, $2 the waiter's, $3 tolerance, $4 how long.
inline constexpr Statement reserve{"lock.reserve", R"(
UPDATE {table.locks}
SET lock_id = $2, fence = '000000000000000', expires_at_ms = {lease_us} / 1000 - $3 + $4,
    owner = NULL, meta = NULL, group_id = NULL
WHERE lock_id = $1 AND expires_at_ms > {lease_us} / 1000 - $3
)"};
inline constexpr Statement free{"lock.free", R"(
DELETE FROM {table.locks} WHERE lock_id = $1 AND expires_at_ms > {lease_us} / 1000 - $2
)"};
// $1 lock id, $2 tolerance, $3 ttl, $4 whether a longer lease stays.
inline constexpr Statement prolong{"lock.prolong", R"(
UPDATE {table.locks}
SET expires_at_ms = CASE WHEN $4 AND expires_at_ms > {lease_us} / 1000 + $3 THEN expires_at_ms
                         ELSE {lease_us} / 1000 + $3 END
WHERE lock_id = $1 AND expires_at_ms > {lease_us} / 1000 - $2 AND fence > '000000000000000'
RETURNING expires_at_ms - {lease_epoch_us} / 1000
)"};
inline constexpr Statement purge{"lock.purge", R"(
DELETE FROM {table.locks}
WHERE key IN (SELECT key FROM {table.locks} WHERE expires_at_ms < {lease_us} / 1000 - $1
              ORDER BY expires_at_ms LIMIT $2)
  AND expires_at_ms < {lease_us} / 1000 - $1
)"};

// ---- The line ---------------------------------------------------------------------------------

// $1 key, $2 lock id, $3 waiter, $4 patience.
inline constexpr Statement join_line{"lock.join_line", R"(
INSERT INTO {table.waiters} (key, since_us, lock_id, waiter, until_ms)
VALUES ($1, {lease_us}, $2, $3, {lease_us} / 1000 + $4)
)"};
inline constexpr Statement stands_in_line{"lock.stands_in_line", R"(
SELECT 1 FROM {table.waiters} WHERE key = $1 AND lock_id = $2
)"};
inline constexpr Statement leave_line{"lock.leave_line", R"(
DELETE FROM {table.waiters} WHERE key = $1 AND lock_id = $2
)"};
// $1 how long ago the wait must have ended, $2 limit.
inline constexpr Statement purge_line{"lock.purge_line", R"(
DELETE FROM {table.waiters}
WHERE lock_id IN (SELECT lock_id FROM {table.waiters} WHERE until_ms < {lease_us} / 1000 - $1
                  ORDER BY until_ms LIMIT $2)
  AND until_ms < {lease_us} / 1000 - $1
)"};

// ---- Reading and administration -----------------------------------------------------------------

inline constexpr Statement expiry{"lock.expiry", R"(
SELECT expires_at_ms, {lease_us} / 1000 FROM {table.locks} WHERE key = $1
)"};
inline constexpr Statement remove_dead{"lock.remove_dead", R"(
DELETE FROM {table.locks} WHERE key = $1 AND expires_at_ms < {lease_us} / 1000 - $2
)"};
inline constexpr Statement find{"lock.find", R"(
SELECT lock_id, expires_at_ms - {lease_epoch_us} / 1000, acquired_at_ms - {lease_epoch_us} / 1000,
       fence, user_key, owner, meta, {lease_us} / 1000 - {lease_epoch_us} / 1000
FROM {table.locks} WHERE key = $1 AND fence > '000000000000000'
)"};
inline constexpr Statement find_by_id{"lock.find_by_id", R"(
SELECT lock_id, expires_at_ms - {lease_epoch_us} / 1000, acquired_at_ms - {lease_epoch_us} / 1000,
       fence, user_key, owner, meta, {lease_us} / 1000 - {lease_epoch_us} / 1000
FROM {table.locks} WHERE lock_id = $1 AND fence > '000000000000000'
)"};
// $1 after, $2 prefix, $3 limit, $4 whether dead ones count, $5 tolerance.
inline constexpr Statement list{"lock.list", R"(
SELECT user_key, fence, expires_at_ms - {lease_epoch_us} / 1000,
       acquired_at_ms - {lease_epoch_us} / 1000, coalesce(owner, ''), coalesce(meta, ''),
       coalesce(group_id, ''), {lease_us} / 1000 - {lease_epoch_us} / 1000
FROM {table.locks}
WHERE key > $1 AND key >= $2 AND substr(key, 1, length($2)) = $2 AND fence > '000000000000000'
  AND ($4 OR expires_at_ms > {lease_us} / 1000 - $5)
ORDER BY key LIMIT $3
)"};
inline constexpr Statement skip_fence{"lock.skip_fence", R"(
UPDATE {table.fences} SET fence = fence + 1 WHERE fence_key = $1
)"};
inline constexpr Statement free_by_fence{"lock.free_by_fence", R"(
DELETE FROM {table.locks} WHERE key = $1 AND fence = $2
)"};
// After a restore, a counter may be behind the fence that its lock shows. $1 limit.
inline constexpr Statement lift_fences{"lock.lift_fences", R"(
UPDATE {table.fences}
SET fence = (SELECT CAST(l.fence AS bigint) FROM {table.locks} l
             WHERE l.key = substr({table.fences}.fence_key, length('fence:') + 1))
WHERE fence_key IN (SELECT c.fence_key FROM {table.locks} l
                    JOIN {table.fences} c ON c.fence_key = 'fence:' || l.key
                    WHERE CAST(l.fence AS bigint) > c.fence
                    LIMIT $1)
)"};
// Or the counter may be missing. $1 limit.
inline constexpr Statement restore_fences{"lock.restore_fences", R"(
INSERT INTO {table.fences} (fence_key, fence, key_debug)
SELECT 'fence:' || l.key, CAST(l.fence AS bigint), l.user_key FROM {table.locks} l
WHERE l.fence > '000000000000000'
  AND NOT EXISTS (SELECT 1 FROM {table.fences} c WHERE c.fence_key = 'fence:' || l.key)
LIMIT $1
)"};
// A counter that is missing is behind, too.
inline constexpr Statement fences_behind{"lock.fences_behind", R"(
SELECT count(*) FROM {table.locks} l
LEFT JOIN {table.fences} c ON c.fence_key = 'fence:' || l.key
WHERE CAST(l.fence AS bigint) > coalesce(c.fence, 0)
)"};
// $1 after, $2 limit: the last counter of a page.
inline constexpr Statement page_of_fences{"lock.page_of_fences", R"(
SELECT max(fence_key) FROM (SELECT fence_key FROM {table.fences} WHERE fence_key > $1
                            ORDER BY fence_key LIMIT $2) page
)"};
// $1 gap, $2 after, $3 the last counter of the page.
inline constexpr Statement skip_fences{"lock.skip_fences", R"(
UPDATE {table.fences} SET fence = fence + $1 WHERE fence_key > $2 AND fence_key <= $3
)"};

// ---- In other people's transactions -------------------------------------------------------------

// $1 key, $2 lock id. The same transaction commits only while the lock is held: a takeover waits
// for this row, or conflicts with it.
inline constexpr Statement assert_held{"lock.assert_held", R"(
SELECT fence FROM {table.locks}
WHERE key = $1 AND lock_id = $2 AND expires_at_ms > {lease_us} / 1000
  AND fence > '000000000000000' {for_key_share}
)"};
// $1 resource, $2 fence. Changes one row if no newer fence has been seen.
inline constexpr Statement accept_fence{"lock.accept_fence", R"(
INSERT INTO {table.resources} AS r (resource, last_fence) VALUES ($1, $2)
ON CONFLICT (resource) DO UPDATE SET last_fence = excluded.last_fence
WHERE r.last_fence <= excluded.last_fence
)"};

// ---- Semaphores ---------------------------------------------------------------------------------

inline constexpr Statement permits_of{"lock.permits_of", R"(
SELECT slot, permit_id, expires_at_ms, permits, {lease_us} / 1000 FROM {table.permits}
WHERE key = $1 ORDER BY slot
)"};
// $1 fence key, $2 user key. All acquisitions of a permit of the key queue on this row.
inline constexpr Statement next_permit_fence{"lock.next_permit_fence", R"(
INSERT INTO {table.fences} AS c (fence_key, fence, key_debug) VALUES ($1, 1, $2)
ON CONFLICT (fence_key) DO UPDATE SET fence = c.fence + 1
RETURNING fence
)"};
// $1 key, $2 slot, $3 permit id, $4 ttl, $5 fence, $6 permits, $7 owner, $8 tolerance. No row if
// the slot's holder has extended its lease since it was read as expired.
inline constexpr Statement take_permit{"lock.take_permit", R"(
INSERT INTO {table.permits} AS p
    (key, slot, permit_id, expires_at_ms, acquired_at_ms, fence, permits, owner)
VALUES ($1, $2, $3, {lease_us} / 1000 + $4, {lease_us} / 1000, $5, $6, $7)
ON CONFLICT (key, slot) DO UPDATE
SET permit_id = excluded.permit_id, expires_at_ms = excluded.expires_at_ms,
    acquired_at_ms = excluded.acquired_at_ms, fence = excluded.fence,
    permits = excluded.permits, owner = excluded.owner
WHERE p.expires_at_ms <= excluded.acquired_at_ms - $8 OR p.permit_id = excluded.permit_id
RETURNING expires_at_ms - {lease_epoch_us} / 1000
)"};
inline constexpr Statement prolong_permit{"lock.prolong_permit", R"(
UPDATE {table.permits} SET expires_at_ms = {lease_us} / 1000 + $3
WHERE permit_id = $1 AND expires_at_ms > {lease_us} / 1000 - $2
RETURNING expires_at_ms - {lease_epoch_us} / 1000
)"};
// $1 for how long they have been dead, $2 limit.
inline constexpr Statement purge_permits{"lock.purge_permits", R"(
DELETE FROM {table.permits}
WHERE permit_id IN (SELECT permit_id FROM {table.permits}
                    WHERE expires_at_ms < {lease_us} / 1000 - $1
                    ORDER BY expires_at_ms LIMIT $2 {skip_locked})
  AND expires_at_ms < {lease_us} / 1000 - $1
)"};
inline constexpr Statement free_permit{"lock.free_permit", R"(
DELETE FROM {table.permits} WHERE permit_id = $1 AND expires_at_ms > {lease_us} / 1000 - $2
)"};

}  // namespace holdfast::lock::statements
