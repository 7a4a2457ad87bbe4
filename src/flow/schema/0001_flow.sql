-- One row per instance: what it is, and who may advance it. `lock_token` changes with every claim
-- and every turn; a writer must name the token it believes in. `locked_until_us`, a time of the
-- clock of leases, is 0 when it is not claimed. `starts_at_us` is when a start that is delayed, or
-- due again by `cron`, may be claimed, and 0 for all others. `origin` never changes: it tells a
-- start whose answer was lost from another one. The row describes the current execution; earlier
-- ones move to flow_executions. `blocked` names why no worker could take its last turn, and is
-- empty otherwise; then `locked_until_us` is when other builds try again, and `blocked_until_us`
-- when `blocked_by` does. The turn that commits next clears `blocked` and `blocked_tries`.
CREATE TABLE IF NOT EXISTS flow_instances (
    instance_id     TEXT NOT NULL PRIMARY KEY,
    name            TEXT NOT NULL,
    version         TEXT NOT NULL,
    execution       {bigint} NOT NULL,
    status          TEXT NOT NULL,
    origin          {uuid} NOT NULL,
    lock_token      {uuid} NOT NULL,
    locked_until_us {bigint} NOT NULL,
    starts_at_us    {bigint} NOT NULL,
    last_event      {bigint} NOT NULL,
    history_bytes   {bigint} NOT NULL,
    engine          {bigint},
    suspended       {bool} NOT NULL,
    parent_id       TEXT,
    parent_execution {bigint},
    parent_event    {bigint},
    output          TEXT,
    custom_status   TEXT,
    status_version  {bigint} NOT NULL,
    created_us      {bigint} NOT NULL,
    started_us      {bigint},
    updated_us      {bigint} NOT NULL,
    completed_us    {bigint},
    cron            TEXT,
    blocked         TEXT,
    blocked_why     TEXT,
    blocked_by      TEXT,
    blocked_since_us {bigint},
    blocked_until_us {bigint},
    blocked_tries   {bigint}
) {strict};
CREATE INDEX {async} IF NOT EXISTS flow_instances_by_parent ON flow_instances (parent_id);
CREATE INDEX {async} IF NOT EXISTS flow_instances_by_creation
    ON flow_instances (created_us, instance_id);

-- Executions that another has followed: they continued as new, were reset, or ran by a schedule.
CREATE TABLE IF NOT EXISTS flow_executions (
    instance_id   TEXT NOT NULL,
    execution     {bigint} NOT NULL,
    version       TEXT NOT NULL,
    status        TEXT NOT NULL,
    output        TEXT,
    last_event    {bigint} NOT NULL,
    history_bytes {bigint} NOT NULL,
    engine        {bigint},
    started_us    {bigint},
    completed_us  {bigint},
    PRIMARY KEY (instance_id, execution)
) {strict};
CREATE INDEX {async} IF NOT EXISTS flow_executions_by_end ON flow_executions (completed_us);

-- The events of one turn, one line of JSON each; a long turn has several rows. Append-only.
-- `written_by` is the token that the turn left: it proves that a commit without an answer
-- happened.
CREATE TABLE IF NOT EXISTS flow_history (
    instance_id TEXT NOT NULL,
    execution   {bigint} NOT NULL,
    first_event {bigint} NOT NULL,
    last_event  {bigint} NOT NULL,
    event_count {bigint} NOT NULL,
    written_by  {uuid} NOT NULL,
    events      TEXT NOT NULL,
    PRIMARY KEY (instance_id, execution, first_event)
) {strict};

-- Where mail for an instance arrives. An early mailbox holds mail of an instance that has not
-- started; an instance that has ended has none. `arrivals` numbers the mail from 1, a start is
-- number 0; `ready_at_us` is when there is something to look at, empty if never, and below 0 if it
-- is due at once (`visible_at_us` is alike): 10^18 microseconds before the time it was asked for. A
-- transaction that changes the mail of an instance has changed its mailbox before: that is what
-- keeps `ready_at_us` true.
CREATE TABLE IF NOT EXISTS flow_mailboxes (
    instance_id TEXT NOT NULL PRIMARY KEY,
    arrivals    {bigint} NOT NULL,
    ready_at_us {bigint},
    early       {bool} NOT NULL,
    created_us  {bigint} NOT NULL
) {strict};
CREATE INDEX {async} IF NOT EXISTS flow_mailboxes_by_readiness ON flow_mailboxes (ready_at_us);

