// What the gateway is told about a statement besides the verdict.
#include <string>

#include "dialect/statement_rules.hpp"
#include "dialect/test/statement_rules_fixture.hpp"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace holdfast::dsql {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

TEST(StatementDetails, TextsAreCutWhereStatementsEnd) {
    const auto all = check_statements(
        "/* a; b */ BEGIN; SELECT ';', \"x;y\", $q$;$q$, E'\\';' ;; -- c;\n END", {});
    ASSERT_EQ(all.size(), 3U);
    EXPECT_EQ(all[0].text, "BEGIN");
    EXPECT_EQ(all[0].offset, 11U);
    EXPECT_EQ(all[1].text, "SELECT ';', \"x;y\", $q$;$q$, E'\\';'");
    EXPECT_EQ(all[2].kind, Kind::commit);
    for (const std::string_view nothing : {"", " ; ;; ", "-- only words", "/* never closed"}) {
        const auto empty = check_statements(nothing, {});
        ASSERT_EQ(empty.size(), 1U) << nothing;
        EXPECT_EQ(empty[0].kind, Kind::empty);
    }
}

// Without care `CREATE INDEX ASYNC ON t (x)` is an index with the name async.
TEST(StatementDetails, WordsOfTheServiceAreTakenOutAndLeaveSpaces) {
    const CheckedStatement unnamed = check_one("CREATE INDEX ASYNC ON accounts (owner)");
    EXPECT_TRUE(unnamed.async);
    EXPECT_EQ(unnamed.text, "CREATE INDEX       ON accounts (owner)");
    EXPECT_EQ(unnamed.index_name, "");
    EXPECT_EQ(check_one("CREATE INDEX ASYNC i ON t (a)").index_name, "i");
    EXPECT_EQ(check_one("CREATE INDEX ASYNC \"ASYNC\" ON t (a)").index_name, "ASYNC");

    EXPECT_TRUE(check_one("ALTER TABLE ASYNC t VALIDATE CONSTRAINT c").async);
    const CheckedStatement named_so = check_one("ALTER TABLE async RENAME TO t");
    EXPECT_FALSE(named_so.async);
    EXPECT_EQ(named_so.target, (TableName{"", "async"}));

    EXPECT_EQ(check_one("CREATE TABLE t (a text STORAGE plain, storage text)").text,
              "CREATE TABLE t (a text              , storage text)");
    EXPECT_EQ(check_one("SELECT 1_000, a_1, '2_0'").text, "SELECT 1000 , a_1, '2_0'");
}

TEST(StatementDetails, IamStatementsNameRoleAndArn) {
    const CheckedStatement grant = check_one("AWS IAM GRANT App TO 'arn:aws:iam::1:role/r'");
    EXPECT_EQ(grant.role, "app");
    EXPECT_EQ(grant.arn, "arn:aws:iam::1:role/r");
    EXPECT_FALSE(grant.iam_revoke);
    EXPECT_TRUE(check_one("AWS IAM REVOKE \"App\" FROM 'arn'").iam_revoke);
    EXPECT_EQ(check_one("AWS IAM REVOKE \"App\" FROM 'arn'").role, "App");
    EXPECT_EQ(check_one("AWS IAM GRANT x").kind, Kind::unparsed);
}

TEST(StatementDetails, TablesAndTargetAreNamed) {
    const CheckedStatement query = check_one(
        "WITH c AS (SELECT * FROM s.a) SELECT * FROM c, b WHERE x IN (SELECT y FROM d) UNION "
        "SELECT "
        "1 FROM e");
    EXPECT_THAT(
        query.tables,
        UnorderedElementsAre(
            TableName{"s", "a"}, TableName{"", "b"}, TableName{"", "d"}, TableName{"", "e"}));
    EXPECT_FALSE(query.target);
    EXPECT_THAT(check_one("SELECT * FROM accounts a WHERE id = 1 FOR UPDATE OF a").tables,
                ElementsAre(TableName{"", "accounts"}));

    const CheckedStatement insert = check_one("INSERT INTO s.t SELECT * FROM u");
    EXPECT_EQ(insert.target, (TableName{"s", "t"}));
    EXPECT_THAT(insert.tables, UnorderedElementsAre(TableName{"s", "t"}, TableName{"", "u"}));
    EXPECT_EQ(check_one("DROP TABLE s.t").target, (TableName{"s", "t"}));
    EXPECT_EQ(check_one("CREATE INDEX ASYNC i ON s.t (a)").target, (TableName{"s", "t"}));
    EXPECT_EQ(check_one("COMMENT ON COLUMN s.t.a IS 'x'").target, (TableName{"s", "t"}));
    EXPECT_THAT(check_one("CREATE TABLE t (a int REFERENCES u)").tables,
                UnorderedElementsAre(TableName{"", "t"}, TableName{"", "u"}));
}

