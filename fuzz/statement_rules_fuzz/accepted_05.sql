INSERT INTO accounts (id) VALUES (1) ON CONFLICT DO NOTHING;
INSERT INTO accounts AS a VALUES (1) ON CONFLICT (id) DO UPDATE SET cents = a.cents + excluded.cents WHERE a.cents > 0;
UPDATE accounts a SET cents = n.node, (owner, doc) = ('x', DEFAULT) FROM nodes n WHERE a.id = n.node;
DELETE FROM accounts USING nodes WHERE id = node;
WITH gone AS (DELETE FROM notes RETURNING *) SELECT * FROM gone;
BEGIN;
BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;
START TRANSACTION READ WRITE;
