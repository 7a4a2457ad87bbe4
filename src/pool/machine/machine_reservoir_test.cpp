// A reservoir: replacements that come first, idle connections that are looked after, slots that are
// lost.
#include <algorithm>

#include "machine/test/machine_fixture.hpp"
#include "test/pool_fixture.hpp"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <holdfast/pool/machine.hpp>
#include <holdfast/testing/check.hpp>

namespace holdfast::pool {
namespace {

using namespace std::chrono_literals;
using testing::IsEmpty;
using testing::SizeIs;

constexpr WaiterId looker{99};

// Full, and each connection of the same age.
Script filled(Config config) {
    config.limits.spread_from = 1;
    config.life_jitter = 0ns;
    Script pool(config);
    pool.tell(Tick{});
    pool.open_all();
    return pool;
}

// To the moment when replacements are due.
void grow_old(Script& pool, const Config& config) {
    pool.advance(config.life - config.guard - config.lead + 1ns);
}

ConnectionId lent(Script& pool, WaiterId waiter = ann) {
    pool.borrow(waiter, 5s);
    return pool.said_of<Lend>().at(0).connection;
}

TEST(MachineReservoir, IsAlwaysFull) {
    HOLDFAST_CHECK("connections +warm.exact");
    Script pool = filled(reservoir(100));
    EXPECT_EQ(pool.machine.counts().ready, 100);
    EXPECT_THAT(pool.tell(Tick{}), IsEmpty());
}

TEST(MachineReservoir, OpensTheReplacementBeforeTheOldOneEnds) {
    const Config config = reservoir(1);
    Script pool = filled(config);
    grow_old(pool, config);
    EXPECT_LE(pool.machine.next_wake(), pool.now);
    pool.tell(Tick{});
    ASSERT_THAT(pool.said_of<Open>(), SizeIs(1));
    EXPECT_THAT(pool.said_of<Close>(), IsEmpty()) << "or there would be none for a while";
    EXPECT_EQ(pool.machine.counts().ready, 1);

    pool.tell(Opened{pool.said_of<Open>().at(0).connection});
    ASSERT_THAT(pool.said_of<Close>(), SizeIs(1));
    EXPECT_EQ(pool.said_of<Close>().at(0).reason, Reason::expired);
    EXPECT_EQ(pool.machine.counts().ready, 1);
}

TEST(MachineReservoir, ReplacesAFewAtATime) {
    const Config config = reservoir(100);
    Script pool = filled(config);
    grow_old(pool, config);
    pool.tell(Tick{});
    ASSERT_THAT(pool.said_of<Open>(), SizeIs(2)) << "2 %, though all 100 are due";

    int replaced = 0;
    while (!pool.said_of<Open>().empty()) {
        pool.tell(Opened{pool.said_of<Open>().at(0).connection});
        const auto closes = pool.said_of<Close>();
        ASSERT_THAT(closes, SizeIs(1));
        EXPECT_LE(pool.machine.counts().total(), 102);
        EXPECT_EQ(pool.machine.counts().ready, 100);
        ++replaced;
        pool.tell(Closed{closes.at(0).connection});
    }
    EXPECT_EQ(replaced, 99) << "and the last opening is under way";
}

TEST(MachineReservoir, ALentOneIsReplacedMeanwhileAndClosedWhenItComesHome) {
    const Config config = reservoir(1);
    Script pool = filled(config);
    const ConnectionId old = lent(pool);
    grow_old(pool, config);
    pool.tell(Tick{});
    pool.open_all();
    EXPECT_EQ(pool.machine.counts().ready, 1) << "the next borrower need not wait";
    pool.tell(GiveBack{.connection = old});
    ASSERT_THAT(pool.said_of<Close>(), SizeIs(1));
    EXPECT_EQ(pool.said_of<Close>().at(0).connection, old);
}

TEST(MachineReservoir, WithoutRoomItReplacesOneThatHasEnded) {
    Config config = reservoir(1);
    config.slots = 1;
    Script pool = filled(config);
    grow_old(pool, config);
    EXPECT_THAT(pool.tell(Tick{}), IsEmpty()) << "there is no slot for a second one";
    pool.advance(config.lead);
    pool.tell(Tick{});
    ASSERT_THAT(pool.said_of<Close>(), SizeIs(1));
    pool.tell(Closed{pool.said_of<Close>().at(0).connection});
    EXPECT_THAT(pool.said_of<Open>(), SizeIs(1));
}

TEST(MachineReservoir, AReplacementThatFailsLeavesTheOldOneInService) {
    const Config config = reservoir(1);
    Script pool = filled(config);
    grow_old(pool, config);
    pool.tell(Tick{});
    pool.tell(OpenFailed{pool.said_of<Open>().at(0).connection, FailureClass::auth});
    EXPECT_THAT(pool.said_of<Close>(), IsEmpty());
    pool.borrow(ann, 5s);
    EXPECT_THAT(pool.said_of<Lend>(), SizeIs(1));
}

// --- A look at those that are idle ---

// All connections are cut while there is no borrower: they are replaced anyway.
TEST(MachineReservoir, WhatIsFoundDeadWhileIdleIsReplaced) {
    HOLDFAST_CHECK("connections +grow.idle");
    Script pool = filled(reservoir(10));
    pool.advance(1s);
    pool.tell(Look{.looker = looker, .before = pool.now, .most = 64});
    const auto looked_at = pool.said_of<Lend>();
    ASSERT_THAT(looked_at, SizeIs(10));
    for (std::size_t i = 0; i < looked_at.size(); ++i) {
        const bool dead = i % 2 == 0;
        pool.tell(GiveBack{.connection = looked_at[i].connection,
                           .bad = dead ? std::optional(Reason::dead) : std::nullopt});
        EXPECT_THAT(pool.said_of<Close>(), SizeIs(dead ? 1 : 0));
        EXPECT_LE(pool.machine.counts().total(), 11);
        if (dead) {
            pool.tell(Closed{looked_at[i].connection});
        }
    }
    EXPECT_EQ(pool.machine.counts().ready, 5);
    EXPECT_EQ(pool.machine.counts().opening, 5);
}

TEST(MachineReservoir, ALookIsNoUse) {
    Config config;
    config.target = 2;
    Script pool(config);
    const ConnectionId idle = pool.open_one();
    pool.advance(config.idle_max - 1s);
    pool.tell(Look{.looker = looker, .before = pool.now, .most = 1});
    ASSERT_THAT(pool.said_of<Lend>(), SizeIs(1));
    EXPECT_EQ(pool.said_of<Lend>().at(0).idle, config.idle_max - 1s);
    EXPECT_EQ(pool.machine.counts().in_use, 0);
    EXPECT_THAT(pool.tell(GiveBack{.connection = idle}), IsEmpty());
    EXPECT_THAT(pool.tell(Look{.looker = looker, .before = pool.now, .most = 1}), IsEmpty())
        << "it was seen a moment ago";
    pool.advance(1s);
    pool.tell(Tick{});
    ASSERT_THAT(pool.said_of<Close>(), SizeIs(1));
    EXPECT_EQ(pool.said_of<Close>().at(0).reason, Reason::idle);
}

TEST(MachineReservoir, WhoeverComesDuringALookWaitsForItAndOpensNothing) {
    Config config;
    config.target = 5;
    Script pool(config);
    const ConnectionId idle = pool.open_one();
    pool.advance(1s);
    pool.tell(Look{.looker = looker, .before = pool.now, .most = 1});
    EXPECT_THAT(pool.borrow(ann, 5s), IsEmpty());
    pool.tell(GiveBack{.connection = idle});
    ASSERT_THAT(pool.said_of<Lend>(), SizeIs(1));
    EXPECT_EQ(pool.said_of<Lend>().at(0).waiter, ann);
}

// --- Slots that are lost ---

TEST(MachineReservoir, ShedsIdleConnectionsFirstAndLentOnesAsTheyComeHome) {
    HOLDFAST_CHECK("connections +slot.lost");
    Script pool = filled(reservoir(4));
    const ConnectionId first = lent(pool);
    const ConnectionId second = lent(pool);
    const ConnectionId third = lent(pool);
    pool.tell(Shed{3});
    ASSERT_THAT(pool.said_of<Close>(), SizeIs(1));
    EXPECT_EQ(pool.said_of<Close>().at(0).reason, Reason::slot_lost);
    for (const ConnectionId connection : {first, second}) {
        pool.tell(GiveBack{.connection = connection});
        ASSERT_THAT(pool.said_of<Close>(), SizeIs(1));
        EXPECT_EQ(pool.said_of<Close>().at(0).reason, Reason::slot_lost);
    }
    pool.tell(GiveBack{.connection = third});
    EXPECT_THAT(pool.said_of<Close>(), IsEmpty());
}

// The excess is measured while connections are still being closed.
TEST(MachineReservoir, IsToldTwiceAndShedsOnce) {
    Script pool = filled(reservoir(4));
    pool.tell(Shed{2});
    EXPECT_THAT(pool.said_of<Close>(), SizeIs(2));
    pool.tell(Shed{2});
    EXPECT_THAT(pool.said_of<Close>(), IsEmpty());
}

TEST(MachineReservoir, ShedsNothingMoreOnceItIsTakenBack) {
    Script pool = filled(reservoir(1));
    const ConnectionId only = lent(pool);
    pool.tell(Shed{1});
    pool.tell(Shed{0});
    EXPECT_THAT(pool.tell(GiveBack{.connection = only}), IsEmpty());
}

// --- Patience ---

TEST(MachineReservoir, TellsAtOnceIfNothingOpensAtFirst) {
    Script pool(reservoir(1));
    pool.borrow(ann, 5s);
    pool.tell(OpenFailed{pool.said_of<Open>().at(0).connection, FailureClass::auth});
    ASSERT_THAT(pool.said_of<Refuse>(), SizeIs(1));
    EXPECT_EQ(pool.said_of<Refuse>().at(0).why, Refusal::unavailable);
}

// All connections were cut, and the first try to open another fails: that passes.
TEST(MachineReservoir, LaterItsBorrowersWaitForBetterTimes) {
    Script pool = filled(reservoir(1));
    const ConnectionId only = lent(pool);
    pool.borrow(WaiterId{2}, 1min);
    pool.tell(GiveBack{.connection = only, .bad = Reason::dead});
    const ConnectionId next = pool.said_of<Open>().at(0).connection;
    pool.tell(OpenFailed{next, FailureClass::transport});
    EXPECT_THAT(pool.said_of<Refuse>(), IsEmpty());
    pool.now = pool.machine.next_wake();
    pool.tell(Tick{});
    pool.tell(Opened{pool.said_of<Open>().at(0).connection});
    EXPECT_THAT(pool.said_of<Lend>(), SizeIs(1));
}

}  // namespace
}  // namespace holdfast::pool
