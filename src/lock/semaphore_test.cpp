#include <holdfast/lock/semaphore.hpp>

#include <gtest/gtest.h>

#include <holdfast/lock/error.hpp>
#include <holdfast/lock/locks.hpp>
#include <holdfast/sql/database.hpp>
#include <holdfast/testing/backends.hpp>
#include <holdfast/testing/database.hpp>

namespace holdfast::lock {
namespace {

using namespace std::chrono_literals;

class SemaphoreStory : public testing::TestWithParam<test::Backend> {
protected:
    static Permit taken(std::variant<Permit, Busy> answer) { return std::get<Permit>(answer); }

    test::Database db{GetParam(), schema_part()};
};

TEST_P(SemaphoreStory, LendsItsPermitsAndNoMore) {
    Locks locks(db);
    Semaphore two(locks, "licences", 2);
    const Permit ann = taken(two.acquire(10s));
    const Permit bob = taken(two.acquire(10s));
    EXPECT_NE(ann.slot, bob.slot);
    EXPECT_GT(bob.fence, ann.fence);

    const auto third = two.acquire(10s);
    ASSERT_TRUE(std::holds_alternative<Busy>(third));
    EXPECT_GT(std::get<Busy>(third).retry_after.value(), 5s);

    EXPECT_TRUE(two.release(ann));
    EXPECT_FALSE(two.release(ann)) << "once";
    EXPECT_EQ(taken(two.acquire(10s)).slot, ann.slot);
}

TEST_P(SemaphoreStory, ALeaseThatRunsOutFreesItsPlaceAndStaysLost) {
    Locks locks(db);
    Semaphore one(locks, "k", 1);
    Permit ann = taken(one.acquire(10s));
    EXPECT_TRUE(one.extend(ann, 20s));
    db.advance_clock(15s);
    EXPECT_TRUE(std::holds_alternative<Busy>(one.acquire(10s))) << "she has extended it";
    db.advance_clock(15s);
    const Permit bob = taken(one.acquire(10s));
    EXPECT_GT(bob.fence, ann.fence);
    EXPECT_FALSE(one.extend(ann, 10s));
    EXPECT_FALSE(one.release(ann));
    EXPECT_TRUE(std::holds_alternative<Busy>(one.acquire(10s)));
}

TEST_P(SemaphoreStory, TakersMustAgreeOnTheNumber) {
    Locks locks(db);
    Semaphore two(locks, "k", 2);
    const Permit ann = taken(two.acquire(10s));
    Semaphore three(locks, "k", 3);
    try {
        (void)three.acquire(10s);
        FAIL() << "three permits, where two were agreed";
    } catch (const LockError& error) {
        EXPECT_EQ(error.lock_code(), LockCode::invalid_argument);
    }
    EXPECT_TRUE(two.release(ann));
    EXPECT_TRUE(std::holds_alternative<Permit>(three.acquire(10s))) << "nobody disagrees any more";
}

TEST_P(SemaphoreStory, ALockOfTheSameNameIsSomethingElse) {
    Locks locks(db);
    Semaphore one(locks, "k", 1);
    const Permit permit = taken(one.acquire(10s));
    const auto lock = std::get<Grant>(locks.acquire("k", 10s));
    EXPECT_EQ(value_of(permit.fence), 1U);
    EXPECT_EQ(value_of(lock.fence), 1U);
}

INSTANTIATE_TEST_SUITE_P(Every, SemaphoreStory, test::every_backend(), test::backend_name);

}  // namespace
}  // namespace holdfast::lock
