// The recorded figures of the model with a reservoir, to the last digit.
#include "fleet/test/fleet_fixture.hpp"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <holdfast/sim/report.hpp>
#include <holdfast/testing/check.hpp>

namespace holdfast::sim {
namespace {

using std::chrono::seconds;
using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::Ge;
using testing::Le;

constexpr auto refills = [](const Sample& s) { return s.counters.opens; };
constexpr auto guard_discards = [](const Sample& s) { return s.counters.discard_guard; };
constexpr auto full_discards = [](const Sample& s) { return s.counters.discard_full; };
constexpr auto expired_discards = [](const Sample& s) { return s.counters.discard_expired; };
constexpr auto denies = [](const Sample& s) { return s.counters.denies; };
constexpr auto checkouts = [](const Sample& s) { return s.counters.checkouts; };
constexpr auto empties = [](const Sample& s) { return s.counters.empty; };
constexpr auto ready = [](const Sample& s) { return s.ready; };
constexpr auto lent = [](const Sample& s) { return s.lent; };

std::ptrdiff_t rows(const std::string& csv) {
    return std::ranges::count(csv, '\n') - 1;
}

// Whatever the seed: that is what makes these figures fit for comparison.
class AnySeed : public testing::TestWithParam<std::uint64_t> {
protected:
    static constexpr auto profile = Profile::compat_r;
};

TEST_P(AnySeed, LocalFillsInTwoSecondsAndReplacesOneGeneration) {
    HOLDFAST_CHECK("poolsim compat.local");
    const Scenario scenario = shipped("local", profile);
    const Result result = simulate(scenario, GetParam());
    EXPECT_TRUE(result.passed());
    EXPECT_THAT(converged(scenario, result),
                ElementsAre(seconds{1}, seconds{1}, seconds{2}, seconds{2}));
    EXPECT_THAT(per_service(result, refills), Each(100));
    EXPECT_THAT(per_service(result, guard_discards), Each(50));
    EXPECT_EQ(total(result, [](const Sample& s) { return s.counters.discards(); }), 200);
    EXPECT_THAT(per_service(result, ready), Each(50));
    EXPECT_EQ(total(result, denies), 2);
    EXPECT_EQ(total(result, empties), 0);
    EXPECT_EQ(result.opens_max(), 100);
    EXPECT_THAT(opens_max_after(result, seconds{2}), AllOf(Ge(5), Le(8)));
    EXPECT_THAT(lowest_total(scenario, result, seconds{2}), AllOf(Ge(194), Le(197)));
    EXPECT_EQ(result.events, 11'202);
    EXPECT_EQ(rows(csv_of(scenario, result)), 4'800);
}

TEST_P(AnySeed, MassDropIsMadeGoodWithinOneSample) {
    HOLDFAST_CHECK("poolsim compat.mass-drop");
    const Scenario scenario = shipped("mass-drop", profile);
    const Result result = simulate(scenario, GetParam());
    EXPECT_TRUE(result.passed());
    EXPECT_THAT(per_service(result, refills), Each(100));
    EXPECT_THAT(per_service(result, guard_discards), Each(25));
    EXPECT_EQ(total(result, expired_discards) + total(result, full_discards), 0);
    EXPECT_THAT(per_service(result, ready), Each(50));
    EXPECT_EQ(total(result, [](const Sample& s) { return s.counters.dropped; }), 100);
    EXPECT_EQ(total(result, denies), 2);
    EXPECT_EQ(result.opens.at(300), 100);
    EXPECT_EQ(lowest_total(scenario, result, seconds{2}), 100);
    EXPECT_EQ(result.events, 8'503);
    EXPECT_EQ(rows(csv_of(scenario, result)), 3'600);
}

TEST_P(AnySeed, WorkThatMeetsTheRefillersPhaseOpensConnectionsForNothing) {
    HOLDFAST_CHECK("poolsim compat.workload-test");
    const Scenario scenario = shipped("workload-test", profile);
    const Result result = simulate(scenario, GetParam());
    EXPECT_TRUE(result.passed());
    EXPECT_THAT(per_service(result, refills), ElementsAre(60, 60, 3020, 1535));
    EXPECT_THAT(per_service(result, full_discards), ElementsAre(10, 10, 2970, 1485));
    EXPECT_EQ(total(result, guard_discards) + total(result, expired_discards), 0);
    EXPECT_THAT(per_service(result, checkouts), ElementsAre(29'810, 29'800, 29'790, 14'890));
    EXPECT_THAT(per_service(result, ready), ElementsAre(40, 40, 40, 45));
    EXPECT_THAT(per_service(result, lent), ElementsAre(10, 10, 10, 5));
    EXPECT_EQ(total(result, empties), 0);
    EXPECT_EQ(total(result, denies), 2);
    EXPECT_EQ(result.opens.at(2), 20);
    EXPECT_EQ(opens_max_after(result, seconds{3}), 15);
    EXPECT_EQ(lowest_total(scenario, result, seconds{2}), 200);
    EXPECT_EQ(result.events, 123'550);
    EXPECT_EQ(rows(csv_of(scenario, result)), 1'200);
}

TEST_P(AnySeed, TwentyProcessesShareTheLimit) {
    HOLDFAST_CHECK("poolsim compat.ecs-150wps");
    const Scenario scenario = shipped("ecs-150wps", profile);
    const Result result = simulate(scenario, GetParam());
    EXPECT_TRUE(result.passed());
    const std::vector<Time> reached = converged(scenario, result);
    EXPECT_EQ(reached.front(), seconds{1});
    EXPECT_EQ(std::ranges::max(reached), seconds{20});
    EXPECT_THAT(per_service(result, refills), Each(300));
    EXPECT_THAT(per_service(result, guard_discards), Each(200));
    EXPECT_EQ(total(result, expired_discards) + total(result, full_discards), 0);
    EXPECT_THAT(per_service(result, ready), Each(100));
    EXPECT_EQ(total(result, denies), 361);
    EXPECT_EQ(result.opens_max(), 100);
    EXPECT_EQ(result.events, 79'802);
    EXPECT_EQ(rows(csv_of(scenario, result)), 36'000);
}

TEST_P(AnySeed, FortyFourProcessesKeepTheLimiterBusyForMinutes) {
    HOLDFAST_CHECK("poolsim compat.ecs-400wps");
    const Scenario scenario = shipped("ecs-400wps", profile);
    const Result result = simulate(scenario, GetParam());
    EXPECT_TRUE(result.passed());
    const std::vector<Time> reached = converged(scenario, result);
    EXPECT_EQ(reached.front(), seconds{179});
    EXPECT_EQ(std::ranges::max(reached), seconds{220});
    EXPECT_THAT(per_service(result, refills), Each(1'500));
    EXPECT_THAT(per_service(result, guard_discards), Each(1'000));
    EXPECT_THAT(per_service(result, ready), Each(500));
    EXPECT_EQ(opens_max_after(result, seconds{220}), 100);
    EXPECT_EQ(result.events, 226'147);
    EXPECT_EQ(rows(csv_of(scenario, result)), 79'200);
}

INSTANTIATE_TEST_SUITE_P(Of, AnySeed, testing::Values(1, 42, 7'777'777));

// --- Figures that depend on the seed; published_ranges_test.cpp has more of them ---

double middle(std::vector<double> values) {
    std::ranges::sort(values);
    return values[values.size() / 2];
}

// Lives are spread evenly over the jitter J. So in each second of the first wave each connection is
// replaced with chance 1/J, the openings of a second are binomial, and the busiest second is the
// largest of as many as the wave lasts, J - F. For ecs-150wps that puts one seed in ten above the
// recorded 30. As many seeds as the law says, and no more, may do so; and none leaves what one in
// a million does.
struct Wave {
    const char* scenario;
    int connections;
    int filled;      // Seconds until all are there,
    int duration;    // and in all.
    double outside;  // The share of seeds beyond the recorded range, by the law.
    int busiest;     // Recorded as the most openings in a second,
    int seldom;      // and what none exceeds.
};

class EverySeed : public testing::TestWithParam<Wave> {};

TEST_P(EverySeed, KeepsToTheLawOfTheModel) {
    const Wave& wave = GetParam();
    constexpr int jitter = 120;
    constexpr int seeds = 120;
    const double one = chance_above(wave.busiest, wave.connections, 1.0 / jitter);
    EXPECT_NEAR(1 - std::pow(1 - one, jitter - wave.filled), wave.outside, 0.003);
    EXPECT_EQ(never_above(wave.duration, wave.connections, 1.0 / jitter), wave.seldom);

    const Scenario scenario = shipped(wave.scenario, Profile::compat_r);
    int above = 0;
    for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
        const Result result = simulate(scenario, seed);
        const Time full = seconds{wave.filled};
        const auto busiest = static_cast<int>(opens_max_after(result, full));
        EXPECT_THAT(busiest, AllOf(Ge(wave.connections / jitter), Le(wave.seldom))) << seed;
        // Those evicted in a second are missing until its end.
        const int missing = wave.connections - lowest_total(scenario, result, full);
        EXPECT_THAT(missing, AllOf(Ge(wave.connections / jitter), Le(wave.seldom))) << seed;
        above += busiest > wave.busiest ? 1 : 0;
    }
    const double expected = seeds * wave.outside;
    EXPECT_NEAR(above, expected, 1 + 3 * std::sqrt(expected));
}

INSTANTIATE_TEST_SUITE_P(Of,
                         EverySeed,
                         testing::Values(Wave{"local", 200, 2, 1'200, 0.006, 8, 14},
                                         Wave{"ecs-150wps", 2'000, 20, 1'800, 0.097, 30, 47}));

// --- How the figures move ---

struct Sensitivity {
    const char* what;
    const char* scenario;
    std::vector<Override> changes;
    int converged;
    double opens_after;
    double lowest;
    double refills;
    bool passes;
    bool chance_decides_refills = false;
};

class Moves : public testing::TestWithParam<Sensitivity> {};

// Each row records one seed of another generator. Where chance decides, that seed must be like one
// of ours.
TEST_P(Moves, WithinTwoPerCentOfTheTable) {
    HOLDFAST_CHECK("poolsim compat.sensitivity");
    constexpr std::uint64_t seeds = 24;
    const Sensitivity& row = GetParam();
    const Scenario scenario = shipped(row.scenario, Profile::compat_r, row.changes);
    std::vector<double> opens_after;
    std::vector<double> lowest;
    std::vector<double> refilled;
    for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
        const Result result = simulate(scenario, seed);
        const Time last = last_converged(scenario, result);
        EXPECT_EQ(last, seconds{row.converged});
        EXPECT_EQ(result.passed(), row.passes);
        opens_after.push_back(opens_max_after(result, last + seconds{1}));
        lowest.push_back(lowest_total(scenario, result, last));
        refilled.push_back(total(result, refills));
    }
    const auto like_one_of = [](double published, const std::vector<double>& ours) {
        EXPECT_GE(published, 0.98 * *std::ranges::min_element(ours));
        EXPECT_LE(published, 1.02 * *std::ranges::max_element(ours));
    };
    like_one_of(row.opens_after, opens_after);
    like_one_of(row.lowest, lowest);
    EXPECT_NEAR(middle(lowest), row.lowest, 0.02 * row.lowest);
    EXPECT_NEAR(middle(refilled), row.refills, 0.02 * row.refills);
    if (!row.chance_decides_refills) {
        EXPECT_THAT(refilled, Each(row.refills));
    }
}

// Without jitter nothing is left to chance.
TEST(CompatReservoir, LivesOfOneLengthEndInOneSecond) {
    HOLDFAST_CHECK("poolsim compat.sensitivity");
    const Scenario scenario =
        shipped("ecs-150wps", Profile::compat_r, {{"defaults.jitter", "-1s"}});
    const Result result = simulate(scenario, 3);
    EXPECT_EQ(opens_max_after(result, seconds{21}), 100);
    EXPECT_EQ(lowest_total(scenario, result, seconds{20}), 1'900);
}

INSTANTIATE_TEST_SUITE_P(
    With,
    Moves,
    testing::Values(
        Sensitivity{
            "no_jitter", "ecs-150wps", {{"defaults.jitter", "-1s"}}, 20, 100, 1'900, 6'000, true},
        Sensitivity{
            "jitter_30s", "ecs-150wps", {{"defaults.jitter", "30s"}}, 20, 82, 1'921, 6'000, true},
        Sensitivity{"jitter_5m",
                    "ecs-150wps",
                    {{"defaults.jitter", "5m"}},
                    20,
                    14,
                    1'986,
                    5'980,
                    true,
                    true},
        Sensitivity{
            "long_lives",
            "ecs-150wps",
            {{"defaults.jitter", "5m"}, {"defaults.baseLifetime", "50m"}, {"duration", "60m"}},
            20,
            14,
            1'986,
            4'000,
            true},
        Sensitivity{"limit_20",
                    "ecs-150wps",
                    {{"limiterPerSec", "20"}, {"assertMaxConnectsPerSec", "20"}},
                    100,
                    20,
                    1'970,
                    6'000,
                    false},
        Sensitivity{
            "limit_50", "ecs-150wps", {{"limiterPerSec", "50"}}, 40, 25, 1'976, 6'000, true},
        Sensitivity{"limit_200",
                    "ecs-150wps",
                    {{"limiterPerSec", "200"}, {"assertMaxConnectsPerSec", "200"}},
                    10,
                    30,
                    1'971,
                    6'000,
                    true},
        Sensitivity{
            "idle_check", "ecs-150wps", {{"idleCheck", "100ms"}}, 20, 28, 1'996, 6'000, true},
        Sensitivity{"rolling",
                    "local",
                    {{"scenario.kind", "rolling_restart"}, {"scenario.rollEvery", "60s"}},
                    2,
                    50,
                    150,
                    950,
                    true,
                    true}),
    [](const auto& row) { return row.param.what; });

TEST(CompatReservoir, LosingEverythingUnderLoadLeavesWorkEmptyHanded) {
    HOLDFAST_CHECK("poolsim compat.sensitivity");
    const Scenario scenario = shipped("workload-test",
                                      Profile::compat_r,
                                      {{"scenario.kind", "mass_drop"},
                                       {"scenario.dropAt", "2m"},
                                       {"scenario.dropFraction", "1"}});
    const Result result = simulate(scenario, 42);
    EXPECT_EQ(total(result, refills), 6'640);
    EXPECT_EQ(total(result, empties), 134);
    ASSERT_EQ(result.violations.size(), 1);
    EXPECT_EQ(result.violations[0].assertion, "assertZeroEmptyEvents");
}

TEST(CompatReservoir, AnIdleCheckOfProductionOpensThirtyThousandForNothing) {
    const Scenario scenario = shipped("workload-test", Profile::compat_r, {{"idleCheck", "100ms"}});
    const Result result = simulate(scenario, 42);
    EXPECT_NEAR(total(result, refills), 30'000, 600);
    EXPECT_NEAR(total(result, full_discards), 29'800, 600);
    EXPECT_TRUE(result.passed());
}

TEST(CompatReservoir, TheSameSeedGivesTheSameBytesAndAnotherGivesOtherLives) {
    HOLDFAST_CHECK("poolsim engine.seed");
    const Scenario scenario = shipped("local", Profile::compat_r);
    const std::string first = csv_of(scenario, simulate(scenario, 7));
    EXPECT_EQ(first, csv_of(scenario, simulate(scenario, 7)));
    EXPECT_NE(first, csv_of(scenario, simulate(scenario, 8)));
}

}  // namespace
}  // namespace holdfast::sim
