#include <holdfast/sql/schema.hpp>

#include <array>
#include <barrier>
#include <cstring>
#include <thread>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <holdfast/sql/database.hpp>
#include <holdfast/testing/backends.hpp>
#include <holdfast/testing/check.hpp>
#include <holdfast/testing/database.hpp>

namespace holdfast::sql {
namespace {

constexpr std::array files{
    MigrationFile{"0001_ledger",
                  "CREATE TABLE ledger (id {bigint} PRIMARY KEY, note TEXT NOT NULL) {strict};\n"
                  "INSERT INTO ledger (id, note) VALUES (1, 'opening');\n"
                  "-- only: postgres\nCREATE INDEX {async} ledger_note ON ledger (note);\n"},
    MigrationFile{"0002_balance",
                  "ALTER TABLE ledger ADD COLUMN cents {bigint};\n"
                  "UPDATE ledger SET cents = 100 WHERE id = 1;\n"},
};

const std::span<const MigrationFile> all_files{files};
const SchemaPart old_part{.name = "ledger", .files = all_files.first(1)};
const SchemaPart new_part{.name = "ledger", .files = all_files};

class SchemaStory : public testing::TestWithParam<test::Backend> {
protected:
    test::Database db{GetParam()};
};

TEST_P(SchemaStory, AFreshDatabaseHasVersionZeroAndSayingSoCreatesNothing) {
    EXPECT_EQ(schema_status(db, new_part, {}).version, 0);
    EXPECT_EQ(schema_status(db, new_part, {}).known, 2);
    EXPECT_EQ(test::code_of([&] { schema_require(db, new_part, {}); }), Code::condition_failed);
    EXPECT_ANY_THROW((void)db.look("SELECT * FROM holdfast_schema"));
}

TEST_P(SchemaStory, ApplyingTwiceDoesTheWorkOnce) {
    EXPECT_EQ(schema_apply(db, new_part, {}).version, 2);
    EXPECT_EQ(schema_apply(db, new_part, {}).version, 2);
    EXPECT_EQ(db.number("SELECT count(*) FROM ledger"), 1);
    EXPECT_EQ(db.number("SELECT cents FROM ledger WHERE id = 1"), 100);
    schema_require(db, new_part, {});
}

TEST_P(SchemaStory, AnOlderSchemaIsBroughtForward) {
    schema_apply(db, old_part, {});
    EXPECT_EQ(schema_status(db, new_part, {}).version, 1);
    schema_require(db, new_part, {});  // Rolling upgrades: version 1 is still good enough.
    EXPECT_EQ(schema_apply(db, new_part, {}).version, 2);
    EXPECT_EQ(db.number("SELECT cents FROM ledger WHERE id = 1"), 100);
}

TEST_P(SchemaStory, ANewerSchemaThanTheProgramKnowsIsRefusedAndLeftAlone) {
    schema_apply(db, new_part, {});
    EXPECT_EQ(test::code_of([&] { schema_apply(db, old_part, {}); }), Code::condition_failed);
    EXPECT_EQ(test::code_of([&] { schema_require(db, old_part, {}); }), Code::condition_failed);
    EXPECT_EQ(schema_status(db, new_part, {}).version, 2);
}

// The moment a process dies in the middle of a migration: its steps are done, the rest is not.
TEST_P(SchemaStory, AnInterruptedMigrationContinuesWhereItStopped) {
    const MigrationFile broken{"0001_ledger",
                               "CREATE TABLE ledger (id {bigint} PRIMARY KEY, note TEXT);\n"
                               "INSERT INTO ledger (id, note) VALUES (1, 'opening');\n"
                               "INSERT INTO nowhere VALUES (1);\n"};
    const SchemaPart part{.name = "ledger", .files = std::span(&broken, 1)};
    EXPECT_TRUE(test::code_of([&] { schema_apply(db, part, {}); }).has_value());
    EXPECT_EQ(schema_status(db, part, {}).version, 0);
    EXPECT_EQ(schema_status(db, part, {}).step, 2);

    db.execute("CREATE TABLE nowhere (n INTEGER)");
    EXPECT_EQ(schema_apply(db, part, {}).version, 1);
    EXPECT_EQ(db.number("SELECT count(*) FROM ledger"), 1) << "the second step must not run twice";
}

TEST_P(SchemaStory, ManyHandlesThatMigrateAtOnceShareTheWork) {
    constexpr int handles = 4;
    std::barrier start(handles);
    std::vector<std::jthread> threads;
    for (int i = 0; i < handles; ++i) {
        threads.emplace_back([&] {
            Database mine(db.url(), db.options());
            start.arrive_and_wait();
            EXPECT_EQ(schema_apply(mine, new_part, {}).version, 2);
        });
    }
    threads.clear();
    EXPECT_EQ(db.number("SELECT count(*) FROM ledger"), 1);
    EXPECT_EQ(db.number("SELECT count(*) FROM holdfast_schema"), 1);
}

TEST_P(SchemaStory, TwoProcessesThatMigrateAtOnceShareTheWork) {
    db.close();  // A handle does not survive a fork.
    std::array<int, 2> gate{};
    ASSERT_EQ(pipe(gate.data()), 0);
    std::vector<pid_t> children;
    for (int i = 0; i < 2; ++i) {
        const pid_t child = fork();
        ASSERT_GE(child, 0);
        if (child == 0) {
            close(gate[1]);
            char start = 0;
            (void)!read(gate[0], &start, 1);  // Both begin when the parent closes its end.
            try {
                Database mine(db.url(), test::quick_options());
                _exit(schema_apply(mine, new_part, {}).version == 2 ? 0 : 1);
            } catch (const std::exception& error) {
                (void)!write(STDERR_FILENO, error.what(), std::strlen(error.what()));
                _exit(2);
            }
        }
        children.push_back(child);
    }
    close(gate[0]);
    close(gate[1]);
    for (const pid_t child : children) {
        int status = 0;
        ASSERT_EQ(waitpid(child, &status, 0), child);
        EXPECT_EQ(status, 0);
    }
    EXPECT_EQ(db.number("SELECT count(*) FROM ledger"), 1);
}

INSTANTIATE_TEST_SUITE_P(Every, SchemaStory, test::every_backend(), test::backend_name);

TEST(SchemaDump, GivesTheStatementsOfEachDialect) {
    EXPECT_NE(schema_dump(new_part, dialect_named("sqlite")).find("STRICT"), std::string::npos);
    EXPECT_NE(schema_dump(new_part, dialect_named("postgres")).find("CREATE INDEX  ledger_note"),
              std::string::npos);
    EXPECT_EQ(schema_dump(new_part, dialect_named("dsql")).find("ledger_note"), std::string::npos);
}

}  // namespace
}  // namespace holdfast::sql
