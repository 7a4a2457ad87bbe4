#include <holdfast/sim/batch.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <holdfast/base/error.hpp>
#include <holdfast/testing/check.hpp>

namespace holdfast::sim {
namespace {

using testing::ElementsAre;

TEST(Seeds, AreOneOrARange) {
    EXPECT_THAT(parse_seeds("7"), ElementsAre(7));
    EXPECT_THAT(parse_seeds("3..5"), ElementsAre(3, 4, 5));
    EXPECT_EQ(parse_seeds("18446744073709551614..18446744073709551615").size(), 2);
    for (const char* bad : {"", "x", "5..3", "1..", "..3", "-1", "1..2000000", "1.5"}) {
        EXPECT_THROW((void)parse_seeds(bad), InvalidArgument) << bad;
    }
}

TEST(Sweep, TakesListsAndRangesOfNumbersAndDurations) {
    HOLDFAST_CHECK("poolsim sweep.axes");
    EXPECT_THAT(parse_axis("a.b=1,x,30s").values, ElementsAre("1", "x", "30s"));
    EXPECT_THAT(parse_axis("a=10..50/20").values, ElementsAre("10", "30", "50"));
    EXPECT_THAT(parse_axis("a=1..3").values, ElementsAre("1", "2", "3"));
    EXPECT_THAT(parse_axis("services[*].jitter=0s..1m/30s").values, ElementsAre("0s", "30s", "1m"));
    EXPECT_EQ(parse_axis("services[*].jitter=0s..1m/30s").key, "services[*].jitter");
    for (const char* bad : {"", "a", "=1", "a=", "a=5..1/1", "a=1..5/0", "a=1..x/1", "a=0s..1m"}) {
        EXPECT_THROW((void)parse_axis(bad), InvalidArgument) << bad;
    }
}

TEST(Sweep, IsEveryCombination) {
    HOLDFAST_CHECK("poolsim sweep.product");
    const std::vector<Axis> axes{{"a", {"1", "2"}}, {"b", {"x", "y", "z"}}};
    const auto all = combinations(axes);
    ASSERT_EQ(all.size(), 6);
    EXPECT_EQ(all[4].at(0).value, "2");
    EXPECT_EQ(all[4].at(1).value, "y");
    EXPECT_EQ(combinations({}).size(), 1);
}

TEST(Bisection, HasBoundsOfNumbersOrDurations) {
    HOLDFAST_CHECK("poolsim sweep.bisect");
    const Bounds plain = parse_bounds("services[*].targetReady=10..5000000");
    EXPECT_EQ(plain.key, "services[*].targetReady");
    EXPECT_EQ(plain.low, 10);
    EXPECT_EQ(plain.text(plain.high), "5000000");
    const Bounds seconds = parse_bounds("defaults.jitter=0s..10m");
    EXPECT_EQ(seconds.high, 600);
    EXPECT_EQ(seconds.text(90), "1m30s");
    EXPECT_EQ(parse_bounds("a=50ms..1s").text(51), "51ms");
    for (const char* bad : {"", "a=", "=1..2", "a=1", "a=5..1", "a=-1..3", "a=1s..x", "a=1..2s"}) {
        EXPECT_THROW((void)parse_bounds(bad), InvalidArgument) << bad;
    }
}

TEST(Bisection, FindsTheLargestThatPasses) {
    HOLDFAST_CHECK("poolsim sweep.bisect");
    for (std::int64_t edge = 0; edge <= 20; ++edge) {
        int asked = 0;
        const auto passes = [&](std::int64_t value) {
            ++asked;
            return value <= edge;
        };
        EXPECT_EQ(largest_passing(1, 20, passes), edge);
        EXPECT_LE(asked, 5);
    }
}

TEST(Bisection, WithoutBoundsComesFromBelow) {
    HOLDFAST_CHECK("poolsim sweep.bisect");
    const Bounds open = parse_bounds("targetReady");
    EXPECT_TRUE(open.open);
    EXPECT_FALSE(parse_bounds("targetReady=1..9").open);
    for (const auto& [least, most] : {std::pair{1, 700}, {1, 1}, {20, 700}, {20, 100'000}}) {
        std::int64_t largest_asked = 0;
        const auto passes = [&](std::int64_t value) {
            largest_asked = std::max(largest_asked, value);
            return value >= least && value <= most;
        };
        const Bounds near = narrowed(open, passes);
        EXPECT_EQ(largest_passing(near.low, near.high, passes), most);
        EXPECT_LE(largest_asked, 2 * most);
    }
    const Bounds nowhere = narrowed(open, [](std::int64_t) { return false; });
    EXPECT_LT(nowhere.high, nowhere.low);
}

TEST(Spread, HasMeanDeviationPercentilesAndTheWorstSeed) {
    HOLDFAST_CHECK("poolsim seeds.spread");
    std::vector<Outcome> outcomes;
    for (std::uint64_t i = 0; i <= 100; ++i) {
        const auto value = static_cast<double>(i);
        outcomes.push_back(
            {.seed = 1000 + i, .figures = {{"more", value, true}, {"less", value, false}}});
    }
    const auto spreads = spread_of(outcomes);
    ASSERT_EQ(spreads.size(), 2);
    EXPECT_DOUBLE_EQ(spreads[0].mean, 50);
    EXPECT_NEAR(spreads[0].deviation, 29.3, 0.01);
    EXPECT_DOUBLE_EQ(spreads[0].p5, 5);
    EXPECT_DOUBLE_EQ(spreads[0].p50, 50);
    EXPECT_DOUBLE_EQ(spreads[0].p99, 99);
    EXPECT_EQ(spreads[0].worst_seed, 1100);
    EXPECT_EQ(spreads[1].worst_seed, 1000);
    EXPECT_TRUE(spread_of({}).empty());
}

}  // namespace
}  // namespace holdfast::sim
