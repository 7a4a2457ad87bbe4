// Limits that a fleet shares through a table: the machines that ship, against a model of DynamoDB.
#include "fleet/test/fleet_fixture.hpp"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <holdfast/sim/figures.hpp>
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
using testing::Le;

// Forty-four processes that want more than they get for as long as it lasts.
Result contend(std::vector<Override> changes, const char* in_flight = "1") {
    changes.push_back({"duration", "30s"});
    changes.push_back({"dynamodb.latency", "5ms"});
    changes.push_back({"defaults.inFlight", in_flight});
    changes.push_back({"cluster.connect", "10ms"});
    const Scenario scenario = shipped("ecs-400wps", Profile::standard, std::move(changes));
    return simulate(scenario, 42);
}

double figure(const std::string& name, const Result& result) {
    const Scenario scenario = shipped("ecs-400wps", Profile::standard);
    const std::vector<Figure> all = figures_of(scenario, result);
    const auto found = std::ranges::find(all, name, &Figure::name);
    return found == all.end() ? -1 : found->value;
}

// The most permits that became usable within a second that begins at `from` or later.
std::size_t most_in_a_second(const Result& result, Time from) {
    std::vector<Time> usable;
    for (const Permit& permit : result.seen.permits) {
        if (permit.usable >= from) {
            usable.push_back(permit.usable);
        }
    }
    std::ranges::sort(usable);
    std::size_t most = 0;
    std::size_t first = 0;
    for (std::size_t i = 0; i < usable.size(); ++i) {
        while (usable[i] - usable[first] >= seconds{1}) {
            ++first;
        }
        most = std::max(most, i - first + 1);
    }
    return most;
}

std::size_t permits_before(const Result& result, Time end) {
    return static_cast<std::size_t>(std::ranges::count_if(
        result.seen.permits, [&](const Permit& permit) { return permit.usable < end; }));
}

TEST(SharedLimiterStory, TheCounterIsAskedInVainAgainAndAgain) {
    HOLDFAST_CHECK("poolsim new.7");
    const Result result = contend({{"limiter.kind", "counter"}});
    EXPECT_GT(figure("table_refused_per_second_max", result), 500);
    EXPECT_GT(figure("table_calls_per_permit", result), 5);
    EXPECT_GT(figure("starvation_index", result), 1.02);
    EXPECT_LE(result.seen.permits.size(), 100U * 30);
}

