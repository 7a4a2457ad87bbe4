#include <holdfast/dsql/lint.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace holdfast::dsql {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> errors(std::string_view sql) {
    std::vector<std::string> rules;
    for (const Finding& finding : lint(sql)) {
        if (finding.severity == Severity::error) {
            rules.push_back(finding.rule);
        }
    }
    return rules;
}

std::vector<std::string> hints(std::string_view sql) {
    std::vector<std::string> rules;
    for (const Finding& finding : lint(sql)) {
        if (finding.severity == Severity::hint) {
            rules.push_back(finding.rule);
        }
    }
    return rules;
}

TEST(Lint, PointsAtThePlaceAndSaysWhatToWrite) {
    const auto findings =
        lint("-- ärger\nCREATE TABLE t (\n  ä int, id BIGSERIAL PRIMARY KEY\n);\n");
    ASSERT_EQ(findings.size(), 1U);
    EXPECT_EQ(findings[0].line, 3U);
    EXPECT_EQ(findings[0].column, 13U) << "characters, not bytes";
    EXPECT_EQ(findings[0].rule, "serial");
    EXPECT_EQ(findings[0].sqlstate, "42704");
    EXPECT_EQ(findings[0].reason, "type \"bigserial\" does not exist");
    EXPECT_THAT(findings[0].rewrite, HasSubstr("IDENTITY (CACHE 1)"));
}

TEST(Lint, SaysWhatToUseInsteadOfAMissingStatement) {
    EXPECT_THAT(lint("TRUNCATE t")[0].rewrite, HasSubstr("DELETE in batches"));
    EXPECT_THAT(lint("CHECKPOINT")[0].rewrite, HasSubstr("no such statement"));
}

TEST(Lint, TellsAllThatIsWrongWithAStatement) {
    EXPECT_THAT(errors("CREATE TABLE t (a serial, b money, c int[])"),
                ElementsAre("serial", "column-type", "column-type"));
    EXPECT_THAT(errors("SELEC 1; TRUNCATE t; SELECT 2"), ElementsAre("syntax", "statement"));
    EXPECT_EQ(lint("SELECT 'a\nSELECT 2;\n")[0].reason,
              "unterminated quoted string at or near \"'a");
}

TEST(Lint, KnowsTheTablesThatTheScriptCreated) {
    const std::string table = "CREATE TABLE t (a int, b int, PRIMARY KEY (a, b));\n";
    EXPECT_THAT(hints(table + "SELECT * FROM t WHERE a = 1 FOR UPDATE"),
                ElementsAre("for-update-key"));
    EXPECT_THAT(hints(table + "SELECT * FROM t WHERE a = 1 AND b = 2 FOR UPDATE"), IsEmpty());
    EXPECT_THAT(errors("CREATE TABLE t (a bytea); CREATE INDEX ASYNC i ON t (a)"),
                ElementsAre("key-type"));
    EXPECT_THAT(hints("CREATE TABLE t (a int); DROP TABLE t; SELECT * FROM t FOR UPDATE"),
                IsEmpty());
}

// What is not known is let pass.
TEST(Lint, SaysNothingOfKeysThatItCannotKnow) {
    EXPECT_THAT(hints("CREATE TABLE t (LIKE u INCLUDING ALL); "
                      "SELECT * FROM t WHERE id = 1 FOR UPDATE"),
                IsEmpty());
    const std::string table = "CREATE TABLE a.t (x int);\n";
    EXPECT_THAT(hints(table + "SELECT * FROM b.t WHERE id = 1 FOR UPDATE"), IsEmpty());
    EXPECT_THAT(hints(table + "SELECT * FROM a.t WHERE id = 1 FOR UPDATE"),
                ElementsAre("for-update-key"));
    EXPECT_THAT(hints("CREATE TABLE t (x int); SET search_path TO b;"
                      "SELECT * FROM t WHERE id = 1 FOR UPDATE"),
                IsEmpty());
}

TEST(Lint, AnIndexMayBeMadeAtOnceIfTheScriptSaysSo) {
    EXPECT_THAT(errors("SET disable_sync_create_index = off; CREATE INDEX i ON t (a)"), IsEmpty());
    EXPECT_THAT(errors("SET disable_sync_create_index = off; RESET ALL; CREATE INDEX i ON t (a)"),
                ElementsAre("index-async"));
    EXPECT_THAT(errors("SET disable_sync_create_index = on; CREATE INDEX i ON t (a)"),
                ElementsAre("index-async"));
}

