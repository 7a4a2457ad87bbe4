#include <holdfast/pool/permits.hpp>

#include <set>

#include "limits/test/fake_permit_store.hpp"
#include "test/pool_fixture.hpp"
#include <gtest/gtest.h>

#include <holdfast/testing/check.hpp>

namespace holdfast::pool {
namespace {

using namespace std::chrono_literals;

constexpr Wall noon{std::chrono::seconds{1'800'000'000}};

// One process that asks a store, in time that a test moves.
class PermitStory : public testing::Test {
protected:
    [[nodiscard]] Moment now() const {
        return {.steady = start + passed,
                .wall = noon + std::chrono::floor<std::chrono::microseconds>(passed)};
    }

    std::unique_ptr<PermitRequest> request(int n = 1, std::chrono::nanoseconds patience = 30s) {
        return request_permits(config, limits, n, now().steady + patience, memory, random);
    }

    // Asks the store until the request has something else to say.
    PermitStep until_pause(PermitRequest& wish) {
        PermitStep step = wish.next(now());
        while (const auto* write = std::get_if<PermitWrite>(&step)) {
            step = wish.answered(now(), store.ask(*write));
        }
        return step;
    }

    // When the permits of a fresh request can be used; empty if it must pause or give up.
    std::optional<Permits> take(int n = 1) {
        const auto wish = request(n);
        const PermitStep step = until_pause(*wish);
        const auto* permits = std::get_if<Permits>(&step);
        return permits == nullptr ? std::nullopt : std::optional(*permits);
    }

    bool take_now(int n = 1) {
        const auto permits = take(n);
        return permits && permits->first <= now().steady;
    }

    std::chrono::nanoseconds passed{0};
    PermitConfig config;
    FleetLimits limits;
    PermitMemory memory;
    Random random{7};
    FakePermitStore store;
};

// --- The permits of each second ---

class CounterStory : public PermitStory {
protected:
    CounterStory() { config = {.algorithm = PermitAlgorithm::counter, .per_second = 5}; }
};

TEST_F(CounterStory, APermitIsOneWriteAndTheLimitHoldsWithinItsSecond) {
    HOLDFAST_CHECK("connections dist.basic");
    HOLDFAST_CHECK("connections dist.limit");
    EXPECT_TRUE(take_now());
    EXPECT_EQ(store.calls, 1);
    for (int i = 0; i < 4; ++i) {
        EXPECT_TRUE(take_now());
    }
    EXPECT_FALSE(take_now());
    EXPECT_EQ(store.calls, 6);
    passed = 1s;
    EXPECT_TRUE(take_now());
}

TEST_F(CounterStory, OfManyContendersExactlyTheLimitIsServed) {
    HOLDFAST_CHECK("connections dist.parallel");
    config.per_second = 50;
    int granted = 0;
    for (int i = 0; i < 100; ++i) {
        granted += take_now() ? 1 : 0;
    }
    EXPECT_EQ(granted, 50);
}

TEST_F(CounterStory, RefusedOnesComeBackAtDifferentTimes) {
    HOLDFAST_CHECK("connections dist.backoff");
    HOLDFAST_CHECK("connections dist.boundary");
    config.per_second = 1;
    ASSERT_TRUE(take_now());
    std::set<std::chrono::nanoseconds> naps;
    for (const auto since : {0ms, 500ms, 750ms}) {
        passed = since;
        for (int i = 0; i < 100; ++i) {
            const auto wish = request();
            const PermitStep step = until_pause(*wish);
            const auto nap = std::get<PauseUntil>(step).when - now().steady;
            EXPECT_GE(nap, 25ms);
            EXPECT_LT(nap, 50ms);
            naps.insert(nap);
        }
    }
    EXPECT_GT(naps.size(), 100U);
    passed = 800ms;  // The next second is near: right after it, not before.
    for (int i = 0; i < 100; ++i) {
        const auto wish = request();
        const PermitStep step = until_pause(*wish);
        const auto nap = std::get<PauseUntil>(step).when - now().steady;
        EXPECT_GE(nap, 200ms);
        EXPECT_LT(nap, 250ms);
    }
}

TEST_F(CounterStory, WhatCanNeverBeHadIsRefusedAndNothingIsGranted) {
    HOLDFAST_CHECK("connections dist.too_many");
    HOLDFAST_CHECK("connections dist.zero");
    HOLDFAST_CHECK("connections dist.negative");
    HOLDFAST_CHECK("connections dist.disabled");
    config.per_second = 10;
    try {
        (void)request(15);
        FAIL() << "15 of 10 were promised";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), Code::invalid_argument);
        EXPECT_NE(std::string_view(error.what()).find("limit is 10"), std::string_view::npos);
    }
    EXPECT_TRUE(take_now(0));
    EXPECT_TRUE(take_now(-3));
    EXPECT_EQ(store.calls, 0);

    config.per_second = 0;  // A limit of none is a slip.
    EXPECT_EQ(test::code_of([&] { (void)request(); }), Code::invalid_argument);
}

TEST_F(CounterStory, TroubleIsRetriedUntilTheDeadline) {
    HOLDFAST_CHECK("connections +dist.throttle");
    const auto wish = request(1, 10s);
    PermitStep step = wish->next(now());
    for (int i = 0; i < 5; ++i) {
        step = wish->answered(now(), NoAnswer{});
        const Steady again = std::get<PauseUntil>(step).when;
        EXPECT_GE(again, now().steady + 25ms);
        passed = again - start;
        step = wish->next(now());
    }
    step = wish->answered(now(), store.ask(std::get<PermitWrite>(step)));
    EXPECT_TRUE(std::holds_alternative<Permits>(step));
    passed = 10s;
    EXPECT_TRUE(std::holds_alternative<NoPermit>(wish->answered(now(), NoAnswer{})));
}

// --- The bucket ---

class BucketStory : public PermitStory {
protected:
    BucketStory() {
        config = {.algorithm = PermitAlgorithm::bucket, .per_second = 100, .burst = 10};
    }
};

TEST_F(BucketStory, BeginsFullAndRefillsAtItsRate) {
    HOLDFAST_CHECK("connections bucket.hint");
    for (int i = 0; i < 10; ++i) {
        EXPECT_TRUE(take_now());
    }
    const auto wish = request();
    const PermitStep step = until_pause(*wish);
    const auto nap = std::get<PauseUntil>(step).when - now().steady;
    EXPECT_GE(nap, 10ms);
    EXPECT_LE(nap, 20ms);
    passed = 20ms;
    EXPECT_TRUE(take_now());
    EXPECT_FALSE(take_now());
    passed = 1h;
    for (int i = 0; i < 10; ++i) {
        EXPECT_TRUE(take_now());
    }
    EXPECT_FALSE(take_now());
}

// Both read the same state within one millisecond; the time alone must not make them equal.
TEST_F(BucketStory, TwoWritersInOneMillisecondAreToldApart) {
    ASSERT_TRUE(take_now());
    const auto ann = request();
    const auto bob = request();
    PermitStep anns = ann->answered(now(), store.ask(std::get<PermitWrite>(ann->next(now()))));
    PermitStep bobs = bob->answered(now(), store.ask(std::get<PermitWrite>(bob->next(now()))));
    anns = ann->answered(now(), store.ask(std::get<PermitWrite>(anns)));
    bobs = bob->answered(now(), store.ask(std::get<PermitWrite>(bobs)));
    EXPECT_TRUE(std::holds_alternative<Permits>(anns));
    EXPECT_TRUE(std::holds_alternative<PauseUntil>(bobs)) << "Bob's write would undo Ann's";
}

TEST_F(BucketStory, AClockThatIsBehindRefillsNothingTwice) {
    for (int i = 0; i < 10; ++i) {
        EXPECT_TRUE(take_now());
    }
    passed = 100ms;
    EXPECT_TRUE(take_now());
    const BucketState before = *store.bucket;
    passed = 50ms;  // Another process, 50 ms behind.
    EXPECT_TRUE(take_now());
    EXPECT_GT(store.bucket->refilled_ms, before.refilled_ms);
    EXPECT_EQ(store.bucket->tokens_milli, before.tokens_milli - 1000);
}

TEST_F(BucketStory, ARateOrABurstOfNoneIsRefused) {
    HOLDFAST_CHECK("connections bucket.disabled");
    for (const auto& broken : {PermitConfig{.per_second = 0}, PermitConfig{.burst = 0}}) {
        config = broken;
        config.algorithm = PermitAlgorithm::bucket;
        EXPECT_EQ(test::code_of([&] { (void)request(); }), Code::invalid_argument);
    }
}

// --- The reservation clock ---

class ReserveStory : public PermitStory {
protected:
    ReserveStory() { config = {.per_second = 100, .burst = 5}; }
};

TEST_F(ReserveStory, TheBurstAtOnceThenOneAfterTheOther) {
    HOLDFAST_CHECK("connections +reserve.burst");
    for (int i = 0; i < 5; ++i) {
        EXPECT_TRUE(take_now()) << i;
    }
    for (int i = 1; i <= 5; ++i) {
        const auto permits = take();
        ASSERT_TRUE(permits);
        EXPECT_EQ(permits->first, start + i * 10ms);
    }
    EXPECT_EQ(store.calls, 10) << "one write each";
}

// Most rates do not divide a second. What is lost by rounding must be the fleet's, not the
// server's.
TEST_F(ReserveStory, ARateThatDoesNotDivideASecondIsNotExceeded) {
    for (const int rate : {3, 7, 30, 60, 999, 300'000, 1'000'000}) {
        config = {.per_second = rate, .burst = 1};
        store.clock_us.reset();
        memory = {};
        ASSERT_TRUE(take_now());
        const auto permits = take();
        ASSERT_TRUE(permits);
        EXPECT_GE((permits->first - now().steady) * rate, 1s) << rate;
        EXPECT_LT((permits->first - now().steady - 1us) * rate, 1s) << rate << ", no slower";
    }
}

TEST_F(ReserveStory, AfterAnIdleTimeTheBurstIsThereAgainAndNotMore) {
    HOLDFAST_CHECK("connections +reserve.idle");
    for (int i = 0; i < 8; ++i) {
        (void)take();
    }
    passed = 10min;
    for (int i = 0; i < 5; ++i) {
        EXPECT_TRUE(take_now()) << i;
    }
    EXPECT_FALSE(take_now());
}

TEST_F(ReserveStory, ManyPermitsInOneWriteBecomeUsableOneAfterTheOther) {
    HOLDFAST_CHECK("connections +reserve.batch");
    ASSERT_TRUE(take_now(5));
    const auto permits = take(4);
    ASSERT_TRUE(permits);
    EXPECT_EQ(permits->n, 4);
    EXPECT_EQ(permits->first, start + 10ms);
    EXPECT_EQ(permits->apart, 10ms);
    EXPECT_EQ(store.calls, 2);
    EXPECT_EQ(take()->first, start + 50ms);
}

TEST_F(ReserveStory, WhoGivesUpLosesOnlyItsOwnPermit) {
    HOLDFAST_CHECK("connections +reserve.abandon");
    ASSERT_TRUE(take_now(5));
    const auto hasty = request(1, 5ms);
    EXPECT_TRUE(std::holds_alternative<NoPermit>(until_pause(*hasty)));
    EXPECT_EQ(take()->first, start + 20ms) << "the place at 10 ms is lost, no other";
}

TEST_F(ReserveStory, AClockTooFarAheadIsWaitedForOrGivenUp) {
    store.clock_us = noon.time_since_epoch().count() + 60'000'000;
    const auto hasty = request(1, 1s);
    EXPECT_TRUE(std::holds_alternative<NoPermit>(until_pause(*hasty)));
    const auto patient = request(1, 50s);
    const PermitStep step = until_pause(*patient);
    const auto when = std::get<PauseUntil>(step).when - start;
    EXPECT_GE(when, 60s - 30s - 40ms);
    EXPECT_LE(when, 60s - 30s + 100ms);
}

// 44 that always want more, round trips of 3 to 12 ms.
TEST_F(ReserveStory, AFleetIsServedInOrderAtTheRateWithOneWriteEach) {
    HOLDFAST_CHECK("connections +reserve.fifo");
    FakeFleet fleet({.per_second = 100, .burst = 200}, 44, 11);
    fleet.run(30s);
    EXPECT_GE(fleet.grants.size(), 3100U);
    EXPECT_LE(fleet.store.calls, static_cast<int>(fleet.grants.size()) * 105 / 100);
    EXPECT_LE(fleet.most_within(1s, start), 300);
    EXPECT_LE(fleet.most_within(1s, start + 4s), 101);
    EXPECT_EQ(fleet.given_up, 0);
    // In order of request, but for what overtakes on the way to the store.
    for (std::size_t i = 1; i < fleet.grants.size(); ++i) {
        if (fleet.grants[i].usable > start + 4s) {
            EXPECT_GE(fleet.grants[i].asked + 25ms, fleet.grants[i - 1].asked);
        }
    }
}

TEST_F(ReserveStory, ClocksThatDifferByTwoSecondsLetInTwoSecondsMoreAtMost) {
    HOLDFAST_CHECK("connections +reserve.skew");
    FakeFleet fleet({.per_second = 100, .burst = 200}, 10, 12);
    for (std::size_t i = 0; i < 10; ++i) {
        fleet.set_skew(i, std::chrono::milliseconds{-2000 + 444 * static_cast<int>(i)});
    }
    fleet.run(60s);
    for (const auto window : {1s, 5s, 20s}) {
        EXPECT_LE(fleet.most_within(window, start), 200 + 100 * (window.count() + 2));
    }
}

TEST_F(ReserveStory, TheOthersKeepTheirPromisesInAFleetToo) {
    FakeFleet counter({.algorithm = PermitAlgorithm::counter, .per_second = 20}, 8, 13);
    counter.run(10s);
    for (const auto& [second, count] : counter.store.counts) {
        EXPECT_LE(count, 20);
    }
    EXPECT_GE(counter.grants.size(), 180U);
    FakeFleet bucket({.algorithm = PermitAlgorithm::bucket, .per_second = 20, .burst = 30}, 8, 14);
    bucket.run(10s);
    EXPECT_LE(bucket.most_within(10s, start), 30 + 200 + 1);
    EXPECT_GE(bucket.grants.size(), 200U);
}

// --- The fleet when the store is in trouble ---

// Forty-four processes with eight openings each poll the counter of a second far more often than
// one item bears. It refuses most of them, but its permits go out all the same: who is refused must
// not take a share of the limit on top.
TEST(FleetInTrouble, AStoreThatIsAskedTooMuchStillKeepsTheLimit) {
    HOLDFAST_CHECK("connections +dist.throttle");
    FakeFleet fleet({.algorithm = PermitAlgorithm::counter, .per_second = 100}, 44, 15, 8);
    fleet.calls_per_second_max = 1000;
    fleet.run(30s);
    EXPECT_GT(fleet.throttled, 1000) << "else this shows nothing";
    EXPECT_GE(fleet.grants.size(), 2000U);
    EXPECT_LE(fleet.grants.size(), 100U * 30);
    EXPECT_LE(fleet.most_within(1s, start), 200) << "of the counter: the ends of two seconds";
}

TEST(FleetInTrouble, WithoutTheStoreTheSharesAddUpToTheLimit) {
    constexpr int processes = 20;
    FakeFleet fleet({.per_second = 100, .burst = 200}, processes, 16, 8);
    for (std::size_t i = 0; i < processes; ++i) {
        fleet.cut_off(i, start + 30s, 10min);
    }
    fleet.run(10min);
    EXPECT_GE(fleet.grants.size(), 100U * 9 * 60);
    EXPECT_LE(fleet.most_within(1s, start + 4s), 100 + 100 + processes) << "at the change, too";
    EXPECT_LE(fleet.most_within(1s, start + 1min), 100 + processes) << "they are not in step";
    EXPECT_LE(fleet.most_within(5min, start + 1min), 100 * 300 + processes);
}

TEST(FleetInTrouble, WhenTheStoreIsBackItsBurstIsTooAndNotMore) {
    constexpr int processes = 20;
    FakeFleet fleet({.per_second = 100, .burst = 200}, processes, 18, 8);
    for (std::size_t i = 0; i < processes; ++i) {
        fleet.cut_off(i, start + 10s, 20s);
    }
    fleet.run(1min);
    EXPECT_LE(fleet.most_within(1s, start + 11s), 200 + 100 + 100 + processes);
    EXPECT_LE(fleet.most_within(1s, start + 45s), 101) << "and all is as before";
}

// Processes that reach the store share the whole limit, and do not know of the others: so the sum
// is what the store gives and the shares of those that were cut off, and never twice the limit.
TEST(FleetInTrouble, WhenSomeAreCutOffTheirSharesComeOnTopAndNoMore) {
    constexpr int processes = 40;
    for (const auto algorithm :
         {PermitAlgorithm::counter, PermitAlgorithm::bucket, PermitAlgorithm::reserve}) {
        SCOPED_TRACE(to_string(algorithm));
        FakeFleet fleet({.algorithm = algorithm, .per_second = 100, .burst = 40}, processes, 17);
        for (std::size_t i = 0; i < processes / 4; ++i) {
            fleet.cut_off(i, start + 10s, 1min);
        }
        fleet.run(2min);
        std::vector<FakeFleet::Grant> own;
        for (const FakeFleet::Grant& grant : fleet.grants) {
            if (!grant.shared) {
                own.push_back(grant);
            }
        }
        EXPECT_GE(own.size(), 25U * 55);
        EXPECT_LE(own.size(), 25U * 66 + processes / 4) << "a quarter of the limit, and a probe";
        EXPECT_LE(fleet.most_within(1min, start + 10s), (100 + 25) * 60 + 100);
    }
}

// --- The store's clock ---

TEST(ClockSkew, OnlyWhatTheDatesProveIsCorrected) {
    ClockSkew skew;
    EXPECT_EQ(skew.ahead(), 0us);
    const std::chrono::sys_seconds date{1'800'000'000s};
    skew.observe(date + 300ms, date + 310ms, date);  // Fits a clock that is right.
    EXPECT_EQ(skew.ahead(), 0us);

    ClockSkew fast;  // Three seconds ahead: every date says so, up to its second.
    fast.observe(date + 3100ms, date + 3110ms, date);
    EXPECT_EQ(fast.ahead(), 2100ms);
    fast.observe(date + 3900ms, date + 3910ms, date);
    EXPECT_EQ(fast.ahead(), 2900ms);
    fast.observe(date + 4005ms, date + 4015ms, date + 1s);
    EXPECT_EQ(fast.ahead(), 2900ms);
    fast.observe(date + 5200ms, date + 5210ms, date + 5s);  // The clock was set right.
    EXPECT_EQ(fast.ahead(), 0us);

    ClockSkew slow;
    slow.observe(date - 2s, date - 1990ms, date);
    EXPECT_EQ(slow.ahead(), -1990ms);
}

TEST(ClockSkew, AClockThatIsSetBackDuringACallProvesNothing) {
    ClockSkew skew;
    const std::chrono::sys_seconds date{1'800'000'000s};
    skew.observe(date + 300ms, date - 4700ms, date);
    EXPECT_EQ(skew.ahead(), 0us);
    skew.observe(date + 3100ms, date + 3110ms, date);
    skew.observe(date + 3100ms, date - 1900ms, date);
    EXPECT_EQ(skew.ahead(), 2100ms);
}

}  // namespace
}  // namespace holdfast::pool
