#include "model.hpp"
#include <gtest/gtest.h>

#include <holdfast/testing/check.hpp>

namespace holdfast::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Ten connections are wanted; what was seen is put in by hand. b is there to be told from a.
class Verdict : public testing::Test {
protected:
    Verdict() {
        scenario.duration = seconds{100};
        scenario.services.push_back({.name = "a", .target = 10});
        scenario.services.push_back({.name = "b", .target = 1});
        result.last.push_back({.at = scenario.duration, .target = 10});
        result.last.push_back({.at = scenario.duration, .service = 1, .target = 1});
        result.seen.filled = {seconds{3}, seconds{1}};
        for (int i = 1; i <= 100; ++i) {
            result.samples.push_back({.at = seconds{i}, .ready = 10, .target = 10});
            result.samples.push_back({.at = seconds{i}, .service = 1});  // Wants nothing yet.
        }
    }

    // The only one that there is.
    Violation violation(const Assertion& assertion) {
        scenario.assertions = {assertion};
        const std::vector<Violation> all = check_assertions(scenario, result);
        return all.size() == 1 ? all.front() : Violation{.what = "there is not one violation"};
    }
    bool holds(const Assertion& assertion) {
        scenario.assertions = {assertion};
        return check_assertions(scenario, result).empty();
    }
    void owned_at(int second, int owned) {
        result.samples[2 * (static_cast<std::size_t>(second) - 1)].ready = owned;
    }

    Scenario scenario;
    Result result;
};

TEST_F(Verdict, OfTheOwnedFractionLooksAtItsWindow) {
    HOLDFAST_CHECK("poolsim assert.minOwnedFraction");
    owned_at(50, 9);
    const auto at_least = [&](double value, Time after, Time until) {
        return holds({.kind = AssertionKind::min_owned_fraction,
                      .after = after,
                      .until = until,
                      .value = value});
    };
    EXPECT_TRUE(at_least(0.9, {}, Time::max())) << "equality holds";
    EXPECT_FALSE(at_least(0.91, {}, Time::max()));
    EXPECT_TRUE(at_least(1, seconds{51}, Time::max()));
    EXPECT_TRUE(at_least(1, {}, seconds{49}));
    EXPECT_FALSE(at_least(1, seconds{50}, seconds{50}));
    const Violation dip = violation({.kind = AssertionKind::min_owned_fraction, .value = 1});
    EXPECT_EQ(dip.value, 0.9);
    EXPECT_EQ(dip.at, seconds{50});
    EXPECT_EQ(dip.service, "a") << "it misses one";
}

TEST_F(Verdict, OfStabilityLooksFromWhenAProcessWasFull) {
    HOLDFAST_CHECK("poolsim assert.stableFor");
    const auto stable = [&](Time limit) {
        return holds({.kind = AssertionKind::stable_for, .limit = limit});
    };
    owned_at(2, 5);  // Before it was full.
    owned_at(20, 9);
    EXPECT_TRUE(stable(seconds{16}));
    EXPECT_FALSE(stable(seconds{17})) << "the end belongs to it";
    result.seen.filled[0] = Time::max();
    EXPECT_TRUE(stable(seconds{17})) << "never to be full is another assertion's business";
}

