-- What the demo's shop has charged and refunded. Nothing here keeps a charge from being written
-- twice, so that the demo would see it.
CREATE TABLE holdfast_demo_ledger (
    entry_id {uuid} NOT NULL PRIMARY KEY,
    run_id {uuid} NOT NULL,
    order_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    cents {bigint} NOT NULL,
    worker {bigint} NOT NULL
) {strict};

CREATE INDEX {async} holdfast_demo_ledger_run ON holdfast_demo_ledger (run_id);
