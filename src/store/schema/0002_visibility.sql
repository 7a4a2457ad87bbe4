-- What people search executions by. `version` keeps a late writer from undoing a newer one.
-- `sort_time` is when a run closed, and the far future while it runs: the newest come first, and
-- those that run before all others. Ids and types are too long for the key of an index: a digest is
-- compared where one is asked for, and how it begins where a prefix is.
CREATE TABLE IF NOT EXISTS executions_visibility (
    namespace_id           {uuid} NOT NULL,
    run_id                 {uuid} NOT NULL,
    version                {bigint} NOT NULL,
    start_time             {timestamp} NOT NULL,
    execution_time         {timestamp} NOT NULL,
    close_time             {timestamp},
    sort_time              {timestamp} NOT NULL,
    workflow_id            TEXT {bytewise} NOT NULL,
    workflow_digest        {uuid} NOT NULL,
    workflow_prefix        TEXT {bytewise} NOT NULL,
    workflow_type_name     TEXT {bytewise} NOT NULL,
    workflow_type_digest   {uuid} NOT NULL,
    workflow_type_prefix   TEXT {bytewise} NOT NULL,
    status                 INTEGER NOT NULL,
    history_length         {bigint},
    history_size_bytes     {bigint},
    execution_duration_us  {bigint},
    state_transition_count {bigint},
    memo                   {bytes},
    memo_encoding          TEXT NOT NULL,
    task_queue             TEXT {bytewise} NOT NULL,
    search_attributes      {json},
    parent_workflow_id     TEXT {bytewise},
    parent_run_id          {uuid},
    root_workflow_id       TEXT {bytewise} NOT NULL,
    root_run_id            {uuid},
    PRIMARY KEY (namespace_id, run_id)
) {strict};
CREATE INDEX {async} IF NOT EXISTS executions_visibility_by_time
    ON executions_visibility (namespace_id, sort_time, start_time, run_id);
CREATE INDEX {async} IF NOT EXISTS executions_visibility_by_workflow
    ON executions_visibility (namespace_id, workflow_digest, sort_time, start_time, run_id);
CREATE INDEX {async} IF NOT EXISTS executions_visibility_by_type
    ON executions_visibility (namespace_id, workflow_type_digest, sort_time, start_time, run_id);
CREATE INDEX {async} IF NOT EXISTS executions_visibility_by_status
    ON executions_visibility (namespace_id, status, sort_time, start_time, run_id);
CREATE INDEX {async} IF NOT EXISTS executions_visibility_by_workflow_prefix
    ON executions_visibility (namespace_id, workflow_prefix, run_id);
CREATE INDEX {async} IF NOT EXISTS executions_visibility_by_type_prefix
    ON executions_visibility (namespace_id, workflow_type_prefix, run_id);