// Eight openings at a time ask the counter more often than one item of the table bears.
TEST(SharedLimiterStory, ATableThatIsAskedTooMuchStillKeepsTheLimit) {
    const Result result = contend({{"limiter.kind", "counter"}}, "8");
    EXPECT_GT(figure("table_throttled", result), 1000);
    EXPECT_GE(permits_before(result, seconds{30}), 2'000U);
    EXPECT_LE(permits_before(result, seconds{30}), 100U * 30);
    EXPECT_EQ(result.seen.degraded, Time{0});
}

TEST(SharedLimiterStory, TheReservationClockCostsOneWriteAndKeepsTheOrder) {
    HOLDFAST_CHECK("poolsim new.7");
    const Result result = contend({{"limiter.kind", "reserve"}, {"limiter.burst", "200"}});
    EXPECT_LE(figure("table_calls_per_permit", result), 1.1);
    EXPECT_THAT(permits_before(result, seconds{30}), AllOf(Ge(3'000), Le(200U + 100 * 30)));
    std::vector<Permit> permits = result.seen.permits;
    std::ranges::sort(permits, {}, &Permit::asked);
    Time latest{};  // Of those who asked a round trip earlier, or more.
    for (std::size_t i = 0, earlier = 0; i < permits.size(); ++i) {
        for (; permits[earlier].asked + milliseconds{5} < permits[i].asked; ++earlier) {
            latest = std::max(latest, permits[earlier].usable);
        }
        ASSERT_GE(permits[i].usable, latest) << i;
    }
    EXPECT_LT(figure("starvation_index", result), 1.3);
}

// --- Clocks that differ ---

std::vector<Override> together(const std::string& kind, const std::string& start) {
    return {{"limiter.kind", kind}, {"limiter.burst", "200"}, {"defaults.startDelay", start}};
}

std::vector<Override> skewed(const std::string& kind) {
    std::vector<Override> changes = together(kind, "0s");
    changes.push_back({"dynamodb.skew", "2s"});
    changes.push_back({"dynamodb.skewCorrected", "false"});
    return changes;
}

// Everybody counts in a second of its own: from two before to two after the true one.
TEST(SharedLimiterStory, WithClocksApartTheCounterSpendsFiveSecondsAtOnce) {
    HOLDFAST_CHECK("poolsim new.9");
    const Result apart = contend(skewed("counter"));
    EXPECT_THAT(permits_before(apart, seconds{1}), AllOf(Ge(450), Le(500)));
    EXPECT_LE(permits_before(apart, seconds{30}), 100U * (30 + 4)) << "in the long run it holds";

    // Asked for at the end of a second, the budget of the next one comes right behind.
    const Result exact = contend(together("counter", "900ms"));
    EXPECT_THAT(most_in_a_second(exact, Time{0}), AllOf(Ge(180), Le(200)));
}

TEST(SharedLimiterStory, WithClocksApartTheReservationClockGivesTwoSecondsMoreAtMost) {
    HOLDFAST_CHECK("poolsim new.9");
    constexpr std::size_t burst_and_rate = 200 + 100;
    const Result apart = contend(skewed("reserve"));
    EXPECT_LE(most_in_a_second(apart, Time{0}), burst_and_rate + 200);
    EXPECT_LE(permits_before(apart, seconds{30}), 200U + 100 * (30 + 2));

    const Result exact = contend(together("reserve", "0s"));
    EXPECT_LE(most_in_a_second(exact, Time{0}), burst_and_rate);
    EXPECT_LE(most_in_a_second(exact, seconds{2}), 101U);
}

// Each answer of the table carries its date, which is how they learn.
TEST(SharedLimiterStory, ClocksAreCorrectedByTheDatesOfTheTable) {
    std::vector<Override> changes = skewed("counter");
    changes.back().value = "true";
    const Result result = contend(changes);
    EXPECT_LT(permits_before(result, seconds{1}), 400U);
    EXPECT_LE(most_in_a_second(result, seconds{5}), 200U);
}

// --- When the table is away ---

TEST(SharedLimiterStory, WithoutTheTableAFleetRecoversAtTheSumOfItsShares) {
    HOLDFAST_CHECK("poolsim new.10");
    const auto run = [](const char* fault) {
        const Scenario scenario = parse_scenario("outage.yaml",
                                                 std::string("duration: 15m\nlimiterPerSec: 2\n"
                                                             "limiter: {kind: reserve, burst: 4}\n"
                                                             "cluster: {connect: 50ms}\n"
                                                             "faults:\n"
                                                             "  - {kind: mass_drop, at: 5m, "
                                                             "fraction: 1}\n") +
                                                     fault +
                                                     "defaults: {baseLifetime: 11m, jitter: 2m}\n"
                                                     "services: [{name: 'p-{i}', replicas: 4}]\n")
                                      .scenario;
        return simulate(scenario, 1);
    };
    const Result away = run("  - {kind: dynamodb_outage, at: 5m, for: 5m}\n");
    const auto opened = std::ranges::count_if(away.seen.opened, [](const Incident& one) {
        return one.at >= minutes{6} && one.at < minutes{6} + seconds{30};
    });
    EXPECT_NEAR(static_cast<double>(opened), 2 * 30, 6);
    EXPECT_THAT(away.seen.degraded, AllOf(Ge(minutes{1}), Le(minutes{5} + seconds{30})));
    EXPECT_THAT(per_service(away, owned), Each(50));

    const Result well = run("");
    EXPECT_EQ(well.seen.degraded, Time{0});
    EXPECT_THAT(per_service(well, owned), Each(50));
}

// --- When the cluster refuses though there are permits ---

// The clients believe in 50 a second, the cluster takes 5. Each process learns it from 53400: its
// pace is halved with every refusal and comes back a tenth at a time.
TEST(SharedLimiterStory, AfterRefusalsAProcessSlowsDown) {
    HOLDFAST_CHECK("poolsim limiter.slow_down");
    for (const char* kind : {"ideal", "local", "counter", "reserve", "none"}) {
        const Scenario scenario =
            parse_scenario("quick.yaml",
                           std::string("duration: 10m\nlimiterPerSec: 50\nlimiter: {burst: 10, "
                                       "ownPerSec: 10, ownBurst: 1, kind: ") +
                               kind +
                               "}\ncluster: {rate: 5, burst: 10, connect: 20ms}\n"
                               "defaults: {targetReady: 400}\n"
                               "services: [{name: a}, {name: b}, {name: c}]\n")
                .scenario;
        const Result result = simulate(scenario, 1);
        const double knocks = static_cast<double>(result.seen.rejected_rate) + total(result, opens);
        EXPECT_GT(total(result, owned), 1'000) << kind;
        EXPECT_GT(result.seen.rejected_rate, 0) << kind;
        if (std::string(kind) == "none") {
            EXPECT_GT(knocks, 2 * 5 * 600) << "without a limiter nobody learns";
        } else {
            EXPECT_LT(knocks, 1.5 * 5 * 600) << kind;
        }
    }
}

// --- Slots ---

// A day in which five of twenty processes die every ten minutes. The cluster could hold 30 blocks;
// 20 are in use, and each death leaves 5 behind.
Result a_day_of_crashes(const std::string& slots) {
    std::string text =
        "duration: 24h\nsampleEvery: 30s\nlimiter: {burst: 100}\ncluster: {ceiling: 150}\n"
        "slots: " +
        slots + "\ndefaults: {targetReady: 5, inFlight: 1, baseLifetime: 50m}\nfaults:\n";
    for (int i = 1; i < 24 * 6; ++i) {
        text += "  - {kind: crash, at: " + std::to_string(10 * i) +
                "m, down: 5s, services: " + std::string(1, static_cast<char>('a' + i % 4)) + "}\n";
    }
    text += "services:\n";
    for (const char* name : {"a", "b", "c", "d"}) {
        text += std::string("  - {name: '") + name + "-{i}', replicas: 5}\n";
    }
    return simulate(parse_scenario("crashes.yaml", text).scenario, 1);
}

int all_owned_at(const Result& result, Time at) {
    int sum = 0;
    for (const Sample& sample : result.samples) {
        sum += sample.at == at ? sample.owned() : 0;
    }
    return sum;
}

TEST(SlotStory, ACounterOfConnectionsDriftsWithEveryCrashUntilNothingCanBeOpened) {
    HOLDFAST_CHECK("poolsim new.8");
    const Result drifting = a_day_of_crashes("{kind: leases, reap: false}");
    EXPECT_EQ(drifting.seen.table_counted, 150);
    EXPECT_EQ(drifting.seen.orphans.size(), 150U) << "nobody's, and counted for ever";
    EXPECT_EQ(all_owned_at(drifting, hours{24}), 0);
    const Result reaped = a_day_of_crashes("{kind: leases}");
    EXPECT_EQ(all_owned_at(reaped, hours{24} - minutes{1}), 100);
    EXPECT_LE(reaped.seen.table_counted, 150);
}

TEST(SlotStory, BlocksOfSlotsComeBackWhenTheirTimeIsOver) {
    HOLDFAST_CHECK("poolsim new.8");
    const Result result = a_day_of_crashes("{kind: blocks, block: 5}");
    EXPECT_EQ(result.seen.total_max, 100);
    for (int i = 1; i < 24 * 6; ++i) {
        // What lives three minutes and may be taken after another half one.
        const Time struck = minutes{10 * i};
        EXPECT_EQ(all_owned_at(result, struck + minutes{3} + seconds{30}), 100) << i;
    }
    EXPECT_EQ(result.seen.leaked, 0);
}

// All leases are counted in one item, and transactions that meet there are cancelled.
TEST(SlotStory, TransactionsThatMeetAtTheCounterAreTriedAgain) {
    HOLDFAST_CHECK("poolsim slots.conflicts");
    const auto run = [](const std::string& transaction) {
        return simulate(shipped("ecs-150wps",
                                Profile::standard,
                                {{"slots", "leases"},
                                 {"duration", "2m"},
                                 {"defaults.startDelay", "0s"},
                                 {"dynamodb.transaction", transaction}}),
                        1);
    };
    const Result apart = run("0s");
    EXPECT_EQ(apart.seen.table_conflicts, 0);
    const Result usual = run("2ms");
    EXPECT_GT(usual.seen.table_conflicts, 20);
    EXPECT_GT(figure("table_conflicts", usual), 20);
    const Result slow = run("10ms");
    EXPECT_GT(slow.seen.table_conflicts, 2 * usual.seen.table_conflicts);
    for (const Result* result : {&apart, &usual}) {
        EXPECT_THAT(per_service(*result, owned), Each(100));
        EXPECT_EQ(result->seen.table_counted, 2'000);
    }
    EXPECT_LT(total(slow, owned), 2'000) << "at one item there is room for so many and no more";
}

TEST(SlotStory, WhoGoesInOrderLeavesItsBlocksToOthers) {
    const Scenario scenario =
        parse_scenario("order.yaml",
                       "duration: 6m\ncluster: {ceiling: 50}\nslots: {kind: blocks, block: 25}\n"
                       "faults: [{kind: rolling_restart, at: 1m, every: 30s, down: 1s}]\n"
                       "defaults: {targetReady: 25}\nservices: [{name: a}, {name: b}]\n")
            .scenario;
    const Result result = simulate(scenario, 1);
    EXPECT_EQ(all_owned_at(result, minutes{2}), 50);
}

// A block that was not renewed may belong to another process by now. A connection without a slot is
// closed: at once if it is idle, when it is returned if it is lent.
TEST(SlotStory, ConnectionsGoWhenTheirSlotsAreLost) {
    HOLDFAST_CHECK("poolsim slots.shed");
    for (const char* kind : {"blocks", "leases"}) {
        const auto run = [&](const std::string& more) {
            return simulate(
                parse_scenario("lost.yaml",
                               std::string("duration: 20m\nslots: {kind: ") + kind + more +
                                   "}\nfaults: [{kind: dynamodb_outage, at: 5m, for: 6m}]\n"
                                   "defaults: {targetReady: 20, workload: {enabled: true, "
                                   "arrivals: steady, rate: 1, holdTime: 30s, maxWait: 1s}}\n"
                                   "services: [{name: a, pools: 2}, {name: b}]\n")
                    .scenario,
                1);
        };
        const Result result = run("");
        EXPECT_EQ(all_owned_at(result, minutes{5} - seconds{1}), 60) << kind;
        EXPECT_EQ(all_owned_at(result, minutes{10}), 0) << kind << ": nothing is ours any more";
        EXPECT_GT(result.seen.shed, 30) << kind << ": the others were old, and not replaced";
        EXPECT_EQ(all_owned_at(result, minutes{15}), 60) << kind << ": the table is back";
        EXPECT_EQ(result.seen.leaked, 0) << kind;

        const Result capped = run(", localCap: 10");
        EXPECT_EQ(all_owned_at(capped, minutes{10}), 2 * 10)
            << kind << ": of each process, not pool";
        EXPECT_EQ(all_owned_at(capped, minutes{16}), 60) << kind;
        EXPECT_EQ(capped.seen.leaked, 0) << kind;
    }
}

TEST(SlotStory, EveryKindIsDeterministic) {
    for (const char* kind : {"blocks", "leases"}) {
        const Scenario scenario =
            shipped("local",
                    Profile::standard,
                    {{"slots", kind}, {"limiter.kind", "reserve"}, {"duration", "30s"}});
        EXPECT_EQ(csv_of(scenario, simulate(scenario, 7)), csv_of(scenario, simulate(scenario, 7)));
    }
}

}  // namespace
}  // namespace holdfast::sim
