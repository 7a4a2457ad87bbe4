// A handle, used by one thread at a time.
#include <holdfast/lock/handle.hpp>

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

static_assert(!std::is_copy_constructible_v<Handle> && !std::is_copy_assignable_v<Handle>);
static_assert(std::is_nothrow_move_constructible_v<Handle>);

class HandleTest : public testing::Test {
protected:
    SleepwalkingClock clock;
    FakeBackend backend{clock};
    CapturingLogger logger;
    std::vector<LockError> reports;

    HandleOptions plain() { return {.logger = &logger, .clock = &clock}; }
    HandleOptions reporting() {
        HandleOptions options = plain();
        options.on_release_error = [this](const ReleaseFailure& failure) {
            EXPECT_EQ(failure.key, "invoice/7");
            EXPECT_EQ(failure.source, "disposal");
            reports.push_back(failure.error);
        };
        return options;
    }
    Handle hold(HandleOptions options) {
        return acquire_handle(backend, "invoice/7", 10s, {}, std::move(options));
    }
    Handle hold() { return hold(plain()); }
    Handle busy(HandleOptions options) {
        return {backend, "invoice/7", Busy{.retry_after = 70ms}, std::move(options)};
    }
    template <class Failure>
    void fail_release(Failure failure) {
        backend.on_release = [failure](int, const ReleaseCall&) -> Released { throw failure; };
    }
};

TEST_F(HandleTest, AHandleHasWhatWasGranted) {
    HOLDFAST_CHECK("locks U-D 1");
    HOLDFAST_CHECK("locks U-D 13");
    HOLDFAST_CHECK("locks U-D 14");
    HOLDFAST_CHECK("locks U-H 6");
    const LockId id = LockId::fresh();
    const Handle lock = acquire_handle(backend, "invoice/7", 10s, {.lock_id = id}, plain());
    ASSERT_TRUE(lock.ok());
    EXPECT_EQ(lock.key(), "invoice/7");
    EXPECT_EQ(lock.grant().lock_id, id);
    EXPECT_EQ(lock.fence(), Fence{1});
    EXPECT_EQ(lock.expires_at(),
              std::chrono::floor<std::chrono::milliseconds>(clock.wall_now()) + 10s);
    EXPECT_EQ(lock.safe_until(), clock.steady_now() + 10s);
    EXPECT_EQ(lock.remaining(), 10s);
    EXPECT_TRUE(lock.lost().stop_possible());
    EXPECT_FALSE(lock.lost().stop_requested());
    EXPECT_FALSE(lock.released());
}

TEST_F(HandleTest, WhatRemainsShrinksToNothing) {
    const Handle lock = hold();
    clock.advance(9s);
    EXPECT_EQ(lock.remaining(), 1s);
    clock.advance(9s);
    EXPECT_EQ(lock.remaining(), 0s);
}

TEST_F(HandleTest, ReleaseAsksTheBackendOnce) {
    HOLDFAST_CHECK("locks U-D 2");
    HOLDFAST_CHECK("locks U-D 9");
    HOLDFAST_CHECK("locks U-D 49");
    Handle lock = hold();
    EXPECT_TRUE(lock.release().ok);
    for (int i = 0; i < 5; ++i) {
        EXPECT_FALSE(lock.release().ok);
    }
    ASSERT_EQ(backend.releases().size(), 1U);
    EXPECT_EQ(backend.releases()[0].lock_id, lock.grant().lock_id);
    EXPECT_TRUE(lock.released()->ok);
}

TEST_F(HandleTest, ExtendAsksTheBackendAndMovesTheTimes) {
    HOLDFAST_CHECK("locks U-D 3");
    Handle lock = hold();
    clock.advance(4s);
    const Extended answer = lock.extend(60s);
    EXPECT_TRUE(answer.ok);
    ASSERT_EQ(backend.extends().size(), 1U);
    EXPECT_EQ(backend.extends()[0].lock_id, lock.grant().lock_id);
    EXPECT_EQ(backend.extends()[0].ttl, 60s);
    EXPECT_EQ(backend.extends()[0].mode, ExtendMode::replace);
    EXPECT_EQ(lock.expires_at(), answer.expires_at);
    EXPECT_EQ(lock.remaining(), 60s);
    lock.extend(2s);
    EXPECT_EQ(lock.remaining(), 2s) << "an extension by hand may be shorter";
}