TEST(Lint, ASubqueryNeedsNoName) {
    EXPECT_THAT(errors("SELECT * FROM (SELECT 1), (VALUES (2), (3)) "
                       "JOIN LATERAL (SELECT * FROM (SELECT 4)) ON true"),
                IsEmpty());
    const auto findings = lint("SELECT 1;\nSELECT * FROM (SELECT 1) FOR SHARE");
    ASSERT_EQ(findings.size(), 1U);
    EXPECT_EQ(findings[0].rule, "for-share");
    EXPECT_EQ(findings[0].line, 2U);
    EXPECT_EQ(findings[0].column, 26U);
    EXPECT_THAT(errors("SELECT * FROM (SELECT 1) x y"), ElementsAre("syntax"));
}

TEST(Lint, SkipsAByteOrderMark) {
    const auto findings = lint("\xEF\xBB\xBFTRUNCATE t");
    ASSERT_EQ(findings.size(), 1U);
    EXPECT_EQ(findings[0].rule, "statement");
    EXPECT_EQ(findings[0].line, 1U);
    EXPECT_EQ(findings[0].column, 1U);
}

TEST(Lint, OneDdlStatementInATransactionAndNoRowsBesideIt) {
    EXPECT_THAT(errors("CREATE TABLE a (x int); CREATE TABLE b (x int)"), IsEmpty());
    EXPECT_THAT(errors("BEGIN; CREATE TABLE a (x int); COMMIT; BEGIN; CREATE TABLE b (x int); END"),
                IsEmpty());
    EXPECT_THAT(errors("BEGIN; CREATE TABLE a (x int); GRANT SELECT ON a TO b; COMMIT"),
                ElementsAre("ddl-count"));
    EXPECT_THAT(errors("BEGIN; INSERT INTO b VALUES (1); CREATE TABLE a (x int); COMMIT"),
                ElementsAre("ddl-and-dml"));
    EXPECT_THAT(errors("BEGIN; CREATE TABLE a (x int); DELETE FROM b; ROLLBACK"),
                ElementsAre("ddl-and-dml"));
    EXPECT_THAT(errors("BEGIN; ANALYZE a; COMMIT"), ElementsAre("analyze"));
    EXPECT_THAT(errors("BEGIN; CREATE TABLE a (x int); BEGIN; CREATE TABLE b (x int); COMMIT"),
                ElementsAre("ddl-count"));
}

TEST(Lint, OlderAdviceIsAHint) {
    EXPECT_THAT(hints("CREATE TABLE t (a int CHECK (a > 0) UNIQUE REFERENCES u)"),
                ElementsAre("check", "unique", "foreign-key"));
    EXPECT_THAT(hints("CREATE SEQUENCE s CACHE 1"), ElementsAre("sequence"));
    EXPECT_THAT(hints("INSERT INTO t VALUES (1) ON CONFLICT DO NOTHING"),
                ElementsAre("on-conflict"));
    EXPECT_THAT(hints("WITH x AS (DELETE FROM t RETURNING a) SELECT * FROM x"),
                ElementsAre("writing-cte"));
    EXPECT_THAT(hints("SELECT * FROM t WHERE a = 1 FOR UPDATE SKIP LOCKED"),
                ElementsAre("lock-wait"));
}

// The guide refuses these locks, the service was seen to accept them.
TEST(Lint, AForUpdateOutsideTheGuideIsAHint) {
    const std::string table = "CREATE TABLE t (id int PRIMARY KEY, a int);\n";
    for (const auto& [query, rule] :
         {std::pair{"SELECT * FROM t FOR UPDATE", "for-update-key"},
          std::pair{"SELECT * FROM t WHERE id > 1 FOR UPDATE", "for-update-key"},
          std::pair{"SELECT * FROM t x, t y WHERE x.id = 1 FOR UPDATE OF x", "for-update-join"}}) {
        EXPECT_THAT(errors(table + query), IsEmpty()) << query;
        EXPECT_THAT(hints(table + query), ElementsAre(rule)) << query;
    }
}

TEST(Lint, ReadsScriptsOfPsql) {
    EXPECT_THAT(
        errors("-- dump\n\\connect x\n\\set y 'unbalanced\nCOPY t (a) FROM stdin;\nTRUNCATE "
               "is data\n\\.\nLISTEN c;\n"),
        ElementsAre("statement"));
}