TEST_F(Verdict, OfRecoveryCountsFromEachFault) {
    HOLDFAST_CHECK("poolsim assert.recoverWithin");
    result.seen.struck = {{.at = seconds{10}, .kind = FaultKind::mass_drop}};
    for (int i = 10; i < 15; ++i) {
        owned_at(i, 5);
    }
    const auto within = [&](Time limit, double share) {
        return holds({.kind = AssertionKind::recover_within, .value = share, .limit = limit});
    };
    EXPECT_TRUE(within(seconds{5}, 1));
    EXPECT_FALSE(within(seconds{4}, 1));
    const Violation slow =
        violation({.kind = AssertionKind::recover_within, .value = 1, .limit = seconds{4}});
    EXPECT_EQ(slow.value, 5'000);
    EXPECT_EQ(slow.limit, 4'000);
    EXPECT_EQ(slow.service, "a");
    EXPECT_TRUE(within(seconds{1}, 0.5));
    result.seen.struck.push_back({.at = seconds{100}, .kind = FaultKind::crash});
    EXPECT_FALSE(within(seconds{5}, 1)) << "nothing shows that it came back from the last";
    EXPECT_EQ(check_assertions(scenario, result).at(0).at, seconds{100});
}

TEST_F(Verdict, OfRatesSlidesItsWindow) {
    HOLDFAST_CHECK("poolsim assert.maxOpenRateSliding");
    HOLDFAST_CHECK("poolsim assert.maxEmptyRate");
    // Two calendar seconds with two each, and four in the second between their middles.
    result.seen.opened = {{milliseconds{600}, 1},
                          {milliseconds{900}, 0},
                          {milliseconds{1100}, 1},
                          {milliseconds{1500}, 1}};
    for (const Incident& one : result.seen.opened) {
        result.seen.empties.insert(result.seen.empties.begin(), {one.at, one.service, seconds{1}});
    }
    for (const auto kind : {AssertionKind::max_open_rate_sliding, AssertionKind::max_empty_rate}) {
        const Violation worst = violation({.kind = kind, .value = 3});
        EXPECT_EQ(worst.value, 4);
        EXPECT_EQ(worst.limit, 3);
        EXPECT_EQ(worst.at, milliseconds{600});
        EXPECT_EQ(worst.service, "b") << "most are its";
        EXPECT_TRUE(holds({.kind = kind, .value = 4}));
        EXPECT_FALSE(holds({.kind = kind, .value = 3}));
        EXPECT_TRUE(holds({.kind = kind, .value = 3, .window = milliseconds{900}}));
        EXPECT_EQ(check_assertions(scenario, result).size(), 0);
    }
}

TEST_F(Verdict, OfCountsAllowsTheLimitItself) {
    HOLDFAST_CHECK("poolsim assert.maxServerRejects");
    HOLDFAST_CHECK("poolsim assert.maxTotalConnections");
    HOLDFAST_CHECK("poolsim assert.maxWastedOpens");
    HOLDFAST_CHECK("poolsim assert.noLeak");
    HOLDFAST_CHECK("poolsim assert.zeroEmpty");
    const std::vector<Incident> five{
        {seconds{1}, 0}, {seconds{2}, 0}, {seconds{3}, 0}, {seconds{4}, 0}, {seconds{5}, 1}};
    result.seen.rejects = five;
    result.seen.peaks = five;
    result.seen.wasted = five;
    for (const auto kind : {AssertionKind::max_server_rejects,
                            AssertionKind::max_total_connections,
                            AssertionKind::max_wasted_opens}) {
        EXPECT_TRUE(holds({.kind = kind, .value = 5})) << to_string(kind);
        const Violation found = violation({.kind = kind, .value = 4});
        EXPECT_EQ(found.assertion, to_string(kind));
        EXPECT_EQ(found.value, 5);
        EXPECT_EQ(found.limit, 4);
        EXPECT_EQ(found.at, seconds{5}) << "the first that was one too many";
        EXPECT_EQ(found.service, "b");
        EXPECT_TRUE(found.fleet);
        EXPECT_EQ(violation({.kind = kind, .value = 1.5}).at, seconds{2});
    }
    EXPECT_TRUE(holds({.kind = AssertionKind::no_leak}));
    result.seen.leaked = -1;
    EXPECT_EQ(violation({.kind = AssertionKind::no_leak}).value, 1);
    result.seen.leaked = 0;
    result.seen.orphans = {{seconds{100}, 1}, {seconds{100}, 1}};
    EXPECT_EQ(violation({.kind = AssertionKind::no_leak}).value, 2);
    EXPECT_EQ(violation({.kind = AssertionKind::no_leak}).service, "b");
    EXPECT_TRUE(holds({.kind = AssertionKind::zero_empty}));
    result.seen.empties = {{seconds{9}, 0, seconds{1}}, {seconds{7}, 1, seconds{4}}};
    const Violation empty = violation({.kind = AssertionKind::zero_empty});
    EXPECT_EQ(empty.at, seconds{7}) << "the first of them";
    EXPECT_EQ(empty.service, "b");
    EXPECT_EQ(empty.value, 2);
}

TEST_F(Verdict, OfWaitsTakesTheQuantile) {
    HOLDFAST_CHECK("poolsim assert.maxWait");
    for (int i = 1; i <= 100; ++i) {
        result.seen.waits.push_back(milliseconds{i});
    }
    const auto within = [&](double part, Time limit) {
        return holds({.kind = AssertionKind::max_wait, .limit = limit, .quantile = part});
    };
    EXPECT_TRUE(within(0.5, milliseconds{50}));
    EXPECT_FALSE(within(0.5, milliseconds{49}));
    EXPECT_TRUE(within(0.99, milliseconds{99}));
    EXPECT_FALSE(within(1, milliseconds{99}));
    EXPECT_TRUE(within(1, milliseconds{100}));
    result.seen.empties = {{seconds{8}, 0, milliseconds{90}},
                           {seconds{9}, 0, milliseconds{96}},
                           {seconds{7}, 1, milliseconds{100}}};
    const Violation late =
        violation({.kind = AssertionKind::max_wait, .limit = milliseconds{95}, .quantile = 0.99});
    EXPECT_EQ(late.value, 99);
    EXPECT_EQ(late.limit, 95);
    EXPECT_EQ(late.at, seconds{7}) << "the first who waited for longer than that";
    EXPECT_EQ(late.service, "b");
}

TEST_F(Verdict, OfSurplusIsAShareOfWhatWasOpened) {
    HOLDFAST_CHECK("poolsim assert.maxDiscardFullFraction");
    result.last[0].counters.opens = 100;
    result.last[0].counters.discard_full = 25;
    EXPECT_TRUE(holds({.kind = AssertionKind::max_discard_full_fraction, .value = 0.25}));
    EXPECT_FALSE(holds({.kind = AssertionKind::max_discard_full_fraction, .value = 0.24}));
    const Violation surplus =
        violation({.kind = AssertionKind::max_discard_full_fraction, .value = 0.24});
    EXPECT_EQ(surplus.value, 0.25);
    EXPECT_EQ(surplus.service, "a");
}

TEST_F(Verdict, OfClosuresLooksAtTheWorstSecond) {
    HOLDFAST_CHECK("poolsim assert.maxClosuresPerSec");
    result.seen.closed.assign(7, {milliseconds{1'500}, 1});
    result.seen.closed.resize(10, {seconds{2}, 0});
    EXPECT_TRUE(holds({.kind = AssertionKind::max_closures_per_sec, .value = 7}));
    EXPECT_FALSE(holds({.kind = AssertionKind::max_closures_per_sec, .value = 6}));
    const Violation worst = violation({.kind = AssertionKind::max_closures_per_sec, .value = 6});
    EXPECT_EQ(worst.at, seconds{1});
    EXPECT_EQ(worst.service, "b");
    EXPECT_EQ(worst.value, 7);
}

TEST_F(Verdict, OfTheSteadyRateForgetsTheBeginning) {
    HOLDFAST_CHECK("poolsim assert.steadyOpenRate");
    result.seen.opened.assign(1'000, {seconds{1}, 0});
    result.seen.opened.resize(1'050, {seconds{60}, 1});
    EXPECT_TRUE(holds({.kind = AssertionKind::steady_open_rate, .after = seconds{50}, .value = 1}));
    EXPECT_FALSE(
        holds({.kind = AssertionKind::steady_open_rate, .after = seconds{50}, .value = 0.9}));
    const Violation steady =
        violation({.kind = AssertionKind::steady_open_rate, .after = seconds{50}, .value = 0.9});
    EXPECT_EQ(steady.value, 1);
    EXPECT_EQ(steady.service, "b");
}

TEST_F(Verdict, OfConvergenceNamesTheService) {
    HOLDFAST_CHECK("poolsim assert.convergeWithin");
    EXPECT_TRUE(holds({.kind = AssertionKind::converge_within, .limit = seconds{3}}));
    EXPECT_FALSE(holds({.kind = AssertionKind::converge_within, .limit = seconds{2}}));
    EXPECT_EQ(check_assertions(scenario, result).at(0).service, "a");
    EXPECT_EQ(check_assertions(scenario, result).at(0).value, 3'000);
}

TEST_F(Verdict, TellsEveryViolationByItsName) {
    result.seen.leaked = 1;
    result.seen.wasted = {{seconds{9}, 0}};
    scenario.assertions = {{.kind = AssertionKind::no_leak, .name = "nothing is lost"},
                           {.kind = AssertionKind::max_wasted_opens}};
    const auto all = check_assertions(scenario, result);
    ASSERT_EQ(all.size(), 2);
    EXPECT_EQ(all[0].assertion, "nothing is lost");
    EXPECT_EQ(all[1].assertion, "maxWastedOpens");
}

}  // namespace
}  // namespace holdfast::sim