TEST_F(HandleTest, ExtendIsAskedAfterARelease) {
    HOLDFAST_CHECK("locks U-D 4");
    Handle lock = hold();
    lock.release();
    backend.on_extend = [](int, const ExtendCall&) { return Extended{}; };
    EXPECT_FALSE(lock.extend(1s).ok);
    EXPECT_EQ(backend.extends().size(), 1U);
    EXPECT_FALSE(lock.lost().stop_requested()) << "it was given back, not lost";
}

TEST_F(HandleTest, AnExtensionThatIsRefusedMeansTheLockIsLost) {
    HandleOptions options = plain();
    std::vector<LostReason> losses;
    options.on_lost = [&](LostReason reason) { losses.push_back(reason); };
    Handle lock = hold(std::move(options));
    backend.on_extend = [](int, const ExtendCall&) { return Extended{.why = Missing::expired}; };
    EXPECT_EQ(lock.extend(1s).why, Missing::expired);
    lock.extend(1s);
    EXPECT_TRUE(lock.lost().stop_requested());
    EXPECT_THAT(losses, ElementsAre(LostReason::refused));
}

TEST_F(HandleTest, AFailedExtensionChangesNothing) {
    Handle lock = hold();
    backend.on_extend = [](int, const ExtendCall&) -> Extended { throw std::logic_error("bug"); };
    const auto error = lock_error_of([&] { lock.extend(60s); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->lock_code(), LockCode::internal);
    EXPECT_EQ(lock.remaining(), 10s);
    EXPECT_FALSE(lock.lost().stop_requested());
    backend.on_extend = nullptr;
    EXPECT_TRUE(lock.extend(60s).ok);
}

TEST_F(HandleTest, DisposeReleasesAndNeverThrows) {
    HOLDFAST_CHECK("locks U-D 5");
    HOLDFAST_CHECK("locks U-D 6");
    Handle lock = hold();
    lock.dispose();
    EXPECT_EQ(backend.releases().size(), 1U);
    fail_release(std::runtime_error("broken"));
    Handle other = hold();
    static_assert(noexcept(other.dispose()));
    other.dispose();
    EXPECT_EQ(backend.releases().size(), 2U);
}

TEST_F(HandleTest, TokensAreHandedOn) {
    HOLDFAST_CHECK("locks U-D 7");
    HOLDFAST_CHECK("locks U-D 8");
    HOLDFAST_CHECK("locks U-D 10");
    HOLDFAST_CHECK("locks U-D 55");
    const std::stop_source one;
    const std::stop_source two;
    HandleOptions options = plain();
    options.dispose_timeout = 1s;
    Handle lock = hold(std::move(options));
    lock.extend(1s, {.stop = one.get_token()});
    lock.release({.stop = two.get_token()});
    EXPECT_EQ(backend.extends()[0].options.stop, one.get_token());
    EXPECT_EQ(backend.releases()[0].options.stop, two.get_token());
}

TEST_F(HandleTest, BusyMakesAHandleThatIsNotOk) {
    HOLDFAST_CHECK("locks U-D 12");
    HOLDFAST_CHECK("locks U-H 7");
    backend.on_acquire = [](int, const AcquireCall&) {
        return Acquired{Busy{.retry_after = 70ms}};
    };
    const Handle none = hold(reporting());
    EXPECT_FALSE(none.ok());
    EXPECT_EQ(none.busy().retry_after, 70ms);
    EXPECT_EQ(none.remaining(), 0s);
    EXPECT_FALSE(none.lost().stop_possible());
    EXPECT_FALSE(none.lost_reason());
    EXPECT_FALSE(none.released());
}

TEST_F(HandleTest, TheMethodsOfABusyHandleDoNothing) {
    HOLDFAST_CHECK("locks U-D 15");
    HOLDFAST_CHECK("locks U-D 16");
    HOLDFAST_CHECK("locks U-D 17");
    HOLDFAST_CHECK("locks U-D 18");
    HOLDFAST_CHECK("locks U-D 19");
    HOLDFAST_CHECK("locks U-D 21");
    HOLDFAST_CHECK("locks U-D 22");
    HOLDFAST_CHECK("locks U-D 23");
    backend.on_acquire = [](int, const AcquireCall&) {
        return Acquired{Busy{.retry_after = 70ms}};
    };
    {
        Handle none = hold(reporting());
        for (int i = 0; i < 3; ++i) {  // Before anybody asked whether it is ok.
            EXPECT_FALSE(none.release().ok);
            EXPECT_FALSE(none.extend(1s).ok);
            none.dispose();
        }
        EXPECT_FALSE(none.ok());
        EXPECT_EQ(none.busy().retry_after, 70ms);
        EXPECT_EQ(none.remaining(), 0s);
        EXPECT_FALSE(none.lost().stop_possible());
        EXPECT_FALSE(none.lost_reason());
        EXPECT_FALSE(none.released());
    }
    EXPECT_TRUE(backend.releases().empty());
    EXPECT_TRUE(backend.extends().empty());
    EXPECT_TRUE(reports.empty());
}

TEST_F(HandleTest, AScopeReleasesAtItsEndHoweverItEnds) {
    HOLDFAST_CHECK("locks U-D 24");
    HOLDFAST_CHECK("locks U-D 25");
    HOLDFAST_CHECK("locks U-D 26");
    {
        const Handle lock = hold();
        EXPECT_TRUE(backend.releases().empty());
    }
    EXPECT_EQ(backend.releases().size(), 1U);
    {
        const Handle none = busy(plain());
    }
    EXPECT_EQ(backend.releases().size(), 1U);
    try {
        const Handle lock = hold();
        throw std::out_of_range("mine");
    } catch (const std::out_of_range&) {
        EXPECT_EQ(backend.releases().size(), 2U);
    }
}

TEST_F(HandleTest, AHandleMovesAndReleasesOnce) {
    std::optional<Handle> first(hold());
    Handle second = std::move(*first);
    first.reset();
    EXPECT_TRUE(backend.releases().empty());
    EXPECT_TRUE(second.ok());
    const LockId before = second.grant().lock_id;
    second = hold();
    ASSERT_EQ(backend.releases().size(), 1U) << "what it had is given back";
    EXPECT_EQ(backend.releases()[0].lock_id, before);
    Handle& same = second;
    second = std::move(same);
    EXPECT_TRUE(second.ok());
    EXPECT_EQ(backend.releases().size(), 1U);
}

TEST_F(HandleTest, AfterAReleaseThereIsNothingToDispose) {
    HOLDFAST_CHECK("locks U-D 30");
    HOLDFAST_CHECK("locks U-D 32");
    HOLDFAST_CHECK("locks U-D 50");
    HOLDFAST_CHECK("locks U-D 51");
    Handle released = hold();
    released.release();
    released.dispose();
    EXPECT_EQ(backend.releases().size(), 1U);
    Handle disposed = hold();
    for (int i = 0; i < 10; ++i) {
        disposed.dispose();
    }
    EXPECT_EQ(backend.releases().size(), 2U);
    EXPECT_FALSE(disposed.release().ok);
    EXPECT_EQ(backend.releases().size(), 2U);
}

// From inside the release, on the same thread: waiting for it would never end.
TEST_F(HandleTest, ADisposalInsideADisposalSharesIt) {
    HOLDFAST_CHECK("locks U-D 28");
    Handle* self = nullptr;
    backend.on_release = [&](int, const ReleaseCall&) -> Released {
        self->dispose();
        EXPECT_FALSE(self->release().ok);
        throw LockError(LockCode::internal);
    };
    HandleOptions options = reporting();
    options.on_release_error = [&](const ReleaseFailure& failure) {
        reports.push_back(failure.error);
        self->dispose();
    };
    Handle lock = hold(std::move(options));
    self = &lock;
    lock.dispose();
    EXPECT_EQ(backend.releases().size(), 1U);
    EXPECT_EQ(reports.size(), 1U);
}

TEST_F(HandleTest, AReleaseByHandThrowsAndIsNotReported) {
    HOLDFAST_CHECK("locks U-D 20");
    HOLDFAST_CHECK("locks U-D 36");
    HOLDFAST_CHECK("locks U-D 37");
    HOLDFAST_CHECK("locks U-D 38");
    HOLDFAST_CHECK("locks U-D 43");
    fail_release(LockError(LockCode::internal, "broken"));
    {
        Handle lock = hold(reporting());
        const auto error = lock_error_of([&] { lock.release(); });
        ASSERT_TRUE(error);
        EXPECT_STREQ(error->what(), "broken");
        EXPECT_FALSE(lock.release().ok) << "trying again would not help, so the handle has ended";
    }
    EXPECT_EQ(backend.releases().size(), 1U);
    EXPECT_TRUE(reports.empty());
    Handle without = hold();
    EXPECT_THROW(without.release(), LockError);
    EXPECT_TRUE(logger.lines().empty());
}

// A release can be repeated without harm, so a failure that may pass does not end the handle.
TEST_F(HandleTest, AfterAFailureThatMayPassTheHandleIsAsBefore) {
    backend.on_release = [](int number, const ReleaseCall&) -> Released {
        if (number <= 2) {
            throw LockError(LockCode::service_unavailable);
        }
        return {.ok = true};
    };
    {
        Handle lock = hold(reporting());
        EXPECT_THROW(lock.release(), LockError);
        EXPECT_THROW(lock.release(), LockError);
        EXPECT_FALSE(lock.released());
    }
    EXPECT_EQ(backend.releases().size(), 3U) << "the end of the scope tried again";
    EXPECT_TRUE(reports.empty());
}

TEST_F(HandleTest, AForeignExceptionOfAReleaseBecomesInternal) {
    fail_release(std::runtime_error("the driver is on fire"));
    Handle lock = hold();
    const auto error = lock_error_of([&] { lock.release(); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->lock_code(), LockCode::internal);
    EXPECT_EQ(error->context().key, "invoice/7");
    EXPECT_EQ(error->context().lock_id, lock.grant().lock_id.reveal());
}

TEST_F(HandleTest, TheErrorOfADisposalReachesTheCallback) {
    HOLDFAST_CHECK("locks U-D 39");
    HOLDFAST_CHECK("locks U-D 40");
    HOLDFAST_CHECK("locks U-D 47");
    fail_release(std::runtime_error("broken"));
    {
        const Handle lock = hold(reporting());
    }
    fail_release("text");
    {
        const Handle lock = hold(reporting());
    }
    fail_release(LockError(LockCode::auth_failed));
    {
        const Handle lock = hold(reporting());
    }
    ASSERT_EQ(reports.size(), 3U);
    EXPECT_EQ(reports[0].lock_code(), LockCode::internal);
    EXPECT_STREQ(reports[0].what(), "broken");
    EXPECT_EQ(reports[1].lock_code(), LockCode::internal);
    EXPECT_EQ(reports[2].lock_code(), LockCode::auth_failed);
    EXPECT_TRUE(logger.lines().empty()) << "a callback takes the logger's place";
}

TEST_F(HandleTest, WhatTheCallbackThrowsIsDropped) {
    HOLDFAST_CHECK("locks U-D 41");
    fail_release(LockError(LockCode::internal));
    HandleOptions options = plain();
    int calls = 0;
    options.on_release_error = [&](const ReleaseFailure&) {
        ++calls;
        throw std::runtime_error("oops");
    };
    {
        const Handle lock = hold(std::move(options));
    }
    EXPECT_EQ(calls, 1);
    EXPECT_TRUE(logger.lines().empty());
}

TEST_F(HandleTest, NothingIsSaidOnSuccess) {
    HOLDFAST_CHECK("locks U-D 42");
    HOLDFAST_CHECK("locks U-D 48");
    {
        const Handle lock = hold(reporting());
    }
    {
        const Handle lock = hold();
    }
    backend.on_release = [](int, const ReleaseCall&) { return Released{}; };
    {
        const Handle gone = hold(reporting());
    }  // A lease that ran out is normal for a disposal.
    EXPECT_TRUE(reports.empty());
    EXPECT_TRUE(logger.lines().empty());
}

// The logger that is handed in is the only switch: there are no modes, and no variables are read.
TEST_F(HandleTest, WithoutACallbackTheLoggerWarnsAndWithoutALoggerNobody) {
    HOLDFAST_CHECK("locks U-D 44");
    HOLDFAST_CHECK("locks U-D 45");
    HOLDFAST_CHECK("locks U-D 46");
    fail_release(LockError(LockCode::rate_limited, "no connection free"));
    std::string id;
    {
        const Handle lock = hold();
        id = lock.grant().lock_id.reveal();
    }
    EXPECT_THAT(logger.lines(),
                ElementsAre("level=warn event=\"lock release failed\" message=\"no connection "
                            "free\" error=RateLimited source=disposal"));
    EXPECT_EQ(logger.count(id), 0U);
    testing::internal::CaptureStderr();
    {
        const Handle silent = hold({.clock = &clock});
    }
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
    EXPECT_EQ(logger.lines().size(), 1U);
}

TEST_F(HandleTest, WithoutATimeoutThereIsNoTimer) {
    HOLDFAST_CHECK("locks U-D 54");
    {
        const Handle lock = hold();
    }
    EXPECT_TRUE(clock.sleeps().empty());
    EXPECT_FALSE(backend.releases()[0].options.deadline) << "the backend's own limit holds";
}

TEST_F(HandleTest, ATimeoutMustBePositive) {
    HandleOptions options = plain();
    options.dispose_timeout = 0ms;
    EXPECT_THROW((void)busy(options), LockError);
    options.dispose_timeout = -1ms;
    EXPECT_THROW((void)busy(options), LockError);
}

TEST_F(HandleTest, ASuspensionShortensWhatRemains) {
    std::chrono::nanoseconds suspended = 100s;
    HandleOptions options = plain();
    options.suspended = [&] { return suspended; };
    Handle lock = hold(std::move(options));
    EXPECT_EQ(lock.remaining(), 10s);
    suspended += 3s;
    EXPECT_EQ(lock.remaining(), 7s);
    EXPECT_EQ(lock.safe_until(), clock.steady_now() + 7s);
    lock.extend(10s);
    EXPECT_EQ(lock.remaining(), 10s) << "the new lease began after it";
    suspended += 1ms;
    EXPECT_EQ(lock.remaining(), 10s) << "two clocks are not read at once";
}

TEST_F(HandleTest, TheMachineKnowsHowLongItWasSuspended) {
    const std::chrono::nanoseconds first = time_suspended();
    EXPECT_GT(first, -1s);
    EXPECT_LT(time_suspended() - first, 1min);
}

TEST(LostReason, HasANameForEach) {
    EXPECT_EQ(to_string(LostReason::refused), "refused");
    EXPECT_EQ(to_string(LostReason::out_of_time), "out_of_time");
    EXPECT_EQ(to_string(LostReason::failed), "failed");
    EXPECT_EQ(to_string(LostReason::lifetime_over), "lifetime_over");
}

}  // namespace
}  // namespace holdfast::lock::tests
