CREATE TABLE t (a money);
CREATE TABLE t (a xml);
CREATE TABLE t (a inet);
CREATE TABLE t (a cidr);
CREATE TABLE t (a macaddr);
CREATE TABLE t (a point);
CREATE TABLE t (a tsvector);
CREATE TABLE t (a int4range);
