// Leases extended in the background, on a clock that the test moves.
#include <atomic>
#include <future>

#include "test/fake_backend.hpp"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <holdfast/base/manual_clock.hpp>
#include <holdfast/lock/keeper.hpp>
#include <holdfast/lock/with_lock.hpp>
#include <holdfast/testing/check.hpp>

namespace holdfast::lock::tests {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;

constexpr std::chrono::milliseconds ttl = 30s;
constexpr std::size_t keeper_threads = 2;

class KeeperThreads : public testing::Test {
protected:
    ManualClock clock;
    FakeBackend backend{clock};
    std::mutex mutex;
    std::vector<LostReason> losses;
    std::vector<Steady> lost_at;
    std::atomic<std::chrono::nanoseconds> suspended{0ns};
    Keeper keeper{clock};

    Handle hold(std::string_view key = "invoice/7") {
        return acquire_handle(backend,
                              key,
                              ttl,
                              {},
                              {.on_lost =
                                   [this](LostReason reason) {
                                       const std::lock_guard lock(mutex);
                                       losses.push_back(reason);
                                       lost_at.push_back(clock.steady_now());
                                   },
                               .clock = &clock,
                               .suspended = [this] { return suspended.load(); }});
    }
    // Once both threads sleep again, everything that was due has been done.
    void advance(std::chrono::nanoseconds by) {
        clock.advance(by);
        settle();
    }
    void settle() { ASSERT_TRUE(clock.wait_for_sleepers(keeper_threads, soon())); }
    std::vector<LostReason> told() {
        const std::lock_guard lock(mutex);
        return losses;
    }
    void fail_extends(LockCode code) {
        backend.on_extend = [code](int, const ExtendCall&) -> Extended { throw LockError(code); };
    }
};

TEST_F(KeeperThreads, ALeaseIsExtendedAtEachThirdOfItAndNotBefore) {
    Handle lock = hold();
    const Grant first = lock.grant();
    keeper.keep(lock, ttl);
    settle();
    advance(9'999ms);
    EXPECT_TRUE(backend.extends().empty());
    advance(1ms);
    ASSERT_EQ(backend.extends().size(), 1U);
    EXPECT_EQ(backend.extends()[0].lock_id, first.lock_id);
    EXPECT_EQ(backend.extends()[0].ttl, ttl);
    EXPECT_EQ(backend.extends()[0].mode, ExtendMode::at_least);
    EXPECT_EQ(lock.safe_until(), first.safe_until + 10s);
    EXPECT_EQ(lock.expires_at(), first.expires_at + 10s);
    EXPECT_EQ(lock.fence(), first.fence);
    for (int i = 2; i <= 10; ++i) {
        advance(10s);
        EXPECT_EQ(backend.extends().size(), static_cast<std::size_t>(i));
    }
    EXPECT_FALSE(lock.lost().stop_requested());
    EXPECT_EQ(lock.remaining(), ttl);
}

TEST_F(KeeperThreads, AReleasedLockIsNotExtended) {
    Handle lock = hold();
    keeper.keep(lock, ttl);
    settle();
    EXPECT_EQ(keeper.kept(), 1U);
    EXPECT_TRUE(lock.release().ok);
    EXPECT_EQ(keeper.kept(), 0U);
    advance(60s);
    EXPECT_TRUE(backend.extends().empty());
    EXPECT_TRUE(told().empty()) << "a lock that was given back is not lost";
}

// The answer to an extension that was under way says "not yours": because it was released.
TEST_F(KeeperThreads, AReleaseDuringAnExtensionIsNoLoss) {
    Gate gate;
    backend.on_extend = [&](int, const ExtendCall&) {
        gate.pass();
        return Extended{};
    };
    Handle lock = hold();
    keeper.keep(lock, ttl);
    settle();
    clock.advance(10s);
    ASSERT_TRUE(gate.wait_for_arrival());
    EXPECT_TRUE(lock.release().ok);
    gate.open();
    settle();
    EXPECT_TRUE(told().empty());
    EXPECT_FALSE(lock.lost().stop_requested());
}

TEST_F(KeeperThreads, ALockThatIsGoneIsLostOnce) {
    backend.on_extend = [](int, const ExtendCall&) { return Extended{.why = Missing::expired}; };
    Handle lock = hold();
    keeper.keep(lock, ttl);
    settle();
    advance(10s);
    EXPECT_TRUE(lock.lost().stop_requested());
    EXPECT_THAT(told(), ElementsAre(LostReason::refused));
    EXPECT_EQ(lock.lost_reason(), LostReason::refused);
    advance(60s);
    EXPECT_EQ(backend.extends().size(), 1U) << "a lost lock stays lost";
    EXPECT_THAT(told(), ElementsAre(LostReason::refused));
}

TEST_F(KeeperThreads, TroubleThatMayPassIsRetriedUntilTheMargin) {
    HOLDFAST_CHECK("locks N14");
    fail_extends(LockCode::service_unavailable);
    Handle lock = hold();
    const Steady ends = lock.safe_until();
    keeper.keep(lock, ttl);
    settle();
    advance(10s);
    EXPECT_EQ(backend.extends().size(), 1U);
    advance(499ms);
    EXPECT_EQ(backend.extends().size(), 1U);
    advance(1ms);
    EXPECT_EQ(backend.extends().size(), 2U);
    while (told().empty() && clock.steady_now() < ends) {
        advance(500ms);
    }
    // The margin is a tenth of the ttl.
    EXPECT_THAT(told(), ElementsAre(LostReason::out_of_time));
    EXPECT_EQ(lost_at.front(), ends - 3s);
    EXPECT_TRUE(lock.lost().stop_requested());
    EXPECT_GT(lock.remaining(), 0s) << "the holder hears of it before the lease is over";
}

TEST_F(KeeperThreads, TroubleThatPassesIsForgotten) {
    backend.on_extend = [this](int number, const ExtendCall& call) {
        if (number == 1) {
            throw LockError(LockCode::network_timeout);
        }
        return backend.extension(call.ttl);
    };
    Handle lock = hold();
    keeper.keep(lock, ttl);
    settle();
    advance(10s);
    advance(500ms);
    EXPECT_EQ(backend.extends().size(), 2U);
    EXPECT_EQ(lock.remaining(), ttl);
    advance(9'999ms);
    EXPECT_EQ(backend.extends().size(), 2U);
    advance(1ms);
    EXPECT_EQ(backend.extends().size(), 3U);
    EXPECT_TRUE(told().empty());
}

TEST_F(KeeperThreads, TroubleThatStaysIsToldAtOnce) {
    fail_extends(LockCode::auth_failed);
    Handle lock = hold();
    keeper.keep(lock, ttl);
    settle();
    advance(10s);
    EXPECT_THAT(told(), ElementsAre(LostReason::failed));
}

// A database that hangs must not keep the news from the holder.
TEST_F(KeeperThreads, AnExtensionThatHangsDoesNotDelayTheNews) {
    Gate gate;
    backend.on_extend = [&](int, const ExtendCall&) -> Extended {
        gate.pass();
        throw LockError(LockCode::network_timeout);
    };
    Handle lock = hold();
    const Steady ends = lock.safe_until();
    std::promise<void> lost;
    const std::stop_callback tell(lock.lost(), [&] { lost.set_value(); });
    keeper.keep(lock, ttl);
    settle();
    clock.advance(10s);
    ASSERT_TRUE(gate.wait_for_arrival());
    ASSERT_TRUE(backend.extends()[0].options.deadline);
    EXPECT_LE(backend.extends()[0].options.deadline->when(), ends - 3s);
    ASSERT_TRUE(clock.wait_for_sleepers(1, soon()));  // The one that watches the time.
    clock.advance(17s);
    EXPECT_EQ(lost.get_future().wait_until(soon().when()), std::future_status::ready);
    gate.open();
    settle();
    EXPECT_THAT(told(), ElementsAre(LostReason::out_of_time));
}

// The process was stopped for longer than its lease: when it goes on, another holder may have the
// lock.
TEST_F(KeeperThreads, AfterAStandstillTheLockIsLostAndNotExtended) {
    Handle lock = hold();
    keeper.keep(lock, ttl);
    settle();
    advance(31s);
    EXPECT_TRUE(lock.lost().stop_requested());
    EXPECT_TRUE(backend.extends().empty());
    EXPECT_EQ(lock.remaining(), 0s);
    EXPECT_THAT(told(), ElementsAre(LostReason::out_of_time));
}

// A suspended machine's steady clock stands still, but the database's goes on.
TEST_F(KeeperThreads, ASuspensionCountsThoughSteadyTimeDoesNot) {
    Handle lock = hold();
    keeper.keep(lock, ttl);
    settle();
    suspended = 40s;
    EXPECT_EQ(lock.remaining(), 0s) << "known to the holder before the keeper looks";
    advance(Keeper::nap_max);
    EXPECT_TRUE(lock.lost().stop_requested());
    EXPECT_TRUE(backend.extends().empty());
}

TEST_F(KeeperThreads, AShortSuspensionOnlyMakesTheExtensionSooner) {
    Handle lock = hold();
    keeper.keep(lock, ttl);
    settle();
    suspended = 12s;
    advance(Keeper::nap_max);
    EXPECT_EQ(backend.extends().size(), 1U);
    EXPECT_EQ(lock.remaining(), ttl) << "the suspension lies before the new lease";
    EXPECT_TRUE(told().empty());
}

TEST_F(KeeperThreads, AfterItsLifetimeALockIsNotExtendedAndThenLost) {
    Handle lock = hold();
    keeper.keep(lock, ttl, {.max_lifetime = 25s});
    settle();
    advance(10s);
    advance(10s);
    EXPECT_EQ(backend.extends().size(), 2U);
    advance(10s);
    EXPECT_EQ(backend.extends().size(), 2U);
    EXPECT_TRUE(told().empty()) << "what is left of the lease may be used";
    advance(17s);
    EXPECT_EQ(backend.extends().size(), 2U);
    EXPECT_THAT(told(), ElementsAre(LostReason::lifetime_over));
}

TEST_F(KeeperThreads, TheMarginGrowsWithWhatExtensionsTake) {
    backend.on_extend = [this](int number, const ExtendCall& call) {
        if (number > 1) {
            throw LockError(LockCode::service_unavailable);
        }
        const Extended answer = backend.extension(call.ttl);
        clock.advance(2s);  // Twice that is more than a tenth of the ttl.
        return answer;
    };
    Handle lock = hold();
    keeper.keep(lock, ttl);
    settle();
    advance(10s);
    const Steady ends = lock.safe_until();
    while (told().empty() && clock.steady_now() < ends) {
        advance(250ms);
    }
    ASSERT_EQ(lost_at.size(), 1U);
    EXPECT_EQ(lost_at.front(), ends - 4s);
}

TEST_F(KeeperThreads, AMarginOfOnesOwnIsKept) {
    fail_extends(LockCode::service_unavailable);
    Handle lock = hold();
    const Steady ends = lock.safe_until();
    keeper.keep(lock, ttl, {.interval = 5s, .safety_margin = 20s});
    settle();
    advance(10s - 1ms);
    EXPECT_TRUE(told().empty());
    advance(1ms);
    ASSERT_EQ(lost_at.size(), 1U);
    EXPECT_EQ(lost_at.front(), ends - 20s);
}

TEST_F(KeeperThreads, ALeaseMadeLongerByHandIsLeftInPeace) {
    Handle lock = hold();
    keeper.keep(lock, ttl);
    settle();
    EXPECT_TRUE(lock.extend(10min).ok);
    EXPECT_EQ(backend.extends()[0].mode, ExtendMode::replace);
    advance(9min);
    EXPECT_EQ(backend.extends().size(), 1U);
    advance(40s);
    EXPECT_EQ(backend.extends().size(), 2U);
}

TEST_F(KeeperThreads, OneKeeperServesManyLocks) {
    std::vector<Handle> locks;
    for (int i = 0; i < 50; ++i) {
        locks.push_back(hold("job/" + std::to_string(i)));
        keeper.keep(locks.back(), ttl);
    }
    EXPECT_EQ(keeper.kept(), 50U);
    settle();
    advance(10s);
    EXPECT_EQ(backend.extends().size(), 50U);
    for (const Handle& lock : locks) {
        EXPECT_EQ(lock.remaining(), ttl);
    }
}

TEST_F(KeeperThreads, AFailedReleaseLeavesTheLockInItsCare) {
    backend.on_release = [](int number, const ReleaseCall&) -> Released {
        if (number == 1) {
            throw LockError(LockCode::service_unavailable);
        }
        return {.ok = true};
    };
    Handle lock = hold();
    keeper.keep(lock, ttl);
    settle();
    EXPECT_THROW(lock.release(), LockError);
    advance(10s);
    EXPECT_EQ(backend.extends().size(), 1U);
}

TEST_F(KeeperThreads, WhatOnLostThrowsHurtsNobody) {
    backend.on_extend = [](int, const ExtendCall&) { return Extended{}; };
    Handle first = acquire_handle(
        backend,
        "one",
        ttl,
        {},
        {.on_lost = [](LostReason) { throw std::runtime_error("oops"); }, .clock = &clock});
    Handle second = hold("two");
    keeper.keep(first, ttl);
    keeper.keep(second, ttl);
    settle();
    advance(10s);
    EXPECT_TRUE(first.lost().stop_requested());
    EXPECT_TRUE(second.lost().stop_requested());
}

TEST_F(KeeperThreads, UnusableSettingsAreRefused) {
    Handle lock = hold();
    const auto refused = [&](AutoExtend settings) {
        const auto error = lock_error_of([&] { keeper.keep(lock, ttl, settings); });
        return error && error->lock_code() == LockCode::invalid_argument;
    };
    EXPECT_TRUE(refused({.interval = 15'001ms}));
    EXPECT_TRUE(refused({.interval = 0ms}));
    EXPECT_TRUE(refused({.safety_margin = -1ms}));
    EXPECT_TRUE(refused({.interval = 10s, .safety_margin = 20s}));
    EXPECT_TRUE(refused({.max_lifetime = 0ms}));
    EXPECT_FALSE(refused({.interval = 15s, .safety_margin = 14'999ms}));
}

TEST_F(KeeperThreads, AHandleWithoutALockIsLeftAlone) {
    backend.on_acquire = [](int, const AcquireCall&) { return Acquired{Busy{}}; };
    const Handle none = hold();
    keeper.keep(none, ttl);
    EXPECT_EQ(keeper.kept(), 0U);
}

// with_lock keeps its lock while the function runs, however long that takes.
TEST_F(KeeperThreads, WithLockExtendsWhileTheFunctionRuns) {
    WithLock options{.key = "invoice/7"};
    options.acquisition.clock = &clock;
    with_lock(backend, options, [&](Handle& lock) {
        for (int i = 0; i < 6; ++i) {
            settle();
            clock.advance(10s);
            ASSERT_TRUE(backend.wait_for_extends(static_cast<std::size_t>(i) + 1));
        }
        EXPECT_FALSE(lock.lost().stop_requested());
    });
    EXPECT_EQ(backend.releases().size(), 1U);
}

TEST_F(KeeperThreads, WithLockTellsTheFunctionThatTheLockIsLost) {
    backend.on_extend = [](int, const ExtendCall&) { return Extended{}; };
    backend.on_release = [](int, const ReleaseCall&) { return Released{}; };
    WithLock options{.key = "invoice/7", .keeper = &keeper};
    options.acquisition.clock = &clock;
    options.on_lost = [this](LostReason reason) {
        const std::lock_guard lock(mutex);
        losses.push_back(reason);
    };
    const auto work = [&](Handle& lock) {
        settle();
        advance(10s);
        return lock.lost().stop_requested();
    };
    EXPECT_TRUE(with_lock(backend, options, work));
    EXPECT_THAT(told(), ElementsAre(LostReason::refused)) << "once, though release says it too";

    options.throw_if_lost = true;
    const auto error = lock_error_of([&] { with_lock(backend, options, work); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->lock_code(), LockCode::internal);
    EXPECT_THAT(error->what(), testing::HasSubstr("lock lost"));
}

}  // namespace
}  // namespace holdfast::lock::tests
