#include <holdfast/sql/retry.hpp>

#include <limits>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <holdfast/testing/check.hpp>

namespace holdfast::sql {
namespace {

using namespace std::chrono_literals;

TEST(RetryPolicy, WithoutJitterDoublesUpToTheCap) {
    HOLDFAST_CHECK("store 208");
    const RetryPolicy policy =
        RetryPolicy{.max_retries = 9, .base_delay = 100ms, .max_delay = 5s, .jitter_factor = 0}
            .normalised();
    Random random(1);
    const std::vector<std::chrono::milliseconds> expected{
        100ms, 200ms, 400ms, 800ms, 1600ms, 3200ms, 5000ms, 5000ms};
    for (std::size_t retry = 0; retry < expected.size(); ++retry) {
        EXPECT_EQ(policy.delay(static_cast<int>(retry), random), expected[retry]) << retry;
    }
    EXPECT_EQ(policy.delay(std::numeric_limits<int>::max(), random), 5s) << "must not overflow";
}

TEST(RetryPolicy, MakesSenseOfNonsense) {
    HOLDFAST_CHECK("store 208");
    const RetryPolicy nonsense{
        .max_retries = -3, .base_delay = -1ms, .max_delay = 0ms, .jitter_factor = 7};
    EXPECT_EQ(
        nonsense.normalised(),
        (RetryPolicy{.max_retries = 0, .base_delay = 100ms, .max_delay = 5s, .jitter_factor = 1}));
    EXPECT_EQ((RetryPolicy{.base_delay = 10s, .max_delay = 1s}).normalised().max_delay, 10s);
    EXPECT_EQ((RetryPolicy{.jitter_factor = -1}).normalised().jitter_factor, 0);
    EXPECT_EQ((RetryPolicy{.jitter_factor = std::numeric_limits<double>::quiet_NaN()})
                  .normalised()
                  .jitter_factor,
              0.25);
    EXPECT_EQ(RetryPolicy{}.normalised(), RetryPolicy{}) << "the defaults are sound";
}

RC_GTEST_PROP(Property3, ThePauseStaysWithinItsJitterAroundTheDoubledBase, ()) {
    HOLDFAST_CHECK("Property 3");
    const RetryPolicy policy =
        RetryPolicy{.max_retries = 10,
                    .base_delay = std::chrono::milliseconds{*rc::gen::inRange(1, 1000)},
                    .max_delay = std::chrono::milliseconds{*rc::gen::inRange(1, 20'000)},
                    .jitter_factor = *rc::gen::inRange(0, 101) / 100.0}
            .normalised();
    const int retry = *rc::gen::inRange(0, 64);
    Random random(*rc::gen::arbitrary<std::uint64_t>());
    const double nominal =
        std::min(static_cast<double>(policy.base_delay.count()) * std::pow(2.0, retry),
                 static_cast<double>(policy.max_delay.count()));
    const double delay =
        std::chrono::duration<double, std::milli>(policy.delay(retry, random)).count();
    RC_ASSERT(delay >= nominal * (1 - policy.jitter_factor) - 0.001);
    RC_ASSERT(delay <= nominal * (1 + policy.jitter_factor) + 0.001);
}

}  // namespace
}  // namespace holdfast::sql