TEST(Lint, RowsOverTheCapAreSeen) {
    std::string sql = "INSERT INTO t VALUES (1)";
    for (int i = 1; i < 3'000; ++i) {
        sql += ",(1)";
    }
    EXPECT_THAT(errors(sql), IsEmpty());
    EXPECT_THAT(errors(sql + ",(1)"), ElementsAre("row-limit"));
    const std::string one = "INSERT INTO t VALUES (1);";
    EXPECT_THAT(errors("BEGIN;" + sql + "; COMMIT;" + one), IsEmpty());
    EXPECT_THAT(errors("BEGIN;" + sql + ";" + one + one + "COMMIT"), ElementsAre("row-limit"));
    EXPECT_THAT(errors("BEGIN;" + sql + "; INSERT INTO t VALUES (1) ON CONFLICT DO NOTHING; END"),
                IsEmpty());
}

TEST(LintFix, WritesWhatMeansTheSame) {
    struct Case {
        std::string_view before, after;
    };
    constexpr Case cases[] = {
        {"CREATE TABLE t (id BIGSERIAL PRIMARY KEY, b bigserial);",
         "CREATE TABLE t (id BIGINT GENERATED BY DEFAULT AS IDENTITY (CACHE 1) PRIMARY KEY, b "
         "BIGINT "
         "GENERATED BY DEFAULT AS IDENTITY (CACHE 1));"},
        {"CREATE UNIQUE INDEX i ON t (a)", "CREATE UNIQUE INDEX ASYNC i ON t (a)"},
        {"CREATE INDEX CONCURRENTLY i ON t USING btree (a ASC, b asc)",
         "CREATE INDEX ASYNC i ON t (a, b)"},
        {"DROP INDEX CONCURRENTLY i", "DROP INDEX i"},
        {"CREATE SEQUENCE s START 5;", "CREATE SEQUENCE s START 5 CACHE 1;"},
        {"CREATE SEQUENCE cache START 5", "CREATE SEQUENCE cache START 5 CACHE 1"},
        {"ALTER SEQUENCE s CACHE 20", "ALTER SEQUENCE s CACHE 1"},
        {"CREATE TABLE t (a bigint GENERATED ALWAYS AS IDENTITY, b bigint GENERATED ALWAYS AS "
         "IDENTITY "
         "(START 5))",
         "CREATE TABLE t (a bigint GENERATED ALWAYS AS IDENTITY (CACHE 1), b bigint GENERATED "
         "ALWAYS "
         "AS IDENTITY (START 5 CACHE 1))"},
        {"SELECT * FROM t WHERE a = 1 FOR SHARE", "SELECT * FROM t WHERE a = 1 FOR UPDATE"},
        {"SELECT * FROM t FOR NO KEY UPDATE OF t", "SELECT * FROM t FOR UPDATE OF t"},
        {"ALTER TABLE t VALIDATE CONSTRAINT c", "ALTER TABLE ASYNC t VALIDATE CONSTRAINT c"},
        {"CREATE UNLOGGED TABLE t (a int)", "CREATE TABLE t (a int)"},
    };
    for (const Case& row : cases) {
        const Fixed fixed = lint_fix(row.before);
        EXPECT_EQ(fixed.text, row.after);
        EXPECT_GT(fixed.fixes, 0U) << row.before;
        EXPECT_THAT(errors(fixed.text), IsEmpty());
    }
}

TEST(LintFix, LeavesAloneWhatWouldMeanSomethingElse) {
    for (const std::string_view sql : {"CREATE TABLE t (a serial)",
                                       "CREATE INDEX ASYNC i ON t USING gin (a)",
                                       "CREATE INDEX ASYNC i ON t (a DESC)",
                                       "ALTER TABLE t ADD CONSTRAINT c CHECK (a > 0)",
                                       "ALTER TABLE t DROP COLUMN a, VALIDATE CONSTRAINT c",
                                       "TRUNCATE t",
                                       "SELECT 'FOR SHARE'"}) {
        EXPECT_EQ(lint_fix(sql).text, sql);
        EXPECT_EQ(lint_fix(sql).fixes, 0U);
    }
}

}  // namespace
}  // namespace holdfast::dsql
