// The short way through the machine: when it may be taken, and when it must not. That it leads to
// the same place as the long way is shown by machine_model_test.cpp.
#include "machine/test/machine_fixture.hpp"
#include <gtest/gtest.h>

namespace holdfast::pool {
namespace {

using namespace std::chrono_literals;

Config full(int target) {
    Config config;
    config.target = target;
    config.min_ready = target;
    return config;
}

// A full pool, with time of its own that a test can move.
struct Full : Script {
    explicit Full(const Config& config) : Script(config) {
        tell(Tick{});
        open_all();
    }

    std::optional<ConnectionId> lend() {
        const auto lent = machine.lend_at_once(now, WaiterId{7});
        return lent ? std::optional(lent->connection) : std::nullopt;
    }
    bool take_back(ConnectionId connection) { return machine.take_back_at_once(now, connection); }
};

TEST(AtOnce, TheOldestIsLentAndTakenBack) {
    Full pool(full(3));
    const auto first = pool.lend();
    const auto second = pool.lend();
    ASSERT_TRUE(first && second);
    EXPECT_LT(first->birth, second->birth);
    EXPECT_EQ(pool.machine.counts().in_use, 2);
    EXPECT_EQ(pool.machine.counts().ready, 1);

    EXPECT_TRUE(pool.take_back(*second));
    EXPECT_TRUE(pool.take_back(*first));
    EXPECT_EQ(pool.machine.counts().in_use, 0);
    EXPECT_EQ(pool.lend(), first) << "whatever the order in which they come back";
}

TEST(AtOnce, TheIdleTimeIsThatSinceItCameBack) {
    Full pool(full(1));
    const auto lent = pool.lend();
    pool.advance(3s);
    ASSERT_TRUE(pool.take_back(lent.value()));
    pool.advance(2s);
    EXPECT_EQ(pool.machine.lend_at_once(pool.now, WaiterId{7}).value().idle, 2s);
}

// The worst that could happen: a late borrower goes before the waiters.
TEST(AtOnce, WhatComesBackIsForWhoeverWaits) {
    Full pool(full(1));
    const ConnectionId lent = pool.lend().value();
    EXPECT_FALSE(pool.lend()) << "nothing is ready";
    pool.borrow(WaiterId{1}, 5s);
    EXPECT_FALSE(pool.take_back(lent));
    EXPECT_FALSE(pool.lend());
    pool.tell(GiveBack{.connection = lent});
    ASSERT_EQ(pool.said_of<Lend>().size(), 1U);
    EXPECT_EQ(pool.said_of<Lend>()[0].waiter, WaiterId{1});
    EXPECT_TRUE(pool.take_back(lent)) << "nobody waits any more";
}

TEST(AtOnce, AConnectionThatIsTooOldIsNotLentAndNotKept) {
    Config config = full(2);
    config.life = 10min;
    config.life_jitter = 0s;
    Full pool(config);
    const ConnectionId lent = pool.lend().value();
    pool.advance(10min);
    EXPECT_FALSE(pool.lend());
    EXPECT_FALSE(pool.take_back(lent));
    EXPECT_EQ(pool.machine.counts().in_use, 1) << "nothing was done";
    EXPECT_EQ(pool.machine.counts().ready, 1);
    pool.tell(GiveBack{.connection = lent});
    EXPECT_EQ(pool.said_of<Close>().at(0).reason, Reason::expired);
}

TEST(AtOnce, NotWhileAConnectionIsMissing) {
    Full pool(full(2));
    const ConnectionId lent = pool.lend().value();
    pool.tell(GiveBack{.connection = lent, .bad = Reason::bad});
    EXPECT_EQ(pool.machine.counts().ready, 1);
    EXPECT_FALSE(pool.lend()) << "the step that lends looks whether one can be opened, too";
}

TEST(AtOnce, NotWhileConnectionsMustGo) {
    Full pool(full(2));
    const ConnectionId first = pool.lend().value();
    pool.tell(Shed{2});  // The other one at once.
    EXPECT_FALSE(pool.take_back(first));
    pool.tell(GiveBack{.connection = first});
    EXPECT_EQ(pool.said_of<Close>().at(0).reason, Reason::slot_lost);
}

TEST(AtOnce, NotInAPoolThatHasBecomeTooLarge) {
    Full pool(full(2));
    const ConnectionId first = pool.lend().value();
    ASSERT_TRUE(pool.lend());
    pool.tell(Resize{1});
    EXPECT_FALSE(pool.take_back(first));
    pool.tell(GiveBack{.connection = first});
    EXPECT_EQ(pool.said_of<Close>().at(0).reason, Reason::surplus);
}

TEST(AtOnce, NotWhileOneIsBeingReplaced) {
    Config config = full(1);
    config.overshoot = 1;
    config.life = 10min;
    config.life_jitter = 0s;
    config.lead = 1min;
    Full pool(config);
    pool.advance(9min);
    pool.tell(Tick{});
    ASSERT_EQ(pool.said_of<Open>().size(), 1U);
    EXPECT_FALSE(pool.lend());
    pool.open_all();
    EXPECT_TRUE(pool.lend());
}

// A tick is needed when it is idle for too long, and the driver does not know yet.
TEST(AtOnce, NotIfATickIsWantedEarlierThanBefore) {
    Config config;
    config.target = 1;
    Full pool(config);
    const ConnectionId lent = pool.lend_new();
    pool.tell(Tick{});
    ASSERT_EQ(pool.machine.next_wake(), Steady::max());
    EXPECT_FALSE(pool.take_back(lent));
    pool.tell(GiveBack{.connection = lent});
    EXPECT_LT(pool.machine.next_wake(), Steady::max());
    const ConnectionId again = pool.lend().value();
    pool.advance(1s);
    EXPECT_TRUE(pool.take_back(again)) << "that tick will do";
}

TEST(AtOnce, NothingOnceItIsStopped) {
    Full pool(full(2));
    const ConnectionId lent = pool.lend().value();
    pool.tell(Stop{});
    EXPECT_FALSE(pool.lend());
    EXPECT_FALSE(pool.take_back(lent));
    pool.tell(GiveBack{.connection = lent});
    EXPECT_EQ(pool.said_of<Close>().at(0).reason, Reason::shutdown);
}

// Left to step(), which stops the process.
TEST(AtOnce, NotForAConnectionThatIsNotLent) {
    Full pool(full(1));
    const ConnectionId lent = pool.lend().value();
    ASSERT_TRUE(pool.take_back(lent));
    EXPECT_FALSE(pool.take_back(lent));
    EXPECT_FALSE(pool.take_back({.slot = lent.slot, .birth = lent.birth + 1}));
    EXPECT_FALSE(pool.take_back({.slot = 99, .birth = lent.birth}));
}

}  // namespace
}  // namespace holdfast::pool
