// The pool that ships, in the situations it was made for.
#include <numeric>

#include "fleet_figures.hpp"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <holdfast/sim/report.hpp>
#include <holdfast/testing/check.hpp>

namespace holdfast::sim {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::AllOf;
using testing::Each;
using testing::Ge;
using testing::HasSubstr;
using testing::Le;

constexpr auto opens = [](const Sample& s) { return s.counters.opens; };
constexpr auto discards = [](const Sample& s) { return s.counters.discards(); };
constexpr auto owned = [](const Sample& s) { return s.owned(); };

Scenario fleet(const std::string& name, std::vector<Override> changes = {}) {
    return shipped(name, Profile::standard, std::move(changes));
}

// One process; `more` are lines below it.
Scenario one(const std::string& top, const std::string& more = "") {
    return parse_scenario("one.yaml", top + "\nservices:\n  - name: a\n" + more).scenario;
}

// The finding of the older model turned round: what is lent counts as there.
TEST(FleetStory, LendingOpensNothing) {
    HOLDFAST_CHECK("poolsim new.1");
    const Scenario scenario = fleet("workload-test", {{"defaults.spread", "false"}});
    const Result result = simulate(scenario, 42);
    EXPECT_TRUE(result.passed()) << verdict_of(result);
    EXPECT_EQ(total(result, opens), 200);
    EXPECT_EQ(total(result, discards), 0);
    EXPECT_GT(result.seen.waits.size(), 50'000);
    EXPECT_LE(result.seen.waits.back(), milliseconds{1});
    EXPECT_EQ(result.seen.leaked, 0);
}

TEST(FleetStory, OpeningsUnderWayTogetherFillSooner) {
    HOLDFAST_CHECK("poolsim new.2");
    const auto filled = [](const char* in_flight) {
        const Scenario scenario =
            one("duration: 2m\ncluster: {connect: 100ms}",
                std::string("    targetReady: 500\n    inFlight: ") + in_flight + "\n");
        return simulate(scenario, 1).seen.filled.at(0);
    };
    EXPECT_EQ(filled("1"), seconds{50});
    EXPECT_THAT(filled("8"), AllOf(Ge(seconds{6}), Le(seconds{7})));
}

TEST(FleetStory, ABurstFillsTheFirstThousandAtOnce) {
    HOLDFAST_CHECK("poolsim new.3");
    const Scenario large =
        fleet("ecs-150wps",
              {{"limiter.burst", "1000"}, {"assertMaxConnectsPerSec", "1100"}, {"duration", "1m"}});
    const Result result = simulate(large, 42);
    EXPECT_TRUE(result.passed()) << verdict_of(result);
    EXPECT_EQ(result.seen.rejected(), 0);
    const Time last = std::ranges::max(result.seen.filled);
    EXPECT_THAT(last, AllOf(Ge(seconds{9}), Le(seconds{11})));

    const Scenario small = fleet("local", {{"limiter.burst", "1000"}, {"duration", "1m"}});
    EXPECT_LT(std::ranges::max(simulate(small, 42).seen.filled), seconds{1} + milliseconds{300});
}

TEST(FleetStory, AFleetThatIsTooLargeMeetsTheCeilingAndSlotsMakeItFair) {
    HOLDFAST_CHECK("poolsim new.4");
    const std::vector<Override> shorter{{"duration", "8m"}, {"sampleEvery", "10s"}};
    const Result wild = simulate(fleet("ecs-400wps", shorter), 42);
    EXPECT_EQ(wild.seen.total_max, 10'000);
    EXPECT_THAT(total(wild, owned), AllOf(Ge(9'500), Le(10'000)));
    // Until the first connection is replaced, at 219 s, nobody gets in any more and each process
    // pauses longer and longer: 5 pauses in 16 s, then one each 15 s, with 8 tries after each.
    const Result full = simulate(fleet("ecs-400wps", {{"duration", "219s"}}), 42);
    constexpr int pauses = 5 + (219 - 100 - 16) / 15 + 2;
    EXPECT_THAT(full.seen.rejected_full, AllOf(Ge(44 * 8), Le(44 * 8 * pauses)));
    // Later there is room thirty times a second, and whoever finds it begins with short pauses
    // again: some process always knocks. What bounds them then is the permits. Each knock takes
    // one, there are a hundred in a second, and those who get in are not refused.
    const auto let_in =
        std::ranges::count_if(wild.seen.opened, [](Time when) { return when >= seconds{219}; });
    EXPECT_GT(let_in, 5'000);
    EXPECT_LE(wild.seen.rejected_full, 44 * 8 * pauses + 100 * (480 - 219) - let_in);

    std::vector<Override> fair = shorter;
    fair.push_back({"slots", "share"});
    const Result shared = simulate(fleet("ecs-400wps", fair), 42);
    EXPECT_EQ(shared.seen.rejected_full, 0);
    EXPECT_THAT(per_service(shared, owned), Each(Ge(10'000 / 44 * 9 / 10)));
    EXPECT_LE(shared.seen.total_max, 10'000);
    fair.back().value = "blocks";  // Of 25: nobody is further away from the others than two blocks.
    const Result blocks = simulate(fleet("ecs-400wps", fair), 42);
    EXPECT_EQ(blocks.seen.rejected_full, 0);
    EXPECT_THAT(per_service(blocks, owned),
                Each(AllOf(Ge(10'000 / 44 - 50), Le(10'000 / 44 + 50))));
    const std::vector<int> unfair = per_service(wild, owned);
    EXPECT_GT(std::ranges::max(unfair) - std::ranges::min(unfair), 20);
}

TEST(FleetStory, SpreadFirstLivesFlattenTheWave) {
    HOLDFAST_CHECK("poolsim new.5");
    const Scenario scenario = fleet("ecs-150wps");
    std::vector<std::uint32_t> busiest;
    for (std::uint64_t seed = 1; seed <= 6; ++seed) {
        const Result result = simulate(scenario, seed);
        EXPECT_TRUE(result.passed()) << verdict_of(result);
        EXPECT_GE(lowest_total(scenario, result, seconds{25}), 1'988);
        EXPECT_NEAR(total(result, opens), 6'850, 0.01 * 6'850);
        busiest.push_back(opens_max_after(result, seconds{25}));
    }
    std::ranges::sort(busiest);  // The largest of 1,800 random seconds: the usual one counts.
    EXPECT_THAT(busiest[3], AllOf(Ge(9), Le(12)));

    const Result together = simulate(fleet("ecs-150wps", {{"defaults.spread", "false"}}), 42);
    EXPECT_GT(opens_max_after(together, seconds{25}), 18) << "without it they die together";
}

// The replacement is there before the old connection goes, so nobody is ever short: not at a
// sample, and not between two.
TEST(FleetStory, MadeBeforeBrokenTheFleetIsNeverShort) {
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

TEST(FleetStory, InTheLongRunLivesDecideTheRate) {
    HOLDFAST_CHECK("poolsim new.6");
    const Scenario scenario = parse_scenario("long.yaml",
                                             "duration: 6h\nsampleEvery: 1m\n"
                                             "defaults: {targetReady: 100, baseLifetime: 50m,\n"
                                             "           jitter: 5m, startDelay: {every: 10ms}}\n"
                                             "services: [{name: 'p-{i}', replicas: 100}]\n")
                                  .scenario;
    const Result result = simulate(scenario, 42);
    const auto later =
        std::ranges::count_if(result.seen.opened, [](Time when) { return when >= hours{1}; });
    const double rate = static_cast<double>(later) / (5 * 3'600);
    EXPECT_NEAR(rate, 3.2, 0.05 * 3.2);
}

// What the machine that ships does not do, so that it can be seen why.
TEST(FleetStory, APoolThatPollsOrReplacesWhatIsLentOpensForNothing) {
    const Result usual = simulate(fleet("workload-test", {{"duration", "1m"}}), 1);
    EXPECT_EQ(total(usual, opens), 200);
    const Result replacing =
        simulate(fleet("workload-test", {{"duration", "1m"}, {"defaults.countLent", "false"}}), 1);
    EXPECT_GT(total(replacing, opens), 2'000);
    EXPECT_GT(total(replacing, discards), 1'800);
    EXPECT_EQ(replacing.seen.leaked, 0);

    const auto gap = [](const char* poll) {
        const Result result = simulate(one("duration: 30m\ncluster: {connect: 50ms}",
                                           std::string("    pollEvery: ") + poll + "\n"),
                                       1);
        EXPECT_GE(result.last[0].owned(), 48);
        return result.seen.short_spells.back();
    };
    EXPECT_LT(gap("0s"), milliseconds{200});
    EXPECT_THAT(gap("5s"), AllOf(Ge(seconds{4}), Le(milliseconds{5'300})));
}

// --- Faults ---

// The machine learns of a dead connection when it lends it. Nobody lends here, so only a look
// helps.
TEST(FleetStory, ALostConnectionIsNoticedWhenItIsLentOrLookedAt) {
    const std::string drop = "duration: 3m\nfaults: [{kind: mass_drop, at: 1m, fraction: 0.5}]";
    const Result blind = simulate(one(drop), 1);
    EXPECT_EQ(total(blind, owned), 25);
    const Result looking = simulate(one(drop, "    probeEvery: 1s\n"), 1);
    EXPECT_EQ(total(looking, owned), 50);
    const Result working = simulate(
        one(drop, "    workload: {enabled: true, arrivals: poisson, rate: 500, maxInUse: 9}\n"), 1);
    EXPECT_EQ(total(working, owned), 50);
    EXPECT_EQ(working.seen.refused, 0) << "whoever got a dead one is served before the others";
}

struct FaultCase {
    const char* what;
    const char* fault;
    int during;  // Connections half a minute after it struck,
    int after;   // and at the end.
};

class FaultStory : public testing::TestWithParam<FaultCase> {};

TEST_P(FaultStory, StrikesAndPasses) {
    const FaultCase& param = GetParam();
    const Scenario scenario =
        parse_scenario("faults.yaml",
                       std::string("duration: 6m\nfaults: [{at: 1m, ") + param.fault +
                           "}]\ndefaults: {probeEvery: 1s}\nservices: [{name: a}, {name: b}]\n")
            .scenario;
    const Result result = simulate(scenario, 1);
    ASSERT_FALSE(result.seen.struck.empty());
    const auto during = std::ranges::find_if(
        result.samples, [](const Sample& s) { return s.at == seconds{90} && s.service == 0; });
    EXPECT_EQ(during->owned(), param.during);
    EXPECT_EQ(result.last[0].owned(), param.after);
    EXPECT_EQ(result.seen.leaked, 0);
}

INSTANTIATE_TEST_SUITE_P(
    Of,
    FaultStory,
    testing::Values(FaultCase{"crash", "kind: crash, down: 1m, services: a", 0, 50},
                    FaultCase{"partition", "kind: partition, for: 1m, services: a", 0, 50},
                    FaultCase{"other", "kind: partition, for: 1m, services: b", 50, 50},
                    FaultCase{"restart", "kind: rolling_restart, every: 2m, down: 1m", 0, 50},
                    FaultCase{"scale", "kind: scale, value: 80", 80, 80},
                    FaultCase{"shrink", "kind: scale, value: 20", 20, 20}),
    [](const auto& row) { return row.param.what; });

TEST(FleetStory, WhatCannotBeOpenedIsTriedAgainEverMoreSlowly) {
    for (const char* kind : {"outage", "credentials", "rejects, fraction: 1"}) {
        const Scenario scenario =
            one(std::string("duration: 6m\nfaults: [{at: 0s, for: 2m, kind: ") + kind + "}]");
        const Result result = simulate(scenario, 1);
        const auto failures = result.last[0].counters.open_failures;
        EXPECT_THAT(failures, AllOf(Ge(16), Le(400))) << kind;
        EXPECT_EQ(result.last[0].owned(), 50) << kind;
        EXPECT_GT(result.seen.filled[0], minutes{2}) << kind;
    }
}

TEST(FleetStory, TheServerClosesWhatIsTooOld) {
    const Scenario scenario =
        one("duration: 16m\ncluster: {maxAge: 5m}",
            "    baseLifetime: 20m\n    workload: {enabled: true, arrivals: steady, rate: 100}\n");
    const Result result = simulate(scenario, 1);
    EXPECT_GT(result.last[0].counters.dropped, 100);
    EXPECT_LE(result.seen.ages.back(), minutes{6});
}

TEST(FleetStory, LimitSlownessAndLoadChangeOnTheWay) {
    const Result slow = simulate(one("duration: 1m\nfaults: [{kind: slow, at: 0s, value: 10}]"), 1);
    const Result usual = simulate(one("duration: 1m"), 1);
    EXPECT_GT(slow.seen.filled[0], 3 * usual.seen.filled[0]);
    const Result throttled =
        simulate(one("duration: 1m\nfaults: [{kind: limit, at: 0s, value: 2}]"), 1);
    EXPECT_GT(throttled.seen.filled[0], seconds{20});
    const std::string work = "    workload: {enabled: true, arrivals: steady, rate: 10}\n";
    const Result calm = simulate(one("duration: 3m", work), 1);
    const Result busy =
        simulate(one("duration: 3m\nfaults: [{kind: load, at: 1m, value: 3}]", work), 1);
    EXPECT_GT(busy.seen.waits.size(), 2 * calm.seen.waits.size());
}

// The end of the shorter one must not end the longer one.
TEST(FleetStory, FaultsOfAKindOverlap) {
    for (const char* kind : {"outage", "credentials", "rejects, fraction: 1", "partition"}) {
        const Result result =
            simulate(one(std::string("duration: 12m\nfaults:\n  - {at: 0s, for: 5m, kind: ") +
                         kind + "}\n  - {at: 1m, for: 1m, kind: " + kind + "}"),
                     1);
        EXPECT_GT(result.seen.filled[0], minutes{5}) << kind;
        EXPECT_EQ(result.last[0].owned(), 50) << kind;
        EXPECT_EQ(result.seen.struck.size(), 4) << kind;
    }
    const auto filled = [](const std::string& before) {
        return simulate(one("duration: 3m\ncluster: {connect: 100ms}\nfaults:\n" + before +
                            "  - {at: 0s, for: 2m, kind: slow, value: 100}"),
                        1)
            .seen.filled[0];
    };
    EXPECT_EQ(filled("  - {at: 0s, for: 1ms, kind: slow, value: 2}\n"), filled(""));
}

TEST(FleetStory, AProcessThatIsHitBeforeItStartsDoesNotStartSooner) {
    const Result result = simulate(
        one("duration: 2m\nfaults: [{kind: crash, at: 10s, down: 1s}]", "    startDelay: 1m\n"), 1);
    EXPECT_GE(std::ranges::min(result.seen.opened), minutes{1});
    EXPECT_EQ(result.last[0].owned(), 50);
}

TEST(FleetStory, AFleetGrowsOverAWhile) {
    const Scenario scenario =
        one("duration: 5m\nfaults: [{kind: scale, at: 1m, value: 90, over: 40s}]");
    const Result result = simulate(scenario, 1);
    const auto target_at = [&](Time at) {
        return std::ranges::find(result.samples, at, &Sample::at)->target;
    };
    EXPECT_EQ(target_at(seconds{60}), 51);
    EXPECT_EQ(target_at(seconds{79}), 70);
    EXPECT_EQ(target_at(seconds{99}), 90);
    EXPECT_EQ(result.last[0].owned(), 90);
    EXPECT_EQ(result.seen.struck.size(), 1);
}

TEST(FleetStory, OpeningsFailOnTheWayAtTheDoorOrJustBehindIt) {
    for (const char* stage : {"reach", "login", "session"}) {
        const Result result = simulate(
            one(std::string("duration: 3m\ncluster: {failures: {") + stage + ": 0.3}}"), 1);
        EXPECT_GE(result.last[0].counters.open_failures, 5) << stage;
        EXPECT_EQ(result.last[0].owned(), 50) << stage;
        EXPECT_EQ(result.seen.leaked, 0) << stage;
        const bool let_in = result.seen.opened.size() > 50;
        EXPECT_EQ(let_in, std::string(stage) == "session") << "the cluster counts those it let in";
    }
}

// Which process is down, a moment after each turn.
TEST(FleetStory, ProcessesAreRestartedInTheirOrderOrByChanceAndComeBackApart) {
    const auto down = [](const std::string& how) {
        const Result result = simulate(
            parse_scenario("turns.yaml",
                           "duration: 3m\nfaults: [{kind: rolling_restart, at: 1m, every: 10s, "
                           "down: 5s, services: a" +
                               how +
                               "}]\ndefaults: {targetReady: 5}\n"
                               "services: [{name: b}, {name: 'a{i}', replicas: 6}]\n")
                .scenario,
            1);
        std::vector<std::uint32_t> turns;
        for (const Sample& sample : result.samples) {
            if (sample.at >= minutes{1} && (sample.at - seconds{1}) % seconds{10} == Time{0} &&
                sample.owned() == 0) {
                turns.push_back(sample.service);
            }
        }
        return turns;
    };
    const std::vector<std::uint32_t> listed = down("");
    EXPECT_THAT(listed, testing::ElementsAre(1, 2, 3, 4, 5, 6)) << "b is not meant";
    const std::vector<std::uint32_t> shuffled = down(", order: random");
    EXPECT_THAT(shuffled, testing::UnorderedElementsAreArray(listed));
    EXPECT_NE(shuffled, listed);

    const auto back = [](const std::string& stagger) {
        const Result result =
            simulate(parse_scenario("apart.yaml",
                                    "duration: 3m\nlimiter: {kind: none}\ncluster: {connect: 1ms}\n"
                                    "faults: [{kind: crash, at: 1m, down: 5s, stagger: " +
                                        stagger +
                                        "}]\ndefaults: {targetReady: 1}\n"
                                        "services: [{name: 'a{i}', replicas: 20}]\n")
                         .scenario,
                     1);
        std::vector<Time> opened = result.seen.opened;
        std::ranges::sort(opened);
        return opened.back() - opened[20];
    };
    EXPECT_EQ(back("0s"), Time{0});
    EXPECT_THAT(back("30s"), AllOf(Ge(seconds{15}), Le(seconds{30})));
}

// --- Work ---

TEST(FleetStory, AConnectionIsHeldForAsLongAsTheDistributionSays) {
    const auto waited = [](const char* hold) {
        const Result result = simulate(
            one("duration: 2m",
                std::string("    targetReady: 10\n    workload: {enabled: true, arrivals: poisson, "
                            "rate: 80, hold: ") +
                    hold + "}\n"),
            1);
        return quantile(result.seen.waits, 0.99);
    };
    EXPECT_EQ(waited("10ms"), Time{0});
    EXPECT_GT(waited("{median: 50ms, p99: 2s}"), milliseconds{50})
        << "a long tail makes others wait";
}

TEST(FleetStory, ArrivalsCanComeFromAFile) {
    const auto read = [](const std::string& path) {
        EXPECT_EQ(path, "arrivals.csv");
        return std::string("# at,count\n5s,3\n90500ms\n");
    };
    const Scenario scenario =
        parse_scenario("one.yaml",
                       "duration: 2m\nservices: [{name: a, workload: {enabled: true, "
                       "arrivals: trace, traceFile: arrivals.csv}}]",
                       {},
                       read)
            .scenario;
    ASSERT_EQ(scenario.services[0].workload.trace.size(), 2);
    EXPECT_EQ(scenario.services[0].workload.trace[1].at, milliseconds{90'500});
    EXPECT_EQ(simulate(scenario, 1).seen.waits.size(), 4);
}

TEST(FleetStory, EveryKindOfArrivalsBringsWhatItPromises) {
    const auto served = [](const std::string& work) {
        const Scenario scenario =
            one("duration: 101s", "    workload: {enabled: true, " + work + "}\n");
        return static_cast<double>(simulate(scenario, 1).seen.waits.size());
    };
    EXPECT_NEAR(served("arrivals: steady, rate: 20"), 20 * 99, 20);
    EXPECT_NEAR(served("arrivals: poisson, rate: 20"), 20 * 99, 150);
    EXPECT_NEAR(served("arrivals: bursts, rate: 20, on: 1s, off: 1s"), 10 * 99, 150);
    EXPECT_EQ(served("arrivals: trace, trace: [{at: 5s, count: 3}, {at: 90s}]"), 4);
    EXPECT_NEAR(served("maxInUse: 5, spawnEvery: 1s, arrivalBurst: 2"), 2 * 99, 4);
}

TEST(FleetStory, WhoeverWaitsInVainIsRefusedOrTriesAgain) {
    const std::string starved = "duration: 1m\nfaults: [{kind: outage, at: 0s, for: 1h}]";
    const std::string work =
        "    workload: {enabled: true, arrivals: steady, rate: 1, maxWait: 1s, retries: ";
    const Result once = simulate(one(starved, work + "0}\n"), 1);
    const Result more = simulate(one(starved, work + "5}\n"), 1);
    EXPECT_GT(once.seen.refused, 50);
    EXPECT_EQ(quantile(once.seen.waits, 0.5), seconds{1}) << "they did wait, though in vain";
    EXPECT_LT(more.seen.refused, once.seen.refused);
    EXPECT_EQ(once.last[0].counters.checkouts, 0);
}

// A fleet that serves nobody must not be praised for those it served.
TEST(FleetStory, WaitsInVainCountForWhatIsPromised) {
    HOLDFAST_CHECK("poolsim assert.maxWait");
    const std::string work = "    workload: {enabled: true, arrivals: steady, rate: 1, maxWait: ";
    for (const char* patience : {"1s", "10h"}) {  // Refused, or still waiting at the end.
        const Result result = simulate(
            one("duration: 1m\nfaults: [{kind: outage, at: 0s, for: 1h}]\n"
                "assertions: [{kind: maxWait, quantile: 0.5, within: 500ms}, {kind: zeroEmpty}]",
                work + patience + "}\n"),
            1);
        ASSERT_EQ(result.violations.size(), 2) << patience;
        EXPECT_EQ(result.violations[0].assertion, "maxWait");
        EXPECT_GT(result.last[0].counters.empty, 50);
    }
}

// --- Looking at it ---

TEST(FleetStory, ExplainsWhyItIsShortAndTracesOneProcess) {
    const Scenario scenario = one("duration: 1m\nlimiterPerSec: 10");
    Watch watch;
    watch.explain_at = seconds{2};
    watch.traced = "a";
    std::vector<std::string> lines;
    watch.trace = [&](Time, std::string_view what) { lines.emplace_back(what); };
    const Result result = simulate(scenario, 1, watch);
    ASSERT_EQ(result.explanation.size(), 2);
    EXPECT_THAT(result.explanation[0], HasSubstr("of 50 connections"));
    EXPECT_THAT(result.explanation[1], HasSubstr("wait for a permit"));
    ASSERT_FALSE(lines.empty());
    EXPECT_EQ(lines[0], "starts");
}

TEST(FleetStory, SeesHowOldConnectionsAreAndHowLongTheyLieReady) {
    const Result result = simulate(
        one("duration: 10m", "    workload: {enabled: true, arrivals: steady, rate: 20}\n"), 1);
    EXPECT_THAT(result.seen.age_rows.size(), AllOf(Ge(55), Le(61)));
    for (const AgeRow& row : result.seen.age_rows) {
        const auto all = std::accumulate(row.counts.begin(), row.counts.end(), 0U);
        EXPECT_LE(all, 50U);
        EXPECT_TRUE(row.at < seconds{30} || all >= 48U) << all;
    }
    EXPECT_EQ(result.seen.idles.size(), result.seen.waits.size());
    EXPECT_GT(result.seen.idles.back(), milliseconds{1});
}

TEST(FleetStory, TheWideTableHasARowForEachSample) {
    const Scenario scenario = fleet("local", {{"duration", "5s"}});
    const std::string csv = wide_csv_of(scenario, simulate(scenario, 1));
    EXPECT_EQ(std::ranges::count(csv, '\n'), 6);
    EXPECT_EQ(std::ranges::count(csv.substr(0, csv.find('\n')), ','), 4 * 15);
    EXPECT_THAT(csv, HasSubstr("t_rfc3339,history.size,"));
    EXPECT_EQ(std::ranges::count(csv, ','), 6 * 4 * 15) << "every row is as long";
}

TEST(FleetStory, TheSameSeedGivesTheSameBytes) {
    HOLDFAST_CHECK("poolsim new.seed");
    const Scenario scenario = fleet("workload-test", {{"duration", "30s"}});
    const std::string first = csv_of(scenario, simulate(scenario, 7));
    EXPECT_EQ(first, csv_of(scenario, simulate(scenario, 7)));
}

}  // namespace
}  // namespace holdfast::sim
