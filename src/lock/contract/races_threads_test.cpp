// Moments at which an answer depends on a transaction that has not ended yet.
#include <future>

#include "statements/statements.hpp"
#include "test/lock_fixture.hpp"

#include <holdfast/base/manual_clock.hpp>
#include <holdfast/base/metrics.hpp>
#include <holdfast/lock/guard.hpp>
#include <holdfast/lock/semaphore.hpp>
#include <holdfast/lock/with_lock.hpp>

namespace holdfast::lock::tests {
namespace {

constexpr sql::Statement hold_counter{
    "test.hold_counter",
    "UPDATE holdfast_fences SET key_debug = key_debug WHERE fence_key = 'fence:k' RETURNING 1"};

class LockRace : public LockStory {
protected:
    void wait_until_blocked() { EXPECT_TRUE(db.wait_until_blocked()); }
    // Grants and extensions that took so long are still for `ttl` from the end of the wait.
    static ServerTime host_time() {
        return std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
    }
    std::future<Acquired> acquire_meanwhile(Locks& by, std::chrono::milliseconds ttl) {
        return std::async(std::launch::async, [&by, ttl] {
            return by.acquire("k", ttl, {.deadline = Deadline::after(60s)});
        });
    }
};

// Ann's extension was judged in time and has not committed when her lease ends. Bob, who sees the
// old lease, must not get the lock as well.
TEST_P(LockRace, AnExtensionAcrossTheExpiryKeepsOthersOut) {
    HOLDFAST_CHECK("locks N2");
    const Grant ann = take("k", 10s);
    OpenTransaction extension(db.open(1), [&](sql::Tx& tx) {
        const sql::Rows rows = tx.query(
            statements::prolong.with(locks.tables()), ann.lock_id.reveal(), 1000, 60'000, false);
        ASSERT_EQ(rows.size(), 1U) << "in time";
    });
    db.advance_clock(12s);
    Metrics metrics;
    Locks watched(db, {.metrics = &metrics});
    auto bob = acquire_meanwhile(watched, 10s);
    wait_until_blocked();
    extension.let_go();
    EXPECT_TRUE(is_busy(bob.get()));
    EXPECT_EQ(locks.find("k").value().fence, ann.fence);
    // Where each operation is one statement, Bob has counted before he learned that he is too late.
    const bool burns = GetParam().backend == test::Backend::postgres && !GetParam().optimistic;
    EXPECT_EQ(metrics.value("holdfast_lock_burned_fences_total", {{"db", db->name()}}),
              burns ? 1 : 0);
}

// The same the other way round: Bob's takeover has not committed when Ann tries to extend.
TEST_P(LockRace, ATakeoverKeepsTheLateExtensionOut) {
    HOLDFAST_CHECK("locks N2");
    const Grant ann = take("k", 10s);
    db.advance_clock(10'500ms);  // In the grace: Ann may still extend.
    const LockId bob = LockId::fresh();
    static constexpr sql::Statement take_over{
        "test.take_over",
        "UPDATE holdfast_locks SET lock_id = $1, fence = '000000000000002', expires_at_ms = "
        "expires_at_ms + 60000 WHERE key = 'k' RETURNING 1"};
    OpenTransaction takeover(db.open(1),
                             [&](sql::Tx& tx) { (void)tx.query(take_over, bob.reveal()); });
    auto late = std::async(std::launch::async, [&] {
        return locks.extend(ann.lock_id, 60s, {.deadline = Deadline::after(60s)});
    });
    wait_until_blocked();
    takeover.let_go();
    EXPECT_FALSE(late.get().ok);
    EXPECT_EQ(locks.find_raw("k").value().lock_id, bob);
}

// The same for the places of a semaphore: one too many would hold a permit.
TEST_P(LockRace, AnExtensionAcrossTheExpiryKeepsItsPermit) {
    HOLDFAST_CHECK("locks N2");
    Semaphore semaphore(locks, "k", 1);
    const auto ann = std::get<Permit>(semaphore.acquire(10s));
    OpenTransaction extension(db.open(1), [&](sql::Tx& tx) {
        const sql::Rows rows = tx.query(
            statements::prolong_permit.with(locks.tables()), ann.permit_id.reveal(), 1000, 60'000);
        ASSERT_EQ(rows.size(), 1U) << "in time";
    });
    db.advance_clock(12s);
    auto bob = std::async(std::launch::async, [&] {
        return semaphore.acquire(10s, {.deadline = Deadline::after(60s)});
    });
    wait_until_blocked();
    extension.let_go();
    EXPECT_TRUE(std::holds_alternative<Busy>(bob.get()));
    EXPECT_TRUE(semaphore.release(ann));
}

// A lease begins when the wait for the counter is over, not when the call was made.
TEST_P(LockRace, WaitingIsNotChargedToTheLease) {
    HOLDFAST_CHECK("locks N5");
    EXPECT_TRUE(locks.release(take("k").lock_id).ok);
    OpenTransaction other(db.open(1), hold_counter);
    auto ann = acquire_meanwhile(locks, 30s);
    wait_until_blocked();
    const ServerTime still_waiting = host_time();
    other.let_go();
    const auto grant = std::get<Grant>(ann.get());
    EXPECT_GE(grant.expires_at, still_waiting + 30s);
    const auto found = locks.find("k").value();
    EXPECT_EQ(found.expires_at - found.acquired_at, 30s);
}

// Behind a counter's row for longer than the lease: what is granted then is already over.
TEST_P(LockRace, AGrantThatIsBornExpiredIsRefusedAndGivenBack) {
    HOLDFAST_CHECK("locks N4");
    EXPECT_TRUE(locks.release(take("k").lock_id).ok);
    ManualClock ours;
    Locks slow(db, {.clock = &ours});
    OpenTransaction other(db.open(1), hold_counter);
    auto ann = acquire_meanwhile(slow, 10s);
    wait_until_blocked();
    ours.advance(11s);
    other.let_go();
    const auto error = lock_error_of([&] { (void)ann.get(); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->lock_code(), LockCode::network_timeout);
    EXPECT_TRUE(error->retryable());
    const Deadline deadline = Deadline::after(20s);
    while (slow.is_locked("k") && !deadline.passed()) {
    }
    EXPECT_FALSE(slow.is_locked("k")) << "given back in the background, long before its end";
}

// ---- The guard
// -----------------------------------------------------------------------------------

class GuardRace : public LockRace {};

// While a transaction has asserted the lock, it cannot be taken over or released; the holder's
// heartbeats go on.
TEST_P(GuardRace, AnAssertedLockStaysWhileItsTransactionLasts) {
    HOLDFAST_CHECK("locks N19");
    const Grant ann = take("k", 10s);
    OpenTransaction work(db.open(1), [&](sql::Tx& tx) {
        EXPECT_EQ(assert_held(tx, locks, "k", ann.lock_id), ann.fence);
    });
    EXPECT_TRUE(locks.extend(ann.lock_id, 10s, {}, ExtendMode::at_least).ok) << "a heartbeat";

    auto release = std::async(std::launch::async, [&] {
        return locks.release(ann.lock_id, {.deadline = Deadline::after(60s)});
    });
    wait_until_blocked();
    EXPECT_TRUE(locks.is_locked("k"));
    work.let_go();
    EXPECT_TRUE(release.get().ok);
}

TEST_P(GuardRace, ATakeoverWaitsForTheTransactionThatAssertedTheLock) {
    HOLDFAST_CHECK("locks N19");
    const Grant ann = take("k", 10s);
    OpenTransaction work(db.open(1),
                         [&](sql::Tx& tx) { (void)assert_held(tx, locks, "k", ann.lock_id); });
    db.advance_clock(12s);  // Her lease ends in the middle of the transaction.
    auto bob = acquire_meanwhile(locks, 10s);
    wait_until_blocked();
    EXPECT_EQ(db.number("SELECT count(*) FROM holdfast_locks WHERE lock_id = '" +
                        ann.lock_id.reveal() + "'"),
              1);
    work.let_go();
    EXPECT_GT(std::get<Grant>(bob.get()).fence, ann.fence);
}

// ---- with_lock
// -----------------------------------------------------------------------------------

// The caller's token ends the wait and never the clean-up.
TEST_P(LockRace, AStoppedCallerStillGivesTheLockBack) {
    HOLDFAST_CHECK("locks N13");
    std::stop_source source;
    with_lock(locks, {.key = "k", .stop = source.get_token()}, [&](Handle&) {
        source.request_stop();
        EXPECT_TRUE(locks.is_locked("k"));
    });
    EXPECT_FALSE(locks.is_locked("k"));
}

// The row is removed: the next heartbeat tells the holder, while its lease would still have lasted.
TEST_P(LockRace, ALostLeaseIsToldBeforeItWouldHaveEnded) {
    HOLDFAST_CHECK("locks N14");
    WithLock options{.key = "k", .ttl = 60s};
    // Seldom enough that another connection gets its turn to write, also on a slow machine.
    options.auto_extend = AutoExtend{.interval = 200ms};
    std::optional<LostReason> reason;
    options.on_lost = [&](LostReason why) { reason = why; };
    with_lock(locks, options, [&](Handle& lock) {
        std::promise<void> told;
        const std::stop_callback tell(lock.lost(), [&] { told.set_value(); });
        db.tamper("DELETE FROM holdfast_locks");
        ASSERT_EQ(told.get_future().wait_for(30s), std::future_status::ready);
        EXPECT_GT(lock.remaining(), 0s);
    });
    EXPECT_EQ(reason, LostReason::refused);
}

INSTANTIATE_TEST_SUITE_P(Every,
                         LockRace,
                         testing::Values(Setting{test::Backend::sqlite},
                                         Setting{test::Backend::postgres},
                                         Setting{test::Backend::postgres, true}),
                         setting_name);
INSTANTIATE_TEST_SUITE_P(Every,
                         GuardRace,
                         testing::Values(Setting{test::Backend::postgres}),
                         setting_name);

}  // namespace
}  // namespace holdfast::lock::tests
