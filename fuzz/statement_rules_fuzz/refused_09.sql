SELECT * FROM accounts WHERE id IN (1, 2) FOR UPDATE;
SELECT * FROM accounts WHERE id = cents FOR UPDATE;
SELECT * FROM nodes WHERE tree = $1 FOR UPDATE;
SELECT * FROM notes WHERE text = $1 FOR UPDATE;
SELECT * FROM accounts FOR UPDATE;
SELECT * FROM accounts a JOIN nodes n ON true WHERE a.id = 1 FOR UPDATE OF a;
SELECT * FROM accounts, nodes FOR UPDATE;
UPDATE t SET a = (SELECT cents FROM accounts WHERE id = 1 FOR SHARE);
