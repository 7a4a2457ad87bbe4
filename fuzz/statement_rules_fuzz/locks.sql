SELECT * FROM nodes n WHERE n.tree = $1 ORDER BY node LIMIT $2 FOR UPDATE OF n SKIP LOCKED;
UPDATE accounts a SET cents = $1, owner = owner || $2 FROM nodes WHERE a.id = node;
DELETE FROM accounts USING nodes WHERE id = node;