CREATE TABLE IF NOT EXISTS flow_messages (
    instance_id   TEXT NOT NULL,
    position      {bigint} NOT NULL,
    visible_at_us {bigint} NOT NULL,
    execution     {bigint} NOT NULL,
    timer         {bigint} NOT NULL,
    body          TEXT NOT NULL,
    attempts      {bigint} NOT NULL,
    PRIMARY KEY (instance_id, position)
) {strict};

-- Activities that wait or run. `available_at_us` is when a worker may take it: at once (below 0, as
-- for mail), after a delay, or when the lease of the worker that has it runs out (times of the
-- clock of leases). `lock_token` changes with every claim;
-- nobody's is nil. An empty tag is none. `queued_us` is when it was asked for, and below 0 for one
-- whose wait is limited: it is left to workers that can begin it at once. `unserved_tries` counts
-- how often a worker gave it back because it has no such activity, and is below 0 while a worker
-- has it. `attempts` counts claims. `retry` is the policy by which it is tried again, empty if the
-- first failure is final; `failures` counts attempts that failed so far, and `last_failure` is how
-- the last of them did.
CREATE TABLE IF NOT EXISTS flow_activities (
    instance_id     TEXT NOT NULL,
    execution       {bigint} NOT NULL,
    event           {bigint} NOT NULL,
    name            TEXT NOT NULL,
    input           TEXT NOT NULL,
    workflow        TEXT NOT NULL,
    version         TEXT NOT NULL,
    tag             TEXT NOT NULL,
    session         TEXT,
    lock_token      {uuid} NOT NULL,
    available_at_us {bigint} NOT NULL,
    queued_us       {bigint} NOT NULL,
    attempts        {bigint} NOT NULL,
    unserved_tries  {bigint},
    heartbeat       TEXT,
    retry           TEXT,
    failures        {bigint} NOT NULL,
    last_failure    TEXT,
    PRIMARY KEY (instance_id, execution, event)
) {strict};
CREATE INDEX {async} IF NOT EXISTS flow_activities_by_availability
    ON flow_activities (tag, available_at_us);

CREATE TABLE IF NOT EXISTS flow_sessions (
    session_id       TEXT NOT NULL PRIMARY KEY,
    worker_id        TEXT NOT NULL,
    locked_until_us  {bigint} NOT NULL,
    last_activity_us {bigint} NOT NULL
) {strict};

-- `value` is what readers see, empty if it was erased in the current execution; `seed` is what it
-- was when the current execution began, empty if it was not there: replay starts from the seeds.
CREATE TABLE IF NOT EXISTS flow_kv (
    instance_id TEXT NOT NULL,
    key         TEXT NOT NULL,
    value       TEXT,
    updated_us  {bigint} NOT NULL,
    seed        TEXT,
    PRIMARY KEY (instance_id, key)
) {strict};

CREATE TABLE IF NOT EXISTS flow_attributes (
    instance_id TEXT NOT NULL,
    name        TEXT NOT NULL,
    value       TEXT NOT NULL,
    PRIMARY KEY (instance_id, name)
) {strict};
CREATE INDEX {async} IF NOT EXISTS flow_attributes_by_value ON flow_attributes (name, value);

-- Answers to queries and updates, until somebody has read them or they are old.
CREATE TABLE IF NOT EXISTS flow_replies (
    request_id TEXT NOT NULL PRIMARY KEY,
    failed     {bool} NOT NULL,
    body       TEXT NOT NULL,
    created_us {bigint} NOT NULL
) {strict};
CREATE INDEX {async} IF NOT EXISTS flow_replies_by_age ON flow_replies (created_us);
