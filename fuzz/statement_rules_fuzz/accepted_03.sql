SELECT EXISTS (SELECT 1), a = ANY ($1), b IN (SELECT 1), a IS DISTINCT FROM b, c LIKE 'x%', d BETWEEN 1 AND 2, CURRENT_TIMESTAMP, extract(year FROM now()) FROM t;
SELECT 'accounts'::regclass::oid, x::numeric(10, 2), current_setting('timezone');
SELECT $1::bigint + 1_000;
EXPLAIN SELECT 1;
EXPLAIN (ANALYZE, VERBOSE) UPDATE accounts SET cents = 1 WHERE id = 1;
EXPLAIN UPDATE accounts SET cents = 1;
SELECT * FROM accounts WHERE id = $1 FOR UPDATE;
SELECT * FROM accounts a WHERE a.id = $1 AND a.cents > 0 FOR UPDATE NOWAIT;
