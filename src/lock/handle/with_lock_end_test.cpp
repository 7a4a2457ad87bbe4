// What becomes of with_lock's release, its settings, and a wait in line.
#include "test/fake_backend.hpp"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <holdfast/base/log_capture.hpp>
#include <holdfast/lock/with_lock.hpp>
#include <holdfast/testing/check.hpp>

namespace holdfast::lock::tests {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;

class WithLockEnd : public testing::Test {
protected:
    SleepwalkingClock clock;
    FakeBackend backend{clock};
    CapturingLogger logger;
    std::vector<std::string> reports;  // "name|message|source".

    WithLock options() {
        WithLock result{.key = "invoice/7", .auto_extend = std::nullopt, .logger = &logger};
        result.acquisition.clock = &clock;
        return result;
    }
    WithLock reporting() {
        WithLock result = options();
        result.on_release_error = [this](const ReleaseFailure& failure) {
            reports.push_back(std::string(to_string(failure.error.lock_code())) + "|" +
                              failure.error.what() + "|" + std::string(failure.source));
        };
        return result;
    }
    template <class Failure>
    void fail_release(Failure failure) {
        backend.on_release = [failure](int, const ReleaseCall&) -> Released { throw failure; };
    }
};

TEST_F(WithLockEnd, TheAnswerIsKeptWhenTheReleaseFails) {
    HOLDFAST_CHECK("locks U-L 20");
    fail_release(LockError(LockCode::service_unavailable));
    EXPECT_EQ(with_lock(backend, options(), [](Handle&) { return std::string("paid"); }), "paid");
    EXPECT_EQ(backend.releases().size(), 1U);
}

TEST_F(WithLockEnd, AFailedReleaseIsLoggedWithoutKeyOrId) {
    HOLDFAST_CHECK("locks U-L 21");
    HOLDFAST_CHECK("locks U-L 27");  // The logger is the only switch: there is no mode to debug.
    fail_release(LockError(LockCode::service_unavailable, "the database restarts"));
    with_lock(backend, options(), [](Handle&) {});
    EXPECT_THAT(logger.lines(),
                ElementsAre("level=warn event=\"lock release failed\" message=\"the database "
                            "restarts\" error=ServiceUnavailable source=disposal"));
    EXPECT_EQ(logger.count("invoice"), 0U);
    EXPECT_EQ(logger.count(backend.releases()[0].lock_id.reveal()), 0U);
}

TEST_F(WithLockEnd, WithoutALoggerThereIsSilence) {
    HOLDFAST_CHECK("locks U-L 26");  // "Production" is a program that hands in no logger.
    fail_release(LockError(LockCode::service_unavailable));
    WithLock silent = options();
    silent.logger = nullptr;
    testing::internal::CaptureStderr();
    testing::internal::CaptureStdout();
    with_lock(backend, silent, [](Handle&) {});
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
    EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
}

TEST_F(WithLockEnd, ACallbackLearnsWhichLockItWas) {
    HOLDFAST_CHECK("locks U-L 22");
    fail_release(LockError(LockCode::network_timeout));
    WithLock told = options();
    int calls = 0;
    told.on_release_error = [&](const ReleaseFailure& failure) {
        ++calls;
        EXPECT_EQ(failure.key, "invoice/7");
        EXPECT_EQ(failure.lock_id, *backend.acquires()[0].options.lock_id);
        EXPECT_EQ(failure.source, "disposal");
        EXPECT_EQ(failure.error.lock_code(), LockCode::network_timeout);
    };
    with_lock(backend, told, [](Handle&) {});
    EXPECT_EQ(calls, 1);
    EXPECT_TRUE(logger.lines().empty());
}

TEST_F(WithLockEnd, SomethingThatIsNoExceptionIsMadeOneAndKept) {
    HOLDFAST_CHECK("locks U-L 23");
    fail_release(42);
    WithLock told = options();
    int kept = 0;
    told.on_release_error = [&](const ReleaseFailure& failure) {
        EXPECT_EQ(failure.error.lock_code(), LockCode::internal);
        try {
            std::rethrow_exception(failure.error.cause());
        } catch (int original) {
            kept = original;
        }
    };
    with_lock(backend, told, [](Handle&) {});
    EXPECT_EQ(kept, 42);
}

TEST_F(WithLockEnd, WhatTheCallbackThrowsIsDropped) {
    HOLDFAST_CHECK("locks U-L 24");
    fail_release(LockError(LockCode::internal));
    WithLock told = options();
    told.on_release_error = [](const ReleaseFailure&) { throw std::runtime_error("oops"); };
    EXPECT_EQ(with_lock(backend, told, [](Handle&) { return 7; }), 7);
}

TEST_F(WithLockEnd, TheFunctionsExceptionWinsOverTheReleases) {
    HOLDFAST_CHECK("locks U-L 25");
    fail_release(LockError(LockCode::internal, "and this too"));
    EXPECT_THROW(with_lock(backend, reporting(), [](Handle&) { throw std::out_of_range("mine"); }),
                 std::out_of_range);
    EXPECT_THAT(reports, ElementsAre("Internal|and this too|disposal"));
}

TEST_F(WithLockEnd, NothingIsReportedWhenAllIsWell) {
    HOLDFAST_CHECK("locks U-L 28");
    with_lock(backend, reporting(), [](Handle&) {});
    with_lock(backend, options(), [](Handle&) {});
    EXPECT_TRUE(reports.empty());
    EXPECT_TRUE(logger.lines().empty());
}

// A token that fires while the function runs must not leave the key locked until its lease is over.
TEST_F(WithLockEnd, AFiredTokenDoesNotKeepFromReleasing) {
    HOLDFAST_CHECK("locks N13");
    std::stop_source source;
    WithLock stopped = options();
    stopped.stop = source.get_token();
    with_lock(backend, stopped, [&](Handle&) { source.request_stop(); });
    ASSERT_EQ(backend.releases().size(), 1U);
    EXPECT_FALSE(backend.releases()[0].options.stop.stop_requested());
}

TEST_F(WithLockEnd, ALockThatIsGoneAtTheEndIsReportedAsLost) {
    backend.on_release = [](int, const ReleaseCall&) { return Released{.why = Missing::expired}; };
    WithLock told = reporting();
    std::vector<LostReason> losses;
    told.on_lost = [&](LostReason reason) { losses.push_back(reason); };
    EXPECT_EQ(with_lock(backend, told, [](Handle&) { return 1; }), 1);
    EXPECT_THAT(losses, ElementsAre(LostReason::refused));
    EXPECT_TRUE(reports.empty()) << "it is no failure of the release";

    told.throw_if_lost = true;
    const auto error = lock_error_of([&] { with_lock(backend, told, [](Handle&) {}); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->lock_code(), LockCode::internal);
    EXPECT_EQ(losses.size(), 2U);
    EXPECT_THROW(with_lock(backend, told, [](Handle&) { throw std::out_of_range("mine"); }),
                 std::out_of_range);
}

// The answer was lost, and the second try found nothing: the first has done it.
TEST_F(WithLockEnd, AReleaseWhoseAnswerWasLostIsNoLossUnlessTheLeaseWasOver) {
    backend.on_release = [](int, const ReleaseCall&) {
        return Released{.why = Missing::not_found, .indeterminate = true};
    };
    WithLock told = reporting();
    told.throw_if_lost = true;
    std::vector<LostReason> losses;
    told.on_lost = [&](LostReason reason) { losses.push_back(reason); };
    with_lock(backend, told, [](Handle&) {});
    EXPECT_TRUE(losses.empty());

    const auto late =
        lock_error_of([&] { with_lock(backend, told, [&](Handle&) { clock.advance(told.ttl); }); });
    ASSERT_TRUE(late) << "somebody else may have had it";
    EXPECT_THAT(losses, ElementsAre(LostReason::refused));
}

TEST_F(WithLockEnd, AFunctionMayReleaseByItself) {
    WithLock told = options();
    told.throw_if_lost = true;
    with_lock(backend, told, [](Handle& lock) { EXPECT_TRUE(lock.release().ok); });
    EXPECT_EQ(backend.releases().size(), 1U);
}

TEST_F(WithLockEnd, AnswersOfAnyKindComeBack) {
    int place = 5;
    int& same = with_lock(backend, options(), [&](Handle&) -> int& { return place; });
    EXPECT_EQ(&same, &place);
    const auto only =
        with_lock(backend, options(), [](Handle&) { return std::make_unique<int>(3); });
    EXPECT_EQ(*only, 3);
    with_lock(backend, options(), [](Handle&) {});
}

TEST_F(WithLockEnd, SettingsHaveTheirDefaults) {
    HOLDFAST_CHECK("locks U-P 112");
    HOLDFAST_CHECK("locks U-P 115");
    HOLDFAST_CHECK("locks U-P 116");
    HOLDFAST_CHECK("locks U-P 117");
    EXPECT_EQ(default_ttl, 30'000ms);
    const WithLock unset{.key = "invoice/7"};
    EXPECT_EQ(unset.ttl, default_ttl);
    const WithLock empty{.key = "invoice/7", .acquisition = {}};
    for (const Acquisition& wait : {unset.acquisition, empty.acquisition, Acquisition{}}) {
        EXPECT_EQ(wait.max_retries, 10);
        EXPECT_EQ(wait.retry_delay, 100ms);
        EXPECT_EQ(wait.max_delay, 1s);
        EXPECT_EQ(wait.timeout, 5'000ms);
        EXPECT_EQ(wait.backoff, Backoff::exponential);
        EXPECT_EQ(wait.jitter, Jitter::equal);
        EXPECT_FALSE(wait.stop.stop_possible());
    }
}

TEST_F(WithLockEnd, EachSettingIsOverriddenAlone) {
    HOLDFAST_CHECK("locks U-P 113");
    HOLDFAST_CHECK("locks U-P 114");
    HOLDFAST_CHECK("locks U-P 118");
    HOLDFAST_CHECK("locks U-P 119");
    HOLDFAST_CHECK("locks U-P 120");
    HOLDFAST_CHECK("locks U-P 121");
    HOLDFAST_CHECK("locks U-P 122");
    HOLDFAST_CHECK("locks U-P 123");
    EXPECT_EQ((WithLock{.key = "k", .ttl = 1s}.ttl), 1s);
    EXPECT_EQ((WithLock{.key = "k", .ttl = 0ms}.ttl), 0ms);
    EXPECT_EQ(Acquisition{.max_retries = 3}.max_retries, 3);
    EXPECT_EQ(Acquisition{.max_retries = 3}.retry_delay, 100ms);
    EXPECT_EQ(Acquisition{.retry_delay = 5ms}.retry_delay, 5ms);
    EXPECT_EQ(Acquisition{.retry_delay = 5ms}.max_retries, 10);
    EXPECT_EQ(Acquisition{.timeout = 1s}.timeout, 1s);
    EXPECT_EQ(Acquisition{.timeout = 1s}.max_retries, 10);
    EXPECT_EQ(Acquisition{.backoff = Backoff::fixed}.backoff, Backoff::fixed);
    EXPECT_EQ(Acquisition{.backoff = Backoff::fixed}.jitter, Jitter::equal);
    EXPECT_EQ(Acquisition{.jitter = Jitter::none}.jitter, Jitter::none);
    const std::stop_source source;
    EXPECT_EQ(Acquisition{.stop = source.get_token()}.stop, source.get_token());
}

// What is set is what happens: zeros too.
TEST_F(WithLockEnd, AllSettingsAtOnceAndZerosAreKept) {
    HOLDFAST_CHECK("locks U-P 124");
    HOLDFAST_CHECK("locks U-P 125");
    backend.on_acquire = [](int, const AcquireCall&) { return Acquired{Busy{}}; };
    const std::stop_source source;
    const Acquisition wait{.max_retries = 2,
                           .retry_delay = 8ms,
                           .max_delay = 12ms,
                           .backoff = Backoff::exponential,
                           .jitter = Jitter::full,
                           .timeout = 3s,
                           .stop = source.get_token(),
                           .meta = "nightly",
                           .clock = &clock,
                           .unit = [] { return 0.5; }};
    EXPECT_THROW((void)acquire_waiting(backend, "k", 1s, wait), LockError);
    EXPECT_THAT(clock.sleeps(), ElementsAre(4ms, 6ms));
    EXPECT_EQ(backend.acquires().size(), 3U);
    EXPECT_EQ(backend.acquires()[0].options.meta, "nightly");

    const Acquisition zeros{.max_retries = 0, .retry_delay = 0ms, .clock = &clock};
    EXPECT_THROW((void)acquire_waiting(backend, "k", 1s, zeros), LockError);
    EXPECT_EQ(backend.acquires().size(), 4U) << "no retries at all";
}

TEST_F(WithLockEnd, TokensCancelOnlyWhenTheyHaveFired) {
    HOLDFAST_CHECK("locks U-H 24");
    HOLDFAST_CHECK("locks U-H 25");
    HOLDFAST_CHECK("locks U-H 26");
    HOLDFAST_CHECK("locks U-H 27");
    std::stop_source source;
    const Acquisition wait{.clock = &clock};
    EXPECT_TRUE(std::holds_alternative<Grant>(acquire_waiting(backend, "k", 1s, wait)));
    EXPECT_TRUE(
        std::holds_alternative<Grant>(acquire_waiting(backend, "k", 1s, wait, source.get_token())));
    source.request_stop();
    const auto error =
        lock_error_of([&] { (void)acquire_waiting(backend, "k", 1s, wait, source.get_token()); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->lock_code(), LockCode::aborted);
    EXPECT_EQ(error->code(), Code::cancelled);
}

TEST_F(WithLockEnd, ADelayWaitsUnlessItIsZero) {
    HOLDFAST_CHECK("locks U-H 28");
    HOLDFAST_CHECK("locks U-H 29");
    backend.on_acquire = [this](int number, const AcquireCall& call) {
        return number % 2 == 1 ? Acquired{Busy{}} : Acquired{backend.grant(call)};
    };
    const Steady began = clock.steady_now();
    Acquisition wait{.retry_delay = 0ms, .jitter = Jitter::none, .clock = &clock};
    (void)acquire_waiting(backend, "k", 1s, wait);
    EXPECT_EQ(clock.steady_now(), began);
    wait.retry_delay = 40ms;
    (void)acquire_waiting(backend, "k", 1s, wait);
    EXPECT_EQ(clock.steady_now(), began + 40ms);
}

// A waiting line that writes down what happens to it.
struct Line {
    std::vector<std::string> story;
    std::vector<Steady> until;
    std::optional<LockId> id;
    std::function<void()> while_behind;
    int failures = 0;
};

class FakeWaitTicket final : public WaitTicket {
public:
    FakeWaitTicket(Line& line, SleepwalkingClock& clock) : line_(line), clock_(clock) {}
    ~FakeWaitTicket() override { line_.story.emplace_back("left"); }
    FakeWaitTicket(const FakeWaitTicket&) = delete;
    FakeWaitTicket& operator=(const FakeWaitTicket&) = delete;

    void wait_behind(Steady /*until*/, const std::stop_token& /*stop*/) override {
        line_.story.emplace_back("stood behind");
        if (line_.while_behind) {
            line_.while_behind();
        }
    }
    bool join() override {
        if (line_.failures > 0) {
            --line_.failures;
            line_.story.emplace_back("failed");
            throw LockError(LockCode::service_unavailable);
        }
        line_.story.emplace_back(joined_ ? "in line" : "joined");
        return !std::exchange(joined_, true);
    }
    void wait(Steady until, const std::stop_token& stop) override {
        line_.story.emplace_back("waited");
        line_.until.push_back(until);
        clock_.sleep_until(until, stop);
    }
    void arrived() noexcept override { line_.story.emplace_back("arrived"); }

private:
    Line& line_;
    SleepwalkingClock& clock_;
    bool joined_ = false;
};

class WithLine : public WithLockEnd {
protected:
    Line line;
    const Steady began = clock.steady_now();

    WithLine() {
        backend.on_line_up = [this](const LockId& id, Deadline patience) {
            line.id = id;
            EXPECT_EQ(patience.when(), began + 5s);
            return std::make_unique<FakeWaitTicket>(line, clock);
        };
    }
    void busy_for(int times, Busy answer = {}) {
        backend.on_acquire = [this, times, answer](int number, const AcquireCall& call) {
            return number <= times ? Acquired{answer} : Acquired{backend.grant(call)};
        };
    }
};

TEST_F(WithLine, AFreeLockIsTakenWithoutJoining) {
    with_lock(backend, options(), [](Handle&) {});
    EXPECT_THAT(line.story, ElementsAre("stood behind", "arrived", "left"));
    EXPECT_EQ(line.id, backend.acquires()[0].options.lock_id);
}

// It asks once, and does not wait.
TEST_F(WithLine, WhoeverDoesNotWaitNeedsNoPlace) {
    busy_for(1);
    const Acquired answer = acquire_waiting(backend, "k", 1s, {.timeout = 0ms, .clock = &clock});
    EXPECT_TRUE(std::holds_alternative<Busy>(answer));
    EXPECT_TRUE(line.story.empty());
}

TEST_F(WithLine, WhoeverIsStoppedBehindOthersAsksForNothing) {
    std::stop_source source;
    line.while_behind = [&] { source.request_stop(); };
    WithLock stopped = options();
    stopped.stop = source.get_token();
    const auto error = lock_error_of([&] { with_lock(backend, stopped, [](Handle&) { FAIL(); }); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->lock_code(), LockCode::aborted);
    EXPECT_THAT(line.story, ElementsAre("stood behind", "left"));
    EXPECT_TRUE(backend.acquires().empty());
}

// An earlier waiter has had the lock all the time: the later one asks once, in the end.
TEST_F(WithLine, WhoeverStoodBehindOthersUntilTheEndAsksOnce) {
    line.while_behind = [&] { clock.advance(5s); };
    busy_for(1'000'000);
    const auto error =
        lock_error_of([&] { with_lock(backend, options(), [](Handle&) { FAIL(); }); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->lock_code(), LockCode::acquisition_timeout);
    EXPECT_EQ(backend.acquires().size(), 1U);
}

TEST_F(WithLine, WhoeverJoinsTriesOnceMoreAndThenWaits) {
    busy_for(2, {.retry_after = 300ms});
    with_lock(backend, options(), [](Handle&) {});
    EXPECT_THAT(line.story,
                ElementsAre("stood behind", "joined", "in line", "waited", "arrived", "left"));
    EXPECT_THAT(line.until, ElementsAre(began + 300ms));
    EXPECT_EQ(backend.acquires().size(), 3U);
}

TEST_F(WithLine, TheLockMayBecomeFreeWhileJoining) {
    busy_for(1);
    with_lock(backend, options(), [](Handle&) {});
    EXPECT_THAT(line.story, ElementsAre("stood behind", "joined", "arrived", "left"));
}

TEST_F(WithLine, OnlyTheTimeoutBoundsTheWait) {
    busy_for(1'000'000, {.retry_after = 100ms});
    const auto error =
        lock_error_of([&] { with_lock(backend, options(), [](Handle&) { FAIL(); }); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->lock_code(), LockCode::acquisition_timeout);
    EXPECT_THAT(error->what(), HasSubstr("after 5000 ms"));
    EXPECT_EQ(backend.acquires().size(), 52U) << "twice at once, then every 100 ms";
    EXPECT_EQ(line.story.back(), "left");
}

TEST_F(WithLine, WithoutAHintItWaitsUntilTheEnd) {
    busy_for(2);
    with_lock(backend, options(), [](Handle&) {});
    EXPECT_THAT(line.until, ElementsAre(began + 5s));
}

TEST_F(WithLine, WhenTheLineIsOutOfReachItPolls) {
    line.failures = 2;
    busy_for(3);
    WithLock polling = options();
    polling.acquisition.jitter = Jitter::none;
    with_lock(backend, polling, [](Handle&) {});
    EXPECT_THAT(line.story,
                ElementsAre("stood behind", "failed", "failed", "joined", "arrived", "left"));
    EXPECT_THAT(clock.sleeps(), ElementsAre(100ms, 200ms));
}

TEST_F(WithLine, AFailedAttemptDoesNotSleepInLine) {
    backend.on_acquire = [this](int number, const AcquireCall& call) -> Acquired {
        if (number == 1) {
            return Busy{};
        }
        if (number == 2) {
            throw LockError(LockCode::service_unavailable);
        }
        return backend.grant(call);
    };
    with_lock(backend, options(), [](Handle&) {});
    EXPECT_THAT(line.story, ElementsAre("stood behind", "joined", "arrived", "left"));
    EXPECT_EQ(clock.sleeps().size(), 1U);
}

}  // namespace
}  // namespace holdfast::lock::tests
