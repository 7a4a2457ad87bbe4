-- The values of search attributes that are short enough to be searched by, as texts in the order of
-- the values; of a list, each of its elements. The times are those of the run's row, so that runs
-- with a value are found in their order.
CREATE TABLE IF NOT EXISTS visibility_attributes (
    namespace_id {uuid} NOT NULL,
    name         TEXT {bytewise} NOT NULL,
    value        TEXT {bytewise} NOT NULL,
    sort_time    {timestamp} NOT NULL,
    start_time   {timestamp} NOT NULL,
    run_id       {uuid} NOT NULL,
    PRIMARY KEY (namespace_id, name, value, sort_time, start_time, run_id)
) {strict};
CREATE INDEX {async} IF NOT EXISTS visibility_attributes_by_run
    ON visibility_attributes (namespace_id, run_id, name, value);
