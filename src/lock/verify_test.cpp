#include <holdfast/lock/verify.hpp>

#include "test/lock_fixture.hpp"
#include <gmock/gmock.h>

namespace holdfast::lock::tests {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class LockTablesAsTheyAre : public LockStory {};

TEST_P(LockTablesAsTheyAre, AreWholeAfterTheirMigrations) {
    EXPECT_THAT(schema_problems(locks), IsEmpty());
    db.tamper("ALTER TABLE holdfast_locks ADD COLUMN theirs TEXT");
    EXPECT_THAT(schema_problems(locks), IsEmpty()) << "that is nobody else's business";
}

// Statements may work all the same, and a lock id then hold two keys.
TEST_P(LockTablesAsTheyAre, AreFoundToLackWhatTheyLack) {
    const std::string bytes = GetParam().backend == test::Backend::sqlite ? "BLOB" : "BYTEA";
    db.tamper(
        "DROP INDEX idx_holdfast_locks_lock_id;"
        "CREATE INDEX idx_holdfast_locks_lock_id ON holdfast_locks (lock_id);"
        "CREATE UNIQUE INDEX more ON holdfast_locks (lock_id, key);"
        "ALTER TABLE holdfast_locks_permits RENAME COLUMN owner TO boss;"
        "ALTER TABLE holdfast_locks_waiters DROP COLUMN waiter;"
        "ALTER TABLE holdfast_locks_waiters ADD COLUMN waiter " +
        bytes +
        ";"
        "DROP TABLE holdfast_locks_resources");
    EXPECT_THAT(
        schema_problems(locks),
        ElementsAre(HasSubstr("unique index on lock_id"),
                    AllOf(HasSubstr("waiter"), HasSubstr("and not text")),
                    HasSubstr("holdfast_locks_permits has no column owner"),
                    AllOf(HasSubstr("holdfast_locks_resources"), HasSubstr("schema apply"))));
}

INSTANTIATE_TEST_SUITE_P(Every,
                         LockTablesAsTheyAre,
                         testing::Values(Setting{test::Backend::sqlite},
                                         Setting{test::Backend::postgres},
                                         Setting{test::Backend::dsql}),
                         setting_name);

}  // namespace
}  // namespace holdfast::lock::tests
