-- Who holds what until when, in milliseconds of the clock of leases: the server's, or in a file the
-- time since the machine was started behind the number of that start. The key is the storage key, `user_key` what the program said. A row
-- whose fence is all zeros is held by nobody: it keeps the key free for a moment for `lock_id`, the
-- first of those who wait. `lock_id` is unique and not partial: that makes it a key column, so that
-- a takeover waits for whoever has asserted the lock in a transaction, and a heartbeat does not.
CREATE TABLE IF NOT EXISTS {table.locks} (
    key            TEXT {bytewise} NOT NULL PRIMARY KEY,
    lock_id        TEXT {bytewise} NOT NULL,
    expires_at_ms  {bigint} NOT NULL,
    acquired_at_ms {bigint} NOT NULL,
    fence          TEXT {bytewise} NOT NULL,
    user_key       TEXT NOT NULL,
    owner          TEXT,
    meta           TEXT,
    group_id       TEXT
) {strict}{hot};
CREATE UNIQUE INDEX {async} IF NOT EXISTS {index.locks.lock_id} ON {table.locks} (lock_id);
CREATE INDEX {async} IF NOT EXISTS {index.locks.expires} ON {table.locks} (expires_at_ms);

-- The counters. Rows are never deleted and never lowered: that is what makes a fence a fence.
CREATE TABLE IF NOT EXISTS {table.fences} (
    fence_key TEXT {bytewise} NOT NULL PRIMARY KEY,
    fence     {bigint} NOT NULL DEFAULT 0 CHECK (fence >= 0 AND fence <= 900000000000000),
    key_debug TEXT
) {strict}{hot};

-- The line in front of each key. Whoever releases the key takes the first row and calls `waiter`.
CREATE TABLE IF NOT EXISTS {table.waiters} (
    key      TEXT {bytewise} NOT NULL,
    since_us {bigint} NOT NULL,
    lock_id  TEXT {bytewise} NOT NULL,
    waiter   TEXT NOT NULL,
    until_ms {bigint} NOT NULL,
    PRIMARY KEY (key, since_us, lock_id)
) {strict}{hot};

-- The places of a semaphore. `permits` is the limit its takers agreed on.
CREATE TABLE IF NOT EXISTS {table.permits} (
    key            TEXT {bytewise} NOT NULL,
    slot           {bigint} NOT NULL,
    permit_id      TEXT {bytewise} NOT NULL,
    expires_at_ms  {bigint} NOT NULL,
    acquired_at_ms {bigint} NOT NULL,
    fence          {bigint} NOT NULL,
    permits        {bigint} NOT NULL,
    owner          TEXT,
    PRIMARY KEY (key, slot)
) {strict}{hot};
CREATE UNIQUE INDEX {async} IF NOT EXISTS {index.permits.id} ON {table.permits} (permit_id);

-- The newest fence that a guarded resource has seen.
CREATE TABLE IF NOT EXISTS {table.resources} (
    resource   TEXT {bytewise} NOT NULL PRIMARY KEY,
    last_fence {bigint} NOT NULL
) {strict}{hot};