TEST(StatementDetails, WritesSayWhatTheyDo) {
    EXPECT_EQ(check_one("INSERT INTO t VALUES (1), (2), (3)").rows_of_values, 3);
    EXPECT_EQ(check_one("INSERT INTO t DEFAULT VALUES").rows_of_values, 1);
    EXPECT_FALSE(check_one("INSERT INTO t SELECT 1").rows_of_values);
    EXPECT_TRUE(check_one("DELETE FROM t RETURNING a").returning);
    EXPECT_TRUE(check_one("WITH x AS (DELETE FROM t RETURNING a) SELECT * FROM x").writes_by_cte);
    EXPECT_TRUE(check_one("WITH x AS (DELETE FROM t RETURNING a) INSERT INTO u SELECT * FROM x")
                    .writes_by_cte);
    EXPECT_FALSE(check_one("INSERT INTO t SELECT 1").writes_by_cte);
    EXPECT_TRUE(check_one("INSERT INTO t VALUES (gen_random_uuid())").calls_volatile);
    EXPECT_TRUE(check_one("INSERT INTO t VALUES (nextval('s'))").calls_volatile);
    EXPECT_FALSE(check_one("INSERT INTO t VALUES (now())").calls_volatile);
    EXPECT_TRUE(check_one("UPDATE t SET a = $1").has_parameters);
    EXPECT_FALSE(check_one("UPDATE t SET a = '$1'").has_parameters);
    EXPECT_TRUE(check_one("BEGIN READ ONLY").read_only);
    EXPECT_FALSE(check_one("BEGIN READ WRITE").read_only);
}

TEST(StatementDetails, ColumnsBoundByEqualityAreFound) {
    EXPECT_THAT(check_one("UPDATE accounts SET cents = 1 WHERE id = $1").equal_columns,
                ElementsAre("id"));
    EXPECT_THAT(check_one("DELETE FROM nodes n WHERE (n.tree, n.node) = ($1, 2)").equal_columns,
                UnorderedElementsAre("tree", "node"));
    EXPECT_THAT(check_one("UPDATE t SET a = 1 WHERE id = $1 OR b = 2").equal_columns, IsEmpty());
    EXPECT_THAT(check_one("UPDATE t SET a = 1 FROM u WHERE t.id = $1 AND b = 2").equal_columns,
                ElementsAre("id"));
    EXPECT_THAT(check_one("UPDATE t SET a = 1 WHERE id = random()").equal_columns, IsEmpty());
    EXPECT_THAT(check_one("SELECT * FROM accounts WHERE id = $1 FOR UPDATE").equal_columns,
                ElementsAre("id"));
}

TEST(StatementDetails, SettingsAreNamedInLowerCase) {
    EXPECT_EQ(check_one("SET TimeZone TO 'UTC'").parameter, "timezone");
    EXPECT_EQ(check_one("SET TIME ZONE 'UTC'").parameter, "timezone");
    EXPECT_EQ(check_one("RESET ALL").parameter, "all");
    EXPECT_EQ(check_one("SHOW Server_Version").parameter, "server_version");
    EXPECT_EQ(check_one("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ").parameter,
              "transaction");
}

