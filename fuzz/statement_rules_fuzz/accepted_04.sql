SELECT * FROM accounts WHERE $1 = id FOR UPDATE SKIP LOCKED;
SELECT * FROM accounts WHERE id IN ($1) FOR KEY SHARE;
SELECT * FROM nodes WHERE (tree, node) = ($1, $2::bigint) FOR UPDATE;
SELECT * FROM public.nodes n WHERE node = 1 AND (n.tree = $1 AND data IS NULL) FOR UPDATE;
SELECT * FROM nobody_knows WHERE a > 1 FOR UPDATE;
INSERT INTO accounts VALUES (1), (2) RETURNING *;
INSERT INTO accounts (id) SELECT 1;
INSERT INTO accounts DEFAULT VALUES;
