#include <holdfast/sql/table_names.hpp>

#include <gtest/gtest.h>

#include <holdfast/base/error.hpp>
#include <holdfast/sql/database.hpp>
#include <holdfast/sql/schema.hpp>
#include <holdfast/testing/backends.hpp>
#include <holdfast/testing/database.hpp>

namespace holdfast::sql {
namespace {

bool refused(const std::string& name) {
    try {
        check_table_name("the name", name);
        return false;
    } catch (const InvalidArgument&) {
        return true;
    }
}

TEST(TableNames, OnlyPlainLowerCaseNamesAreTaken) {
    EXPECT_FALSE(refused("locks"));
    EXPECT_FALSE(refused("_x9"));
    EXPECT_FALSE(refused(std::string(48, 'a')));
    for (const std::string name :
         {"", "Locks", "9x", "a.b", "a\"b", "a b", "a-b", "café", "select", "table", "user"}) {
        EXPECT_TRUE(refused(name)) << name;
    }
    EXPECT_TRUE(refused(std::string(49, 'a')));
}

TEST(TableNames, FillTheirHolesQuoted) {
    const TableNames plain("", {{"books", "my_books"}});
    EXPECT_EQ(plain.fill("table.books"), "\"my_books\"");
    EXPECT_EQ(plain.fill("index.books.title"), "\"idx_my_books_title\"");
    EXPECT_EQ(plain.fill("table.others"), "");
    EXPECT_EQ(plain.fill("index.books"), "");
    const TableNames elsewhere("shop", {{"books", "my_books"}});
    EXPECT_EQ(elsewhere.fill("table.books"), "\"shop\".\"my_books\"");
    EXPECT_EQ(elsewhere.fill("index.books.title"), "\"idx_my_books_title\"");
}

TEST(TableNames, NoTwoTablesShareOne) {
    EXPECT_THROW(TableNames("", {{"a", "same"}, {"b", "same"}}), InvalidArgument);
    EXPECT_THROW(TableNames("Shop", {{"a", "x"}}), InvalidArgument);
}

TEST(TableNames, AStatementWithoutThemIsRefused) {
    EXPECT_THROW((void)render(dialect_named("sqlite"), "t", "SELECT 1 FROM {table.books}"),
                 InvalidArgument);
    const TableNames names("", {{"books", "b"}});
    EXPECT_EQ(render(dialect_named("postgres"), "t", "SELECT $1 FROM {table.books}", &names).text,
              "SELECT $1 FROM \"b\"");
}

constexpr Statement put{"test.put", "INSERT INTO {table.books} (title) VALUES ($1)"};
constexpr Statement count_books{"test.count", "SELECT count(*) FROM {table.books}"};
constexpr MigrationFile books{"0001_books",
                              "CREATE TABLE IF NOT EXISTS {table.books} (title TEXT {bytewise} NOT "
                              "NULL) {strict}{hot};\n"
                              "CREATE INDEX {async} IF NOT EXISTS {index.books.title} ON "
                              "{table.books} (title);\n"};

class ChosenNames : public testing::TestWithParam<test::Backend> {
protected:
    test::Database db{GetParam()};
};

// One program, one statement, two tables: what is prepared for one name must not serve the other.
TEST_P(ChosenNames, TheSameStatementServesDifferentTables) {
    const TableNames left("", {{"books", "left_books"}});
    const TableNames right("", {{"books", "right_books"}});
    for (const auto& [part, names] : {std::pair{"left", &left}, std::pair{"right", &right}}) {
        schema_apply(
            db, {.name = part, .files = std::span(&books, 1), .oldest = 1, .names = names}, {});
    }
    for (int i = 0; i < 3; ++i) {
        (void)db->run("Put", {}, put.with(left), "a");
    }
    (void)db->run("Put", {}, put.with(right), "b");
    EXPECT_EQ(db->run("Count", {}, count_books.with(left)).rows[0].get<int>(0), 3);
    EXPECT_EQ(db->run("Count", {}, count_books.with(right)).rows[0].get<int>(0), 1);
    EXPECT_EQ(db.number("SELECT count(*) FROM left_books"), 3);
}

INSTANTIATE_TEST_SUITE_P(Every, ChosenNames, test::every_backend(), test::backend_name);

}  // namespace
}  // namespace holdfast::sql