TEST(StatementDetails, AChangeHasATwinThatOnlyCounts) {
    EXPECT_EQ(check_one("DELETE FROM s.t AS x WHERE x.a = $1 -- all\n AND b > 2").rewrite,
              "SELECT count(*) FROM s.t AS x WHERE (x.a = $1 -- all\n AND b > 2)");
    EXPECT_EQ(check_one("DELETE FROM t").rewrite, "SELECT count(*) FROM t");
    EXPECT_EQ(check_one("UPDATE t SET a = a IS DISTINCT FROM b WHERE c = 1").rewrite,
              "SELECT count(*) FROM t WHERE (c = 1)");
    EXPECT_EQ(check_one("UPDATE t SET a = a + 1 FROM u, v WHERE t.id = u.id").rewrite,
              "SELECT count(DISTINCT \"t\".ctid) FROM t, u, v WHERE (t.id = u.id)");
    EXPECT_EQ(check_one("DELETE FROM t x USING u WHERE x.id = u.id").rewrite,
              "SELECT count(DISTINCT \"x\".ctid) FROM t x, u WHERE (x.id = u.id)");
    EXPECT_EQ(check_one("DELETE FROM t RETURNING a").rewrite, "");
    EXPECT_EQ(check_one("WITH x AS (SELECT 1) DELETE FROM t").rewrite, "");
    EXPECT_EQ(check_one("INSERT INTO t VALUES (1)").rewrite, "");
}

// PostgreSQL must be able to tell the type of every parameter from the text alone.
TEST(StatementDetails, ATwinKeepsTheParametersOfTheAssignments) {
    EXPECT_EQ(check_one("UPDATE t SET a = $1, b = b + $2, c = 1 WHERE id = $3").rewrite,
              "SELECT count(*) FROM t WHERE (id = $3) AND (true OR COALESCE($1, \"t\".a) IS NULL) "
              "AND (true OR (b + $2) IS NULL)");
    EXPECT_EQ(check_one("UPDATE t x SET a = $1").rewrite,
              "SELECT count(*) FROM t x WHERE true AND (true OR COALESCE($1, \"x\".a) IS NULL)");
    EXPECT_EQ(check_one("UPDATE t SET (a, b) = ($1, $2)").rewrite, "");
}

TEST(StatementDetails, ALockHasATwinWithoutItsClause) {
    EXPECT_EQ(
        check_one("SELECT * FROM accounts WHERE id = $1 FOR UPDATE OF accounts NOWAIT").rewrite,
        "SELECT * FROM accounts WHERE id = $1                              ");
    EXPECT_EQ(
        check_one("SELECT * FROM t WHERE a IN (SELECT b FROM u FOR KEY SHARE) LIMIT 1").rewrite,
        "SELECT * FROM t WHERE a IN (SELECT b FROM u              ) LIMIT 1");
}

TEST(StatementDetails, ALockHasATouchThatChangesNothing) {
    const auto touch = [](std::string_view sql) {
        const CheckedStatement checked = check_one(sql);
        return checked.row_locks.size() == 1 ? checked.row_locks[0].touch : "not one lock";
    };
    EXPECT_EQ(touch("SELECT cents FROM accounts WHERE id = $1 FOR UPDATE"),
              "UPDATE accounts SET \"id\" = \"accounts\".\"id\" WHERE id = $1");
    EXPECT_EQ(
        touch("SELECT a IS DISTINCT FROM 1 FROM public.accounts AS a WHERE a.id = 1 FOR UPDATE"),
        "UPDATE public.accounts AS a SET \"id\" = \"a\".\"id\" WHERE a.id = 1");
    EXPECT_EQ(touch("SELECT * FROM accounts ORDER BY id FOR UPDATE"),
              "UPDATE accounts SET \"id\" = \"accounts\".\"id\"");
    EXPECT_EQ(
        touch("SELECT * FROM nodes n WHERE n.tree = $1 ORDER BY node LIMIT $2 FOR UPDATE"),
        "UPDATE nodes n SET \"tree\" = \"n\".\"tree\" WHERE (\"n\".\"tree\", \"n\".\"node\") IN "
        "(SELECT \"n\".\"tree\", \"n\".\"node\" FROM nodes n WHERE n.tree = $1 ORDER BY node "
        "LIMIT $2           \n)");
    EXPECT_EQ(touch("SELECT $1 FROM accounts WHERE id = $2 FOR UPDATE"), "");
    EXPECT_EQ(touch("SELECT * FROM notes FOR UPDATE"), "") << "no key to set";
    EXPECT_EQ(touch("SELECT * FROM nobody_knows WHERE id = 1 FOR UPDATE"), "");
    EXPECT_EQ(touch("SELECT (SELECT 1 FROM accounts WHERE id = 1 FOR UPDATE)"), "");

    const CheckedStatement share = check_one("SELECT * FROM accounts WHERE id = 1 FOR KEY SHARE");
    ASSERT_EQ(share.row_locks.size(), 1U);
    EXPECT_FALSE(share.row_locks[0].for_update);
    EXPECT_EQ(share.row_locks[0].table, (TableName{"", "accounts"}));
}

