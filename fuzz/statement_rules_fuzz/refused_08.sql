RESET row_security;
SET ROLE x;
SELECT set_config('row_security', 'off', false);
SELECT * FROM accounts WHERE id = 1 FOR SHARE;
SELECT * FROM accounts WHERE id = 1 FOR NO KEY UPDATE;
SELECT * FROM accounts WHERE owner = 'ann' FOR UPDATE;
SELECT * FROM accounts WHERE id > 1 FOR UPDATE;
SELECT * FROM accounts WHERE id = 1 OR id = 2 FOR UPDATE;
