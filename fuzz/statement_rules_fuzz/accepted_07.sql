SET TIME ZONE 'UTC';
SET LOCAL ROLE x;
SET enable_seqscan = off;
SET dsql.enable_batched_nestloop = on;
SET disable_sync_create_index = off;
RESET ALL;
RESET timezone;
SET CONSTRAINTS ALL DEFERRED;
