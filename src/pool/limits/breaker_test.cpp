#include <holdfast/pool/breaker.hpp>

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include <holdfast/pool/token_bucket.hpp>
#include <holdfast/testing/check.hpp>

namespace holdfast::pool {
namespace {

using namespace std::chrono_literals;

constexpr Steady start{1h};

TEST(Breaker, OpensAfterThreeFailuresInARowAndClosesWithTheFirstAnswer) {
    HOLDFAST_CHECK("connections +dist.breaker");
    Breaker breaker{FleetLimits{}};
    EXPECT_FALSE(breaker.failed(start));
    EXPECT_FALSE(breaker.failed(start));
    EXPECT_FALSE(breaker.answered()) << "it was not open";
    EXPECT_FALSE(breaker.failed(start));
    EXPECT_FALSE(breaker.failed(start));
    EXPECT_TRUE(breaker.may_ask(start));
    EXPECT_TRUE(breaker.failed(start));
    EXPECT_TRUE(breaker.open());
    EXPECT_FALSE(breaker.may_ask(start + 4999ms));
    EXPECT_TRUE(breaker.may_ask(start + 5s)) << "the probe";
    EXPECT_FALSE(breaker.may_ask(start + 5s)) << "one at a time";
    EXPECT_FALSE(breaker.failed(start + 6s)) << "it was open";
    EXPECT_TRUE(breaker.may_ask(start + 10s));
    EXPECT_TRUE(breaker.answered());
    EXPECT_TRUE(breaker.may_ask(start + 10s));
}

TEST(SlowDown, HalvesWithEachRefusalAndComesBackByTenths) {
    SlowDown pace{FleetLimits{}};
    EXPECT_EQ(pace.part(start), 1);
    pace.refused(start);
    pace.refused(start + 10ms);  // Sent together with the first.
    EXPECT_EQ(pace.part(start + 10ms), 0.5);
    pace.refused(start + 2s);
    EXPECT_EQ(pace.part(start + 2s), 0.25);
    EXPECT_NEAR(pace.part(start + 12s), 0.35, 1e-9);
    EXPECT_NEAR(pace.part(start + 42s), 0.65, 1e-9);
    EXPECT_EQ(pace.part(start + 82s), 1);
    for (int i = 0; i < 100; ++i) {
        pace.refused(start + 90s + i * 1s);
    }
    EXPECT_GE(pace.part(start + 190s), 1.0 / 64);
}

// Twenty processes without their store: each has its share, so together they stay below the limit.
TEST(Breaker, TenMinutesWithoutTheStoreStayWithinTheSharesOfAll) {
    constexpr int processes = 20;
    std::vector<TokenBucket> shares(processes, TokenBucket(100.0 / processes, 200 / processes));
    int opened = 0;
    for (auto now = start; now < start + 10min; now += 10ms) {
        for (TokenBucket& share : shares) {
            opened += share.try_take(now) ? 1 : 0;
        }
        const double passed = std::chrono::duration<double>(now - start).count();
        ASSERT_LE(opened, 200 + 100 * passed + processes);
    }
    EXPECT_GE(opened, 100 * 600);
}

}  // namespace
}  // namespace holdfast::pool
