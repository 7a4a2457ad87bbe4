SELECT 1;
VALUES (1), (2);
TABLE accounts;
SELECT a.*, n.* FROM accounts a LEFT JOIN nodes n ON a.id = n.node, notes;
SELECT 1 UNION ALL SELECT 2 INTERSECT SELECT 3 EXCEPT SELECT 4;
SELECT owner, sum(cents) FROM accounts GROUP BY DISTINCT ROLLUP (owner), CUBE (id) HAVING sum(cents) > 0;
SELECT grouping(a) FROM t GROUP BY GROUPING SETS ((a), ());
SELECT rank() OVER w, sum(x) OVER (PARTITION BY a ROWS 3 PRECEDING) FROM t WINDOW w AS (ORDER BY b);
