-- Entries of the demo's ledger. Nothing keeps a transfer from being written twice, so that the demo
-- would see it.
CREATE TABLE holdfast_demo_ledger (
    entry_id {uuid} NOT NULL PRIMARY KEY,
    run_id {uuid} NOT NULL,
    kill_number {bigint} NOT NULL,
    writer {bigint} NOT NULL,
    transfer {bigint} NOT NULL,
    amount {bigint} NOT NULL
) {strict};

CREATE INDEX {async} holdfast_demo_ledger_run ON holdfast_demo_ledger (run_id, kill_number);
