// A write whose predicate misses the row that its transaction has locked and checked stops the
// process. It is never committed as if it had been applied.
#include <set>
#include <string>

#include "test/operations_walk_fixture.hpp"

namespace holdfast::store::tests {
namespace {

class StoreFences : public testing::TestWithParam<test::Backend> {
public:
    // From here on an UPDATE of the table finds no row.
    static void make_blind(test::Database& db, const std::string& table) {
        if (GetParam() == test::Backend::sqlite) {
            db.execute("CREATE TRIGGER blind BEFORE UPDATE ON " + table +
                       " BEGIN SELECT RAISE(IGNORE); END");
            return;
        }
        db.execute(
            "CREATE FUNCTION blind() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';"
            "CREATE TRIGGER blind BEFORE UPDATE ON " +
            table + " FOR EACH ROW EXECUTE FUNCTION blind()");
    }
};

TEST_P(StoreFences, AMissedWriteOfALockedRowStopsTheProcess) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    // The only guarded table that is written without a locked read before it: a miss is an answer.
    constexpr std::string_view answered = "task_queue_user_data";
    std::set<std::string> seen;
    for (const sql::GuardedTable& guarded : catalogue().guarded) {
        const std::string table{guarded.table};
        if (seen.insert(table); table == answered) {
            continue;
        }
        SCOPED_TRACE(table);
        EXPECT_DEATH(
            {
                MigratedDatabase db(GetParam());
                make_blind(db, table);
                OperationsWalk(db).see_all();
            },
            "statement 'store\\.[a-z_0-9]+' changes the row of .*, which is locked and verified");
    }
    EXPECT_TRUE(seen.contains("executions"));
    EXPECT_TRUE(seen.contains(std::string(answered)));
}

TEST_P(StoreFences, AMissedWriteOfUserDataIsAConflict) {
    MigratedDatabase db(GetParam());
    make_blind(db, "task_queue_user_data");
    EXPECT_THROW(OperationsWalk(db).see_all(), UserDataConflict);
}

INSTANTIATE_TEST_SUITE_P(Every, StoreFences, test::every_backend(), test::backend_name);

}  // namespace
}  // namespace holdfast::store::tests
