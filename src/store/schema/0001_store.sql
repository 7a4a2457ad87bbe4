-- The names are those of Temporal's schema, so that who knows one finds his way in the other. Ids
-- of 16 bytes are UUIDs, what a row holds besides its key and its tokens is a blob: bytes and the
-- name of their encoding. Ids that users give have up to 1,000 bytes, too many for a key: a digest
-- of 16 bytes stands there, and the id itself beside it.

-- ---- Namespaces -------------------------------------------------------------------------------

CREATE TABLE IF NOT EXISTS namespaces (
    partition_id         INTEGER NOT NULL,
    id                   {uuid} NOT NULL,
    name_digest          {uuid} NOT NULL,
    name                 TEXT {bytewise} NOT NULL,
    notification_version {bigint} NOT NULL,
    data                 {bytes} NOT NULL,
    data_encoding        TEXT NOT NULL,
    is_global            {bool} NOT NULL,
    PRIMARY KEY (partition_id, id)
) {strict};
CREATE UNIQUE INDEX {async} IF NOT EXISTS namespaces_by_name ON namespaces (name_digest);

-- One row: the counter that every change of a namespace moves. It is the fence of them all.
CREATE TABLE IF NOT EXISTS namespace_metadata (
    partition_id         INTEGER NOT NULL PRIMARY KEY,
    notification_version {bigint} NOT NULL
) {strict};
INSERT INTO namespace_metadata (partition_id, notification_version) VALUES (54321, 1)
    ON CONFLICT (partition_id) DO NOTHING;

-- ---- Shards and runs --------------------------------------------------------------------------

-- `range_id` grows with every change of owner. Whoever writes for a shard proves that it is still
-- his: he locks this row and compares.
CREATE TABLE IF NOT EXISTS shards (
    shard_id      INTEGER NOT NULL PRIMARY KEY,
    range_id      {bigint} NOT NULL,
    data          {bytes} NOT NULL,
    data_encoding TEXT NOT NULL
) {strict} {hot};

-- `db_record_version` grows by one with every write. Writers from before there was one leave it at
-- 0, and are fenced by `next_event_id`.
CREATE TABLE IF NOT EXISTS executions (
    shard_id           INTEGER NOT NULL,
    run_id             {uuid} NOT NULL,
    namespace_id       {uuid} NOT NULL,
    workflow_id        TEXT {bytewise} NOT NULL,
    next_event_id      {bigint} NOT NULL,
    last_write_version {bigint} NOT NULL,
    data               {bytes} NOT NULL,
    data_encoding      TEXT NOT NULL,
    state              {bytes} NOT NULL,
    state_encoding     TEXT NOT NULL,
    db_record_version  {bigint} NOT NULL,
    PRIMARY KEY (shard_id, run_id)
) {strict} {hot};

-- Which run of a workflow is the current one. `data` holds the requests that the run has answered.
CREATE TABLE IF NOT EXISTS current_executions (
    shard_id           INTEGER NOT NULL,
    namespace_id       {uuid} NOT NULL,
    workflow_digest    {uuid} NOT NULL,
    workflow_id        TEXT {bytewise} NOT NULL,
    run_id             {uuid} NOT NULL,
    create_request_id  TEXT NOT NULL,
    state              INTEGER NOT NULL,
    status             INTEGER NOT NULL,
    start_time         {timestamp},
    last_write_version {bigint} NOT NULL,
    data               {bytes},
    data_encoding      TEXT NOT NULL,
    PRIMARY KEY (shard_id, namespace_id, workflow_digest)
) {strict} {hot};
-- The same for kinds of executions that are not workflows: their ids never meet.
CREATE TABLE IF NOT EXISTS current_chasm_executions (
    shard_id           INTEGER NOT NULL,
    namespace_id       {uuid} NOT NULL,
    business_digest    {uuid} NOT NULL,
    business_id        TEXT {bytewise} NOT NULL,
    archetype_id       {bigint} NOT NULL,
    run_id             {uuid} NOT NULL,
    create_request_id  TEXT NOT NULL,
    state              INTEGER NOT NULL,
    status             INTEGER NOT NULL,
    start_time         {timestamp},
    last_write_version {bigint} NOT NULL,
    data               {bytes},
    data_encoding      TEXT NOT NULL,
    PRIMARY KEY (shard_id, namespace_id, business_digest, archetype_id)
) {strict} {hot};

