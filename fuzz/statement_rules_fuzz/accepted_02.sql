WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r) SELECT * FROM r;
SELECT * FROM accounts a CROSS JOIN LATERAL (SELECT a.id FROM nodes) q;
SELECT * FROM accounts a LEFT JOIN LATERAL (SELECT n.node FROM nodes n) q ON true;
SELECT DISTINCT ON (owner) * FROM accounts ORDER BY owner, id;
SELECT count(*) FILTER (WHERE cents > 0) FROM accounts;
SELECT * FROM unnest(ARRAY[1, 2]) WITH ORDINALITY u(a, b), generate_series(1, 3);
SELECT (1, 2) = (3, 4), ROW(1, 2), '10.0.0.1'::inet, '{1,2}'::int[], a[1], (c).d FROM t;
SELECT CASE a WHEN 1 THEN 2 ELSE 3 END, coalesce(a, 1), greatest(a, 2), nullif(a, 1) FROM t;
