SHOW transaction_isolation;
SHOW ALL;
COPY accounts (id) FROM STDIN WITH (FORMAT csv);
COPY accounts TO STDOUT;
COPY (SELECT 1) TO STDOUT;
CALL sys.wait_for_job('abc');
ANALYZE accounts;
DEALLOCATE ALL;