-- `id` counts up within a run. Who appends has locked the run's row, so nobody else counts.
CREATE TABLE IF NOT EXISTS buffered_events (
    shard_id      INTEGER NOT NULL,
    run_id        {uuid} NOT NULL,
    id            {bigint} NOT NULL,
    data          {bytes} NOT NULL,
    data_encoding TEXT NOT NULL,
    PRIMARY KEY (shard_id, run_id, id)
) {strict};

CREATE TABLE IF NOT EXISTS activity_info_maps (
    shard_id      INTEGER NOT NULL,
    run_id        {uuid} NOT NULL,
    schedule_id   {bigint} NOT NULL,
    data          {bytes} NOT NULL,
    data_encoding TEXT NOT NULL,
    PRIMARY KEY (shard_id, run_id, schedule_id)
) {strict};
CREATE TABLE IF NOT EXISTS timer_info_maps (
    shard_id      INTEGER NOT NULL,
    run_id        {uuid} NOT NULL,
    timer_digest  {uuid} NOT NULL,
    timer_id      TEXT {bytewise} NOT NULL,
    data          {bytes} NOT NULL,
    data_encoding TEXT NOT NULL,
    PRIMARY KEY (shard_id, run_id, timer_digest)
) {strict};
CREATE TABLE IF NOT EXISTS child_execution_info_maps (
    shard_id      INTEGER NOT NULL,
    run_id        {uuid} NOT NULL,
    initiated_id  {bigint} NOT NULL,
    data          {bytes} NOT NULL,
    data_encoding TEXT NOT NULL,
    PRIMARY KEY (shard_id, run_id, initiated_id)
) {strict};
CREATE TABLE IF NOT EXISTS request_cancel_info_maps (
    shard_id      INTEGER NOT NULL,
    run_id        {uuid} NOT NULL,
    initiated_id  {bigint} NOT NULL,
    data          {bytes} NOT NULL,
    data_encoding TEXT NOT NULL,
    PRIMARY KEY (shard_id, run_id, initiated_id)
) {strict};
CREATE TABLE IF NOT EXISTS signal_info_maps (
    shard_id      INTEGER NOT NULL,
    run_id        {uuid} NOT NULL,
    initiated_id  {bigint} NOT NULL,
    data          {bytes} NOT NULL,
    data_encoding TEXT NOT NULL,
    PRIMARY KEY (shard_id, run_id, initiated_id)
) {strict};
CREATE TABLE IF NOT EXISTS signals_requested_sets (
    shard_id      INTEGER NOT NULL,
    run_id        {uuid} NOT NULL,
    signal_digest {uuid} NOT NULL,
    signal_id     TEXT {bytewise} NOT NULL,
    PRIMARY KEY (shard_id, run_id, signal_digest)
) {strict};
CREATE TABLE IF NOT EXISTS chasm_node_maps (
    shard_id          INTEGER NOT NULL,
    run_id            {uuid} NOT NULL,
    chasm_path        TEXT {bytewise} NOT NULL,
    metadata          {bytes} NOT NULL,
    metadata_encoding TEXT NOT NULL,
    data              {bytes},
    data_encoding     TEXT,
    PRIMARY KEY (shard_id, run_id, chasm_path)
) {strict};

-- ---- Tasks of the history service ----------------------------------------------------------------

