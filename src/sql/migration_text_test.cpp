#include "migration_text.hpp"

#include <gtest/gtest.h>

#include <holdfast/base/error.hpp>
#include <holdfast/testing/check.hpp>

namespace holdfast::sql {
namespace {

std::vector<std::string> steps(std::string_view text, Product product) {
    return migration_steps(MigrationFile{"0001_test", text}, dialect_of(product));
}

TEST(Migration, IsSplitIntoStatementsWithoutComments) {
    EXPECT_EQ(
        steps("-- about\nCREATE TABLE a (n {bigint}); -- tail\n\nCREATE TABLE b\n(m {bytes});\n",
              Product::postgres),
        (std::vector<std::string>{"CREATE TABLE a (n BIGINT)", "CREATE TABLE b\n(m BYTEA)"}));
}

TEST(Migration, FillsTypesByDialect) {
    EXPECT_EQ(steps("CREATE TABLE a (i {uuid}, t {timestamp}) {strict};", Product::sqlite),
              (std::vector<std::string>{"CREATE TABLE a (i BLOB, t INTEGER) STRICT"}));
}

TEST(Migration, MayLimitAStatementToSomeDatabases) {
    constexpr std::string_view text =
        "-- only: sqlite\nCREATE TABLE a (n INTEGER);\n"
        "-- only: postgres dsql\nCREATE INDEX {async} i ON a (n);\nCREATE TABLE c (n {bigint});";
    EXPECT_EQ(
        steps(text, Product::sqlite),
        (std::vector<std::string>{"CREATE TABLE a (n INTEGER)", "CREATE TABLE c (n INTEGER)"}));
    EXPECT_EQ(
        steps(text, Product::dsql),
        (std::vector<std::string>{"CREATE INDEX ASYNC i ON a (n)", "CREATE TABLE c (n BIGINT)"}));
}

TEST(Migration, KnowsASemicolonInTextFromTheEndOfAStatement) {
    EXPECT_EQ(steps("INSERT INTO a VALUES ('x;--y');", Product::sqlite),
              (std::vector<std::string>{"INSERT INTO a VALUES ('x;--y')"}));
}

TEST(Migration, RefusesUnknownHolesUnknownDatabasesAndAMissingEnd) {
    for (const std::string_view text : {"CREATE TABLE a (n {nothing});",
                                        "-- only: oracle\nSELECT 1;",
                                        "CREATE TABLE a (n INTEGER)"}) {
        EXPECT_EQ(test::code_of([&] { (void)steps(text, Product::sqlite); }),
                  Code::invalid_argument)
            << text;
    }
}

}  // namespace
}  // namespace holdfast::sql
