// How the machine fills, replaces and resizes, and how long its connections live.
#include <algorithm>
#include <deque>

#include "machine/test/machine_fixture.hpp"
#include "test/pool_fixture.hpp"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <holdfast/pool/machine.hpp>
#include <holdfast/pool/token_bucket.hpp>
#include <holdfast/testing/check.hpp>

namespace holdfast::pool {
namespace {

using namespace std::chrono_literals;
using testing::IsEmpty;
using testing::SizeIs;

// How long each connection that is ready lives from now on. Nothing is replaced meanwhile, because
// no answer says that the old ones are closed.
std::vector<std::chrono::nanoseconds> lives(Script& pool, std::chrono::nanoseconds guard) {
    const Steady start = pool.now;
    std::vector<std::chrono::nanoseconds> found;
    while (pool.machine.counts().ready > 0) {
        pool.now = pool.machine.next_wake();
        pool.tell(Tick{});
        for (const Close& close : pool.said_of<Close>()) {
            EXPECT_EQ(close.reason, Reason::expired);
            found.push_back(pool.now - start + guard - 1ns);
        }
    }
    return found;
}

void expect_spread(const std::vector<std::chrono::nanoseconds>& found, const Config& config) {
    const auto shortest = config.life * 4 / 10;
    const auto part = (config.life + config.life_jitter - shortest) / config.target;
    ASSERT_THAT(found, SizeIs(config.target));
    for (int k = 0; k < config.target; ++k) {
        EXPECT_GE(found[static_cast<std::size_t>(k)], shortest + part * k - 1us);
        EXPECT_LE(found[static_cast<std::size_t>(k)], shortest + part * (k + 1) + 1us);
    }
}

TEST(MachineRefill, FillsUpToTheMinimumAndThenRests) {
    HOLDFAST_CHECK("connections fill.to_target");
    HOLDFAST_CHECK("connections fill.stops");
    Script pool(full(20));
    pool.tell(Tick{});
    pool.open_all();
    EXPECT_EQ(pool.machine.counts().ready, 20);
    for (int i = 0; i < 10; ++i) {
        pool.advance(1s);
        EXPECT_THAT(pool.tell(Tick{}), IsEmpty());
    }
}

// How long the first filling takes if every opening needs a permit, and nothing else takes time.
std::chrono::nanoseconds first_filling(Script& pool, TokenBucket& permits) {
    const Steady began = pool.now;
    std::deque<Open> asked;
    const auto note = [&] {
        for (const Open& open : pool.said_of<Open>()) {
            asked.push_back(open);
        }
    };
    pool.tell(Tick{});
    note();
    while (!asked.empty()) {
        while (!permits.try_take(pool.now)) {
            pool.advance(1ms);
        }
        pool.tell(Opened{asked.front().connection});
        asked.pop_front();
        note();
    }
    return pool.now - began;
}

// The filling of a large pool is not stretched over minutes: the permits alone set the pace, and it
// never is above theirs.
TEST(MachineRefill, TheFirstFillingIsPacedByPermitsAndByNothingElse) {
    HOLDFAST_CHECK("connections warm.stagger");
    HOLDFAST_CHECK("connections warm.rate");
    constexpr int per_second = 75;
    constexpr int burst = 100;
    for (const int target : {10, 100, 200, 500, 501, 1000, 5000, 8000}) {
        Script pool(full(target));
        TokenBucket permits(per_second, burst);
        const auto took = first_filling(pool, permits);
        EXPECT_EQ(pool.machine.counts().ready, target);
        const auto least = std::chrono::nanoseconds{1s} * std::max(target - burst, 0) / per_second;
        EXPECT_GE(took, least - 1ms) << target;
        EXPECT_LE(took, least + 1ms) << target;
    }
}

TEST(MachineRefill, APoolWithRoomForAThousandHoldsTheHundredThatAreWanted) {
    HOLDFAST_CHECK("connections res.capacity_large");
    Config config;
    config.target = 1000;
    config.min_ready = 100;
    Script pool(config);
    pool.tell(Tick{});
    pool.open_all();
    EXPECT_EQ(pool.machine.counts().ready, 100);
    EXPECT_EQ(pool.machine.counts().total(), 100);
}

TEST(MachineRefill, OpensSeveralAtATimeAndNeverMoreThanAllowed) {
    HOLDFAST_CHECK("connections +fill.parallel");
    Config config = full(20);
    config.limits.opening_max = 3;
    Script pool(config);
    pool.tell(Tick{});
    auto opens = pool.said_of<Open>();
    ASSERT_THAT(opens, SizeIs(3));
    pool.tell(Opened{opens[0].connection});
    EXPECT_THAT(pool.said_of<Open>(), SizeIs(1));
    EXPECT_EQ(pool.machine.counts().opening, 3);
}

TEST(MachineRefill, AHungOpeningDoesNotStopTheOthers) {
    HOLDFAST_CHECK("connections +fill.hung");
    Config config = full(5);
    config.limits.opening_max = 2;
    Script pool(config);
    pool.tell(Tick{});
    const ConnectionId hung = pool.said_of<Open>().at(0).connection;
    pool.said.erase(pool.said.begin());  // It gets no answer.
    pool.open_all();
    EXPECT_EQ(pool.machine.counts().ready, 4);
    EXPECT_EQ(pool.machine.counts().opening, 1);
    pool.tell(OpenFailed{hung, FailureClass::transport});
    pool.now = pool.machine.next_wake();
    pool.tell(Tick{});
    pool.open_all();
    EXPECT_EQ(pool.machine.counts().ready, 5);
}

TEST(MachineRefill, OpensAsManyAsWaitAndNoMore) {
    Config config;
    config.target = 10;
    Script pool(config);
    for (std::uint64_t i = 0; i < 4; ++i) {
        pool.borrow(WaiterId{i}, 5s);
        EXPECT_THAT(pool.said_of<Open>(), SizeIs(1));
    }
    EXPECT_EQ(pool.machine.counts().opening, 4);
}

// A borrower left before its connection was there: the next one must not cause a second opening.
TEST(MachineRefill, AnOpeningWhoseWaiterLeftServesTheNextOne) {
    Config config;
    config.target = 10;
    Script pool(config);
    pool.borrow(ann, 5s);
    const ConnectionId opening = pool.said_of<Open>().at(0).connection;
    pool.tell(Cancel{ann});
    EXPECT_THAT(pool.borrow(WaiterId{2}, 5s), IsEmpty());
    pool.tell(Opened{opening});
    EXPECT_EQ(pool.said_of<Lend>().at(0).waiter, WaiterId{2});
}

TEST(MachineRefill, AThousandBorrowsOpenNothingBeyondTheTarget) {
    Script pool(full(4));
    pool.tell(Tick{});
    pool.open_all();
    for (std::uint64_t i = 0; i < 1000; ++i) {
        pool.borrow(WaiterId{i}, 5s);
        const ConnectionId connection = pool.said_of<Lend>().at(0).connection;
        pool.advance(10ms);
        EXPECT_THAT(pool.tell(GiveBack{.connection = connection}), IsEmpty());
    }
    EXPECT_EQ(pool.machine.counts().total(), 4);
}

// What is being closed may still be there for the server, so it counts.
TEST(MachineRefill, ABadConnectionIsReplacedOnceItIsReallyClosed) {
    HOLDFAST_CHECK("connections wrap.close_bad");
    Script pool(full(2));
    pool.tell(Tick{});
    pool.open_all();
    pool.borrow(ann, 5s);
    const ConnectionId bad = pool.said_of<Lend>().at(0).connection;
    pool.tell(GiveBack{.connection = bad, .bad = Reason::bad});
    EXPECT_THAT(pool.said_of<Close>(), SizeIs(1));
    EXPECT_THAT(pool.said_of<Open>(), IsEmpty());
    pool.tell(Closed{bad});
    EXPECT_THAT(pool.said_of<Open>(), SizeIs(1));
}

TEST(MachineRefill, OvershootLetsTheReplacementComeFirst) {
    Config config = full(2);
    config.overshoot = 1;
    Script pool(config);
    pool.tell(Tick{});
    pool.open_all();
    pool.borrow(ann, 5s);
    const ConnectionId bad = pool.said_of<Lend>().at(0).connection;
    pool.tell(GiveBack{.connection = bad, .bad = Reason::bad});
    EXPECT_THAT(pool.said_of<Open>(), SizeIs(1));
    EXPECT_EQ(pool.machine.counts().total(), 3);
}

TEST(MachineRefill, NeverHoldsMoreThanItsSlots) {
    Config config = full(10);
    config.slots = 4;
    Script pool(config);
    pool.tell(Tick{});
    pool.open_all();
    EXPECT_EQ(pool.machine.counts().ready, 4);
    EXPECT_EQ(pool.machine.counts().bound, 4);
}

// --- Lives ---

TEST(MachineRefill, TheFirstGenerationDoesNotDieTogether) {
    const Config config = full(20);
    Script pool(config);
    pool.tell(Tick{});
    pool.open_all();
    expect_spread(lives(pool, config.guard), config);
}

TEST(MachineRefill, AReplacementLivesForItsLifeAndSomeJitter) {
    HOLDFAST_CHECK("connections entry.expires");
    HOLDFAST_CHECK("connections fill.jitter");
    const Config config = full(1);
    Script pool(config);
    pool.tell(Tick{});
    const ConnectionId first = pool.said_of<Open>().at(0).connection;
    pool.open_all();
    lives(pool, config.guard);
    pool.tell(Closed{first});

    auto shortest = std::chrono::nanoseconds::max();
    std::chrono::nanoseconds longest{0};
    for (int i = 0; i < 200; ++i) {
        const ConnectionId next = pool.said_of<Open>().at(0).connection;
        pool.open_all();
        const auto life = lives(pool, config.guard).at(0);
        shortest = std::min(shortest, life);
        longest = std::max(longest, life);
        pool.tell(Closed{next});
    }
    EXPECT_GE(shortest, config.life);
    EXPECT_LT(shortest, config.life + config.life_jitter / 10);
    EXPECT_LT(longest, config.life + config.life_jitter);
    EXPECT_GT(longest, config.life + config.life_jitter * 9 / 10);
}

// Borrows all that is ready.
std::vector<ConnectionId> lend_all(Script& pool) {
    std::vector<ConnectionId> lent;
    while (pool.machine.counts().ready > 0) {
        pool.borrow(ann, 5s);
        lent.push_back(pool.said_of<Lend>().at(0).connection);
    }
    return lent;
}

// The server went away and came back: all are opened anew at one moment, like the first time.
TEST(MachineRefill, AfterAMassLossTheLivesAreSpreadAgain) {
    const Config config = full(20);
    Script pool(config);
    pool.tell(Tick{});
    pool.open_all();
    pool.advance(1min);
    const auto lent = lend_all(pool);
    ASSERT_THAT(lent, SizeIs(20));
    for (const ConnectionId connection : lent) {
        pool.tell(GiveBack{.connection = connection, .bad = Reason::dead});
    }
    std::vector<Open> opens;
    for (const ConnectionId connection : lent) {
        pool.tell(Closed{connection});
        for (const Open& open : pool.said_of<Open>()) {
            opens.push_back(open);
        }
    }
    pool.said.assign(opens.begin(), opens.end());
    pool.open_all();
    expect_spread(lives(pool, config.guard), config);
}

TEST(MachineRefill, NowAndThenALossDoesNotShortenLives) {
    const Config config = full(20);
    Script pool(config);
    pool.tell(Tick{});
    pool.open_all();
    for (int i = 0; i < 20; ++i) {
        pool.advance(20s);
        pool.borrow(ann, 5s);
        const ConnectionId lost = pool.said_of<Lend>().at(0).connection;
        pool.tell(GiveBack{.connection = lost, .bad = Reason::bad});
        pool.tell(Closed{lost});
        pool.open_all();
    }
    const auto found = lives(pool, config.guard);
    EXPECT_GE(found.front(), config.life - 20 * 20s);
}

// --- Size ---

TEST(MachineRefill, ALargerPoolServesThoseWhoWait) {
    Config config;
    config.target = 1;
    Script pool(config);
    pool.lend_new();
    EXPECT_THAT(pool.borrow(ann, 5s), IsEmpty());
    pool.tell(Resize{2});
    ASSERT_THAT(pool.said_of<Open>(), SizeIs(1));
    pool.tell(Opened{pool.said_of<Open>()[0].connection});
    EXPECT_THAT(pool.said_of<Lend>(), SizeIs(1));
}

TEST(MachineRefill, ASmallerPoolLetsGoWhatIsIdleNowAndWhatIsLentLater) {
    HOLDFAST_CHECK("connections res.return_full");
    Script pool(full(5));
    pool.tell(Tick{});
    pool.open_all();
    pool.borrow(ann, 5s);
    const ConnectionId first = pool.said_of<Lend>().at(0).connection;
    pool.borrow(ann, 5s);
    const ConnectionId second = pool.said_of<Lend>().at(0).connection;
    pool.tell(Resize{1});
    const auto closes = pool.said_of<Close>();
    ASSERT_THAT(closes, SizeIs(3));
    for (const Close& close : closes) {
        EXPECT_EQ(close.reason, Reason::surplus);
    }
    pool.tell(GiveBack{.connection = first});
    EXPECT_EQ(pool.said_of<Close>().at(0).reason, Reason::surplus);
    EXPECT_THAT(pool.tell(GiveBack{.connection = second}), IsEmpty());
    EXPECT_EQ(pool.machine.counts().ready, 1);
}

TEST(MachineRefill, OpeningsUnderWayWhenThePoolShrinksAreSurplus) {
    Script pool(full(3));
    pool.tell(Tick{});
    const auto opens = pool.said_of<Open>();
    pool.tell(Resize{1});
    pool.tell(Opened{opens.at(0).connection});
    EXPECT_EQ(pool.said_of<Close>().at(0).reason, Reason::surplus);
    pool.tell(OpenFailed{opens.at(1).connection, FailureClass::other});
    EXPECT_THAT(pool.tell(Opened{opens.at(2).connection}), IsEmpty());
    EXPECT_EQ(pool.machine.counts().ready, 1);
}

}  // namespace
}  // namespace holdfast::pool
