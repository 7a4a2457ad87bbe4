#include <holdfast/lock/semaphore.hpp>

#include <gtest/gtest.h>

#include <holdfast/base/manual_clock.hpp>
#include <holdfast/lock/error.hpp>
#include <holdfast/lock/locks.hpp>
#include <holdfast/sql/database.hpp>
#include <holdfast/testing/backends.hpp>
#include <holdfast/testing/check.hpp>
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

TEST_P(SemaphoreStory, PurgingTakesPermitsThatAreLongDeadAndNoCounter) {
    Locks locks(db);
    Semaphore three(locks, "k", 3);
    (void)taken(three.acquire(10s));
    (void)taken(three.acquire(10s));
    const Permit alive = taken(three.acquire(600s));
    db.advance_clock(11'010ms);
    EXPECT_EQ(locks.purge(), 0) << "dead for less than two seconds";
    db.advance_clock(20s);
    EXPECT_EQ(locks.purge(1), 1) << "no more than it may";
    EXPECT_EQ(locks.purge(), 1);
    EXPECT_EQ(db.number("SELECT count(*) FROM holdfast_locks_permits"), 1);
    EXPECT_TRUE(three.release(alive));
    EXPECT_EQ(value_of(taken(three.acquire(10s)).fence), 4U);
}

// Eleven seconds pass with every reading.
class LeapingClock final : public Clock {
public:
    [[nodiscard]] Steady steady_now() const override {
        hands_.advance(11s);
        return hands_.steady_now();
    }
    [[nodiscard]] Wall wall_now() const override { return hands_.wall_now(); }
    [[nodiscard]] std::string boot_id() const override { return hands_.boot_id(); }
    [[nodiscard]] std::chrono::microseconds boot_now() const override { return hands_.boot_now(); }
    bool sleep_until(Steady until, const std::stop_token& stop) const override {
        return hands_.sleep_until(until, stop);
    }

private:
    mutable ManualClock hands_;
};

TEST_P(SemaphoreStory, APermitThatIsBornExpiredIsRefusedAndGivenBack) {
    HOLDFAST_CHECK("locks N4");
    const LeapingClock clock;
    Locks locks(db, {.clock = &clock});
    Semaphore one(locks, "k", 1);
    try {
        (void)one.acquire(10s);
        FAIL() << "a lease that was over before its answer arrived";
    } catch (const LockError& error) {
        EXPECT_EQ(error.lock_code(), LockCode::network_timeout);
        EXPECT_TRUE(error.retryable());
    }
    EXPECT_EQ(db.number("SELECT count(*) FROM holdfast_locks_permits"), 0);
    EXPECT_TRUE(std::holds_alternative<Permit>(one.acquire(600s)));
}

INSTANTIATE_TEST_SUITE_P(Every, SemaphoreStory, test::every_backend(), test::backend_name);

}  // namespace
}  // namespace holdfast::lock
