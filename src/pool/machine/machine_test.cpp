#include <holdfast/pool/machine.hpp>

#include <algorithm>
#include <vector>

#include "machine/test/machine_fixture.hpp"
#include "test/pool_fixture.hpp"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <holdfast/base/error.hpp>
#include <holdfast/testing/check.hpp>

namespace holdfast::pool {
namespace {

using namespace std::chrono_literals;
using testing::IsEmpty;
using testing::SizeIs;

constexpr WaiterId cleo{3};

// Every connection lives for exactly ten minutes and is lent until one minute before its end.
Config plain(int target) {
    Config config;
    config.target = target;
    config.life = 10min;
    config.life_jitter = 0s;
    config.guard = 1min;
    config.idle_max = 1h;
    config.limits.spread_from = 1.0;
    config.limits.spread_margin = 0s;
    return config;
}

std::vector<WaiterId> served(const Script& script) {
    std::vector<WaiterId> waiters;
    for (const Lend& lend : script.said_of<Lend>()) {
        waiters.push_back(lend.waiter);
    }
    return waiters;
}

std::vector<Reason> closed(const Script& script) {
    std::vector<Reason> why;
    for (const Close& close : script.said_of<Close>()) {
        why.push_back(close.reason);
    }
    return why;
}

// --- Borrowing ---

TEST(Machine, OpensNothingWhileNobodyAsks) {
    Script pool(plain(10));
    EXPECT_THAT(pool.tell(Tick{}), IsEmpty());
    EXPECT_EQ(pool.machine.next_wake(), Steady::max());
}

TEST(Machine, OpensOneForABorrowerAndLendsIt) {
    HOLDFAST_CHECK("connections res.checkout_empty");
    Script pool(plain(10));
    EXPECT_THAT(pool.borrow(ann, 5s), SizeIs(1));
    const auto opens = pool.said_of<Open>();
    ASSERT_THAT(opens, SizeIs(1));
    pool.tell(Opened{opens[0].connection});
    const auto lends = pool.said_of<Lend>();
    ASSERT_THAT(lends, SizeIs(1));
    EXPECT_EQ(lends[0].waiter, ann);
    EXPECT_EQ(lends[0].connection, opens[0].connection);
}

TEST(Machine, WhatWasGivenBackIsLentAgain) {
    HOLDFAST_CHECK("connections res.checkout");
    HOLDFAST_CHECK("connections res.return");
    Script pool(plain(10));
    const ConnectionId connection = pool.open_one();
    pool.advance(7s);
    pool.borrow(bob, 5s);
    const auto lends = pool.said_of<Lend>();
    ASSERT_THAT(lends, SizeIs(1));
    EXPECT_EQ(lends[0].connection, connection);
    EXPECT_EQ(lends[0].idle, 7s);
}

TEST(Machine, LendingMakesNoRoomForAnOpening) {
    HOLDFAST_CHECK("connections +res.need_counts_in_use");
    Config config = plain(3);
    config.min_ready = 3;
    Script pool(config);
    pool.tell(Tick{});
    pool.open_all();
    for (const WaiterId waiter : {ann, bob, cleo}) {
        pool.borrow(waiter, 5s);
        EXPECT_THAT(pool.said_of<Open>(), IsEmpty());
    }
    EXPECT_THAT(pool.borrow(WaiterId{4}, 5s), IsEmpty());
    EXPECT_EQ(pool.machine.counts().in_use, 3);
    EXPECT_EQ(pool.machine.counts().waiting, 1);
}

TEST(Machine, WaitersAreServedInOrder) {
    HOLDFAST_CHECK("connections +res.fifo_waiters");
    Script pool(plain(1));
    const ConnectionId only = pool.lend_new();
    for (const WaiterId waiter : {ann, bob, cleo}) {
        pool.borrow(waiter, 5s);
    }
    for (const WaiterId waiter : {ann, bob, cleo}) {
        pool.tell(GiveBack{.connection = only});
        EXPECT_THAT(served(pool), testing::ElementsAre(waiter));
    }
}

TEST(Machine, ACancelledWaiterIsSkipped) {
    HOLDFAST_CHECK("connections +res.fifo_waiters");
    Script pool(plain(1));
    const ConnectionId only = pool.lend_new();
    pool.borrow(ann, 5s);
    pool.borrow(bob, 5s);
    EXPECT_THAT(pool.tell(Cancel{ann}), IsEmpty());
    pool.tell(GiveBack{.connection = only});
    EXPECT_THAT(served(pool), testing::ElementsAre(bob));
    EXPECT_THAT(pool.tell(Cancel{bob}), IsEmpty()) << "it does not wait any more";
    EXPECT_EQ(pool.machine.counts().in_use, 1);
}

// The release of a lock must not stand in line behind those who wait for that very lock.
TEST(Machine, ThePriorityLaneGoesFirstAndKeepsItsOrder) {
    Script pool(plain(1));
    const ConnectionId only = pool.lend_new();
    pool.borrow(ann, 5s);
    const Steady deadline = pool.now + 5s;
    pool.tell(Borrow{.waiter = bob, .deadline = deadline, .lane = Lane::priority});
    pool.tell(Borrow{.waiter = cleo, .deadline = deadline, .lane = Lane::priority});
    for (const WaiterId waiter : {bob, cleo, ann}) {
        pool.tell(GiveBack{.connection = only});
        EXPECT_THAT(served(pool), testing::ElementsAre(waiter));
    }
}

TEST(Machine, ABorrowerWhoWasLentADeadOneKeepsItsTurn) {
    Script pool(plain(2));
    const ConnectionId first = pool.lend_new(ann);
    pool.borrow(bob, 5s);
    pool.borrow(cleo, 5s);
    pool.tell(GiveBack{.connection = first, .bad = Reason::dead});
    pool.tell(Borrow{.waiter = ann, .deadline = pool.now + 5s, .first = true});
    pool.tell(Closed{first});
    const auto opens = pool.said_of<Open>();
    ASSERT_THAT(opens, SizeIs(1));
    pool.tell(Opened{opens[0].connection});
    EXPECT_THAT(served(pool), testing::ElementsAre(ann));
}

TEST(Machine, AWaiterIsRefusedAtItsDeadline) {
    HOLDFAST_CHECK("connections res.wait_timeout");
    Script pool(plain(1));
    pool.lend_new();
    pool.borrow(ann, 5s);
    pool.borrow(bob, 8s);
    EXPECT_EQ(pool.machine.next_wake(), pool.now + 5s);
    pool.advance(5s - 1ns);
    EXPECT_THAT(pool.tell(Tick{}), IsEmpty());
    pool.advance(1ns);
    pool.tell(Tick{});
    const auto refusals = pool.said_of<Refuse>();
    ASSERT_THAT(refusals, SizeIs(1));
    EXPECT_EQ(refusals[0].waiter, ann);
    EXPECT_EQ(refusals[0].why, Refusal::timeout);
    EXPECT_EQ(pool.machine.next_wake(), pool.now + 3s);
}

// The connection comes back after the deadline, but before anybody has looked at the clock.
TEST(Machine, NothingIsLentAfterTheDeadline) {
    Script pool(plain(1));
    const ConnectionId only = pool.lend_new();
    pool.borrow(ann, 5s);
    pool.borrow(bob, 8s);
    pool.advance(6s);
    pool.tell(GiveBack{.connection = only});
    EXPECT_THAT(served(pool), testing::ElementsAre(bob));
    EXPECT_THAT(pool.said_of<Refuse>(), SizeIs(1));
}

TEST(Machine, APassedDeadlineMeansNowOrNever) {
    Script pool(plain(2));
    pool.borrow(ann, 0s);
    EXPECT_THAT(pool.said_of<Refuse>(), SizeIs(1));
    EXPECT_THAT(pool.said_of<Open>(), IsEmpty());
    pool.open_one();
    pool.borrow(ann, 0s);
    EXPECT_THAT(served(pool), testing::ElementsAre(ann));
}

// --- Age ---

TEST(Machine, TheOldestIsLentFirst) {
    Script pool(plain(3));
    const ConnectionId oldest = pool.lend_new(ann);
    pool.advance(1s);
    const ConnectionId youngest = pool.lend_new(bob);
    pool.tell(GiveBack{.connection = youngest});
    pool.advance(1s);
    pool.tell(GiveBack{.connection = oldest});
    pool.borrow(cleo, 5s);
    EXPECT_EQ(pool.said_of<Lend>().at(0).connection, oldest);
}

// Five unusable ones do not refuse the borrower: the search goes on.
TEST(Machine, UnusableOnesAreRetiredUntilAUsableOneIsFound) {
    HOLDFAST_CHECK("connections res.wait_stale");
    HOLDFAST_CHECK("connections res.expired");
    HOLDFAST_CHECK("connections res.expired_series");
    Config config = plain(6);
    config.min_ready = 5;
    Script pool(config);
    pool.tell(Tick{});
    pool.open_all();
    pool.advance(5min);
    std::vector<ConnectionId> old;
    for (std::uint64_t i = 0; i < 5; ++i) {
        pool.borrow(WaiterId{i}, 5s);
        old.push_back(pool.said_of<Lend>().at(0).connection);
    }
    const ConnectionId young = pool.lend_new();
    for (const ConnectionId connection : old) {
        pool.tell(GiveBack{.connection = connection});
    }
    pool.tell(GiveBack{.connection = young});
    pool.advance(5min);
    pool.borrow(ann, 5s);
    EXPECT_THAT(closed(pool), testing::ElementsAreArray(std::vector(5, Reason::expired)));
    ASSERT_THAT(pool.said_of<Lend>(), SizeIs(1));
    EXPECT_EQ(pool.said_of<Lend>()[0].connection, young);
}

TEST(Machine, TheGuardDecidesWhoIsStillLent) {
    HOLDFAST_CHECK("connections entry.remaining");
    HOLDFAST_CHECK("connections entry.overdue");
    HOLDFAST_CHECK("connections res.guard_checkout");
    HOLDFAST_CHECK("connections res.guard_above");
    HOLDFAST_CHECK("connections res.guard_below");
    HOLDFAST_CHECK("connections res.guard_zero");
    const auto lent_with = [](std::chrono::nanoseconds left, std::chrono::nanoseconds guard) {
        Config config = plain(1);
        config.guard = guard;
        Script pool(config);
        pool.open_one();
        pool.advance(config.life - left);
        pool.borrow(ann, 5s);
        return !pool.said_of<Lend>().empty();
    };
    EXPECT_TRUE(lent_with(2min, 1min));
    EXPECT_TRUE(lent_with(1min, 1min)) << "exactly the guard is enough";
    EXPECT_FALSE(lent_with(59s, 1min));
    EXPECT_FALSE(lent_with(30s, 1min));
    EXPECT_TRUE(lent_with(1s, 0s));
    EXPECT_FALSE(lent_with(0s, 0s));
}

TEST(Machine, AnOverAgeLoanIsClosedWhenItComesBack) {
    HOLDFAST_CHECK("connections +res.retire_on_return");
    HOLDFAST_CHECK("connections res.guard_return");
    Script pool(plain(2));
    const ConnectionId connection = pool.lend_new();
    pool.advance(9min + 1ns);
    EXPECT_THAT(pool.tell(Tick{}), IsEmpty()) << "what is lent is not taken away";
    pool.tell(GiveBack{.connection = connection});
    EXPECT_THAT(closed(pool), testing::ElementsAre(Reason::expired));
}

TEST(Machine, AnIdleConnectionIsRetiredWhenItsTimeHasCome) {
    Script pool(plain(2));
    pool.open_one();
    EXPECT_EQ(pool.machine.next_wake(), pool.now + 9min + 1ns);
    pool.now = pool.machine.next_wake() - 1ns;
    EXPECT_THAT(pool.tell(Tick{}), IsEmpty());
    pool.now = pool.machine.next_wake();
    pool.tell(Tick{});
    EXPECT_THAT(closed(pool), testing::ElementsAre(Reason::expired));
}

TEST(Machine, WhatNobodyBorrowsIsClosedDownToTheMinimum) {
    Config config = plain(5);
    config.idle_max = 2min;
    config.min_ready = 2;
    Script pool(config);
    pool.tell(Tick{});
    pool.open_all();
    std::vector<ConnectionId> lent;
    for (std::uint64_t i = 0; i < 4; ++i) {
        pool.borrow(WaiterId{i}, 5s);
        for (const Lend& lend : pool.said_of<Lend>()) {
            lent.push_back(lend.connection);
        }
        for (const Open& open : pool.said_of<Open>()) {
            lent.push_back(open.connection);
            pool.tell(Opened{open.connection});
        }
    }
    ASSERT_THAT(lent, SizeIs(4));
    for (const ConnectionId connection : lent) {
        pool.tell(GiveBack{.connection = connection});
    }
    pool.tell(Tick{});
    ASSERT_EQ(pool.machine.next_wake(), pool.now + 2min);
    pool.advance(2min);
    pool.tell(Tick{});
    EXPECT_THAT(closed(pool), testing::ElementsAre(Reason::idle, Reason::idle));
    EXPECT_EQ(pool.machine.counts().ready, 2);
    EXPECT_GT(pool.machine.next_wake(), pool.now + 2min) << "those two are kept, not looked after";
}

// Because the oldest are lent first, the others can rest for long enough to be let go.
TEST(Machine, ALightlyUsedPoolShrinksToWhatItNeeds) {
    Config config = plain(3);
    config.idle_max = 1min;
    Script pool(config);
    const ConnectionId first = pool.lend_new(ann);
    const ConnectionId second = pool.lend_new(bob);
    pool.tell(GiveBack{.connection = second});
    pool.tell(GiveBack{.connection = first});
    std::vector<Reason> why;
    for (int i = 0; i < 12; ++i) {
        pool.advance(10s);
        pool.borrow(ann, 5s);
        ASSERT_EQ(pool.said_of<Lend>().at(0).connection, first);
        pool.tell(GiveBack{.connection = first});
        pool.tell(Tick{});
        for (const Reason reason : closed(pool)) {
            why.push_back(reason);
        }
    }
    EXPECT_THAT(why, testing::ElementsAre(Reason::idle));
    EXPECT_EQ(pool.machine.counts().ready, 1);
}

// --- Failures while opening ---

// The pause after the n-th failure in a row, for one seed.
std::chrono::nanoseconds pause_after(int failures, FailureClass failure, std::uint64_t seed) {
    Script pool(plain(1), seed);
    pool.borrow(ann, 24h);
    for (int i = 0; i < failures; ++i) {
        pool.now = std::max(pool.now, pool.machine.paused_until());
        if (i > 0) {
            pool.tell(Tick{});
        }
        const ConnectionId attempt = pool.said_of<Open>().at(0).connection;
        pool.tell(OpenFailed{.connection = attempt, .failure = failure});
    }
    return pool.machine.paused_until() - pool.now;
}

TEST(Machine, FailuresInARowLengthenThePauseUpToItsBound) {
    HOLDFAST_CHECK("connections +fill.backoff");
    const Limits limits;
    for (const FailureClass failure : {FailureClass::transport,
                                       FailureClass::auth,
                                       FailureClass::full,
                                       FailureClass::rate_limited,
                                       FailureClass::other}) {
        const Backoff rule = limits.backoff[static_cast<std::size_t>(failure)];
        for (const int n : {1, 2, 4, 20}) {
            const auto bound =
                n == 20 ? rule.most : std::min(rule.most, rule.first * (1 << (n - 1)));
            std::chrono::nanoseconds longest{0};
            for (std::uint64_t seed = 0; seed < 200; ++seed) {
                const auto pause = pause_after(n, failure, seed);
                EXPECT_LE(pause, bound);
                longest = std::max(longest, pause);
            }
            EXPECT_GT(longest, bound * 9 / 10) << "full jitter reaches up to the bound";
        }
    }
}

TEST(Machine, ASuccessEndsTheRowOfFailures) {
    HOLDFAST_CHECK("connections +fill.backoff");
    std::chrono::nanoseconds longest{0};
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
        Script pool(plain(2), seed);
        pool.borrow(ann, 24h);
        for (int i = 0; i < 8; ++i) {
            const ConnectionId attempt = pool.said_of<Open>().at(0).connection;
            pool.tell(OpenFailed{.connection = attempt, .failure = FailureClass::transport});
            pool.now = std::max(pool.now, pool.machine.paused_until());
            pool.tell(Tick{});
        }
        pool.tell(Opened{pool.said_of<Open>().at(0).connection});
        ASSERT_THAT(served(pool), testing::ElementsAre(ann));
        pool.borrow(bob, 24h);
        const ConnectionId attempt = pool.said_of<Open>().at(0).connection;
        pool.tell(OpenFailed{.connection = attempt, .failure = FailureClass::transport});
        longest = std::max(longest, pool.machine.paused_until() - pool.now);
    }
    EXPECT_LE(longest, Limits{}.backoff[0].first);
}

TEST(Machine, OpeningsThatFailTogetherCountOnce) {
    for (std::uint64_t seed = 0; seed < 100; ++seed) {
        Config config = plain(8);
        config.min_ready = 8;
        Script pool(config, seed);
        pool.tell(Tick{});
        const auto opens = pool.said_of<Open>();
        ASSERT_THAT(opens, SizeIs(8));
        for (const Open& open : opens) {
            pool.tell(OpenFailed{open.connection, FailureClass::transport});
        }
        EXPECT_LE(pool.machine.paused_until() - pool.now, Limits{}.backoff[0].first);
    }
}

// It was on its way before the server said that it is full.
TEST(Machine, ASuccessFromBeforeTheFailureDoesNotEndThePause) {
    Config config = plain(2);
    config.min_ready = 2;
    Script pool(config);
    pool.tell(Tick{});
    const auto opens = pool.said_of<Open>();
    pool.tell(OpenFailed{opens.at(0).connection, FailureClass::full});
    const Steady until = pool.machine.paused_until();
    ASSERT_GT(until, pool.now);
    pool.tell(Opened{opens.at(1).connection});
    EXPECT_THAT(pool.said_of<Open>(), IsEmpty());
    EXPECT_EQ(pool.machine.paused_until(), until);
    EXPECT_EQ(pool.machine.next_wake(), until);
    pool.now = until;
    pool.tell(Tick{});
    EXPECT_THAT(pool.said_of<Open>(), SizeIs(1));
}

TEST(Machine, WaitersOutlastAFailureAndAreToldOfItAtTheirDeadline) {
    Script pool(plain(2));
    pool.borrow(ann, 50ms);
    const ConnectionId attempt = pool.said_of<Open>().at(0).connection;
    EXPECT_THAT(pool.tell(OpenFailed{attempt, FailureClass::auth}), IsEmpty());
    pool.advance(50ms);
    pool.tell(Tick{});
    const auto refusals = pool.said_of<Refuse>();
    ASSERT_THAT(refusals, SizeIs(1));
    EXPECT_EQ(refusals[0].why, Refusal::timeout);
    EXPECT_EQ(refusals[0].last_failure, FailureClass::auth);
}

// Once an opening has succeeded, the old failure explains nothing any more.
TEST(Machine, AFailureIsForgottenAfterASuccess) {
    Script pool(plain(1));
    pool.borrow(ann, 1h);
    pool.tell(OpenFailed{pool.said_of<Open>().at(0).connection, FailureClass::auth});
    pool.now = pool.machine.paused_until();
    pool.tell(Tick{});
    pool.tell(Opened{pool.said_of<Open>().at(0).connection});
    pool.borrow(bob, 5s);
    pool.advance(5s);
    pool.tell(Tick{});
    ASSERT_THAT(pool.said_of<Refuse>(), SizeIs(1));
    EXPECT_EQ(pool.said_of<Refuse>()[0].last_failure, std::nullopt);
}

// --- fail_fast ---

Config hasty(int target) {
    Config config = plain(target);
    config.fail_fast = FailFast::always;
    return config;
}

TEST(Machine, FailFastRefusesAllWhoWaitOnceNothingIsLeftToHopeFor) {
    for (const FailureClass failure : {FailureClass::transport, FailureClass::auth}) {
        Script pool(hasty(5));
        pool.borrow(ann, 30s);
        const ConnectionId first = pool.said_of<Open>().at(0).connection;
        pool.borrow(bob, 30s);
        const ConnectionId second = pool.said_of<Open>().at(0).connection;
        EXPECT_THAT(pool.tell(OpenFailed{first, failure}), IsEmpty()) << "the second may succeed";
        pool.tell(OpenFailed{second, failure});
        const auto refusals = pool.said_of<Refuse>();
        ASSERT_THAT(refusals, SizeIs(2));
        for (const Refuse& refuse : refusals) {
            EXPECT_EQ(refuse.why, Refusal::unavailable);
            EXPECT_EQ(refuse.last_failure, failure);
        }
    }
}

TEST(Machine, FailFastAnswersAtOnceDuringThePauseAndTriesAgainAfterIt) {
    Script pool(hasty(5));
    pool.borrow(ann, 30s);
    pool.tell(OpenFailed{pool.said_of<Open>().at(0).connection, FailureClass::auth});
    ASSERT_GT(pool.machine.paused_until(), pool.now);
    pool.borrow(bob, 30s);
    ASSERT_THAT(pool.said_of<Refuse>(), SizeIs(1));
    EXPECT_EQ(pool.said_of<Refuse>()[0].why, Refusal::unavailable);
    EXPECT_THAT(pool.said_of<Open>(), IsEmpty());
    pool.now = pool.machine.paused_until();
    pool.borrow(bob, 30s);
    ASSERT_THAT(pool.said_of<Open>(), SizeIs(1));
    pool.tell(Opened{pool.said_of<Open>()[0].connection});
    EXPECT_THAT(served(pool), testing::ElementsAre(bob));
}

TEST(Machine, FailFastWaitsWhileTheServerIsOnlyFull) {
    HOLDFAST_CHECK("connections +err.53300");
    Script pool(hasty(5));
    pool.borrow(ann, 30s);
    pool.tell(OpenFailed{pool.said_of<Open>().at(0).connection, FailureClass::full});
    EXPECT_THAT(pool.said, IsEmpty());
    EXPECT_EQ(pool.machine.counts().waiting, 1);
}

TEST(Machine, FailFastWaitsWhileAnythingIsOpen) {
    Script pool(hasty(5));
    const ConnectionId lent = pool.lend_new();
    pool.borrow(ann, 30s);
    EXPECT_THAT(
        pool.tell(OpenFailed{pool.said_of<Open>().at(0).connection, FailureClass::transport}),
        IsEmpty());
    pool.tell(GiveBack{.connection = lent});
    EXPECT_THAT(served(pool), testing::ElementsAre(ann));
}

// --- The end ---

TEST(Machine, StopRefusesWhoWaitsAndClosesWhatIsIdle) {
    Script pool(plain(2));
    pool.open_one();
    pool.tell(Stop{});
    EXPECT_THAT(closed(pool), testing::ElementsAre(Reason::shutdown));

    Script busy(plain(1));
    const ConnectionId lent = busy.lend_new();
    busy.borrow(ann, 5s);
    busy.tell(Stop{});
    ASSERT_THAT(busy.said_of<Refuse>(), SizeIs(1));
    EXPECT_EQ(busy.said_of<Refuse>()[0].why, Refusal::shutdown);
    EXPECT_EQ(busy.machine.next_wake(), Steady::max());
    busy.tell(GiveBack{.connection = lent});
    EXPECT_THAT(closed(busy), testing::ElementsAre(Reason::shutdown));
}

TEST(Machine, AfterStopNothingIsLentOrOpened) {
    HOLDFAST_CHECK("connections fill.stop_twice");
    Config config = plain(3);
    config.min_ready = 3;
    Script pool(config);
    pool.tell(Tick{});
    const auto opens = pool.said_of<Open>();
    ASSERT_THAT(opens, SizeIs(3));
    EXPECT_THAT(pool.tell(Stop{}), IsEmpty());
    EXPECT_THAT(pool.tell(Stop{}), IsEmpty()) << "a repeat does no harm";
    pool.tell(Opened{opens[0].connection});
    EXPECT_THAT(closed(pool), testing::ElementsAre(Reason::shutdown));
    EXPECT_THAT(pool.tell(OpenFailed{opens[1].connection, FailureClass::other}), IsEmpty());
    pool.borrow(ann, 5s);
    EXPECT_EQ(pool.said_of<Refuse>().at(0).why, Refusal::shutdown);
    EXPECT_THAT(pool.tell(Tick{}), IsEmpty());
    EXPECT_THAT(pool.tell(Resize{9}), IsEmpty());
}

TEST(MachineDeathTest, AnAnswerNobodyAskedForStopsTheProcess) {
    Script pool(plain(2));
    const ConnectionId connection = pool.open_one();
    EXPECT_DEATH(pool.tell(GiveBack{.connection = connection}), "broken invariant");
    EXPECT_DEATH(pool.tell(Opened{connection}), "broken invariant");
    EXPECT_DEATH(pool.tell(Closed{{.slot = 77, .birth = 1}}), "broken invariant");
}

TEST(Machine, AConfigurationThatCannotWorkIsRefused) {
    HOLDFAST_CHECK("connections res.capacity_0");
    HOLDFAST_CHECK("connections res.capacity_negative");
    const auto refused = [](auto change) {
        Config config = plain(5);
        change(config);
        return test::code_of([&] { Machine(config, 1); }) == Code::invalid_argument;
    };
    EXPECT_FALSE(refused([](Config&) {}));
    EXPECT_TRUE(refused([](Config& c) { c.target = 0; }));
    EXPECT_TRUE(refused([](Config& c) { c.target = -1; }));
    EXPECT_TRUE(refused([](Config& c) { c.target = target_max + 1; }));
    EXPECT_TRUE(refused([](Config& c) { c.min_ready = -1; }));
    EXPECT_TRUE(refused([](Config& c) { c.overshoot = -1; }));
    EXPECT_TRUE(refused([](Config& c) { c.slots = -1; }));
    EXPECT_TRUE(refused([](Config& c) { c.guard = c.life; }));
    EXPECT_TRUE(refused([](Config& c) { c.life_jitter = -1s; }));
    EXPECT_TRUE(refused([](Config& c) { c.idle_max = 0s; }));
    EXPECT_TRUE(refused([](Config& c) { c.check_after = -1s; }));
    EXPECT_TRUE(refused([](Config& c) { c.limits.opening_max = 0; }));
    EXPECT_TRUE(refused([](Config& c) { c.limits.closers_max = 0; }));
}

}  // namespace
}  // namespace holdfast::pool
