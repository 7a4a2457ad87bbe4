CREATE SEQUENCE s AS integer CACHE 1;
CREATE INDEX i ON accounts (owner);
CREATE INDEX CONCURRENTLY i ON accounts (owner);
CREATE INDEX ASYNC i ON accounts USING btree (owner);
CREATE INDEX ASYNC i ON accounts (owner DESC);
CREATE INDEX ASYNC i ON accounts (owner ASC);
CREATE INDEX ASYNC i ON accounts (owner text_pattern_ops);
CREATE INDEX ASYNC i ON accounts (photo);
