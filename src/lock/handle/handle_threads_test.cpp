// A handle in the hands of several threads, and disposals that must not take for ever.
#include <atomic>
#include <future>
#include <thread>

#include "test/fake_backend.hpp"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <holdfast/base/manual_clock.hpp>
#include <holdfast/lock/handle.hpp>
#include <holdfast/testing/check.hpp>

namespace holdfast::lock::tests {
namespace {

using namespace std::chrono_literals;

class HandleThreads : public testing::Test {
protected:
    ManualClock clock;
    Gate gate;
    FakeBackend backend{clock};
    std::mutex mutex;
    std::vector<LockError> reports;

    HandleOptions options() {
        return {.on_release_error =
                    [this](const ReleaseFailure& failure) {
                        const std::lock_guard lock(mutex);
                        reports.push_back(failure.error);
                    },
                .clock = &clock};
    }
    HandleOptions impatient(std::chrono::milliseconds timeout = 2s) {
        HandleOptions result = options();
        result.dispose_timeout = timeout;
        return result;
    }
    Handle hold(HandleOptions with) {
        return acquire_handle(backend, "invoice/7", 10s, {}, std::move(with));
    }
    // The release stands at the gate, and then succeeds or fails.
    void slow_release(std::optional<LockError> failure = std::nullopt) {
        backend.on_release = [this, failure](int, const ReleaseCall&) -> Released {
            gate.pass();
            if (failure) {
                throw *failure;
            }
            return {.ok = true};
        };
    }
    std::size_t reported() {
        const std::lock_guard lock(mutex);
        return reports.size();
    }
    static bool ready(std::future<void>& done) {
        return done.wait_until(soon().when()) == std::future_status::ready;
    }
};

TEST_F(HandleThreads, DisposalsAtOnceShareOneCall) {
    HOLDFAST_CHECK("locks U-D 27");
    slow_release();
    Handle lock = hold(options());
    std::vector<std::future<void>> disposals;
    for (int i = 0; i < 3; ++i) {
        disposals.push_back(std::async(std::launch::async, [&] { lock.dispose(); }));
    }
    ASSERT_TRUE(gate.wait_for_arrival());
    gate.open();
    for (auto& disposal : disposals) {
        EXPECT_TRUE(ready(disposal));
    }
    EXPECT_EQ(backend.releases().size(), 1U);
    EXPECT_EQ(reported(), 0U);
}

TEST_F(HandleThreads, DisposalsAtOnceThatFailAreReportedOnce) {
    HOLDFAST_CHECK("locks U-D 31");
    slow_release(LockError(LockCode::service_unavailable));
    Handle lock = hold(options());
    std::vector<std::future<void>> disposals;
    for (int i = 0; i < 3; ++i) {
        disposals.push_back(std::async(std::launch::async, [&] { lock.dispose(); }));
    }
    ASSERT_TRUE(gate.wait_for_arrival());
    gate.open();
    for (auto& disposal : disposals) {
        EXPECT_TRUE(ready(disposal));
    }
    EXPECT_EQ(backend.releases().size(), 1U);
    EXPECT_EQ(reported(), 1U);
}

TEST_F(HandleThreads, ADisposalWaitsForTheReleaseUnderWay) {
    HOLDFAST_CHECK("locks U-D 29");
    HOLDFAST_CHECK("locks U-D 33");
    HOLDFAST_CHECK("locks U-D 34");
    std::atomic<bool> answered = false;
    backend.on_release = [&](int, const ReleaseCall&) {
        gate.pass();
        answered = true;
        return Released{.ok = true};
    };
    Handle lock = hold(options());
    auto release = std::async(std::launch::async, [&] { return lock.release().ok; });
    ASSERT_TRUE(gate.wait_for_arrival());
    EXPECT_FALSE(lock.release().ok) << "a second release does not wait, and asks nobody";
    std::promise<void> begun;
    auto disposal = std::async(std::launch::async, [&] {
        begun.set_value();
        lock.dispose();
        EXPECT_TRUE(answered) << "it has to wait";
    });
    begun.get_future().wait();
    gate.open();
    EXPECT_TRUE(release.get());
    EXPECT_TRUE(ready(disposal));
    EXPECT_EQ(backend.releases().size(), 1U);
}

TEST_F(HandleThreads, ADisposalDuringAReleaseThatFailsSaysNothing) {
    HOLDFAST_CHECK("locks U-D 35");
    slow_release(LockError(LockCode::internal));
    Handle lock = hold(options());
    auto release = std::async(std::launch::async, [&] { lock.release(); });
    ASSERT_TRUE(gate.wait_for_arrival());
    auto disposal = std::async(std::launch::async, [&] { lock.dispose(); });
    gate.open();
    EXPECT_THROW(release.get(), LockError);
    EXPECT_TRUE(ready(disposal));
    EXPECT_EQ(backend.releases().size(), 1U);
    EXPECT_EQ(reported(), 0U);
}

// A disposal that has waited for a failed release tries again: no other code would.
TEST_F(HandleThreads, ADisposalRepeatsAReleaseThatMayYetSucceed) {
    backend.on_release = [&](int number, const ReleaseCall&) -> Released {
        if (number == 1) {
            gate.pass();
            throw LockError(LockCode::service_unavailable);
        }
        return {.ok = true};
    };
    Handle lock = hold(options());
    auto release = std::async(std::launch::async, [&] { lock.release(); });
    ASSERT_TRUE(gate.wait_for_arrival());
    auto disposal = std::async(std::launch::async, [&] { lock.dispose(); });
    gate.open();
    EXPECT_THROW(release.get(), LockError);
    EXPECT_TRUE(ready(disposal));
    EXPECT_EQ(backend.releases().size(), 2U);
    EXPECT_EQ(reported(), 0U);
}

TEST_F(HandleThreads, ADisposalEndsAtItsTimeoutAndIsReportedThere) {
    HOLDFAST_CHECK("locks U-D 52");
    slow_release();
    Handle lock = hold(impatient(2s));
    auto disposal = std::async(std::launch::async, [&] { lock.dispose(); });
    ASSERT_TRUE(gate.wait_for_arrival());
    ASSERT_TRUE(clock.wait_for_sleepers(1, soon()));
    clock.advance(2s - 1ns);
    EXPECT_TRUE(clock.wait_for_sleepers(1, Deadline::after(0s))) << "not a moment sooner";
    EXPECT_EQ(reported(), 0U);
    clock.advance(1ns);
    ASSERT_TRUE(ready(disposal));
    ASSERT_EQ(reported(), 1U);
    EXPECT_EQ(reports[0].lock_code(), LockCode::network_timeout);
    EXPECT_THAT(reports[0].what(), testing::HasSubstr("timed out"));
    EXPECT_TRUE(backend.releases()[0].options.stop.stop_requested()) << "and it is cancelled";
    lock.dispose();
    EXPECT_FALSE(lock.release().ok);
    EXPECT_EQ(backend.releases().size(), 1U);
    gate.open();
}

TEST_F(HandleThreads, ALateFailureIsNotReportedAgain) {
    HOLDFAST_CHECK("locks U-D 57");
    backend.on_release = [&](int, const ReleaseCall&) -> Released {
        gate.pass();
        throw LockError(LockCode::service_unavailable);
    };
    // The callback dies with the last who could call it.
    std::promise<void> nobody_left;
    HandleOptions with = impatient();
    with.on_release_error = [report = with.on_release_error,
                             last = std::shared_ptr<void>(nullptr, [&](void*) {
                                 nobody_left.set_value();
                             })](const ReleaseFailure& failure) { report(failure); };
    {
        auto lock = std::make_unique<Handle>(hold(std::move(with)));
        with = {};
        auto disposal = std::async(std::launch::async, [&] { lock.reset(); });
        ASSERT_TRUE(gate.wait_for_arrival());
        ASSERT_TRUE(clock.wait_for_sleepers(1, soon()));
        clock.advance(2s);
        ASSERT_TRUE(ready(disposal));
    }
    EXPECT_EQ(reported(), 1U);
    gate.open();
    auto end = nobody_left.get_future();
    ASSERT_TRUE(ready(end));
    EXPECT_EQ(reported(), 1U);
}

TEST_F(HandleThreads, AQuickReleaseIsNotReported) {
    HOLDFAST_CHECK("locks U-D 53");
    HOLDFAST_CHECK("locks U-D 58");
    {
        const Handle lock = hold(impatient());
    }
    EXPECT_EQ(backend.releases().size(), 1U);
    EXPECT_EQ(reported(), 0U);
    clock.advance(1h);
    EXPECT_EQ(reported(), 0U);
}

TEST_F(HandleThreads, AFailureBeforeTheTimeoutIsReportedAsItIs) {
    HOLDFAST_CHECK("locks U-D 56");
    backend.on_release = [](int, const ReleaseCall&) -> Released {
        throw LockError(LockCode::auth_failed, "no such role");
    };
    const std::thread::id here = std::this_thread::get_id();
    HandleOptions with = impatient();
    with.on_release_error = [&](const ReleaseFailure& failure) {
        EXPECT_EQ(std::this_thread::get_id(), here);
        reports.push_back(failure.error);
    };
    {
        const Handle lock = hold(std::move(with));
    }
    clock.advance(1h);
    ASSERT_EQ(reported(), 1U);
    EXPECT_EQ(reports[0].lock_code(), LockCode::auth_failed);
}

// The release under way is another thread's; its caller hears of its end, whatever that is.
TEST_F(HandleThreads, AnImpatientDisposalDoesNotWaitForSomebodyElsesReleaseForEver) {
    slow_release();
    Handle lock = hold(impatient());
    auto release = std::async(std::launch::async, [&] { return lock.release().ok; });
    ASSERT_TRUE(gate.wait_for_arrival());
    auto disposal = std::async(std::launch::async, [&] { lock.dispose(); });
    ASSERT_TRUE(clock.wait_for_sleepers(1, soon()));
    clock.advance(2s);
    ASSERT_TRUE(ready(disposal));
    EXPECT_EQ(reported(), 1U);
    gate.open();
    EXPECT_TRUE(release.get());
    EXPECT_EQ(backend.releases().size(), 1U);
}

// Two extensions at once could end with an older lease believed to be the newer one.
TEST_F(HandleThreads, ExtensionsOfOneLockComeOneAfterAnother) {
    std::atomic<int> inside = 0;
    backend.on_extend = [&](int, const ExtendCall& call) {
        EXPECT_EQ(++inside, 1);
        std::this_thread::yield();
        --inside;
        return backend.extension(call.ttl);
    };
    Handle lock = hold(options());
    std::vector<std::future<void>> extensions;
    for (int i = 0; i < 8; ++i) {
        extensions.push_back(std::async(std::launch::async, [&] { lock.extend(10s); }));
    }
    for (auto& extension : extensions) {
        EXPECT_TRUE(ready(extension));
    }
    EXPECT_EQ(backend.extends().size(), 8U);
}

TEST_F(HandleThreads, AnExtensionThatWaitsForAnotherHeedsItsToken) {
    backend.on_extend = [&](int, const ExtendCall& call) {
        gate.pass();
        return backend.extension(call.ttl);
    };
    Handle lock = hold(options());
    auto first = std::async(std::launch::async, [&] { return lock.extend(10s).ok; });
    ASSERT_TRUE(gate.wait_for_arrival());
    std::stop_source source;
    auto second = std::async(std::launch::async, [&] {
        return lock_error_of([&] { lock.extend(10s, {.stop = source.get_token()}); });
    });
    source.request_stop();
    ASSERT_EQ(second.wait_until(soon().when()), std::future_status::ready);
    const auto error = second.get();
    ASSERT_TRUE(error);
    EXPECT_EQ(error->lock_code(), LockCode::aborted);
    gate.open();
    EXPECT_TRUE(first.get());
    EXPECT_EQ(backend.extends().size(), 1U);
}

}  // namespace
}  // namespace holdfast::lock::tests
