SELECT pg_try_advisory_xact_lock(1);
SELECT sys.wait_for_job('x');
CALL sys.wait_for_job((SELECT 'x'));
COPY accounts FROM '/x';
COPY accounts TO PROGRAM 'x';
ANALYZE;
ANALYZE accounts (id);
ANALYZE VERBOSE accounts;
