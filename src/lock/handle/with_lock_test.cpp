// The wait for a lock, and what with_lock makes of it. No test sleeps: the clock moves by itself.
#include <holdfast/lock/with_lock.hpp>

#include "test/fake_backend.hpp"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <holdfast/base/log_capture.hpp>
#include <holdfast/testing/check.hpp>

namespace holdfast::lock::tests {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

class WithLockTest : public testing::Test {
protected:
    SleepwalkingClock clock;
    FakeBackend backend{clock};

    // Without a keeper, whose threads would run away with this clock.
    WithLock plain() {
        WithLock options{.key = "invoice/7", .auto_extend = std::nullopt};
        options.acquisition.clock = &clock;
        options.acquisition.jitter = Jitter::none;
        return options;
    }
    // Busy for the first `times` attempts.
    void busy_for(int times, Busy answer = {}) {
        backend.on_acquire = [this, times, answer](int number, const AcquireCall& call) {
            return number <= times ? Acquired{answer} : Acquired{backend.grant(call)};
        };
    }
    void always_busy(Busy answer = {}) { busy_for(1'000'000, answer); }

    std::optional<LockError> failure_of(const WithLock& options) {
        return lock_error_of([&] { with_lock(backend, options, [&](Handle&) { ++runs; }); });
    }
    int runs = 0;
};

TEST_F(WithLockTest, AFreeLockTakesOneAttempt) {
    HOLDFAST_CHECK("locks U-L 1");
    const int answer = with_lock(backend, plain(), [](Handle& lock) {
        EXPECT_TRUE(lock.ok());
        EXPECT_EQ(lock.key(), "invoice/7");
        EXPECT_EQ(lock.fence(), Fence{1});
        return 42;
    });
    EXPECT_EQ(answer, 42);
    ASSERT_EQ(backend.acquires().size(), 1U);
    EXPECT_EQ(backend.acquires()[0].key, "invoice/7");
}

TEST_F(WithLockTest, TheLockIsReleasedAfterTheFunctionAndNotBefore) {
    HOLDFAST_CHECK("locks U-L 2");
    with_lock(backend, plain(), [&](Handle&) { EXPECT_TRUE(backend.releases().empty()); });
    ASSERT_EQ(backend.releases().size(), 1U);
    EXPECT_EQ(backend.releases()[0].lock_id, *backend.acquires()[0].options.lock_id);
}

TEST_F(WithLockTest, TheTtlIsTheCallersOrThirtySeconds) {
    HOLDFAST_CHECK("locks U-L 3");
    HOLDFAST_CHECK("locks U-L 19");
    WithLock options = plain();
    with_lock(backend, options, [](Handle&) {});
    options.ttl = 1234ms;
    with_lock(backend, options, [](Handle&) {});
    EXPECT_EQ(backend.acquires()[0].ttl, 30'000ms);
    EXPECT_EQ(backend.acquires()[1].ttl, 1234ms);
}

TEST_F(WithLockTest, ABusyLockIsTriedAgainWithTheSameId) {
    HOLDFAST_CHECK("locks U-L 4");
    busy_for(2);
    with_lock(backend, plain(), [&](Handle&) { ++runs; });
    const auto calls = backend.acquires();
    ASSERT_EQ(calls.size(), 3U);
    EXPECT_EQ(calls[0].options.lock_id, calls[2].options.lock_id);
    EXPECT_EQ(calls[0].options.attempt, 1);
    EXPECT_EQ(calls[2].options.attempt, 3);
    EXPECT_EQ(runs, 1);
}

TEST_F(WithLockTest, EachCallHasAnIdOfItsOwn) {
    with_lock(backend, plain(), [](Handle&) {});
    with_lock(backend, plain(), [](Handle&) {});
    EXPECT_NE(backend.acquires()[0].options.lock_id, backend.acquires()[1].options.lock_id);
}

TEST_F(WithLockTest, RetriesRunOut) {
    HOLDFAST_CHECK("locks U-L 5");
    always_busy();
    WithLock options = plain();
    options.acquisition.max_retries = 2;
    const auto error = failure_of(options);
    ASSERT_TRUE(error);
    EXPECT_EQ(error->lock_code(), LockCode::acquisition_timeout);
    EXPECT_THAT(error->what(), StartsWith("Failed to acquire lock after 3 attempts"));
    EXPECT_EQ(error->context().key, "invoice/7");
    EXPECT_EQ(backend.acquires().size(), 3U);
    EXPECT_TRUE(backend.releases().empty());
    EXPECT_EQ(runs, 0);
}

TEST_F(WithLockTest, TheTimeRunsOutAfterOneLastAttemptAtItsEnd) {
    HOLDFAST_CHECK("locks U-L 6");
    always_busy();
    WithLock options = plain();
    options.acquisition.timeout = 250ms;
    options.acquisition.backoff = Backoff::fixed;
    const Steady began = clock.steady_now();
    const auto error = failure_of(options);
    ASSERT_TRUE(error);
    EXPECT_EQ(error->lock_code(), LockCode::acquisition_timeout);
    EXPECT_THAT(error->what(), HasSubstr("Failed to acquire lock after 250 ms"));
    EXPECT_THAT(clock.sleeps(), ElementsAre(100ms, 100ms, 50ms));
    EXPECT_EQ(clock.steady_now() - began, 250ms);
    EXPECT_EQ(backend.acquires().size(), 4U);
}

TEST_F(WithLockTest, TheLastAttemptMaySucceed) {
    busy_for(3);
    WithLock options = plain();
    options.acquisition.timeout = 250ms;
    options.acquisition.backoff = Backoff::fixed;
    EXPECT_FALSE(failure_of(options));
    EXPECT_EQ(runs, 1);
}

TEST_F(WithLockTest, FixedDelaysStayAsTheyAre) {
    HOLDFAST_CHECK("locks U-L 7");
    busy_for(3);
    WithLock options = plain();
    options.acquisition.backoff = Backoff::fixed;
    with_lock(backend, options, [](Handle&) {});
    EXPECT_THAT(clock.sleeps(), ElementsAre(100ms, 100ms, 100ms));
}

TEST_F(WithLockTest, ExponentialDelaysDoubleUpToTheLongest) {
    HOLDFAST_CHECK("locks U-L 8");
    busy_for(6);
    with_lock(backend, plain(), [](Handle&) {});
    EXPECT_THAT(clock.sleeps(), ElementsAre(100ms, 200ms, 400ms, 800ms, 1s, 1s));
}

TEST_F(WithLockTest, FullJitterDrawsFromTheWholeDelay) {
    HOLDFAST_CHECK("locks U-L 9");
    busy_for(2);
    WithLock options = plain();
    options.acquisition.backoff = Backoff::fixed;
    options.acquisition.jitter = Jitter::full;
    options.acquisition.unit = [] { return 0.25; };
    with_lock(backend, options, [](Handle&) {});
    EXPECT_THAT(clock.sleeps(), ElementsAre(25ms, 25ms));
}

TEST_F(WithLockTest, EqualJitterDrawsFromHalfTheDelay) {
    HOLDFAST_CHECK("locks U-L 10");
    busy_for(2);
    WithLock options = plain();
    options.acquisition.backoff = Backoff::fixed;
    options.acquisition.jitter = Jitter::equal;
    options.acquisition.unit = [] { return 0.5; };
    with_lock(backend, options, [](Handle&) {});
    EXPECT_THAT(clock.sleeps(), ElementsAre(75ms, 75ms));
}

TEST_F(WithLockTest, AnAttemptThatOutlastsTheTimeIsTheLast) {
    HOLDFAST_CHECK("locks U-L 11");
    backend.on_acquire = [this](int, const AcquireCall&) {
        clock.advance(6s);
        return Acquired{Busy{}};
    };
    const auto error = failure_of(plain());
    ASSERT_TRUE(error);
    EXPECT_EQ(error->lock_code(), LockCode::acquisition_timeout);
    EXPECT_THAT(error->what(), HasSubstr("Timeout reached before next retry"));
    EXPECT_EQ(backend.acquires().size(), 1U);
}

TEST_F(WithLockTest, ATokenThatHasFiredKeepsFromTrying) {
    HOLDFAST_CHECK("locks U-L 12");
    HOLDFAST_CHECK("locks U-L 13");
    std::stop_source fired;
    fired.request_stop();
    WithLock options = plain();
    options.stop = fired.get_token();
    auto error = failure_of(options);
    ASSERT_TRUE(error);
    EXPECT_EQ(error->lock_code(), LockCode::aborted);
    EXPECT_THAT(error->what(), HasSubstr("cancelled by user signal"));

    options = plain();
    options.acquisition.stop = fired.get_token();
    error = failure_of(options);
    ASSERT_TRUE(error);
    EXPECT_EQ(error->lock_code(), LockCode::aborted);
    EXPECT_THAT(error->what(), HasSubstr("Acquisition cancelled"));
    EXPECT_TRUE(backend.acquires().empty());
}

TEST_F(WithLockTest, BothTokensReachTheAttempt) {
    HOLDFAST_CHECK("locks U-L 14");
    for (const bool callers : {true, false}) {
        std::stop_source source;
        WithLock options = plain();
        (callers ? options.stop : options.acquisition.stop) = source.get_token();
        bool seen = false;
        backend.on_acquire = [&](int, const AcquireCall& call) -> Acquired {
            EXPECT_FALSE(call.options.stop.stop_requested());
            source.request_stop();
            seen = call.options.stop.stop_requested();
            throw LockError(LockCode::aborted, "the operation was aborted");
        };
        const auto error = failure_of(options);
        ASSERT_TRUE(error);
        EXPECT_EQ(error->lock_code(), LockCode::aborted);
        EXPECT_TRUE(seen);
    }
}

TEST_F(WithLockTest, ATokenEndsThePauseBetweenAttempts) {
    std::stop_source source;
    WithLock options = plain();
    options.stop = source.get_token();
    backend.on_acquire = [&](int, const AcquireCall&) {
        source.request_stop();
        return Acquired{Busy{}};
    };
    const auto error = failure_of(options);
    ASSERT_TRUE(error);
    EXPECT_EQ(error->lock_code(), LockCode::aborted);
    EXPECT_TRUE(clock.sleeps().empty());
}

// The worst moment for a token: the lock is acquired, and no caller would release it.
TEST_F(WithLockTest, ALockThatCameTooLateIsGivenBackAtOnce) {
    std::stop_source source;
    WithLock options = plain();
    options.stop = source.get_token();
    backend.on_acquire = [&](int, const AcquireCall& call) {
        source.request_stop();
        return Acquired{backend.grant(call)};
    };
    const auto error = failure_of(options);
    ASSERT_TRUE(error);
    EXPECT_EQ(error->lock_code(), LockCode::aborted);
    EXPECT_EQ(runs, 0);
    ASSERT_EQ(backend.releases().size(), 1U);
    EXPECT_FALSE(backend.releases()[0].options.stop.stop_requested());
}

TEST_F(WithLockTest, TheFunctionsExceptionPassesAndTheLockIsReleased) {
    HOLDFAST_CHECK("locks U-L 15");
    EXPECT_THROW(with_lock(backend, plain(), [](Handle&) { throw std::out_of_range("mine"); }),
                 std::out_of_range);
    EXPECT_EQ(backend.releases().size(), 1U);
}

TEST_F(WithLockTest, AForeignExceptionOfTheBackendBecomesInternal) {
    HOLDFAST_CHECK("locks U-L 16");
    backend.on_acquire = [](int, const AcquireCall&) -> Acquired {
        throw std::runtime_error("the driver is on fire");
    };
    const auto error = failure_of(plain());
    ASSERT_TRUE(error);
    EXPECT_EQ(error->lock_code(), LockCode::internal);
    EXPECT_THROW(std::rethrow_exception(error->cause()), std::runtime_error);
}

TEST_F(WithLockTest, UnusableArgumentsAreRefusedBeforeAnybodyIsAsked) {
    HOLDFAST_CHECK("locks U-L 17");
    HOLDFAST_CHECK("locks U-L 18");
    const auto refused = [&](auto change) {
        WithLock options = plain();
        change(options);
        const auto error = failure_of(options);
        return error && error->lock_code() == LockCode::invalid_argument;
    };
    EXPECT_TRUE(refused([](WithLock& o) { o.ttl = -1ms; }));
    EXPECT_TRUE(refused([](WithLock& o) { o.ttl = 0ms; }));
    EXPECT_TRUE(refused([](WithLock& o) { o.ttl = ttl_max + 1ms; }));
    EXPECT_TRUE(refused([](WithLock& o) { o.key = ""; }));
    EXPECT_TRUE(refused([](WithLock& o) { o.acquisition.timeout = -1ms; }));
    EXPECT_TRUE(refused([](WithLock& o) { o.acquisition.max_retries = -1; }));
    EXPECT_TRUE(refused([](WithLock& o) { o.acquisition.retry_delay = -1ms; }));
    EXPECT_TRUE(refused([](WithLock& o) { o.acquisition.max_delay = -1ms; }));
    EXPECT_TRUE(refused([](WithLock& o) { o.auto_extend = AutoExtend{.interval = 15'001ms}; }));
    EXPECT_TRUE(backend.acquires().empty());
}

TEST_F(WithLockTest, ATimeoutOfZeroIsOneAttempt) {
    always_busy({.retry_after = 70ms});
    Acquisition once{.timeout = 0ms, .clock = &clock};
    const Acquired answer = acquire_waiting(backend, "invoice/7", 1s, once);
    ASSERT_TRUE(std::holds_alternative<Busy>(answer));
    EXPECT_EQ(std::get<Busy>(answer).retry_after, 70ms);
    EXPECT_EQ(backend.acquires().size(), 1U);

    WithLock options = plain();
    options.acquisition.timeout = 0ms;
    const auto error = failure_of(options);
    ASSERT_TRUE(error);
    EXPECT_EQ(error->lock_code(), LockCode::acquisition_timeout);
    EXPECT_EQ(backend.acquires().size(), 2U);
}

TEST_F(WithLockTest, ADelayOfZeroIsNoTimeout) {
    busy_for(3);
    WithLock options = plain();
    options.acquisition.retry_delay = 0ms;
    EXPECT_FALSE(failure_of(options));
    EXPECT_EQ(backend.acquires().size(), 4U);
    EXPECT_TRUE(clock.sleeps().empty());
}

TEST_F(WithLockTest, NobodySleepsLongerThanTheLeaseLasts) {
    busy_for(2, {.retry_after = 30ms});
    with_lock(backend, plain(), [](Handle&) {});
    EXPECT_THAT(clock.sleeps(), ElementsAre(30ms, 30ms));
}

TEST_F(WithLockTest, ALeaseThatHasJustRunOutIsStillWorthAMillisecond) {
    busy_for(1, {.retry_after = 0ms});
    with_lock(backend, plain(), [](Handle&) {});
    EXPECT_THAT(clock.sleeps(), ElementsAre(1ms));
}

TEST_F(WithLockTest, AnAttemptIsBoundedByTheTimeThatIsLeft) {
    const Steady began = clock.steady_now();
    busy_for(1);
    with_lock(backend, plain(), [](Handle&) {});
    ASSERT_TRUE(backend.acquires()[1].options.deadline);
    EXPECT_EQ(backend.acquires()[1].options.deadline->when(), began + 5s);
}

TEST_F(WithLockTest, TroubleThatMayPassIsRetriedAndNamedAtTheEnd) {
    backend.on_acquire = [this](int number, const AcquireCall& call) -> Acquired {
        if (number < 3) {
            throw LockError(LockCode::service_unavailable, "the database restarts");
        }
        return backend.grant(call);
    };
    EXPECT_FALSE(failure_of(plain()));
    EXPECT_EQ(runs, 1);

    backend.on_acquire = [](int, const AcquireCall&) -> Acquired {
        throw LockError(LockCode::rate_limited, "no connection free");
    };
    const auto error = failure_of(plain());
    ASSERT_TRUE(error);
    EXPECT_EQ(error->lock_code(), LockCode::acquisition_timeout);
    EXPECT_THAT(describe(error->cause()), HasSubstr("no connection free"));
}

TEST_F(WithLockTest, TroubleThatStaysIsPassedOn) {
    backend.on_acquire = [](int, const AcquireCall&) -> Acquired {
        throw LockError(LockCode::auth_failed, "no such role");
    };
    const auto error = failure_of(plain());
    ASSERT_TRUE(error);
    EXPECT_EQ(error->lock_code(), LockCode::auth_failed);
    EXPECT_EQ(backend.acquires().size(), 1U);
}

// An attempt whose answer was lost may hold the lock: no other code would release it.
TEST_F(WithLockTest, AnUnknownOutcomeIsCleanedUp) {
    backend.on_acquire = [](int number, const AcquireCall&) -> Acquired {
        if (number == 1) {
            throw LockError(
                LockCode::service_unavailable, "the connection broke", Outcome::unknown);
        }
        throw LockError(LockCode::auth_failed, "no such role");
    };
    EXPECT_TRUE(failure_of(plain()));
    ASSERT_EQ(backend.releases().size(), 1U);
    EXPECT_EQ(backend.releases()[0].lock_id, *backend.acquires()[0].options.lock_id);
    EXPECT_TRUE(backend.abandoned().empty());
}

// The release fails too, because the database is still unreachable: the backend must remember it.
TEST_F(WithLockTest, WhatCannotBeCleanedUpNowIsLeftToTheBackend) {
    backend.on_acquire = [](int, const AcquireCall&) -> Acquired {
        throw LockError(LockCode::service_unavailable, "the connection broke", Outcome::unknown);
    };
    backend.on_release = [](int, const ReleaseCall&) -> Released {
        throw LockError(LockCode::service_unavailable, "nobody answers");
    };
    EXPECT_TRUE(failure_of(plain()));
    ASSERT_EQ(backend.abandoned().size(), 1U);
    EXPECT_EQ(backend.abandoned()[0].lock_id, *backend.acquires()[0].options.lock_id);
    EXPECT_EQ(backend.abandoned()[0].ttl, plain().ttl);
}

}  // namespace
}  // namespace holdfast::lock::tests