TEST(StatementDetails, ARefusalPointsIntoTheWholeText) {
    const std::string sql = "SELECT 1;\nCREATE TABLE t (\n  a money\n)";
    const auto all = check_statements(sql, {});
    ASSERT_EQ(all.size(), 2U);
    ASSERT_TRUE(all[1].refusal);
    EXPECT_EQ(all[1].refusal->offset, sql.find("money"));
    const CheckedStatement shared = check_one("SELECT * FROM t FOR SHARE");
    ASSERT_TRUE(shared.refusal);
    EXPECT_EQ(shared.refusal->offset, 16U);
    EXPECT_EQ(check_statements("SELECT 'ä';\nSELECT 1 FRM t x", {})[1].syntax_offset, 26U);
}

std::string repeated(std::string_view piece, std::size_t times) {
    std::string text;
    text.reserve(piece.size() * times);
    for (std::size_t i = 0; i < times; ++i) {
        text += piece;
    }
    return text;
}

// A chain of operators is a tree as deep as the text is long: the parser would overrun its stack.
TEST(StatementDetails, DeepOrHugeTextIsRefusedAndNotRunInto) {
    const std::string many = repeated("+1", 200'000);
    for (const std::string& sql : {"SELECT 1" + many,
                                   "SELECT 1" + repeated(" UNION SELECT 1,1", 50'000),
                                   "SELECT * FROM a" + repeated(" JOIN a ON a AND a", 50'000),
                                   "SELECT 1" + repeated("::int", 200'000),
                                   "SELECT " + repeated("CASE WHEN a AND 1+1+", 50'000),
                                   "SELECT 1" + repeated(" IS NULL", 200'000)}) {
        EXPECT_EQ(state_of(sql), "54001") << sql.substr(0, 40);
    }
    EXPECT_EQ(state_of("SELECT " + repeated("(", 200'000)), "54001");
    EXPECT_FALSE(check_one("SELECT a = 1" + repeated(" OR a = 1", 20'000)).refusal);
    for (const std::string& longest : {"SELECT 1" + repeated("+1", 4'900),
                                       "SELECT 1" + repeated(" ISNULL", 9'900),
                                       "SELECT " + repeated("- ", 4'900) + "1"}) {
        EXPECT_FALSE(check_one(longest).refusal) << longest.substr(0, 20);
    }
    // Each column of the left side repeats the right side in the tree.
    const std::string wide =
        "UPDATE t SET (a" + repeated(",a", 5'000) + ") = (SELECT 1" + repeated(",1", 5'000) + ")";
    EXPECT_EQ(state_of(wide), "54001");
    const std::string nested = repeated("UPDATE t SET (a,b) = (WITH x AS (", 30);
    EXPECT_EQ(state_of(nested + "SELECT 1" + repeated(") SELECT 1)", 30)), "54001");
}

TEST(StatementDetails, TenMegabytesAreJudged) {
    const CheckedStatement rows =
        check_one("INSERT INTO t VALUES (1, 'abc')" + repeated(", (1, 'abcdefgh')", 20'000));
    EXPECT_EQ(rows.kind, Kind::write);
    EXPECT_EQ(rows.rows_of_values, 20'001);
    const CheckedStatement value = check_one("UPDATE accounts SET doc = '" +
                                             repeated("xxxxxxxxxx", 1'000'000) + "' WHERE id = 1");
    EXPECT_THAT(value.equal_columns, ElementsAre("id"));
    EXPECT_TRUE(check_one("SELECT 1" + repeated(",1", 600'000)).refusal);
}

TEST(StatementDetails, BytesThatAreNoTextAreJudgedToo) {
    using namespace std::string_literals;
    EXPECT_EQ(check_one("SELECT 1\0, 2"s).kind, Kind::unparsed);
    const CheckedStatement latin = check_one("TRUNCATE \xE4\xF6");
    EXPECT_EQ(latin.kind, Kind::other);
    EXPECT_TRUE(latin.refusal) << "another encoding must not be a way around";
    EXPECT_EQ(check_one("SELECT '\xFF\xFE'").kind, Kind::read);
}

}  // namespace
}  // namespace holdfast::dsql
