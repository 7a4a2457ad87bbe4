// Ways to become more than the role that one has logged in as. None of them may lead anywhere.
#include "gateway/test/escape_fixture.hpp"

namespace holdfast::dsql::tests {

namespace {

// {read} is a file with a secret, {write} one that must not appear, {pid} a session of another
// role, {me} the role, {home} a schema where it may create things, {db} the database.
const std::vector<Attempt> attempts{
    // The session's user and role.
    {"set session authorization", {"SET SESSION AUTHORIZATION postgres"}},
    {"set local session authorization", {"BEGIN", "SET LOCAL SESSION AUTHORIZATION postgres"}},
    {"session authorization as a parameter", {"SET session_authorization = 'postgres'"}},
    {"reset session authorization", {"RESET SESSION AUTHORIZATION"}},
    {"session authorization default", {"SET SESSION AUTHORIZATION DEFAULT"}},
    {"set role", {"SET ROLE postgres"}},
    {"set local role", {"BEGIN", "SET LOCAL ROLE postgres", "SELECT * FROM vault.canary"}},
    {"set role none", {"SET ROLE NONE", "RESET ROLE", "SELECT * FROM vault.canary"}},
    {"local role of the gateway",
     {"BEGIN",
      "SET LOCAL ROLE holdfast_gateway",
      "UPDATE holdfast_gateway.iam_grants SET arn = 'x'",
      "COMMIT"}},
    {"local role that reads files", {"BEGIN", "SET LOCAL ROLE pg_read_server_files", "COMMIT"}},
    {"set_config, plain", {"SELECT set_config('session_authorization', 'postgres', false)"}},
    {"set_config, cast", {"SELECT set_config('session_authorization'::text, 'postgres', false)"}},
    {"set_config, CAST", {"SELECT set_config(CAST('role' AS text), 'postgres', false)"}},
    {"set_config, concatenated",
     {"SELECT set_config('session_' || 'authorization', 'postgres', false)"}},
    {"set_config, from a column",
     {"SELECT set_config(n, 'postgres', false) FROM (VALUES ('session_authorization')) v(n)"}},
    {"set_config, bound", {"SELECT set_config($1, 'postgres', false)"}, {"session_authorization"}},
    {"set_config, bound and cast",
     {"SELECT set_config($1::text, $2::text, false)"},
     {"role", "postgres"}},
    {"set_config, named arguments",
     {"SELECT set_config(new_value => 'postgres', setting_name => 'session_authorization',"
      " is_local => false)"}},
    {"set_config, mixed arguments",
     {"SELECT set_config('search_path', setting_name => 'role', is_local => false)"}},
    {"set_config, quoted", {R"(SELECT "set_config"('session_authorization', 'postgres', false))"}},
    {"set_config, qualified",
     {"SELECT pg_catalog.set_config('session_authorization', 'postgres', false)"}},
    {"set_config, with the database",
     {R"(SELECT "{db}".pg_catalog.set_config('session_authorization', 'postgres', false))"}},
    {"set_config, escaped name",
     {R"(SELECT U&"\0073et_config"('session_authorization', 'postgres', false))"}},
    {"set_config, escaped constant",
     {R"(SELECT set_config(E'session\x5fauthorization', 'postgres', false))"}},
    {"set_config, dollar quotes",
     {"SELECT set_config($a$session_authorization$a$, 'postgres', false)"}},
    {"set_config, capitals", {"SELECT Set_Config('SESSION_AUTHORIZATION', 'postgres', false)"}},
    {"set_config, CASE", {"SELECT set_config(CASE WHEN true THEN 'role' END, 'postgres', false)"}},
    {"set_config, subquery", {"SELECT set_config((SELECT 'role'), 'postgres', false)"}},
    {"set_config, of the rules",
     {"SELECT set_config('standard_conforming_strings', 'off', false)"}},
    {"set_config, in FROM", {"SELECT * FROM set_config('role', 'postgres', false)"}},
    {"set_config, in ROWS FROM",
     {"SELECT * FROM ROWS FROM (set_config('role', 'postgres', false))"}},
    {"a setting of the rules", {"SET standard_conforming_strings = off"}},
    {"a setting by RESET", {"RESET standard_conforming_strings", "RESET ALL"}},
    // Text that becomes SQL.
    {"query_to_xml",
     {"SELECT query_to_xml('SELECT set_config(''session_authorization'',"
      " ''postgres'', false)', true, true, '')"}},
    {"query_to_xml of the treasure",
     {"SELECT query_to_xml('SELECT * FROM vault.canary', true, true, '')"}},
    {"query_to_xml, quoted",
     {R"(SELECT "pg_catalog"."query_to_xml"('SELECT * FROM vault.canary', true, true, ''))"}},
    {"query_to_xmlschema", {"SELECT query_to_xmlschema('SELECT 1', true, true, '')"}},
    {"table_to_xml", {"SELECT table_to_xml('vault.canary', true, true, '')"}},
    {"schema_to_xml", {"SELECT schema_to_xml('vault', true, true, '')"}},
    {"database_to_xml", {"SELECT database_to_xml(true, true, '')"}},
    {"cursor_to_xml", {"SELECT cursor_to_xml('c', 1, true, true, '')"}},
    {"ts_stat", {"SELECT * FROM ts_stat('SELECT to_tsvector(what) FROM vault.canary')"}},
    {"ts_rewrite", {"SELECT ts_rewrite('a'::tsquery, 'SELECT ''a''::tsquery, ''b''::tsquery')"}},
    {"ts_rewrite without types",
     {"SELECT ts_rewrite(NULL, 'SELECT set_config(''role'', ''postgres'', false)')"}},
    {"dblink", {"SELECT * FROM dblink('dbname=postgres user=postgres', 'SELECT 1') AS t(a int)"}},
    {"an extension", {"CREATE EXTENSION dblink", "CREATE EXTENSION file_fdw"}},
    {"a DO block", {"DO $$ BEGIN EXECUTE 'SET ROLE postgres'; END $$"}},
    {"PREPARE and EXECUTE", {"PREPARE p AS SELECT 1", "EXECUTE p"}},
    {"a cursor", {"BEGIN", "DECLARE c CURSOR FOR SELECT * FROM vault.canary"}},
    // Files, programs, large objects.
    {"COPY to a program", {"COPY (SELECT 1) TO PROGRAM 'touch {write}'"}},
    {"COPY from a program",
     {"CREATE TABLE {home}.c (a text)",
      "COPY {home}.c FROM PROGRAM 'cat {read}'",
      "SELECT * FROM {home}.c"}},
    {"COPY to a file", {"COPY (SELECT 1) TO '{write}'"}},
    {"COPY from a file",
     {"CREATE TABLE {home}.d (a text)", "COPY {home}.d FROM '{read}'", "SELECT * FROM {home}.d"}},
    {"COPY of the treasure", {"COPY vault.canary TO STDOUT"}},
    {"COPY of a query that calls", {"COPY (SELECT pg_read_file('{read}')) TO STDOUT"}},
    {"pg_read_file", {"SELECT pg_read_file('{read}')"}},
    {"pg_read_binary_file", {"SELECT convert_from(pg_read_binary_file('{read}'), 'UTF8')"}},
    {"pg_ls_dir", {"SELECT pg_ls_dir('.')", "SELECT * FROM pg_ls_logdir()"}},
    {"pg_stat_file", {"SELECT * FROM pg_stat_file('{read}')"}},
    {"pg_hba_file_rules", {"SELECT * FROM pg_hba_file_rules()"}},
    {"lo_import", {"SELECT lo_import('{read}')"}},
    {"lo_export", {"SELECT lo_export(lo_from_bytea(0, 'x'), '{write}')"}},
    {"a large object", {"SELECT lo_create(4711)", "SELECT lo_put(4711, 0, 'x')"}},
    {"the log", {"SELECT pg_rotate_logfile()", "SELECT pg_reload_conf()"}},
    {"a foreign table",
     {"CREATE SERVER s FOREIGN DATA WRAPPER file_fdw",
      "CREATE FOREIGN TABLE f (a text) SERVER s OPTIONS (filename '{read}')"}},
    {"LOAD", {"LOAD '$libdir/plpgsql'"}},
    {"ALTER SYSTEM", {"ALTER SYSTEM SET archive_command = 'touch {write}'"}},
    {"a tablespace", {"CREATE TABLESPACE t LOCATION '/tmp'"}},
    // Functions as a disguise.
    {"a body in C",
     {"CREATE FUNCTION {home}.sys(text) RETURNS int LANGUAGE c AS 'libc.so.6', 'system'"}},
    {"a body that is internal",
     {"CREATE FUNCTION {home}.f(text) RETURNS text LANGUAGE internal AS 'pg_read_file_all'"}},
    {"a body in plpgsql",
     {"CREATE FUNCTION {home}.f() RETURNS void LANGUAGE plpgsql AS"
      " $$ BEGIN EXECUTE 'SET ROLE postgres'; END $$",
      "SELECT {home}.f()"}},
    {"a body that copies to a program",
     {"CREATE FUNCTION {home}.g() RETURNS void LANGUAGE sql AS"
      " $$ COPY (SELECT 1) TO PROGRAM 'touch {write}' $$",
      "SELECT {home}.g()"}},
    {"a body that sets a role",
     {"CREATE FUNCTION {home}.h() RETURNS void LANGUAGE sql AS $$ SET ROLE postgres $$",
      "SELECT {home}.h()"}},
    {"a body that grants",
     {"CREATE FUNCTION {home}.i() RETURNS void LANGUAGE sql AS"
      " $$ GRANT pg_execute_server_program TO {me} $$",
      "SELECT {home}.i()"}},
    {"a body that calls",
     {"CREATE FUNCTION {home}.j() RETURNS text LANGUAGE sql AS"
      " $$ SELECT pg_read_file('{read}') $$",
      "SELECT {home}.j()"}},
    {"a body without quotes",
     {"CREATE FUNCTION {home}.k() RETURNS text LANGUAGE sql BEGIN ATOMIC"
      " SELECT pg_read_file('{read}'); END",
      "SELECT {home}.k()"}},
    {"a default of a parameter",
     {"CREATE FUNCTION {home}.l(a text DEFAULT pg_read_file('{read}')) RETURNS text"
      " LANGUAGE sql AS 'SELECT $1'",
      "SELECT {home}.l()"}},
    {"a function with a setting",
     {"CREATE FUNCTION {home}.m() RETURNS text LANGUAGE sql SET session_authorization ="
      " 'postgres' AS 'SELECT current_user::text'",
      "SELECT {home}.m()"}},
    {"a function with a role",
     {"CREATE FUNCTION {home}.n() RETURNS text LANGUAGE sql SET role = 'postgres'"
      " AS 'SELECT what FROM vault.canary'",
      "SELECT {home}.n()"}},
    {"a setting of a function later",
     {"CREATE FUNCTION {home}.o() RETURNS int LANGUAGE sql AS 'SELECT 1'",
      "ALTER FUNCTION {home}.o() SET role = 'postgres'",
      "SELECT {home}.o()"}},
    {"a definer's function given away",
     {"CREATE FUNCTION {home}.p() RETURNS text LANGUAGE sql SECURITY DEFINER AS"
      " 'SELECT what FROM vault.canary'",
      "ALTER FUNCTION {home}.p() OWNER TO postgres",
      "SELECT {home}.p()"}},
    {"a procedure", {"CREATE PROCEDURE {home}.q() LANGUAGE sql AS 'SELECT 1'", "CALL {home}.q()"}},
    // Expressions that others run.
    {"a default",
     {"CREATE TABLE {home}.t1 (a text DEFAULT pg_read_file('{read}'))",
      "INSERT INTO {home}.t1 DEFAULT VALUES RETURNING a"}},
    {"a default, later",
     {"CREATE TABLE {home}.t2 (a text)",
      "ALTER TABLE {home}.t2 ALTER a SET DEFAULT pg_read_file('{read}')",
      "INSERT INTO {home}.t2 DEFAULT VALUES RETURNING a"}},
    {"a check",
     {"CREATE TABLE {home}.t3 (a text CHECK (set_config('role', a, false) <> ''))",
      "INSERT INTO {home}.t3 VALUES ('postgres')"}},
    {"a generated column",
     {"CREATE TABLE {home}.t4 (a int, b text GENERATED ALWAYS AS (pg_read_file('{read}')) "
      "STORED)",
      "INSERT INTO {home}.t4 VALUES (1) RETURNING b"}},
    {"a domain",
     {"CREATE DOMAIN {home}.d1 AS text DEFAULT pg_read_file('{read}')",
      "CREATE DOMAIN {home}.d2 AS text CHECK (set_config('role', VALUE, false) <> '')",
      "SELECT 'postgres'::{home}.d2"}},
    {"a domain, later",
     {"CREATE DOMAIN {home}.d3 AS text",
      "ALTER DOMAIN {home}.d3 ADD CHECK (set_config('role', VALUE, false) <> '')",
      "SELECT 'postgres'::{home}.d3"}},
    {"a view",
     {"CREATE VIEW {home}.v1 AS SELECT pg_read_file('{read}') AS a", "SELECT * FROM {home}.v1"}},
    {"a view of the treasure",
     {"CREATE VIEW {home}.v2 AS SELECT * FROM vault.canary", "SELECT * FROM {home}.v2"}},
    {"an index",
     {"CREATE TABLE {home}.t5 (a text)", "CREATE INDEX ASYNC ON {home}.t5 ((pg_read_file(a)))"}},
    {"statistics",
     {"CREATE TABLE {home}.t6 (a text, b text)",
      "CREATE STATISTICS {home}.s1 ON (pg_read_file(a)), b FROM {home}.t6"}},
    {"a policy, a rule, a trigger",
     {"CREATE TABLE {home}.t7 (a text)",
      "CREATE RULE r AS ON INSERT TO {home}.t7 DO ALSO SELECT pg_read_file('{read}')",
      "CREATE POLICY p ON {home}.t7 USING (pg_read_file('{read}') <> '')",
      "CREATE TRIGGER x AFTER INSERT ON {home}.t7 EXECUTE FUNCTION {home}.f()"}},
    {"an operator, a cast, an aggregate",
     {"CREATE OPERATOR {home}.+ (FUNCTION = pg_read_file, RIGHTARG = text)",
      "CREATE CAST (text AS oid) WITH FUNCTION lo_import(text)",
      "CREATE AGGREGATE {home}.a (text) (SFUNC = textcat, STYPE = text)"}},
    {"explained", {"EXPLAIN ANALYZE SELECT pg_read_file('{read}')"}},
    {"functional notation",
     {"SELECT ('{read}'::text).pg_read_file",
      "SELECT (t).query_to_xml FROM (SELECT 'SELECT 1'::text) t"}},
    {"a traps for the gateway's own questions",
     {("CREATE FUNCTION public.array_position(int2[], int2) RETURNS int LANGUAGE sql AS"
       " 'SELECT count(*)::int FROM vault.canary'"),
      ("CREATE FUNCTION public.quote_ident(name) RETURNS text LANGUAGE sql AS"
       " 'SELECT what FROM vault.canary'"),
      "SET search_path = public, {home}",
      "CREATE TABLE {home}.t8 (id int PRIMARY KEY)",
      "INSERT INTO t8 VALUES (1)",
      "UPDATE t8 SET id = 2 WHERE id = 1"}},
    // Roles.
    {"a superuser made", {"CREATE ROLE evil_{db} SUPERUSER LOGIN"}},
    {"powers for oneself",
     {"ALTER ROLE {me} SUPERUSER",
      "ALTER ROLE {me} CREATEROLE",
      "ALTER ROLE {me} CREATEDB",
      "ALTER ROLE {me} REPLICATION",
      "ALTER ROLE {me} BYPASSRLS"}},
    {"powers for whoever asks",
     {"ALTER ROLE CURRENT_USER SUPERUSER",
      "ALTER ROLE SESSION_USER CREATEROLE",
      "ALTER ROLE CURRENT_ROLE SET search_path = 'x'",
      "ALTER ROLE ALL SET search_path = 'x'"}},
    {"membership of a superuser", {"GRANT postgres TO {me}", "GRANT {me} TO postgres"}},
    {"membership of the gateway",
     {"GRANT holdfast_gateway TO {me}",
      "ALTER ROLE holdfast_gateway PASSWORD 'x'",
      "ALTER ROLE holdfast_gateway RENAME TO nobody_{db}",
      "DROP ROLE holdfast_gateway"}},
    {"membership of a predefined role",
     {"GRANT pg_execute_server_program TO {me}",
      "GRANT pg_read_server_files TO {me}",
      "GRANT pg_write_server_files TO {me}",
      "GRANT pg_read_all_data TO {me}",
      "GRANT pg_signal_backend TO {me}",
      R"(GRANT "pg_monitor" TO {me})"}},
    {"membership at birth",
     {"CREATE ROLE evil2_{db} LOGIN IN ROLE pg_execute_server_program",
      "CREATE ROLE evil3_{db} LOGIN IN ROLE holdfast_gateway",
      "CREATE ROLE evil4_{db} ROLE {me} ADMIN {me} IN ROLE postgres"}},
    {"membership by ALTER GROUP",
     {"ALTER GROUP postgres ADD USER {me}",
      "ALTER GROUP holdfast_gateway ADD USER {me}",
      "ALTER GROUP pg_read_all_data ADD USER {me}"}},
    {"another's name", {"ALTER ROLE {me} RENAME TO postgres", "ALTER ROLE postgres RENAME TO x"}},
    {"a password", {"ALTER ROLE postgres PASSWORD 'x'", "ALTER ROLE {me} PASSWORD 'x'"}},
    {"a setting of another role",
     {"ALTER ROLE postgres SET search_path = {home}",
      "ALTER ROLE holdfast_gateway SET search_path = {home}",
      "ALTER ROLE {me} SET role = 'postgres'",
      "ALTER DATABASE \"{db}\" SET search_path = 'x'"}},
    {"a comment that ends early",
     {"COMMENT ON ROLE {me} IS 'x''; ALTER ROLE {me} SUPERUSER; --'",
      R"(CREATE ROLE "x""; ALTER ROLE admin SUPERUSER; --")",
      R"(DROP ROLE IF EXISTS "x""; ALTER ROLE admin SUPERUSER; --")"}},
    {"ownership",
     {"ALTER TABLE vault.canary OWNER TO {me}",
      "ALTER SCHEMA vault OWNER TO {me}",
      "ALTER SCHEMA sys OWNER TO {me}",
      "REASSIGN OWNED BY postgres TO {me}"}},
    {"rights",
     {"GRANT ALL ON vault.canary TO {me}",
      "GRANT ALL ON SCHEMA vault TO {me}",
      "GRANT ALL ON ALL TABLES IN SCHEMA holdfast_gateway TO {me}",
      "GRANT EXECUTE ON FUNCTION pg_read_file(text) TO {me}",
      "GRANT ALL ON LANGUAGE plpgsql TO {me}"}},
    {"an identity that is another's",
     {"AWS IAM GRANT postgres TO 'arn:aws:iam::1:user/evil'",
      "AWS IAM GRANT holdfast_gateway TO 'arn:evil'",
      "AWS IAM GRANT nobody_{db} TO 'arn:evil'"}},
    {"an ARN that ends early",
     {"AWS IAM GRANT postgres TO 'x''); DELETE FROM holdfast_gateway.iam_grants; --'",
      R"(AWS IAM REVOKE postgres FROM 'x'' OR true OR ''')"}},
    // The gateway's own things.
    {"the old helpers",
     {"SELECT holdfast_gateway.iam_grant('arn:evil', 'postgres', 'x')",
      "SELECT holdfast_gateway.invalidate('public.ledger_pkey')",
      "SELECT holdfast_gateway.add_job('a', 'b', 'pg_class', 'c', 'd', false, 1)",
      "SELECT holdfast_gateway.iam_revoke('a', 'b')"}},
    {"the helper that is left",
     {"SELECT holdfast_gateway_owner.invalidate('public.ledger_pkey'::regclass)",
      R"(SELECT "holdfast_gateway_owner"."invalidate"('ledger_pkey'::regclass::oid))"}},
    {"the gateway's tables",
     {"INSERT INTO holdfast_gateway.iam_grants VALUES ('a', 'b', 'c', 9)",
      "DELETE FROM holdfast_gateway.jobs",
      "SELECT * FROM holdfast_gateway.scales",
      "DROP SCHEMA holdfast_gateway CASCADE",
      "DROP VIEW sys.jobs CASCADE",
      "DROP SCHEMA sys CASCADE"}},
    {"the gateway's views",
     {"INSERT INTO sys.jobs (job_id) VALUES ('x')",
      "DELETE FROM sys.iam_pg_role_mappings",
      "UPDATE sys.iam_pg_role_mappings SET arn = 'arn:evil'"}},
    {"a trap for a waiting procedure",
     {"CREATE FUNCTION {home}.pg_sleep(numeric) RETURNS void LANGUAGE sql AS"
      " 'INSERT INTO vault.canary VALUES (1)'",
      "SET search_path = {home}, pg_catalog",
      "CALL sys.wait_for_job('aaaaaaaaaaaaaaaaaaaaaaaaaa')"}},
    {"the gateway's prepared names",
     {"DEALLOCATE _holdfast_gateway", "DEALLOCATE ALL", "SELECT * FROM pg_prepared_statements"}},
    {"the gateway's savepoint", {"BEGIN", "ROLLBACK TO _holdfast_gateway", "COMMIT"}},
    {"the catalogue",
     {"UPDATE pg_authid SET rolsuper = true",
      "SELECT rolpassword FROM pg_authid",
      "UPDATE pg_proc SET prosrc = 'x'",
      "DELETE FROM pg_auth_members",
      "UPDATE pg_settings SET setting = 'postgres' WHERE name = 'role'",
      ("UPDATE pg_settings SET setting = 'off' WHERE name ="
       " 'standard_conforming_strings'")}},
    {"a view over the settings",
     {"CREATE VIEW {home}.v3 AS SELECT * FROM pg_settings",
      "UPDATE {home}.v3 SET setting = 'off' WHERE name = 'standard_conforming_strings'",
      "WITH c AS (UPDATE pg_catalog.pg_settings SET setting = 'off' WHERE name ="
      " 'standard_conforming_strings' RETURNING 1) SELECT * FROM c"}},
    // Other sessions and the server.
    {"another's session",
     {"SELECT pg_terminate_backend({pid})",
      "SELECT pg_cancel_backend({pid})",
      "SELECT pg_log_backend_memory_contexts({pid})"}},
    {"replication",
     {"SELECT pg_create_physical_replication_slot('s')",
      "SELECT pg_switch_wal()",
      "SELECT pg_backup_start('x')",
      "SELECT pg_logical_emit_message(false, 'a', 'b')",
      "SELECT pg_promote()"}},
    {"notifications and locks",
     {"NOTIFY x",
      "LISTEN x",
      "SELECT pg_notify('x', 'y')",
      "LOCK TABLE ledger",
      "SELECT pg_advisory_lock(7305012)"}},
    // What the gateway reads in another way than the server.
    {"an encoding with quotes in its letters",
     {"SET client_encoding = 'GBK'",
      "SET NAMES 'SJIS'",
      "SET client_encoding TO big5",
      "SELECT set_config('client_encoding', 'GBK', false)",
      "SELECT E'\xbf\\'; SET SESSION AUTHORIZATION postgres; --'"}},
    {"an encoding that is computed",
     {"SELECT set_config('client_encoding', 'G' || 'BK', false)",
      "SELECT E'\xbf\\'; SET SESSION AUTHORIZATION postgres; --'"}},
    {"comments and quotes in each other",
     {"SELECT 1 /* /* */ ; SET SESSION AUTHORIZATION postgres; -- */ */",
      "SELECT '--'; SET SESSION AUTHORIZATION postgres",
      "SELECT $a$ $b$ $a$; SET SESSION AUTHORIZATION postgres; --$b$",
      R"(SELECT U&'\' ; SET SESSION AUTHORIZATION postgres; --')",
      "SELECT 'a'\n'b'; SET SESSION AUTHORIZATION postgres",
      "SELECT B'1', N'x', E'\\'; SET SESSION AUTHORIZATION postgres; --'"}},
    {"several statements in one",
     {"SELECT 1; SET SESSION AUTHORIZATION postgres; SELECT 2",
      "BEGIN; SET LOCAL ROLE postgres; COMMIT"}},
    {"a statement that does not parse",
     {"SELECT 1 SELECT 2; SET SESSION AUTHORIZATION postgres",
      "GRANT postgres TO {me} GRANTED BY postgres",
      "ALTER ROLE {me} SUPERUSER ASYNC"}},
    {"ASYNC and STORAGE where they do not belong",
     {"CREATE ROLE ASYNC evil5_{db} SUPERUSER",
      "GRANT ASYNC postgres TO {me}",
      "SET ASYNC SESSION AUTHORIZATION postgres"}},
    {"version() where it is rewritten",
     {"SELECT version(), pg_read_file('{read}'), version()",
      "SELECT ' version()' || pg_read_file('{read}')"}},
    {"a name for a subquery",
     {"SELECT * FROM (SELECT pg_read_file('{read}'))",
      "SELECT * FROM (SELECT set_config('role', 'postgres', false)), (SELECT 1)"}},
};

TEST_F(Escape, NoneOfTheAttemptsOfARoleLeadsAnywhere) {
    EXPECT_GE(attempts.size(), 60U);
    for (const Attempt& attempt : attempts) {
        expect_no_gain(attempt, mallory, false);
        expect_no_gain(attempt, mallory, true);
    }
}

TEST_F(Escape, NoneOfTheAttemptsOfAdminLeadsAnywhere) {
    for (const Attempt& attempt : attempts) {
        expect_no_gain(attempt, "admin", false);
        expect_no_gain(attempt, "admin", true);
    }
}

// The first packet is the client's too.
TEST_F(Escape, NoLoginLeadsAnywhere) {
    for (const char* user : {"postgres", "holdfast_gateway", "pg_read_all_data", "nobody", ""}) {
        EXPECT_FALSE(Client(cluster.params(user)).connected()) << user;
    }
    for (const char* options : {"-c session_authorization=postgres",
                                "-c role=postgres",
                                "--role=postgres",
                                "-c standard_conforming_strings=off",
                                "-c client_encoding=GBK",
                                "-c search_path=x -c role=postgres",
                                "-c local_preload_libraries=x"}) {
        sql::ConnectParams params = cluster.params(mallory);
        params["options"] = options;
        EXPECT_FALSE(Client(params).connected()) << options;
    }
    for (const auto& [name, value] :
         {std::pair{"client_encoding", "SJIS"}, std::pair{"replication", "database"}}) {
        sql::ConnectParams params = cluster.params(mallory);
        params[name] = value;
        const Client in(params);
        if (in.connected()) {
            expect_ordinary(in, mallory);
            EXPECT_NE(in.exec("IDENTIFY_SYSTEM").code, "") << "a walsender";
        }
    }
    EXPECT_EQ(state(), before);
}

// Roles that the owner of the server has made powerful are not for clients, even if granted to
// them.
TEST_F(Escape, APowerfulRoleIsNotServed) {
    const std::string strong = "strong_" + cluster.id();
    for (const char* power : {"SUPERUSER",
                              "CREATEROLE",
                              "CREATEDB",
                              "REPLICATION",
                              "BYPASSRLS",
                              "IN ROLE pg_read_server_files"}) {
        expect_done(*outside, fmt::format(R"(CREATE ROLE "{}" LOGIN {})", strong, power));
        expect_done(
            *outside,
            fmt::format("INSERT INTO holdfast_gateway.iam_grants (arn, role, grantor) VALUES"
                        " ('{}', '{}', 'x')",
                        test::gateway_key().arn,
                        strong));
        EXPECT_FALSE(Client(cluster.params(strong)).connected()) << power;
        EXPECT_EQ(client().exec(fmt::format(R"(GRANT "{}" TO admin)", strong)).code, "0A000");
        expect_done(*outside, fmt::format(R"(DROP ROLE "{}")", strong));
        expect_done(
            *outside,
            fmt::format("DELETE FROM holdfast_gateway.iam_grants WHERE role = '{}'", strong));
    }
}

// The session is its role by login, not by a setting that could be undone; and no session of the
// gateway that stays is a superuser's.
TEST_F(Escape, EverySessionBelowHasLoggedInAsItsRole) {
    const Client session(cluster.params(mallory));
    const Said who = outside->exec(fmt::format(
        "SELECT usename FROM pg_stat_activity WHERE pid = {}", PQbackendPID(session.raw())));
    EXPECT_EQ(who.cell(), mallory);
    EXPECT_EQ(outside
                  ->exec("SELECT count(*) FROM pg_stat_activity a JOIN pg_roles r ON r.oid ="
                         " a.usesysid WHERE datname = current_database() AND rolsuper AND pid <>"
                         " pg_backend_pid()")
                  .cell(),
              "0");
    EXPECT_EQ(outside
                  ->exec("SELECT count(*) FROM pg_proc p JOIN pg_namespace n ON n.oid ="
                         " pronamespace WHERE prosecdef AND (proconfig IS NULL OR"
                         " has_schema_privilege('admin', n.oid, 'USAGE') OR"
                         " has_function_privilege('admin', p.oid, 'EXECUTE'))")
                  .cell(),
              "0");
}

}  // namespace

}  // namespace holdfast::dsql::tests
