CREATE TABLE t (a int) WITH (fillfactor = 10);
CREATE TABLE t (a int) TABLESPACE s;
CREATE SCHEMA s CREATE TABLE t (a money);
CREATE TABLE t (a int, b int, c int, d int, e int, f int, g int, h int, i int, PRIMARY KEY (a, b, c, d, e, f, g, h, i));
CREATE INDEX ASYNC x ON t (a, b, c, d, e, f, g, h, i);
CREATE TABLE t (a char(4097));
CREATE TABLE t (a varchar(65536));
