#include <holdfast/pool/token_bucket.hpp>

#include <limits>

#include "test/pool_fixture.hpp"
#include <gtest/gtest.h>

#include <holdfast/testing/check.hpp>

namespace holdfast::pool {
namespace {

using namespace std::chrono_literals;

constexpr WaiterId cid{3};

int take_all(TokenBucket& bucket, Steady now) {
    int taken = 0;
    while (bucket.try_take(now)) {
        ++taken;
    }
    return taken;
}

TEST(TokenBucket, StartsFullAndHoldsNoMoreThanItsBurst) {
    HOLDFAST_CHECK("connections limiter.default_burst");
    HOLDFAST_CHECK("connections limiter.custom");
    TokenBucket usual(10, 100);
    EXPECT_EQ(take_all(usual, start), 100);

    TokenBucket small(5, 10);
    EXPECT_EQ(take_all(small, start), 10);
    EXPECT_EQ(take_all(small, start + 199ms), 0);
    EXPECT_EQ(take_all(small, start + 200ms), 1);
    EXPECT_EQ(take_all(small, start + 1h), 10);
}

TEST(TokenBucket, WhoWaitsIsServedWhenThePermitIsThere) {
    HOLDFAST_CHECK("connections limiter.wait_ok");
    TokenBucket bucket(100, 1);
    EXPECT_EQ(take_all(bucket, start), 1);
    ASSERT_TRUE(bucket.enter(start, ann, start + 100ms));
    EXPECT_EQ(bucket.serve(start + 9ms), std::nullopt);
    EXPECT_EQ(bucket.next_wake(start + 9ms), start + 10ms);
    EXPECT_EQ(bucket.serve(start + 10ms), ann);
    EXPECT_EQ(bucket.next_wake(start + 10ms), Steady::max());
}

TEST(TokenBucket, WhoWouldComeTooLateIsToldAtOnce) {
    HOLDFAST_CHECK("connections limiter.wait_timeout");
    TokenBucket bucket(1, 1);
    EXPECT_EQ(take_all(bucket, start), 1);
    EXPECT_FALSE(bucket.enter(start, ann, start + 1ms));
    ASSERT_TRUE(bucket.enter(start, ann, start + 1s));
    EXPECT_FALSE(bucket.enter(start, bob, start + 1999ms)) << "the first permit is Ann's";
    EXPECT_TRUE(bucket.enter(start, bob, start + 2s));
}

TEST(TokenBucket, TheLineKeepsItsOrderAndClosesUpWhenSomebodyLeaves) {
    TokenBucket bucket(1, 1);
    EXPECT_EQ(take_all(bucket, start), 1);
    for (const WaiterId waiter : {ann, bob, cid}) {
        ASSERT_TRUE(bucket.enter(start, waiter, start + 1min));
    }
    bucket.leave(bob);
    EXPECT_EQ(bucket.serve(start + 1s), ann);
    EXPECT_FALSE(bucket.try_take(start + 2s)) << "those in line go first";
    EXPECT_EQ(bucket.serve(start + 2s), cid) << "Bob's permit is not lost";
    EXPECT_EQ(bucket.serve(start + 2s), std::nullopt);
    bucket.leave(bob);
}

TEST(TokenBucket, AnotherRateCountsFromNowOn) {
    TokenBucket bucket(10, 10);
    EXPECT_EQ(take_all(bucket, start), 10);
    bucket.set_rate(start + 500ms, 1);  // Five have come by then.
    EXPECT_EQ(take_all(bucket, start + 500ms), 5);
    EXPECT_EQ(take_all(bucket, start + 1499ms), 0);
    EXPECT_EQ(take_all(bucket, start + 1500ms), 1);
}

TEST(TokenBucket, NeverGivesMoreThanTheBurstAndWhatHasComeSince) {
    TokenBucket bucket(7, 3);
    Random random(42);
    Steady now = start;
    int taken = 0;
    for (int i = 0; i < 10'000; ++i) {
        now += std::chrono::nanoseconds{random.below(100'000'000)};
        taken += bucket.try_take(now) ? 1 : 0;
        const double passed = std::chrono::duration<double>(now - start).count();
        ASSERT_LE(taken, 3 + 7 * passed + 1e-6);
    }
}

TEST(TokenBucket, ALimitThatIsNoneIsRefused) {
    const double infinite = std::numeric_limits<double>::infinity();
    const double no_number = std::numeric_limits<double>::quiet_NaN();
    for (const double rate : {0.0, -1.0, infinite, no_number}) {
        EXPECT_EQ(test::code_of([&] { TokenBucket(rate, 1); }), Code::invalid_argument);
    }
    EXPECT_EQ(test::code_of([] { TokenBucket(1, 0); }), Code::invalid_argument);
}

}  // namespace
}  // namespace holdfast::pool