CREATE TABLE IF NOT EXISTS history_immediate_tasks (
    shard_id      INTEGER NOT NULL,
    category_id   INTEGER NOT NULL,
    task_id       {bigint} NOT NULL,
    data          {bytes} NOT NULL,
    data_encoding TEXT NOT NULL,
    PRIMARY KEY (shard_id, category_id, task_id)
) {strict};
CREATE TABLE IF NOT EXISTS history_scheduled_tasks (
    shard_id             INTEGER NOT NULL,
    category_id          INTEGER NOT NULL,
    visibility_timestamp {timestamp} NOT NULL,
    task_id              {bigint} NOT NULL,
    data                 {bytes} NOT NULL,
    data_encoding        TEXT NOT NULL,
    PRIMARY KEY (shard_id, category_id, visibility_timestamp, task_id)
) {strict};
CREATE TABLE IF NOT EXISTS transfer_tasks (
    shard_id      INTEGER NOT NULL,
    task_id       {bigint} NOT NULL,
    data          {bytes} NOT NULL,
    data_encoding TEXT NOT NULL,
    PRIMARY KEY (shard_id, task_id)
) {strict};
CREATE TABLE IF NOT EXISTS timer_tasks (
    shard_id             INTEGER NOT NULL,
    visibility_timestamp {timestamp} NOT NULL,
    task_id              {bigint} NOT NULL,
    data                 {bytes} NOT NULL,
    data_encoding        TEXT NOT NULL,
    PRIMARY KEY (shard_id, visibility_timestamp, task_id)
) {strict};
CREATE TABLE IF NOT EXISTS replication_tasks (
    shard_id      INTEGER NOT NULL,
    task_id       {bigint} NOT NULL,
    data          {bytes} NOT NULL,
    data_encoding TEXT NOT NULL,
    PRIMARY KEY (shard_id, task_id)
) {strict};
CREATE TABLE IF NOT EXISTS replication_tasks_dlq (
    source_cluster_name TEXT {bytewise} NOT NULL,
    shard_id            INTEGER NOT NULL,
    task_id             {bigint} NOT NULL,
    data                {bytes} NOT NULL,
    data_encoding       TEXT NOT NULL,
    PRIMARY KEY (source_cluster_name, shard_id, task_id)
) {strict};
CREATE TABLE IF NOT EXISTS visibility_tasks (
    shard_id      INTEGER NOT NULL,
    task_id       {bigint} NOT NULL,
    data          {bytes} NOT NULL,
    data_encoding TEXT NOT NULL,
    PRIMARY KEY (shard_id, task_id)
) {strict};

-- ---- History --------------------------------------------------------------------------------------

-- `txn_id` is stored with its sign turned, so that the newest of those with one node_id comes
-- first.
CREATE TABLE IF NOT EXISTS history_node (
    shard_id      INTEGER NOT NULL,
    tree_id       {uuid} NOT NULL,
    branch_id     {uuid} NOT NULL,
    node_id       {bigint} NOT NULL,
    txn_id        {bigint} NOT NULL,
    prev_txn_id   {bigint} NOT NULL,
    data          {bytes} NOT NULL,
    data_encoding TEXT NOT NULL,
    PRIMARY KEY (shard_id, tree_id, branch_id, node_id, txn_id)
) {strict};
CREATE TABLE IF NOT EXISTS history_tree (
    shard_id      INTEGER NOT NULL,
    tree_id       {uuid} NOT NULL,
    branch_id     {uuid} NOT NULL,
    data          {bytes} NOT NULL,
    data_encoding TEXT NOT NULL,
    PRIMARY KEY (shard_id, tree_id, branch_id)
) {strict};

-- ---- Matching -------------------------------------------------------------------------------------

-- A task queue's id is its namespace, its name, its type and its subqueue. The key is a digest of
-- it, and the id itself stands beside.
CREATE TABLE IF NOT EXISTS task_queues (
    range_hash      {bigint} NOT NULL,
    task_queue_id   {uuid} NOT NULL,
    task_queue_name {bytes} NOT NULL,
    range_id        {bigint} NOT NULL,
    data            {bytes} NOT NULL,
    data_encoding   TEXT NOT NULL,
    PRIMARY KEY (range_hash, task_queue_id)
) {strict} {hot};
CREATE TABLE IF NOT EXISTS tasks (
    range_hash    {bigint} NOT NULL,
    task_queue_id {uuid} NOT NULL,
    task_id       {bigint} NOT NULL,
    data          {bytes} NOT NULL,
    data_encoding TEXT NOT NULL,
    PRIMARY KEY (range_hash, task_queue_id, task_id)
) {strict};
CREATE TABLE IF NOT EXISTS task_queues_v2 (
    range_hash      {bigint} NOT NULL,
    task_queue_id   {uuid} NOT NULL,
    task_queue_name {bytes} NOT NULL,
    range_id        {bigint} NOT NULL,
    data            {bytes} NOT NULL,
    data_encoding   TEXT NOT NULL,
    PRIMARY KEY (range_hash, task_queue_id)
) {strict} {hot};
CREATE TABLE IF NOT EXISTS tasks_v2 (
    range_hash    {bigint} NOT NULL,
    task_queue_id {uuid} NOT NULL,
    pass          {bigint} NOT NULL,
    task_id       {bigint} NOT NULL,
    data          {bytes} NOT NULL,
    data_encoding TEXT NOT NULL,
    PRIMARY KEY (range_hash, task_queue_id, pass, task_id)
) {strict};
CREATE TABLE IF NOT EXISTS task_queue_user_data (
    namespace_id      {uuid} NOT NULL,
    task_queue_digest {uuid} NOT NULL,
    task_queue_name   TEXT {bytewise} NOT NULL,
    data              {bytes} NOT NULL,
    data_encoding     TEXT NOT NULL,
    version           {bigint} NOT NULL,
    PRIMARY KEY (namespace_id, task_queue_digest)
) {strict};
CREATE TABLE IF NOT EXISTS build_id_to_task_queue (
    namespace_id      {uuid} NOT NULL,
    build_id          TEXT {bytewise} NOT NULL,
    task_queue_digest {uuid} NOT NULL,
    task_queue_name   TEXT {bytewise} NOT NULL,
    PRIMARY KEY (namespace_id, build_id, task_queue_digest)
) {strict};

