-- a dump
\connect x
BEGIN;
CREATE TABLE t (a bigserial, b text STORAGE main);
CREATE INDEX CONCURRENTLY i ON t USING btree (a ASC);
COMMIT;
COPY t (a) FROM stdin;
1	x
\.
SELECT 'a''b', E'\'', $q$;$q$, "x""y" /* /* */ */ FROM nodes WHERE (tree, node) = ($1, $2) FOR NO KEY UPDATE;
