#include <holdfast/sim/sweep.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <holdfast/base/error.hpp>
#include <holdfast/sim/figures.hpp>
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
}

// Binary fractions would come to 0.30000000000000004.
TEST(Sweep, StepsAreExact) {
    HOLDFAST_CHECK("poolsim sweep.axes");
    EXPECT_THAT(parse_axis("a=0.1..0.9/0.2").values,
                ElementsAre("0.1", "0.3", "0.5", "0.7", "0.9"));
    EXPECT_THAT(parse_axis("a=0..1/0.25").values, ElementsAre("0", "0.25", "0.5", "0.75", "1"));
    EXPECT_THAT(parse_axis("a=0.05..0.2/0.1").values, ElementsAre("0.05", "0.15"));
    EXPECT_THAT(parse_axis("a=-1..0.5/0.50").values, ElementsAre("-1", "-0.5", "0", "0.5"));
    EXPECT_THAT(parse_axis("a=9..11/1.0").values, ElementsAre("9", "10", "11"));
    const std::vector<std::string> fine = parse_axis("a=0..0.9999/0.0001").values;
    ASSERT_EQ(fine.size(), 10'000);
    EXPECT_EQ(fine[3], "0.0003");
    EXPECT_EQ(fine[7'000], "0.7");
    EXPECT_THAT(parse_axis("a=0.5s..2s/500ms").values, ElementsAre("500ms", "1s", "1s500ms", "2s"));
    EXPECT_THAT(parse_axis("a=0..1h/20m").values, ElementsAre("0s", "20m", "40m", "1h"));
    EXPECT_THAT(parse_axis("a=-30s..30s/30s").values, ElementsAre("-30s", "0s", "30s"));
    EXPECT_THAT(parse_axis("a=1m30s..2m/0.25m").values, ElementsAre("1m30s", "1m45s", "2m"));
    EXPECT_EQ(parse_axis("a=-106751d..106751d/106751d").values.size(), 3);
}

TEST(Sweep, WhatIsNoRangeIsToldWhatIsWrong) {
    struct Case {
        const char* text;
        const char* told;
    };
    for (const Case& one : {
             Case{"", "write KEY=1,5,9 or KEY=1..9/2"},
             Case{"a", "write KEY=1,5,9 or KEY=1..9/2"},
             Case{"=1", "write KEY=1,5,9 or KEY=1..9/2"},
             Case{"a=", "write KEY=1,5,9 or KEY=1..9/2"},
             Case{"a=5..1/1", "--sweep a: '5..1/1': the first value is the largest"},
             Case{"a=1..5/0", "the step must be more than 0"},
             Case{"a=1..5/-1", "the step must be more than 0"},
             Case{"a=1..x/1", "'x' is neither a number nor a duration"},
             Case{"a=..3", "'' is neither a number nor a duration"},
             Case{"a=1..", "'' is neither a number nor a duration"},
             Case{"a=1..5/", "'' is neither a number nor a duration"},
             Case{"a=1e3..1e4/1e3", "'1e3' is neither a number nor a duration"},
             Case{"a=.5..1/.25", "'.5' is neither a number nor a duration"},
             Case{"a=1.-5..2/1", "'1.-5' is neither a number nor a duration"},
             Case{"a=0s..1m", "say in which steps"},
             Case{"a=0.1..0.9", "say in which steps"},
             Case{"a=1..10m/30s", "1 has no unit; write numbers only, or durations only"},
             Case{"a=0s..10m/30", "30 has no unit"},
             Case{"a=1..20000", "more than 10000 values; take larger steps"},
             Case{"a=0s..1h/1ns", "more than 10000 values"},
         }) {
        try {
            (void)parse_axis(one.text);
            ADD_FAILURE() << one.text;
        } catch (const InvalidArgument& bad) {
            EXPECT_THAT(bad.what(), testing::HasSubstr(one.told));
        }
    }
}

TEST(Sweep, IsEveryCombination) {
    HOLDFAST_CHECK("poolsim sweep.product");
    const std::vector<Axis> axes{{"a", {"1", "2"}}, {"b", {"x", "y", "z"}}};
    const auto all = combinations(axes);
    ASSERT_EQ(all.size(), 6);
    EXPECT_EQ(all[4].at(0).value, "2");
    EXPECT_EQ(all[4].at(1).value, "y");
    EXPECT_EQ(all[4].at(1).option, "--sweep") << "for whoever is told that it is wrong";
    EXPECT_EQ(combinations({}).size(), 1);
    const std::vector<Axis> twice{{"a", {"1"}}, {"a", {"2"}}};
    EXPECT_THROW((void)combinations(twice), InvalidArgument);
    const std::vector<Axis> large(3, {"a", std::vector<std::string>(100, "1")});
    EXPECT_THROW((void)combinations(large), InvalidArgument);
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
    EXPECT_EQ(parse_bounds("a=0.5s..2s").text(1'501), "1s501ms");
    EXPECT_EQ(parse_bounds("a=0..50us").text(7), "7us");
    const Bounds share = parse_bounds("a=0.1..0.95");
    EXPECT_EQ(share.low, 10);
    EXPECT_EQ(share.text(share.high), "0.95");
    EXPECT_EQ(share.text(30), "0.3");
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
