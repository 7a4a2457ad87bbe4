// How long connections live in the current pool, and what it costs to replace them.
#include "fleet/test/fleet_fixture.hpp"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <holdfast/sim/report.hpp>
#include <holdfast/testing/check.hpp>

namespace holdfast::sim {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AllOf;
using testing::Ge;
using testing::Le;

// The finding of the older model turned round: what is lent counts as there. Nothing is opened but
// what ages, and within the five minutes of this scenario that is nothing, if lives are those of
// the file (11 to 13 minutes) or the product's (50 to 55, of which the first are 20 to 55).
TEST(LivesStory, LendingOpensNothing) {
    HOLDFAST_CHECK("poolsim new.1");
    const std::vector<Override> as_written{{"defaults.spread", "false"}};
    const std::vector<Override> as_shipped{{"defaults.baseLifetime", "50m"},
                                           {"defaults.jitter", "5m"}};
    for (const std::vector<Override>& lives : {as_written, as_shipped}) {
        const Result result = simulate(fleet("workload-test", lives), 42);
        EXPECT_TRUE(result.passed()) << verdict_of(result);
        EXPECT_EQ(total(result, opens), 200);
        EXPECT_EQ(total(result, discards), 0);
        EXPECT_GT(result.seen.waits.size(), 50'000);
        EXPECT_LE(result.seen.waits.back(), milliseconds{1});
        EXPECT_EQ(result.seen.leaked, 0);
    }
}

// First lives that are spread begin with 0.4 x 11 min = 264 s, and end a guard of 45 s sooner. So
// the file as it stands sees the first of them go, and be replaced, from 219 s on: 81 of the 516
// seconds over which they are spread. Lending has no part in it.
TEST(LivesStory, OfSpreadLivesTheShortestEndWithinTheScenario) {
    HOLDFAST_CHECK("poolsim new.1");
    const Result result = simulate(fleet("workload-test"), 42);
    EXPECT_TRUE(result.passed()) << verdict_of(result);
    const auto aged = [](const Sample& s) {
        return s.counters.discard_expired + s.counters.discard_guard;
    };
    EXPECT_NEAR(total(result, aged), 200.0 * 81 / 516, 4) << "one for each of four processes";
    EXPECT_NEAR(total(result, opens), 200 + total(result, aged), 2) << "one may be under way";
    EXPECT_EQ(total(result, discards), total(result, aged)) << "none was one too many";
    const auto later = std::ranges::find_if(
        result.seen.opened, [](const Incident& lone) { return lone.at > seconds{10}; });
    ASSERT_NE(later, result.seen.opened.end());
    EXPECT_GE(later->at, seconds{219});
    EXPECT_LE(result.seen.waits.back(), milliseconds{1});
}

TEST(LivesStory, SpreadFirstLivesFlattenTheWave) {
    HOLDFAST_CHECK("poolsim new.5");
    const Scenario scenario = fleet("ecs-150wps");
    // First lives are spread over 516 s, so that in any second at most one in 516 connections is
    // replaced on average. The largest of 1,800 such seconds has no bound that every seed keeps but
    // this one, which one seed in a million breaks.
    constexpr double replaced = 1.0 / (780 - 264);
    const int most = never_above(1'800, 2'000, replaced);
    EXPECT_EQ(most, 21);
    for (std::uint64_t seed = 1; seed <= 12; ++seed) {  // published_ranges_test.cpp has more.
        const Result result = simulate(scenario, seed);
        EXPECT_TRUE(result.passed()) << verdict_of(result);
        EXPECT_GE(lowest_total(scenario, result, seconds{25}), 1'988);
        EXPECT_NEAR(total(result, opens), 6'850, 0.01 * 6'850);
        EXPECT_THAT(opens_max_after(result, seconds{25}), AllOf(Ge(8), Le(most)));
    }

    const Result together = simulate(fleet("ecs-150wps", {{"defaults.spread", "false"}}), 42);
    EXPECT_GT(opens_max_after(together, seconds{25}), 18) << "without it they die together";
}

// The replacement is open before the old connection closes, so no pool is ever short: not at a
// sample, and not between two.
TEST(LivesStory, MadeBeforeBrokenTheFleetIsNeverShort) {
    HOLDFAST_CHECK("poolsim new.5");
    const Scenario scenario = fleet("ecs-150wps", {{"defaults.lead", "30s"}});
    for (std::uint64_t seed = 1; seed <= 6; ++seed) {
        const Result result = simulate(scenario, seed);
        EXPECT_TRUE(result.passed()) << verdict_of(result);
        EXPECT_GE(lowest_total(scenario, result, seconds{25}), 2'000);
        EXPECT_EQ(result.seen.short_spells.size(), 0) << seed;
        EXPECT_LE(result.seen.total_max, 2'000 + 20 * 2) << "two more in each process";
        EXPECT_GT(total(result, opens), 6'500) << "and all of them were replaced";
    }
    const Result broken = simulate(fleet("ecs-150wps"), 1);
    EXPECT_GT(broken.seen.short_spells.size(), 1'000) << "without it each replacement is a gap";
}

TEST(LivesStory, InTheLongRunLivesDecideTheRate) {
    HOLDFAST_CHECK("poolsim new.6");
    const Scenario scenario = parse_scenario("long.yaml",
                                             "duration: 6h\nsampleEvery: 1m\n"
                                             "defaults: {targetReady: 100, baseLifetime: 50m,\n"
                                             "           jitter: 5m, startDelay: {every: 10ms}}\n"
                                             "services: [{name: 'p-{i}', replicas: 100}]\n")
                                  .scenario;
    const Result result = simulate(scenario, 42);
    const auto later = std::ranges::count_if(
        result.seen.opened, [](const Incident& lone) { return lone.at >= hours{1}; });
    const double rate = static_cast<double>(later) / (5 * 3'600);
    EXPECT_NEAR(rate, 3.2, 0.05 * 3.2);
}

}  // namespace
}  // namespace holdfast::sim
