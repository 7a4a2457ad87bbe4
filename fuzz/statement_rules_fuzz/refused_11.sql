CREATE TABLE t (a bit(3));
CREATE TABLE t (a bit varying);
CREATE TABLE t (a pg_lsn);
CREATE TABLE t (a int[]);
CREATE TABLE t (a text ARRAY);
ALTER TABLE t ADD COLUMN a money;
CREATE DOMAIN d AS money;
CREATE TABLE t (a serial);
