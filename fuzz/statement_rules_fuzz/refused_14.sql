CREATE INDEX ASYNC i ON accounts (doc);
CREATE TABLE t (a bytea PRIMARY KEY);
CREATE TABLE t (a json, b int, PRIMARY KEY (b, a));
CREATE TABLE t (a interval UNIQUE);
CREATE TABLE t (a timetz, UNIQUE (a));
CREATE INDEX ASYNC i ON accounts (owner) INCLUDE ((cents + 1));
CREATE INDEX ASYNC i ON accounts ((random()));
CREATE TABLE t (a int, b timestamptz GENERATED ALWAYS AS (now()) STORED);
