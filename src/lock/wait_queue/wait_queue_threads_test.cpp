// The wait queue of a key: which waiter is notified, what a dead or an impatient waiter costs, and
// that no waiter waits for ever.
#include <array>
#include <atomic>
#include <future>

#include "test/lock_fixture.hpp"

#include <holdfast/lock/telemetry.hpp>
#include <holdfast/lock/with_lock.hpp>

namespace holdfast::lock::tests {
namespace {

class Line : public LockStory {
protected:
    Line() : LockStory(unhurried) {}  // Every story here is about turns.

    struct Waiter {
        LockId id = LockId::fresh();
        std::unique_ptr<WaitTicket> ticket;
    };
    Waiter join(const std::string& key) {
        Waiter waiter;
        waiter.ticket = locks.line_up(key, waiter.id, Deadline::after(60s));
        EXPECT_TRUE(waiter.ticket->join());
        db.advance_clock(1ms);  // No two join at the same microsecond.
        return waiter;
    }
    Acquired try_again(const Waiter& waiter) {
        return locks.acquire("k", 60s, {.lock_id = waiter.id});
    }
    [[nodiscard]] std::int64_t in_line() const {
        return db.number("SELECT count(*) FROM holdfast_locks_waiters");
    }
    static Acquisition patient() {
        return {.max_retries = 10'000, .max_delay = 50ms, .timeout = 60s};
    }
    std::future<Acquired> wait_for_the_lock() {
        auto waiting = std::async(std::launch::async,
                                  [&] { return acquire_waiting(locks, "k", 60s, patient()); });
        const Deadline deadline = Deadline::after(20s);
        while (in_line() == 0 && !deadline.passed()) {
        }
        return waiting;
    }
};

TEST_P(Line, IsServedInOrder) {
    const Grant ann = take("k", 60s);
    const Waiter bob = join("k");
    const Waiter cyd = join("k");
    const Waiter dan = join("k");
    EXPECT_EQ(in_line(), 3);
    EXPECT_TRUE(locks.release(ann.lock_id).ok);
    for (const Waiter* next : {&bob, &cyd, &dan}) {
        for (const Waiter* other : {&bob, &cyd, &dan}) {
            if (other != next) {
                EXPECT_TRUE(is_busy(try_again(*other))) << "not their turn";
            }
        }
        EXPECT_TRUE(is_busy(locks.acquire("k", 1s))) << "nobody comes in from the side";
        next->ticket->wait(std::chrono::steady_clock::now() + 20s, {});
        ASSERT_TRUE(is_granted(try_again(*next)));
        next->ticket->arrived();
        EXPECT_TRUE(locks.release(next->id).ok);
    }
    EXPECT_EQ(in_line(), 0);
    EXPECT_FALSE(locks.is_locked("k"));
}

// A process that died in the line is called, does not come, and is not called again.
TEST_P(Line, ADeadWaiterCostsOneReservation) {
    const Grant ann = take("k", 60s);
    db.tamper(
        "INSERT INTO holdfast_locks_waiters (key, since_us, lock_id, waiter, until_ms) "
        "VALUES ('k', 1, 'abcdefghijklmnopqrstuv', 'nobody', 99999999999999)");
    const Waiter cyd = join("k");
    EXPECT_TRUE(locks.release(ann.lock_id).ok);
    const Acquired early = try_again(cyd);
    ASSERT_TRUE(is_busy(early)) << "the key is kept for the dead";
    EXPECT_LE(std::get<Busy>(early).retry_after.value(), unhurried.reservation);
    db.advance_clock(unhurried.reservation + 1ms);
    const auto granted = std::get<Grant>(try_again(cyd));
    cyd.ticket->arrived();
    EXPECT_TRUE(locks.release(granted.lock_id).ok);
    EXPECT_TRUE(is_granted(locks.acquire("k", 10s))) << "nobody is waited for again";
}

// A waiter whose time is over is skipped.
TEST_P(Line, AWaiterWhoseTimeIsOverIsNotCalled) {
    const Grant ann = take("k", 600s);
    const Waiter bob = join("k");  // For a minute.
    db.advance_clock(61s);
    EXPECT_TRUE(locks.release(ann.lock_id).ok);
    EXPECT_TRUE(is_granted(locks.acquire("k", 10s)));
}

TEST_P(Line, WhoeverGivesUpPassesTheTurnOn) {
    const Grant ann = take("k", 60s);
    std::optional<Waiter> bob = join("k");
    const Waiter cyd = join("k");
    EXPECT_TRUE(locks.release(ann.lock_id).ok);
    EXPECT_TRUE(is_busy(try_again(cyd))) << "Bob's turn";
    bob.reset();
    EXPECT_TRUE(is_busy(locks.acquire("k", 1s))) << "it is Cyd's now, and nobody else's";
    EXPECT_TRUE(is_granted(try_again(cyd)));
    cyd.ticket->arrived();
}

TEST_P(Line, WhoeverLeavesEarlyLeavesNothingBehind) {
    const Grant ann = take("k", 60s);
    {
        const Waiter bob = join("k");
        EXPECT_EQ(in_line(), 1);
    }
    EXPECT_EQ(in_line(), 0);
    EXPECT_EQ(locks.find("k").value().fence, ann.fence) << "and disturbs nobody";
    EXPECT_TRUE(locks.release(ann.lock_id).ok);
    EXPECT_FALSE(locks.is_locked("k"));
}

// The row goes without a notification: as if it had been lost.
TEST_P(Line, NobodyWaitsForEverWhenACallIsLost) {
    (void)take("k", 60s);
    auto waiting = wait_for_the_lock();
    db.tamper("DELETE FROM holdfast_locks");
    ASSERT_EQ(waiting.wait_for(30s), std::future_status::ready);
    EXPECT_TRUE(is_granted(waiting.get()));
    EXPECT_EQ(in_line(), 0);
}

TEST_P(Line, AHolderWhoDiesMakesNobodyWaitForEver) {
    (void)take("k", 60s);
    auto waiting = wait_for_the_lock();
    db.advance_clock(62s);  // The waiter's own patience is over by that clock, too.
    ASSERT_EQ(waiting.wait_for(30s), std::future_status::ready);
    EXPECT_TRUE(is_granted(waiting.get()));
}

TEST_P(Line, AStoppedWaiterLeavesAtOnce) {
    (void)take("k", 60s);
    std::stop_source source;
    auto waiting = std::async(std::launch::async, [&] {
        return lock_code_of(
            [&] { (void)acquire_waiting(locks, "k", 60s, patient(), source.get_token()); });
    });
    const Deadline deadline = Deadline::after(20s);
    while (in_line() == 0 && !deadline.passed()) {
    }
    source.request_stop();
    ASSERT_EQ(waiting.wait_for(30s), std::future_status::ready);
    EXPECT_EQ(waiting.get(), LockCode::aborted);
    EXPECT_EQ(in_line(), 0);
}

TEST_P(Line, SixteenOfTwoProcessesAreAllServed) {
    const auto other_db = db.open();
    Locks others(*other_db);
    std::atomic<int> inside = 0;
    std::atomic<int> served = 0;
    all_at_once(16, [&](int i) {
        WithLock options{.key = "k", .ttl = 60s, .acquisition = patient()};
        options.auto_extend.reset();
        for (int round = 0; round < 2; ++round) {
            with_lock(i % 2 == 0 ? locks : others, options, [&](Handle&) {
                EXPECT_EQ(++inside, 1);
                ++served;
                --inside;
            });
        }
    });
    EXPECT_EQ(served, 32);
    EXPECT_EQ(in_line(), 0);
    EXPECT_FALSE(locks.is_locked("k"));
}

// Threads of one process queue in memory: only the first asks the database, and a key that goes
// from one to the next needs a release and an acquisition, and no row in the queue.
TEST_P(Line, NeighboursAskOneAfterTheOther) {
    constexpr int threads = 8;
    constexpr int rounds = 20;
    std::atomic<int> attempts = 0;
    std::atomic<int> refused = 0;
    Observed watched(locks, {.on_event = [&](const Event& event) {
                         if (event.type == EventType::acquire) {
                             ++attempts;
                             refused += event.reason == "locked" ? 1 : 0;
                         }
                     }});
    all_at_once(threads, [&](int) {
        for (int round = 0; round < rounds; ++round) {
            const Grant held = std::get<Grant>(acquire_waiting(watched, "k", 60s, patient()));
            EXPECT_TRUE(watched.release(held.lock_id).ok);
        }
    });
    EXPECT_EQ(attempts - refused, threads * rounds);
    EXPECT_LT(refused, threads * rounds / 4) << "each waiter used to be refused twice";
    EXPECT_EQ(in_line(), 0);
}

// The second waits for a neighbour's word, the third for the second.
TEST_P(Line, NeighboursAreServedInTheOrderTheyCame) {
    const std::array ids{LockId::fresh(), LockId::fresh(), LockId::fresh()};
    std::vector<std::unique_ptr<WaitTicket>> places;
    places.reserve(ids.size());
    for (const LockId& id : ids) {
        places.push_back(locks.line_up("k", id, Deadline::after(60s)));
    }
    std::atomic<int> next = 0;
    const auto long_from_now = std::chrono::steady_clock::now() + 60s;
    std::vector<std::future<void>> waiting;
    waiting.reserve(ids.size());
    for (int i = 0; i < 3; ++i) {
        waiting.push_back(std::async(std::launch::async, [&, i] {
            places[static_cast<std::size_t>(i)]->wait_behind(long_from_now, {});
            EXPECT_EQ(next++, i);
        }));
    }
    for (std::size_t i = 0; i < 3; ++i) {
        waiting[i].get();
        const Grant held = std::get<Grant>(locks.acquire("k", 60s, {.lock_id = ids[i]}));
        places[i]->arrived();
        EXPECT_TRUE(locks.release(held.lock_id).ok);
    }
}

TEST_P(Line, ANeighbourWhoGivesUpLetsTheNextOneTry) {
    auto ann = locks.line_up("k", LockId::fresh(), Deadline::after(60s));
    auto bob = locks.line_up("k", LockId::fresh(), Deadline::after(60s));
    const auto cyd = locks.line_up("k", LockId::fresh(), Deadline::after(60s));
    bob.reset();
    ann.reset();
    cyd->wait_behind(std::chrono::steady_clock::now() + 60s, {});
}

// A neighbour who says nothing, because its lease ran out or it died with the lock, is not trusted
// for long.
TEST_P(Line, NobodyReliesOnANeighbourForLong) {
    Locks trusting(db, {}, {.neighbourly = 20ms});
    const LockId ann = LockId::fresh();
    auto anns = trusting.line_up("k", ann, Deadline::after(60s));
    const auto bobs = trusting.line_up("k", LockId::fresh(), Deadline::after(60s));
    anns->arrived();
    bobs->wait_behind(std::chrono::steady_clock::now() + 60s, {});
}

// A waiter of another process is served before the next of this process.
TEST_P(Line, NeighboursDoNotKeepOthersFromTheirTurn) {
    Locks elsewhere(db, {}, unhurried);
    const Grant ann = take("k", 60s);
    const LockId bob = LockId::fresh();
    const auto bobs = elsewhere.line_up("k", bob, Deadline::after(60s));
    ASSERT_TRUE(bobs->join());
    const LockId cyd = LockId::fresh();
    const auto cyds = locks.line_up("k", cyd, Deadline::after(60s));
    EXPECT_TRUE(locks.release(ann.lock_id).ok);
    EXPECT_TRUE(is_busy(locks.acquire("k", 60s, {.lock_id = cyd}))) << "it is Bob's turn";
    bobs->wait(std::chrono::steady_clock::now() + 20s, {});
    EXPECT_TRUE(is_granted(elsewhere.acquire("k", 60s, {.lock_id = bob})));
    bobs->arrived();
}

// Each wants both, in the other's order.
TEST_P(Line, GroupsNeverWaitForEachOther) {
    std::atomic<int> granted = 0;
    all_at_once(4, [&](int i) {
        const std::vector<std::string> keys =
            i % 2 == 0 ? std::vector<std::string>{"a", "b"} : std::vector<std::string>{"b", "a"};
        for (int round = 0; round < 10; ++round) {
            const GroupAcquired answer =
                locks.acquire_all(keys, 60s, {.deadline = Deadline::after(60s)});
            if (const auto* group = std::get_if<GroupGrant>(&answer)) {
                ++granted;
                EXPECT_EQ(locks.release_all(*group), 2U);
            }
        }
    });
    EXPECT_GT(granted, 0);
    EXPECT_EQ(locks.list().size(), 0U);
}

INSTANTIATE_TEST_SUITE_P(Every, Line, every_setting_of_a_crowd(), setting_name);

}  // namespace
}  // namespace holdfast::lock::tests
