// Every refusal of the service, and every form it accepts, one line each.
#include "dialect/statement_rules.hpp"

#include "dialect/lint_fixes.hpp"
#include "dialect/test/statement_rules_fixture.hpp"
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace holdfast::dsql {
namespace {

struct Refused {
    std::string_view sql;
    std::string_view message;
    std::string_view code = "0A000";
};

constexpr Refused refusals[] = {
    {"TRUNCATE accounts", "unsupported statement: Truncate"},
    {"CREATE EXTENSION pgcrypto", "unsupported statement: CreateExtension"},
    {"CREATE DATABASE d", "unsupported statement: Createdb"},
    {"CREATE TABLESPACE s LOCATION '/x'", "unsupported statement: CreateTableSpace"},
    {"CREATE FOREIGN TABLE f (a int) SERVER s", "unsupported statement: CreateForeignTable"},
    {"LISTEN c", "unsupported statement: Listen"},
    {"NOTIFY c", "unsupported statement: Notify"},
    {"UNLISTEN *", "unsupported statement: Unlisten"},
    {"ALTER SYSTEM SET work_mem = 1", "unsupported statement: AlterSystem"},
    {"LOCK TABLE accounts", "unsupported statement: Lock"},
    {"DECLARE c CURSOR FOR SELECT 1", "unsupported statement: DeclareCursor"},
    {"CREATE TABLE t AS SELECT 1", "unsupported statement: CreateTableAs"},
    {"SELECT 1 INTO t", "unsupported statement: CreateTableAs"},
    {"CREATE MATERIALIZED VIEW v AS SELECT 1", "unsupported statement: CreateTableAs"},
    {"EXPLAIN CREATE TABLE t AS SELECT 1", "unsupported statement: CreateTableAs"},
    {"CREATE TYPE e AS ENUM ('a')", "CREATE TYPE not supported"},
    {"CREATE TYPE c AS (a int)", "unsupported statement: CompositeType"},
    {"CREATE TYPE r AS RANGE (subtype = int4)", "unsupported statement: CreateRange"},
    {"ALTER TYPE e ADD VALUE 'b'", "ALTER TYPE not supported"},
    {"ALTER TYPE e RENAME TO f", "unsupported object in RENAME statement"},
    {"DROP TYPE e", "unsupported object in DROP statement"},
    {"DROP MATERIALIZED VIEW v", "unsupported object in DROP statement"},
    {"PREPARE p AS SELECT 1", "unsupported statement: Prepare"},
    {"EXECUTE p", "unsupported statement: Execute"},
    {"DEALLOCATE p", "unsupported statement: Deallocate"},
    {"DISCARD ALL", "unsupported statement: Discard"},
    {"LOAD 'x'", "unsupported statement: Load"},
    {"DO 'begin end'", "unsupported statement: Do"},
    {"CREATE POLICY p ON accounts", "unsupported statement: CreatePolicy"},
    {"CREATE RULE r AS ON INSERT TO t DO NOTHING", "unsupported statement: Rule"},
    {"CREATE SERVER s FOREIGN DATA WRAPPER w", "unsupported statement: CreateForeignServer"},
    {"CREATE AGGREGATE a (int) (sfunc = f, stype = int)", "unsupported statement: Define"},
    {"CHECKPOINT", "unsupported statement: CheckPoint"},
    {"REINDEX TABLE accounts", "unsupported statement: Reindex"},
    {"CLUSTER accounts", "unsupported statement: Cluster"},
    {"CREATE TRIGGER t BEFORE INSERT ON accounts EXECUTE FUNCTION f()",
     "CREATE TRIGGER not supported"},
    {"CREATE FUNCTION f() RETURNS int LANGUAGE plpgsql AS 'begin end'",
     "CREATE FUNCTION with language plpgsql not supported"},
    {"CREATE PROCEDURE p() LANGUAGE sql AS 'select 1'", "PROCEDURE is not supported"},
    {"CREATE TEMP TABLE t (a int)", "TEMPORARY or TEMP table not supported for CREATE TABLE"},
    {"CREATE UNLOGGED TABLE t (a int)", "UNLOGGED table not supported for CREATE TABLE"},
    {"VACUUM accounts", "unsupported VACUUM statement"},
    {"MERGE INTO t USING u ON t.a = u.a WHEN MATCHED THEN DELETE",
     "unsupported statement type: MERGE"},
    {"SELECT * FROM accounts TABLESAMPLE system (1)", "TABLESAMPLE clause not supported"},
    {"SAVEPOINT s", "unsupported transaction statement: SAVEPOINT"},
    {"ROLLBACK TO s", "unsupported transaction statement: ROLLBACK TO"},
    {"RELEASE s", "unsupported transaction statement: RELEASE"},
    {"COMMIT AND CHAIN", "unsupported transaction statement: COMMIT AND CHAIN"},
    {"PREPARE TRANSACTION 'x'", "unsupported transaction statement: PREPARE TRANSACTION"},
    {"BEGIN ISOLATION LEVEL SERIALIZABLE", "Unsupported isolation level: SERIALIZABLE"},
    {"BEGIN ISOLATION LEVEL Read Committed", "Unsupported isolation level: Read Committed"},
    {"SET TRANSACTION ISOLATION LEVEL SERIALIZABLE", "Unsupported isolation level: SERIALIZABLE"},
    {"SET TRANSACTION READ ONLY", "setting configuration parameter \"TRANSACTION\" not supported"},
    {"SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY",
     "setting configuration parameter \"SESSION CHARACTERISTICS\" not supported"},
    {"SET default_transaction_isolation = 'serializable'",
     "setting configuration parameter \"default_transaction_isolation\" not supported"},
    {"SET statement_timeout = 1",
     "setting configuration parameter \"statement_timeout\" not supported"},
    {"SET LOCAL lock_timeout = 1",
     "setting configuration parameter \"lock_timeout\" not supported"},
    {"RESET row_security", "setting configuration parameter \"row_security\" not supported"},
    {"SET ROLE x", "setting configuration parameter \"role\" not supported"},
    {"SELECT set_config('row_security', 'off', false)",
     "setting configuration parameter \"row_security\" not supported"},
    {"SELECT * FROM accounts WHERE id = 1 FOR SHARE",
     "locking clauses other than FOR UPDATE/FOR KEY SHARE are not supported"},
    {"SELECT * FROM accounts WHERE id = 1 FOR NO KEY UPDATE",
     "locking clauses other than FOR UPDATE/FOR KEY SHARE are not supported"},
    {"UPDATE t SET a = (SELECT cents FROM accounts WHERE id = 1 FOR SHARE)",
     "locking clauses other than"},
    {"CREATE TABLE t (a money)", "datatype money not supported"},
    {"CREATE TABLE t (a xml)", "datatype xml not supported"},
    {"CREATE TABLE t (a inet)", "datatype inet not supported"},
    {"CREATE TABLE t (a cidr)", "datatype cidr not supported"},
    {"CREATE TABLE t (a macaddr)", "datatype macaddr not supported"},
    {"CREATE TABLE t (a point)", "datatype point not supported"},
    {"CREATE TABLE t (a tsvector)", "datatype tsvector not supported"},
    {"CREATE TABLE t (a int4range)", "datatype int4range not supported"},
    {"CREATE TABLE t (a bit(3))", "datatype bit not supported"},
    {"CREATE TABLE t (a bit varying)", "datatype bit varying not supported"},
    {"CREATE TABLE t (a pg_lsn)", "datatype pg_lsn not supported"},
    {"CREATE TABLE t (a int[])", "datatype integer[] not supported"},
    {"CREATE TABLE t (a text ARRAY)", "datatype text[] not supported"},
    {"ALTER TABLE t ADD COLUMN a money", "datatype money not supported"},
    {"CREATE DOMAIN d AS money", "datatype money not supported"},
    {"CREATE TABLE t (a serial)", "type \"serial\" does not exist", "42704"},
    {"CREATE TABLE t (a bigserial PRIMARY KEY)", "type \"bigserial\" does not exist", "42704"},
    {"CREATE TABLE t (a smallserial)", "type \"smallserial\" does not exist", "42704"},
    {"CREATE TABLE t (a bigint GENERATED ALWAYS AS IDENTITY)",
     "identity column is not supported without an explicit cache size. please define CACHE greater "
     "than or equal to 65536 or equal to 1"},
    {"CREATE TABLE t (a bigint GENERATED ALWAYS AS IDENTITY (CACHE 20))",
     "please define CACHE greater than or equal to 65536 or equal to 1"},
    {"CREATE TABLE t (a int GENERATED ALWAYS AS IDENTITY (CACHE 1))",
     "datatype integer not supported, identity column type must be bigint"},
    {"CREATE SEQUENCE s",
     "CREATE SEQUENCE is not supported without an explicit cache size. please define CACHE greater "
     "than or equal to 65536 or equal to 1"},
    {"CREATE SEQUENCE s CACHE 2", "please define CACHE"},
    {"ALTER SEQUENCE s CACHE 2", "please define CACHE"},
    {"CREATE SEQUENCE s AS integer CACHE 1", "datatype integer not supported"},
    {"CREATE INDEX i ON accounts (owner)", "unsupported mode. please use CREATE INDEX ASYNC."},
    {"CREATE INDEX CONCURRENTLY i ON accounts (owner)",
     "CONCURRENTLY not supported for CREATE INDEX"},
    {"CREATE INDEX ASYNC i ON accounts USING btree (owner)",
     "USING not supported for CREATE INDEX"},
    {"CREATE INDEX ASYNC i ON accounts (owner DESC)",
     "specifying sort order not supported for index keys"},
    {"CREATE INDEX ASYNC i ON accounts (owner ASC)",
     "specifying sort order not supported for index keys"},
    {"CREATE INDEX ASYNC i ON accounts (owner text_pattern_ops)",
     "opclass not supported for index keys"},
    {"CREATE INDEX ASYNC i ON accounts (photo)", "datatype bytea is not supported in a key"},
    {"CREATE INDEX ASYNC i ON accounts (doc)", "datatype jsonb is not supported in a key"},
    {"CREATE TABLE t (a bytea PRIMARY KEY)", "datatype bytea is not supported in a key"},
    {"CREATE TABLE t (a json, b int, PRIMARY KEY (b, a))",
     "datatype json is not supported in a key"},
    {"CREATE TABLE t (a interval UNIQUE)", "datatype interval is not supported in a key"},
    {"CREATE TABLE t (a timetz, UNIQUE (a))",
     "datatype time with time zone is not supported in a key"},
    {"CREATE INDEX ASYNC i ON accounts (owner) INCLUDE ((cents + 1))",
     "expressions are not supported in included columns"},
    {"CREATE INDEX ASYNC i ON accounts ((random()))",
     "functions in index expression must be marked IMMUTABLE",
     "42P17"},
    {"CREATE TABLE t (a int, b timestamptz GENERATED ALWAYS AS (now()) STORED)",
     "generation expression is not immutable",
     "42P17"},
    {"ALTER TABLE t ADD COLUMN a int DEFAULT 1",
     "ALTER TABLE ADD COLUMN with constraint not supported"},
    {"ALTER TABLE t ADD a int NOT NULL", "ALTER TABLE ADD COLUMN with constraint not supported"},
    {"ALTER TABLE t ADD a int CHECK (a > 0)", "ADD COLUMN with constraint not supported"},
    {"ALTER TABLE t ADD a int UNIQUE", "ADD COLUMN with constraint not supported"},
    {"ALTER TABLE t ADD a bigint GENERATED ALWAYS AS IDENTITY (CACHE 1)",
     "ADD COLUMN with constraint not supported"},
    {"ALTER TABLE t ADD a text COLLATE \"C\"", "COLLATE clause not supported"},
    {"CREATE TABLE t (a text COLLATE \"C\")", "COLLATE clause not supported"},
    {"ALTER TABLE t ALTER a TYPE bigint",
     "unsupported ALTER TABLE ALTER COLUMN ... SET DATA TYPE statement"},
    {"ALTER TABLE t ALTER a SET STATISTICS 10",
     "unsupported ALTER TABLE ALTER COLUMN ... SET STATISTICS statement"},
    {"ALTER TABLE t ALTER a SET NOT NULL",
     "unsupported ALTER TABLE ALTER COLUMN ... SET NOT NULL statement"},
    {"ALTER TABLE t ENABLE ROW LEVEL SECURITY",
     "unsupported ALTER TABLE ENABLE ROW SECURITY statement"},
    {"ALTER TABLE t ADD PRIMARY KEY (a)", "unsupported ALTER TABLE ADD CONSTRAINT statement"},
    {"ALTER TABLE t ADD CONSTRAINT c UNIQUE (a)",
     "unsupported ALTER TABLE ADD CONSTRAINT statement"},
    {"ALTER TABLE t ADD CONSTRAINT c CHECK (a > 0)",
     "unsupported ALTER TABLE ADD CONSTRAINT statement"},
    {"ALTER TABLE t ADD CONSTRAINT c FOREIGN KEY (a) REFERENCES u (b)",
     "unsupported ALTER TABLE ADD CONSTRAINT statement"},
    {"ALTER TABLE t VALIDATE CONSTRAINT c",
     "unsupported ALTER TABLE VALIDATE CONSTRAINT statement"},
    {"ALTER TABLE accounts DROP COLUMN id", "cannot drop primary key column id"},
    {"GRANT USAGE ON SCHEMA public TO x", "feature not supported on system entity"},
    {"SELECT to_tsvector('english', owner) FROM accounts",
     "text search configuration \"english\" does not exist",
     "42704"},
    {"SELECT line(a, b) FROM t", "datatype line not supported"},
    {"SELECT '{1,2,3}'::line", "datatype line not supported"},
    {"SHOW lc_collate", "unrecognized configuration parameter \"lc_collate\"", "42704"},
    {"SELECT * FROM accounts a LEFT JOIN LATERAL (SELECT a.id, n.node FROM nodes n) q ON true",
     "attribute 1 of type accounts has wrong type",
     "42804"},
    {"SELECT pg_advisory_lock(1)", "pg_advisory_lock"},
    {"SELECT pg_try_advisory_xact_lock(1)", "pg_try_advisory_xact_lock"},
    {"SELECT sys.wait_for_job('x')", "sys.wait_for_job(text) is a procedure", "42809"},
    {"CALL sys.wait_for_job((SELECT 'x'))", "cannot use subquery in CALL argument"},
    {"COPY accounts FROM '/x'", "unsupported statement: Copy"},
    {"COPY accounts TO PROGRAM 'x'", "unsupported statement: Copy"},
    {"ANALYZE", "unsupported ANALYZE statement"},
    {"ANALYZE accounts (id)", "unsupported ANALYZE statement"},
    {"ANALYZE VERBOSE accounts", "unsupported ANALYZE statement"},
    {"CREATE TABLE t (a int UNIQUE DEFERRABLE)", "DEFERRABLE constraint not supported"},
    {"CREATE TABLE t (a int, UNIQUE (a) DEFERRABLE)", "DEFERRABLE constraint not supported"},
    {"CREATE TABLE t (a int CHECK (a > 0) DEFERRABLE)",
     "CHECK constraints cannot be marked DEFERRABLE"},
    {"CREATE TABLE t (a int, CHECK (a > 0) DEFERRABLE)",
     "CHECK constraints cannot be marked DEFERRABLE"},
    {"CREATE TABLE t (a int, EXCLUDE (a WITH =))", "EXCLUDE constraint not supported"},
    {"CREATE TABLE t (a int) PARTITION BY LIST (a)", "PARTITION BY not supported"},
    {"CREATE TABLE p PARTITION OF t FOR VALUES IN (1)", "PARTITION OF not supported"},
    {"CREATE TABLE t (a int) INHERITS (u)", "INHERITS not supported"},
    {"CREATE TABLE t (a int) WITH (fillfactor = 10)", "WITH not supported"},
    {"CREATE TABLE t (a int) TABLESPACE s", "TABLESPACE not supported"},
    {"CREATE SCHEMA s CREATE TABLE t (a money)", "schema elements not supported"},
    {"CREATE TABLE t (a int, b int, c int, d int, e int, f int, g int, h int, i int, "
     "PRIMARY KEY (a, b, c, d, e, f, g, h, i))",
     "more than 8 column keys in an index are not supported",
     "54011"},
    {"CREATE INDEX ASYNC x ON t (a, b, c, d, e, f, g, h, i)",
     "more than 8 column keys in an index are not supported",
     "54011"},
    {"CREATE TABLE t (a char(4097))",
     "Datatype limit greater than 4096 bytes not supported for char",
     "54000"},
    {"CREATE TABLE t (a varchar(65536))",
     "Datatype limit greater than 65535 bytes not supported for varchar",
     "54000"},
};

TEST(StatementRules, EveryRefusalHasItsStateAndText) {
    for (const Refused& row : refusals) {
        SCOPED_TRACE(row.sql);
        const CheckedStatement checked = check_one(row.sql);
        if (!checked.refusal) {
            ADD_FAILURE() << "was accepted";
            continue;
        }
        EXPECT_EQ(checked.refusal->code, row.code);
        EXPECT_THAT(checked.refusal->message, testing::HasSubstr(row.message));
        EXPECT_LT(checked.refusal->offset, row.sql.size());
        EXPECT_NE(rewrite_of(checked.refusal->rule, checked.refusal->message), "")
            << checked.refusal->rule;
    }
}

struct Accepted {
    std::string_view sql;
    Kind kind = Kind::read;
};

constexpr Accepted accepted[] = {
    {"SELECT 1"},
    {"VALUES (1), (2)"},
    {"TABLE accounts"},
    {"SELECT a.*, n.* FROM accounts a LEFT JOIN nodes n ON a.id = n.node, notes"},
    {"SELECT 1 UNION ALL SELECT 2 INTERSECT SELECT 3 EXCEPT SELECT 4"},
    {"SELECT owner, sum(cents) FROM accounts GROUP BY DISTINCT ROLLUP (owner), CUBE (id) "
     "HAVING sum(cents) > 0"},
    {"SELECT grouping(a) FROM t GROUP BY GROUPING SETS ((a), ())"},
    {"SELECT rank() OVER w, sum(x) OVER (PARTITION BY a ROWS 3 PRECEDING) FROM t WINDOW w AS "
     "(ORDER BY b)"},
    {"WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r) SELECT * FROM r"},
    {"SELECT * FROM accounts a CROSS JOIN LATERAL (SELECT a.id FROM nodes) q"},
    {"SELECT * FROM accounts a LEFT JOIN LATERAL (SELECT n.node FROM nodes n) q ON true"},
    {"SELECT DISTINCT ON (owner) * FROM accounts ORDER BY owner, id"},
    {"SELECT count(*) FILTER (WHERE cents > 0) FROM accounts"},
    {"SELECT * FROM unnest(ARRAY[1, 2]) WITH ORDINALITY u(a, b), generate_series(1, 3)"},
    {"SELECT (1, 2) = (3, 4), ROW(1, 2), '10.0.0.1'::inet, '{1,2}'::int[], a[1], (c).d FROM t"},
    {"SELECT CASE a WHEN 1 THEN 2 ELSE 3 END, coalesce(a, 1), greatest(a, 2), nullif(a, 1) FROM t"},
    {"SELECT EXISTS (SELECT 1), a = ANY ($1), b IN (SELECT 1), a IS DISTINCT FROM b, c LIKE 'x%', "
     "d BETWEEN 1 AND 2, CURRENT_TIMESTAMP, extract(year FROM now()) FROM t"},
    {"SELECT 'accounts'::regclass::oid, x::numeric(10, 2), current_setting('timezone')"},
    {"SELECT $1::bigint + 1_000"},
    {"SELECT * FROM json_to_recordset($1) AS r (a int, b text)"},
    {"SELECT c.relname::pg_catalog.text COLLATE pg_catalog.\"default\", c.oid "
     "OPERATOR(pg_catalog.=) 1 "
     "FROM pg_catalog.pg_class c, ROWS FROM (generate_series(1, 2)) g"},
    {"SELECT json_agg(x ORDER BY y), percentile_cont(0.5) WITHIN GROUP (ORDER BY z), a AT TIME "
     "ZONE "
     "'UTC', array(SELECT 1), row(a.*), f(x => 1), b IS NOT TRUE, a COLLATE \"C\" FROM t AS a (x, "
     "y)"},
    {"SELECT * FROM t ORDER BY a DESC NULLS LAST FETCH FIRST 3 ROWS WITH TIES"},
    {"WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n FROM r) SEARCH DEPTH FIRST BY n SET s "
     "CYCLE n SET c USING p SELECT * FROM r NATURAL FULL JOIN u JOIN v USING (a)"},
    {"EXPLAIN SELECT 1"},
    {"EXPLAIN (ANALYZE, VERBOSE) UPDATE accounts SET cents = 1 WHERE id = 1", Kind::write},
    {"EXPLAIN UPDATE accounts SET cents = 1"},
    {"SELECT * FROM accounts WHERE id = $1 FOR UPDATE", Kind::lock},
    {"SELECT * FROM accounts a WHERE a.id = $1 AND a.cents > 0 FOR UPDATE NOWAIT", Kind::lock},
    {"SELECT * FROM accounts WHERE $1 = id FOR UPDATE SKIP LOCKED", Kind::lock},
    {"SELECT * FROM accounts WHERE id IN ($1) FOR KEY SHARE", Kind::lock},
    {"SELECT * FROM nodes WHERE (tree, node) = ($1, $2::bigint) FOR UPDATE", Kind::lock},
    {"SELECT * FROM public.nodes n WHERE node = 1 AND (n.tree = $1 AND data IS NULL) FOR UPDATE",
     Kind::lock},
    {"SELECT * FROM nobody_knows WHERE a > 1 FOR UPDATE", Kind::lock},
    {"INSERT INTO accounts VALUES (1), (2) RETURNING *", Kind::write},
    {"INSERT INTO accounts (id) SELECT 1", Kind::write},
    {"INSERT INTO accounts DEFAULT VALUES", Kind::write},
    {"INSERT INTO accounts (id) VALUES (1) ON CONFLICT DO NOTHING", Kind::write},
    {"INSERT INTO accounts AS a VALUES (1) ON CONFLICT (id) DO UPDATE SET cents = a.cents + "
     "excluded.cents WHERE a.cents > 0",
     Kind::write},
    {"UPDATE accounts a SET cents = n.node, (owner, doc) = ('x', DEFAULT) FROM nodes n WHERE a.id "
     "= n.node",
     Kind::write},
    {"DELETE FROM accounts USING nodes WHERE id = node", Kind::write},
    {"WITH gone AS (DELETE FROM notes RETURNING *) SELECT * FROM gone", Kind::write},
    {"BEGIN", Kind::begin},
    {"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", Kind::begin},
    {"START TRANSACTION READ WRITE", Kind::begin},
    {"COMMIT", Kind::commit},
    {"END WORK", Kind::commit},
    {"COMMIT AND NO CHAIN", Kind::commit},
    {"ROLLBACK", Kind::rollback},
    {"ABORT", Kind::rollback},
    {"SET TRANSACTION ISOLATION LEVEL REPEATABLE READ", Kind::set},
    {"SET application_name = 'x'", Kind::set},
    {"SET search_path TO a, b", Kind::set},
    {"SET TIME ZONE 'UTC'", Kind::set},
    {"SET LOCAL ROLE x", Kind::set},
    {"SET enable_seqscan = off", Kind::set},
    {"SET dsql.enable_batched_nestloop = on", Kind::set},
    {"SET disable_sync_create_index = off", Kind::set},
    {"RESET ALL", Kind::set},
    {"RESET timezone", Kind::set},
    {"SET CONSTRAINTS ALL DEFERRED", Kind::set_constraints},
    {"SHOW transaction_isolation", Kind::show},
    {"SHOW ALL", Kind::show},
    {"COPY accounts (id) FROM STDIN WITH (FORMAT csv)", Kind::copy_in},
    {"COPY accounts TO STDOUT", Kind::copy_out},
    {"COPY (SELECT 1) TO STDOUT", Kind::copy_out},
    {"CALL sys.wait_for_job('abc')", Kind::call},
    {"ANALYZE accounts", Kind::analyze},
    {"DEALLOCATE ALL", Kind::deallocate},
    {"CREATE TABLE IF NOT EXISTS s.t (a smallint NOT NULL, b int NULL, c bigint DEFAULT 1, d real, "
     "e double precision, f numeric(18, 6), g char(4096), h varchar(65535), i text, j date, k "
     "time, "
     "l timetz, m timestamp, n timestamptz, o interval, p boolean, q bytea, r uuid DEFAULT "
     "gen_random_uuid(), s json, t jsonb, u bpchar, v my_domain, PRIMARY KEY (a, b))",
     Kind::ddl},
    {"CREATE TABLE t (a bigint GENERATED BY DEFAULT AS IDENTITY (CACHE 1) PRIMARY KEY)", Kind::ddl},
    {"CREATE TABLE t (a bigint GENERATED ALWAYS AS IDENTITY (CACHE 65536))", Kind::ddl},
    {"CREATE TABLE t (a int CHECK (a > 0), b int GENERATED ALWAYS AS (a + 1) STORED, c text UNIQUE "
     "NULLS NOT DISTINCT, CONSTRAINT k UNIQUE (a, b) INCLUDE (c))",
     Kind::ddl},
    {"CREATE TABLE t (a bigint REFERENCES accounts ON DELETE CASCADE ON UPDATE SET NULL DEFERRABLE "
     "INITIALLY DEFERRED, FOREIGN KEY (a) REFERENCES u (b) MATCH FULL ON DELETE SET DEFAULT)",
     Kind::ddl},
    {"CREATE TABLE t (LIKE accounts INCLUDING ALL)", Kind::ddl},
    {"CREATE TABLE t (a text STORAGE EXTERNAL NOT NULL, storage text DEFAULT 'x')", Kind::ddl},
    {"ALTER TABLE t ADD COLUMN IF NOT EXISTS a text STORAGE PLAIN", Kind::ddl},
    {"ALTER TABLE t ADD a my_domain", Kind::ddl},
    {"ALTER TABLE accounts DROP COLUMN IF EXISTS owner CASCADE", Kind::ddl},
    {"ALTER TABLE t ALTER a SET DEFAULT 1, ALTER b DROP DEFAULT", Kind::ddl},
    {"ALTER TABLE t ALTER a DROP NOT NULL", Kind::ddl},
    {"ALTER TABLE t ALTER a DROP EXPRESSION", Kind::ddl},
    {"ALTER TABLE t ALTER a ADD GENERATED ALWAYS AS IDENTITY (CACHE 1)", Kind::ddl},
    {"ALTER TABLE t ALTER a SET GENERATED BY DEFAULT SET CACHE 65536", Kind::ddl},
    {"ALTER TABLE t ALTER a RESTART WITH 5", Kind::ddl},
    {"ALTER TABLE t ALTER a DROP IDENTITY", Kind::ddl},
    {"ALTER TABLE t ALTER a SET STORAGE EXTERNAL", Kind::ddl},
    {"ALTER TABLE t ADD CONSTRAINT c CHECK (a > 0) NOT VALID", Kind::ddl},
    {"ALTER TABLE t ADD CONSTRAINT c FOREIGN KEY (a) REFERENCES u (b) NOT VALID", Kind::ddl},
    {"ALTER TABLE t ADD CONSTRAINT c UNIQUE USING INDEX i", Kind::ddl},
    {"ALTER TABLE t DROP CONSTRAINT c", Kind::ddl},
    {"ALTER TABLE t ALTER CONSTRAINT c DEFERRABLE", Kind::ddl},
    {"ALTER TABLE t RENAME TO u", Kind::ddl},
    {"ALTER TABLE t RENAME COLUMN a TO b", Kind::ddl},
    {"ALTER TABLE t RENAME CONSTRAINT a TO b", Kind::ddl},
    {"ALTER TABLE t SET SCHEMA s", Kind::ddl},
    {"ALTER TABLE t OWNER TO x", Kind::ddl},
    {"ALTER TABLE ASYNC s.t VALIDATE CONSTRAINT c", Kind::ddl},
    {"DROP TABLE IF EXISTS t, s.u CASCADE", Kind::ddl},
    {"CREATE INDEX ASYNC i ON accounts (owner NULLS FIRST, (lower(owner))) INCLUDE (cents) WHERE "
     "cents > 0",
     Kind::ddl},
    {"CREATE UNIQUE INDEX ASYNC IF NOT EXISTS i ON accounts (owner) NULLS NOT DISTINCT", Kind::ddl},
    {"CREATE INDEX ASYNC ON accounts (owner)", Kind::ddl},
    {"DROP INDEX i", Kind::ddl},
    {"ALTER INDEX i RENAME TO j", Kind::ddl},
    {"CREATE VIEW v AS SELECT * FROM accounts", Kind::ddl},
    {"CREATE OR REPLACE VIEW v AS SELECT 1", Kind::ddl},
    {"ALTER VIEW v RENAME TO w", Kind::ddl},
    {"DROP VIEW v", Kind::ddl},
    {"CREATE SEQUENCE s CACHE 1", Kind::ddl},
    {"CREATE SEQUENCE s AS bigint START 5 CACHE 65536", Kind::ddl},
    {"ALTER SEQUENCE s RESTART", Kind::ddl},
    {"DROP SEQUENCE s", Kind::ddl},
    {"CREATE SCHEMA IF NOT EXISTS s", Kind::ddl},
    {"ALTER SCHEMA s RENAME TO t", Kind::ddl},
    {"ALTER SCHEMA s OWNER TO x", Kind::ddl},
    {"DROP SCHEMA s", Kind::ddl},
    {"CREATE DOMAIN d AS text CHECK (value <> '')", Kind::ddl},
    {"ALTER DOMAIN d DROP NOT NULL", Kind::ddl},
    {"DROP DOMAIN d", Kind::ddl},
    {"CREATE ROLE x WITH LOGIN", Kind::ddl},
    {"ALTER ROLE x LOGIN", Kind::ddl},
    {"DROP ROLE x", Kind::ddl},
    {"CREATE STATISTICS s ON a, b FROM t", Kind::ddl},
    {"DROP STATISTICS s", Kind::ddl},
    {"CREATE FUNCTION f(a int) RETURNS int LANGUAGE sql AS 'select a'", Kind::ddl},
    {"CREATE FUNCTION f(a int) RETURNS int RETURN a + 1", Kind::ddl},
    {"CREATE FUNCTION f(a int) RETURNS int BEGIN ATOMIC SELECT CASE a WHEN 1 THEN 2 END; SELECT 2; "
     "END",
     Kind::ddl},
    {"DROP FUNCTION f(int)", Kind::ddl},
    {"GRANT SELECT ON accounts TO x", Kind::ddl},
    {"REVOKE ALL ON ALL TABLES IN SCHEMA public FROM x", Kind::ddl},
    {"GRANT USAGE ON SCHEMA s TO x", Kind::ddl},
    {"GRANT x TO y", Kind::ddl},
    {"ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO x", Kind::ddl},
    {"COMMENT ON COLUMN accounts.owner IS 'x'", Kind::ddl},
    {"AWS IAM GRANT x TO 'arn:aws:iam::1:role/r'", Kind::ddl},
    {"aws iam revoke x from 'arn:aws:iam::1:role/r'", Kind::ddl},
};

TEST(StatementRules, EveryAcceptedFormIsAccepted) {
    for (const Accepted& row : accepted) {
        SCOPED_TRACE(row.sql);
        const CheckedStatement checked = check_one(row.sql);
        EXPECT_EQ(checked.refusal ? checked.refusal->message : "", "");
        EXPECT_EQ(checked.kind, row.kind) << checked.syntax_error;
    }
}

// The guide accepts GROUP BY ALL; the service does not, and neither does PostgreSQL 15.
TEST(StatementRules, WhatPostgresDoesNotKnowIsLeftToIt) {
    for (const std::string_view sql : {"SELECT 1 FROM t GROUP BY ALL",
                                       "CREATE INDEX ASYNC s.i ON t (a)",
                                       "SELEC 1",
                                       "SELECT 'never closed",
                                       "SELECT (1; SELECT 2"}) {
        const CheckedStatement checked = check_one(sql);
        EXPECT_EQ(checked.kind, Kind::unparsed) << sql;
        EXPECT_FALSE(checked.refusal) << sql;
        EXPECT_NE(checked.syntax_error, "") << sql;
    }
}

// A gateway runs this text in the place of the statement, so it must mean the same and nothing
// else.
TEST(StatementRules, AChangeOfRolesIsSaidAgain) {
    const std::vector<std::pair<std::string, std::string>> changes{
        {"create role X with login", R"(CREATE ROLE "x" LOGIN)"},
        {"CREATE USER u NOINHERIT CONNECTION LIMIT 3",
         R"(CREATE USER "u" NOINHERIT CONNECTION LIMIT 3)"},
        {"CREATE ROLE a NOSUPERUSER NOCREATEDB IN ROLE b, c",
         R"(CREATE ROLE "a" IN ROLE "b", "c")"},
        {R"(CREATE ROLE "a""; DROP ROLE b; --")", R"(CREATE ROLE "a""; DROP ROLE b; --")"},
        {"CREATE ROLE a ROLE b ADMIN c", R"(CREATE ROLE "a" ROLE "b" ADMIN "c")"},
        {"ALTER ROLE a NOLOGIN", R"(ALTER ROLE "a" NOLOGIN)"},
        {"ALTER GROUP g ADD USER a, b", R"(ALTER GROUP "g" ADD USER "a", "b")"},
        {"ALTER GROUP g DROP USER a", R"(ALTER GROUP "g" DROP USER "a")"},
        {"ALTER ROLE a RENAME TO b", R"(ALTER ROLE "a" RENAME TO "b")"},
        {"ALTER ROLE a SET search_path TO x, 'y''z'",
         R"(ALTER ROLE "a" SET "search_path" TO 'x', 'y''z')"},
        {"ALTER ROLE a SET extra_float_digits = 2",
         R"(ALTER ROLE "a" SET "extra_float_digits" TO '2')"},
        {"ALTER ROLE a RESET search_path", R"(ALTER ROLE "a" RESET "search_path")"},
        {"ALTER ROLE a RESET ALL", R"(ALTER ROLE "a" RESET ALL)"},
        {"DROP ROLE IF EXISTS a, b", R"(DROP ROLE IF EXISTS "a", "b")"},
        {"GRANT a, b TO c WITH ADMIN OPTION", R"(GRANT "a", "b" TO "c" WITH ADMIN OPTION)"},
        {"REVOKE ADMIN OPTION FOR a FROM b CASCADE",
         R"(REVOKE ADMIN OPTION FOR "a" FROM "b" CASCADE)"},
        {"REVOKE a FROM b", R"(REVOKE "a" FROM "b")"},
        {"COMMENT ON ROLE a IS 'it''s'", R"(COMMENT ON ROLE "a" IS 'it''s')"},
        {"COMMENT ON ROLE a IS NULL", R"(COMMENT ON ROLE "a" IS NULL)"},
    };
    for (const auto& [sql, said] : changes) {
        SCOPED_TRACE(sql);
        const CheckedStatement checked = check_one(sql);
        EXPECT_EQ(checked.refusal ? checked.refusal->message : "", "");
        EXPECT_EQ(checked.kind, Kind::ddl);
        ASSERT_TRUE(checked.role_change);
        EXPECT_EQ(checked.role_change->text, said);
    }
    EXPECT_EQ(check_one("GRANT a, b TO c").role_change->roles,
              (std::vector<std::string>{"a", "b", "c"}));
    for (const std::string_view sql : {"CREATE ROLE a SUPERUSER",
                                       "CREATE ROLE a CREATEROLE",
                                       "ALTER ROLE a BYPASSRLS",
                                       "ALTER ROLE a PASSWORD 'x'",
                                       "ALTER ROLE a VALID UNTIL 'infinity'",
                                       "ALTER ROLE CURRENT_USER NOLOGIN",
                                       "ALTER ROLE ALL SET search_path = 'x'",
                                       "ALTER ROLE a IN DATABASE d SET search_path = 'x'",
                                       "ALTER ROLE a SET role = 'b'",
                                       "ALTER ROLE a SET client_encoding = 'GBK'",
                                       "ALTER ROLE admin NOLOGIN",
                                       "ALTER ROLE admin RENAME TO a",
                                       "DROP ROLE a, admin",
                                       "CREATE ROLE a IN ROLE pg_read_all_data",
                                       "GRANT pg_monitor TO a",
                                       "GRANT a TO b GRANTED BY c",
                                       "GRANT a TO SESSION_USER"}) {
        EXPECT_EQ(state_of(sql), "0A000") << sql;
    }
}

// Which parameter a call sets must be plain to see.
TEST(StatementRules, ACallMaySetWhatSetMaySet) {
    for (const std::string_view sql :
         {"SELECT set_config('search_path', $1, false)",
          "SELECT pg_catalog.set_config('TimeZone', 'U' || 'TC', true)",
          "SELECT set_config('client_encoding', 'latin-1', false)",
          "SET client_encoding = 'UTF8'",
          "SET NAMES 'utf-8'",
          "SET client_encoding TO DEFAULT"}) {
        EXPECT_EQ(state_of(sql), "") << sql;
    }
    for (const std::string_view sql : {"SELECT set_config('role', 'x', true)",
                                       "SELECT set_config('search_path'::text, 'x', false)",
                                       "SELECT set_config($1, 'x', false)",
                                       ("SELECT set_config(is_local => false, setting_name =>"
                                        " 'search_path', new_value => 'x')"),
                                       "SELECT d.pg_catalog.set_config('role', 'x', false)",
                                       "SELECT set_config('client_encoding', $1, false)",
                                       "SET client_encoding = 'SJIS'",
                                       "SET NAMES 'gb18030'",
                                       ("CREATE FUNCTION f() RETURNS int LANGUAGE sql SET role ="
                                        " 'x' AS 'SELECT 1'"),
                                       "ALTER FUNCTION f() SET work_mem = '1MB'"}) {
        EXPECT_EQ(state_of(sql), "0A000") << sql;
    }
}

// In quotes or not.
TEST(StatementRules, TheBodyOfAFunctionIsCheckedToo) {
    const auto function = [](const std::string& body) {
        return check_one("CREATE FUNCTION f(a int) RETURNS int LANGUAGE sql AS $x$ " + body +
                         " $x$");
    };
    EXPECT_FALSE(function("INSERT INTO accounts VALUES (a); SELECT a;").refusal);
    EXPECT_EQ(function("SELECT abs(a), pg_read_file('x')").system_functions,
              (std::vector<std::string>{"pg_read_file", "abs"}));
    for (const char* body : {"SET ROLE x",
                             "GRANT a TO b",
                             "COPY (SELECT 1) TO PROGRAM 'x'",
                             "COPY t TO STDOUT",
                             "CREATE TABLE t (a int)",
                             "SELECT set_config('role', 'x', false)",
                             "BEGIN"}) {
        EXPECT_TRUE(function(body).refusal) << body;
    }
    EXPECT_EQ(function("SELEC 1").refusal->code, "42601");
}

TEST(StatementRules, ATableHasAtMost255Columns) {
    const auto table = [](int columns) {
        std::string sql = "CREATE TABLE t (c0 int";
        for (int i = 1; i < columns; ++i) {
            sql += fmt::format(", c{} int", i);
        }
        return check_one(sql + ")");
    };
    EXPECT_FALSE(table(255).refusal);
    const CheckedStatement checked = table(257);
    ASSERT_TRUE(checked.refusal);
    EXPECT_EQ(checked.refusal->code, "54011");
    EXPECT_EQ(checked.refusal->message, "tables can have at most 255 columns");
}

constexpr std::pair<std::string_view, std::string_view> outside_the_guide[] = {
    {"SELECT * FROM accounts WHERE owner = 'ann' FOR UPDATE",
     "can be applied only on tables with equality predicates on the key"},
    {"SELECT * FROM accounts WHERE id > 1 FOR UPDATE", "equality predicates on the key"},
    {"SELECT * FROM accounts WHERE id = 1 OR id = 2 FOR UPDATE", "equality predicates on the key"},
    {"SELECT * FROM accounts WHERE id IN (1, 2) FOR UPDATE", "equality predicates on the key"},
    {"SELECT * FROM accounts WHERE id = cents FOR UPDATE", "equality predicates on the key"},
    {"SELECT * FROM nodes WHERE tree = $1 FOR UPDATE", "equality predicates on the key"},
    {"SELECT * FROM notes WHERE text = $1 FOR UPDATE", "equality predicates on the key"},
    {"SELECT * FROM accounts FOR UPDATE", "equality predicates on the key"},
    {"SELECT * FROM accounts a JOIN nodes n ON true WHERE a.id = 1 FOR UPDATE OF a",
     "locking clause such as FOR UPDATE can be applied on a single table"},
    {"SELECT * FROM accounts, nodes FOR UPDATE", "can be applied on a single table"}};

// By default they pass, as the service was seen to do.
TEST(StatementRules, ForUpdateStaysWithinTheGuideIfAsked) {
    for (const auto& [sql, message] : outside_the_guide) {
        EXPECT_FALSE(check_one(sql).refusal) << sql;
        const CheckedStatement checked = check_one(sql, {.documented_for_update = true});
        ASSERT_TRUE(checked.refusal) << sql;
        EXPECT_EQ(checked.refusal->code, "0A000") << sql;
        EXPECT_THAT(checked.refusal->message, testing::HasSubstr(message)) << sql;
    }
    for (const std::string_view sql :
         {"SELECT * FROM accounts WHERE id = $1 FOR UPDATE",
          "SELECT * FROM nodes WHERE (tree, node) = ($1, $2::bigint) FOR UPDATE",
          "SELECT * FROM nobody_knows WHERE a > 1 FOR UPDATE"}) {
        EXPECT_FALSE(check_one(sql, {.documented_for_update = true}).refusal) << sql;
    }
}

TEST(StatementRules, SwitchesLetWhatWasMeasuredPass) {
    const Rules sync{.sync_create_index = true};
    EXPECT_FALSE(check_one("CREATE INDEX i ON accounts (owner)", sync).refusal);
}

}  // namespace
}  // namespace holdfast::dsql
