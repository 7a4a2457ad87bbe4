ALTER TABLE accounts DROP COLUMN id;
GRANT USAGE ON SCHEMA public TO x;
SELECT to_tsvector('english', owner) FROM accounts;
SELECT line(a, b) FROM t;
SELECT '{1,2,3}'::line;
SHOW lc_collate;
SELECT * FROM accounts a LEFT JOIN LATERAL (SELECT a.id, n.node FROM nodes n) q ON true;
SELECT pg_advisory_lock(1);