-- ---- Queues ---------------------------------------------------------------------------------------

CREATE TABLE IF NOT EXISTS queue (
    queue_type       INTEGER NOT NULL,
    message_id       {bigint} NOT NULL,
    message_payload  {bytes} NOT NULL,
    message_encoding TEXT NOT NULL,
    PRIMARY KEY (queue_type, message_id)
) {strict};
CREATE TABLE IF NOT EXISTS queue_metadata (
    queue_type    INTEGER NOT NULL PRIMARY KEY,
    data          {bytes} NOT NULL,
    data_encoding TEXT NOT NULL,
    version       {bigint} NOT NULL
) {strict};
CREATE TABLE IF NOT EXISTS queues (
    queue_type        INTEGER NOT NULL,
    queue_name        TEXT {bytewise} NOT NULL,
    metadata_payload  {bytes} NOT NULL,
    metadata_encoding TEXT NOT NULL,
    PRIMARY KEY (queue_type, queue_name)
) {strict};
CREATE TABLE IF NOT EXISTS queue_messages (
    queue_type       INTEGER NOT NULL,
    queue_name       TEXT {bytewise} NOT NULL,
    queue_partition  {bigint} NOT NULL,
    message_id       {bigint} NOT NULL,
    message_payload  {bytes} NOT NULL,
    message_encoding TEXT NOT NULL,
    PRIMARY KEY (queue_type, queue_name, queue_partition, message_id)
) {strict};

-- ---- The cluster ----------------------------------------------------------------------------------

CREATE TABLE IF NOT EXISTS cluster_metadata_info (
    metadata_partition INTEGER NOT NULL,
    cluster_name       TEXT {bytewise} NOT NULL,
    data               {bytes} NOT NULL,
    data_encoding      TEXT NOT NULL,
    version            {bigint} NOT NULL,
    PRIMARY KEY (metadata_partition, cluster_name)
) {strict};
-- Hosts, each with one role: the key makes that sure. Heartbeat and expiry are moments of the
-- database's clock, in microseconds since 1970.
CREATE TABLE IF NOT EXISTS cluster_membership (
    membership_partition INTEGER NOT NULL,
    host_id              {uuid} NOT NULL,
    rpc_address          TEXT NOT NULL,
    rpc_port             INTEGER NOT NULL,
    role                 INTEGER NOT NULL,
    session_start        {timestamp} NOT NULL,
    heartbeat_us         {bigint} NOT NULL,
    expiry_us            {bigint} NOT NULL,
    PRIMARY KEY (membership_partition, host_id)
) {strict};
CREATE INDEX {async} IF NOT EXISTS cluster_membership_by_heartbeat
    ON cluster_membership (role, heartbeat_us);
CREATE INDEX {async} IF NOT EXISTS cluster_membership_by_expiry
    ON cluster_membership (expiry_us);

-- ---- Nexus ----------------------------------------------------------------------------------------

CREATE TABLE IF NOT EXISTS nexus_endpoints (
    id            {uuid} NOT NULL PRIMARY KEY,
    data          {bytes} NOT NULL,
    data_encoding TEXT NOT NULL,
    version       {bigint} NOT NULL
) {strict};
-- One row, of id 0: the version that every change of an endpoint moves.
CREATE TABLE IF NOT EXISTS nexus_endpoints_partition_status (
    id      INTEGER NOT NULL PRIMARY KEY,
    version {bigint} NOT NULL
) {strict};
