#include <atomic>
#include <future>
#include <mutex>
#include <numeric>
#include <optional>
#include <set>
#include <stdexcept>
#include <thread>
#include <utility>

#include "threaded/test/fake_opener.hpp"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <holdfast/base/log_capture.hpp>
#include <holdfast/base/manual_clock.hpp>
#include <holdfast/base/metrics.hpp>
#include <holdfast/pool/pool.hpp>
#include <holdfast/testing/check.hpp>

namespace holdfast::pool {
namespace {

using namespace std::chrono_literals;
using test::soon;
using testing::HasSubstr;

class PoolStory : public testing::Test {
protected:
    static Config plain(int target) {
        Config config;
        config.target = target;
        return config;
    }

    void start(const Config& config) {
        pool.emplace(config, server, clock, &metrics, log, "orders", 1);
        // The thread that ticks sleeps. From here on, one sleeper more is one borrower in line.
        ASSERT_TRUE(clock.wait_for_sleepers(1, soon()));
    }

    [[nodiscard]] Deadline in(std::chrono::nanoseconds time) const {
        return Deadline::at(clock.steady_now() + time);
    }

    // Dropping the result borrows and gives back.
    Loan acquire() { return pool->acquire(in(5s), {}); }

    // Borrows on a thread of its own.
    template <class Then>
    [[nodiscard]] auto borrow_async(Then then, Lane lane = Lane::normal) {
        return std::async(std::launch::async, [this, then, lane] {
            Loan loan = pool->acquire(in(5s), {}, lane);
            return then(loan);
        });
    }

    [[nodiscard]] bool in_line(std::size_t waiters) const {
        return clock.wait_for_sleepers(1 + waiters, soon());
    }

    static FakeOpener::Connection& fake(const Loan& loan) {
        return static_cast<FakeOpener::Connection&>(*loan);
    }

    template <class Body>
    static Error error_of(Body&& body) {
        try {
            body();
        } catch (const Error& error) {
            return error;
        }
        return Error(Code::internal, Outcome::unknown, "nothing was thrown");
    }

    ManualClock clock;
    Metrics metrics;
    CapturingLogger log;
    FakeOpener server;
    std::optional<Pool> pool;
};

// --- Lending ---

TEST_F(PoolStory, ALoanGivesItsConnectionBack) {
    HOLDFAST_CHECK("connections wrap.close");
    start(plain(3));
    const void* first = nullptr;
    {
        Loan loan = acquire();
        first = &*loan;
        EXPECT_EQ(pool->stats().now.in_use, 1);
    }
    EXPECT_EQ(pool->stats().now.ready, 1);
    Loan again = acquire();
    EXPECT_EQ(&*again, first);
    EXPECT_EQ(server.state().opened, 1);
}

TEST_F(PoolStory, AMovedLoanGivesBackOnce) {
    HOLDFAST_CHECK("connections wrap.close_twice");
    start(plain(3));
    Loan first = acquire();
    Loan second = acquire();
    EXPECT_EQ(pool->stats().now.in_use, 2);
    first = std::move(second);  // What `first` held goes home here.
    EXPECT_EQ(pool->stats().now.in_use, 1);
    Loan third = std::move(first);
    EXPECT_EQ(pool->stats().now.in_use, 1);
}

TEST_F(PoolStory, ABadLoanIsClosedAndNotLentAgain) {
    HOLDFAST_CHECK("connections wrap.close_bad");
    HOLDFAST_CHECK("connections wrap.close_after_bad");
    HOLDFAST_CHECK("connections res.discard_closes");
    start(plain(3));
    {
        Loan loan = acquire();
        loan.mark_bad();
    }
    EXPECT_TRUE(server.wait([](const auto& state) { return state.closed == 1; }));
    Loan next = acquire();
    EXPECT_EQ(server.state().opened, 2);
    EXPECT_EQ(
        metrics.value("holdfast_sql_pool_closed_total", {{"db", "orders"}, {"reason", "bad"}}), 1);
}

TEST_F(PoolStory, TryAcquireTakesWhatIsFreeAndNothingElse) {
    start(plain(2));
    EXPECT_FALSE(pool->try_acquire());
    EXPECT_EQ(server.state().calls, 0);
    acquire();
    EXPECT_TRUE(pool->try_acquire());
}

// The server restarted while the connections slept: the borrower must not notice.
TEST_F(PoolStory, DeadConnectionsAreReplacedWithinTheSameBorrow) {
    HOLDFAST_CHECK("connections wrap.invalid");
    start(plain(3));
    {
        Loan first = acquire();
        Loan second = acquire();
        fake(first).alive = false;
        fake(second).alive = false;
    }
    Loan loan = acquire();
    EXPECT_TRUE(fake(loan).alive);
    EXPECT_EQ(server.state().opened, 3);
    EXPECT_TRUE(server.wait([](const auto& state) { return state.closed == 2; }));
    EXPECT_EQ(pool->stats().closed[static_cast<std::size_t>(Reason::dead)], 2U);
}

TEST_F(PoolStory, AConnectionThatRestedBrieflyIsNotAsked) {
    Config config = plain(1);
    config.check_after = 10s;
    start(config);
    fake(acquire()).alive = false;
    clock.advance(10s - 1ns);
    EXPECT_FALSE(fake(acquire()).alive) << "too short a rest to be asked";
    clock.advance(10s);
    EXPECT_TRUE(fake(acquire()).alive);
}

TEST_F(PoolStory, OpeningAndClosingNeverHappenOnTheBorrowersThread) {
    start(plain(2));
    for (int i = 0; i < 3; ++i) {
        Loan loan = acquire();
        loan.mark_bad();
    }
    ASSERT_TRUE(server.wait([](const auto& state) { return state.closed == 3; }));
    EXPECT_FALSE(server.state().opening_threads.contains(std::this_thread::get_id()));
    EXPECT_FALSE(server.state().closing_threads.contains(std::this_thread::get_id()));
}

// --- Waiting ---

TEST_F(PoolStory, WaitersAreServedInOrderAndPriorityFirst) {
    HOLDFAST_CHECK("connections +res.fifo_waiters");
    HOLDFAST_CHECK("connections res.wait");
    start(plain(1));
    std::vector<std::string> order;  // Written only with the one connection in hand.
    std::optional<Loan> only = acquire();
    const auto writes = [&](std::string name) {
        return [&order, name](Loan&) { order.push_back(name); };
    };
    auto ann = borrow_async(writes("ann"));
    ASSERT_TRUE(in_line(1));
    auto bob = borrow_async(writes("bob"));
    ASSERT_TRUE(in_line(2));
    auto cleo = borrow_async(writes("cleo"), Lane::priority);
    ASSERT_TRUE(in_line(3));
    only.reset();
    ann.get();
    bob.get();
    cleo.get();
    EXPECT_THAT(order, testing::ElementsAre("cleo", "ann", "bob"));
}

TEST_F(PoolStory, ABorrowerGivesUpAtItsDeadlineAndSaysWhy) {
    HOLDFAST_CHECK("connections res.wait_timeout");
    start(plain(1));
    Loan only = acquire();
    auto ann = borrow_async([](Loan&) {});
    ASSERT_TRUE(in_line(1));
    clock.advance(5s);
    const Error error = error_of([&] { ann.get(); });
    EXPECT_EQ(error.code(), Code::deadline);
    EXPECT_EQ(error.outcome(), Outcome::not_applied);
    EXPECT_THAT(error.what(), HasSubstr("no connection to orders within 5 s"));
    EXPECT_THAT(error.what(), HasSubstr("1 of 1 in use"));
    EXPECT_THAT(error.what(), HasSubstr("make the pool larger"));
    EXPECT_EQ(pool->stats().timed_out, 1U);
    EXPECT_EQ(pool->stats().now.waiting, 0);
}

TEST_F(PoolStory, ABorrowerWhoseTokenFiresLeavesTheLine) {
    start(plain(1));
    std::optional<Loan> only = acquire();
    std::stop_source stop;
    auto ann = std::async(std::launch::async,
                          [&] { Loan loan = pool->acquire(in(5s), stop.get_token()); });
    ASSERT_TRUE(in_line(1));
    auto bob = borrow_async([](Loan&) { return true; });
    ASSERT_TRUE(in_line(2));
    stop.request_stop();
    EXPECT_EQ(test::code_of([&] { ann.get(); }), Code::cancelled);
    only.reset();
    EXPECT_TRUE(bob.get()) << "whoever left is skipped";
}

TEST_F(PoolStory, ATokenThatHasFiredBorrowsNothing) {
    start(plain(1));
    acquire();
    std::stop_source stop;
    stop.request_stop();
    EXPECT_EQ(test::code_of([&] { Loan loan = pool->acquire(in(5s), stop.get_token()); }),
              Code::cancelled);
    EXPECT_EQ(pool->stats().now.ready, 1);
}

// A wait is measured once, and only if there was one: else the histogram shows nothing but zeros.
TEST_F(PoolStory, OnlyWhoWaitedIsInTheHistogram) {
    HOLDFAST_CHECK("connections +stats.delta");
    start(plain(1));
    acquire();  // Waits for the opening.
    for (int i = 0; i < 5; ++i) {
        acquire();
    }
    EXPECT_EQ(metrics.value("holdfast_sql_pool_wait_seconds", {{"db", "orders"}}), 1);
    EXPECT_EQ(pool->stats().waited, 1U);
    EXPECT_EQ(pool->stats().lent, 6U);
}

// --- Failures while opening ---

void refuse_password() {
    throw OpenError(FailureClass::auth, Code::unauthorized, "password refused for user shop");
}

TEST_F(PoolStory, FailFastSaysAtOnceWhatIsWrong) {
    Config config = plain(3);
    config.fail_fast = FailFast::always;
    start(config);
    server.fail_with(refuse_password);
    for (int i = 0; i < 2; ++i) {  // The second comes during the pause.
        const Error error = error_of([&] { acquire(); });
        EXPECT_EQ(error.code(), Code::unauthorized);
        EXPECT_THAT(error.what(), HasSubstr("password refused for user shop"));
        EXPECT_THROW(std::rethrow_exception(error.cause()), OpenError);
    }
    EXPECT_EQ(metrics.value("holdfast_sql_pool_open_failures_total",
                            {{"db", "orders"}, {"class", "auth"}}),
              1);
}

TEST_F(PoolStory, WithoutFailFastTheDeadlineNamesTheLastFailure) {
    start(plain(3));
    server.fail_with(
        [] { throw OpenError(FailureClass::full, Code::exhausted, "too many connections"); });
    auto ann = borrow_async([](Loan&) {});
    ASSERT_TRUE(log.wait_for("open.failed", soon()));
    clock.advance(5s);
    const Error error = error_of([&] { ann.get(); });
    EXPECT_EQ(error.code(), Code::deadline);
    EXPECT_THAT(error.what(), HasSubstr("failed: too many connections"));
    EXPECT_TRUE(error.cause());
}

// The deadline was the opening's. Told to the borrower it would be a lie about its own.
TEST_F(PoolStory, ASlowOpeningIsUnavailableAndNotTheBorrowersDeadline) {
    Config config = plain(3);
    config.fail_fast = FailFast::always;
    start(config);
    server.fail_with([] { throw Error(Code::deadline, Outcome::not_applied, "too slow"); });
    EXPECT_EQ(error_of([&] { acquire(); }).code(), Code::unavailable);
    EXPECT_EQ(pool->stats().open_failures[static_cast<std::size_t>(FailureClass::transport)], 1U);
}

TEST_F(PoolStory, AnOpeningThatFailedIsTriedAgainAfterThePause) {
    HOLDFAST_CHECK("connections fill.open_error");
    start(plain(1));
    server.fail_with([] { throw std::runtime_error("odd"); });
    auto ann = borrow_async([](Loan&) { return true; });
    ASSERT_TRUE(log.wait_for("open.failed", soon()));
    server.fail_with(nullptr);
    ASSERT_TRUE(in_line(1));
    clock.advance(250ms);  // The first pause is no longer than that.
    EXPECT_TRUE(ann.get());
}

// --- Filling ---

TEST_F(PoolStory, FillsInParallelUpToTheLimit) {
    HOLDFAST_CHECK("connections +fill.parallel");
    HOLDFAST_CHECK("connections fill.to_target");
    Config config = plain(20);
    config.min_ready = 20;
    config.limits.opening_max = 3;
    server.hold_up(20);
    start(config);
    ASSERT_TRUE(server.wait([](const auto& state) { return state.blocked == 3; }));
    server.release(20);
    EXPECT_TRUE(pool->wait_ready(20, in(5s), {}));
    EXPECT_EQ(server.state().blocked_max, 3);
    EXPECT_EQ(server.state().opened, 20);
    EXPECT_EQ(pool->stats().now.ready, 20);
}

TEST_F(PoolStory, AHungOpeningDoesNotStopTheOthers) {
    HOLDFAST_CHECK("connections +fill.hung");
    Config config = plain(5);
    config.min_ready = 5;
    config.limits.opening_max = 2;
    server.hold_up(1);
    start(config);
    EXPECT_TRUE(pool->wait_ready(4, in(5s), {}));
    EXPECT_EQ(pool->stats().now.opening, 1);
    EXPECT_EQ(server.last_deadline(), in(config.limits.open_timeout));
}

TEST_F(PoolStory, WaitReadyEndsAtItsDeadlineOrItsToken) {
    start(plain(2));
    EXPECT_TRUE(pool->wait_ready(0, in(0s), {}));
    EXPECT_FALSE(pool->wait_ready(1, in(0s), {}));
    std::stop_source stop;
    auto waits = std::async(std::launch::async,
                            [&] { return pool->wait_ready(1, in(5s), stop.get_token()); });
    ASSERT_TRUE(in_line(1));
    stop.request_stop();
    EXPECT_FALSE(waits.get());
}

// There is no borrower, so only the pool itself can notice that time has passed.
TEST_F(PoolStory, IdleConnectionsAreClosedWithoutAnybodyAsking) {
    Config config = plain(5);
    config.idle_max = 30s;
    start(config);
    acquire();
    ASSERT_TRUE(clock.wait_for_sleepers(1, soon()));
    clock.advance(30s);
    EXPECT_TRUE(server.wait([](const auto& state) { return state.closed == 1; }));
    EXPECT_TRUE(log.wait_for("reason=idle", soon()));
}

TEST_F(PoolStory, ResizeServesWaitersAndRefusesNonsense) {
    start(plain(1));
    Loan only = acquire();
    auto ann = borrow_async([](Loan&) { return true; });
    ASSERT_TRUE(in_line(1));
    pool->resize(2);
    EXPECT_TRUE(ann.get());
    EXPECT_EQ(metrics.value("holdfast_sql_pool_target", {{"db", "orders"}}), 2);
    EXPECT_EQ(test::code_of([&] { pool->resize(0); }), Code::invalid_argument);
}

// --- The end ---

TEST_F(PoolStory, StopWaitsForLoansAndClosesEverything) {
    start(plain(3));
    std::optional<Loan> loan = acquire();
    acquire();
    auto stopped = std::async(std::launch::async, [&] { pool->stop(in(5s)); });
    ASSERT_TRUE(in_line(1));
    EXPECT_TRUE(server.wait([](const auto& state) { return state.closed == 1; })) << "the idle one";
    EXPECT_EQ(server.state().open, 1) << "the one that is lent";
    loan.reset();
    stopped.get();
    EXPECT_EQ(server.state().open, 0);
    EXPECT_EQ(pool->stats().abandoned, 0);
    EXPECT_EQ(pool->stats().now.total(), 0);
    pool->stop(in(5s));  // A repeat does no harm.
    EXPECT_EQ(log.count("pool.stopped"), 1U);
    EXPECT_EQ(error_of([&] { acquire(); }).code(), Code::unavailable);
    EXPECT_FALSE(pool->try_acquire());
    EXPECT_FALSE(pool->wait_ready(1, in(5s), {}));
}

TEST_F(PoolStory, StopGivesUpOnALoanAtItsDeadlineAndClosesItWhenItComesHome) {
    start(plain(3));
    std::optional<Loan> loan = acquire();
    pool->stop(in(0s));
    EXPECT_EQ(pool->stats().abandoned, 1);
    EXPECT_EQ(server.state().closed, 0);
    EXPECT_TRUE(fake(*loan).alive) << "it can still be used";
    loan.reset();
    EXPECT_TRUE(server.wait([](const auto& state) { return state.closed == 1; }));
}

TEST_F(PoolStory, StopWakesThoseWhoWait) {
    start(plain(1));
    Loan only = acquire();
    auto ann = borrow_async([](Loan&) {});
    ASSERT_TRUE(in_line(1));
    pool->stop(in(0s));
    EXPECT_EQ(error_of([&] { ann.get(); }).code(), Code::unavailable);
}

TEST_F(PoolStory, StopCancelsOpeningsUnderWay) {
    HOLDFAST_CHECK("connections fill.shutdown");
    Config config = plain(4);
    config.min_ready = 4;
    config.limits.opening_max = 2;
    server.hold_up(4);
    start(config);
    ASSERT_TRUE(server.wait([](const auto& state) { return state.blocked == 2; }));
    pool->stop(in(5s));
    EXPECT_EQ(pool->stats().now.total(), 0);
    EXPECT_EQ(server.state().calls, 2);
    EXPECT_EQ(log.count("open.failed"), 0U) << "it was us";
}

TEST_F(PoolStory, ALoanMayOutliveItsPool) {
    std::optional<Loan> loan;
    {
        ManualClock short_lived;  // Nothing the pool refers to is touched after it.
        Metrics gone;
        Pool inner(plain(1), server, short_lived, &gone, null_logger(), "inner");
        loan = inner.acquire(Deadline::at(short_lived.steady_now() + 5s), {});
    }
    EXPECT_EQ(server.state().closed, 0);
    loan.reset();
    EXPECT_EQ(server.state().closed, 1);
}

// --- What it shows ---

TEST_F(PoolStory, TwoPoolsHaveTwoSeries) {
    HOLDFAST_CHECK("connections +stats.labels");
    start(plain(4));
    Pool other(plain(7), server, clock, &metrics, log, "stock", 1);
    ASSERT_TRUE(clock.wait_for_sleepers(2, soon()));
    Loan first = acquire();
    Loan second = other.acquire(in(5s), {});
    Loan third = other.acquire(in(5s), {});
    const auto value = [&](std::string_view name, std::string_view db) {
        return metrics.value(name, {{"db", db}});
    };
    EXPECT_EQ(value("holdfast_sql_pool_in_use", "orders"), 1);
    EXPECT_EQ(value("holdfast_sql_pool_in_use", "stock"), 2);
    EXPECT_EQ(value("holdfast_sql_pool_target", "orders"), 4);
    EXPECT_EQ(value("holdfast_sql_pool_target", "stock"), 7);
    EXPECT_EQ(value("holdfast_sql_pool_opened_total", "stock"), 2);
}

TEST_F(PoolStory, WorksWithoutMetrics) {
    HOLDFAST_CHECK("connections stats.nil_handler");
    Pool quiet(plain(2), server, clock, nullptr, null_logger(), "quiet");
    Loan loan = quiet.acquire(in(5s), {});
    EXPECT_EQ(quiet.stats().now.in_use, 1);
}

// With no pause between the attempts they come as fast as the machine can; the log must not.
TEST_F(PoolStory, FailuresAreLoggedOnceASecond) {
    Config config = plain(1);
    config.limits.backoff.fill({0s, 0s});
    start(config);
    server.fail_with(refuse_password);
    auto ann = borrow_async([](Loan&) {});
    ASSERT_TRUE(server.wait([](const auto& state) { return state.calls >= 5; }));
    ASSERT_TRUE(log.wait_for("password refused", soon()));
    server.fail_with([] { throw std::runtime_error("out of order"); });  // Another class.
    ASSERT_TRUE(log.wait_for("out of order", soon()));
    EXPECT_EQ(log.count("open.failed"), 2U);
    server.fail_with([] { throw std::runtime_error("still out of order"); });
    const int calls = server.state().calls;  // Those before may still be on their way to the log.
    ASSERT_TRUE(server.wait([&](const auto& state) { return state.calls >= calls + 2; }));
    clock.advance(1s);
    EXPECT_TRUE(log.wait_for("still out of order", soon()));
    server.fail_with(nullptr);
    ann.get();
}

// --- Everything at once ---

// Eight threads borrow from four connections by the real clock; some connections break, some die
// in their sleep, some borrowers change their mind, and the pool changes its size.
TEST(Pool, EightThreadsNeverShareAConnectionNorExceedTheTarget) {
    HOLDFAST_CHECK("connections res.parallel");
    constexpr int threads = 8;
    constexpr int rounds = 1000;
    FakeOpener server;
    Config config;
    config.target = 4;
    Metrics metrics;
    Pool pool(config, server, system_clock(), &metrics, null_logger(), "busy");
    std::atomic<int> doubled = 0;
    std::mutex mutex;
    std::set<const void*> in_use;

    const auto work = [&](unsigned seed) {
        Random random(seed);
        for (int i = 0; i < rounds; ++i) {
            std::stop_source stop;
            if (random.below(50) == 0) {
                stop.request_stop();
            }
            const Lane lane = random.below(10) == 0 ? Lane::priority : Lane::normal;
            try {
                Loan loan = pool.acquire(Deadline::after(20s), stop.get_token(), lane);
                auto& connection = static_cast<FakeOpener::Connection&>(*loan);
                {
                    const std::lock_guard lock(mutex);
                    if (!in_use.insert(&connection).second) {
                        ++doubled;
                    }
                }
                if (random.below(30) == 0) {
                    loan.mark_bad();
                }
                if (random.below(30) == 0) {
                    connection.alive = false;
                }
                if (random.below(100) == 0) {
                    pool.resize(static_cast<int>(random.below(4)) + 1);
                }
                const std::lock_guard lock(mutex);
                in_use.erase(&connection);
            } catch (const Error& error) {
                ASSERT_EQ(error.code(), Code::cancelled) << error.what();
            }
        }
    };
    std::vector<std::thread> crowd;
    for (unsigned i = 0; i < threads; ++i) {
        crowd.emplace_back(work, i);
    }
    for (std::thread& thread : crowd) {
        thread.join();
    }
    EXPECT_EQ(doubled, 0);
    EXPECT_LE(server.state().open_max, 4);
    EXPECT_EQ(pool.stats().now.in_use, 0);
    EXPECT_EQ(pool.stats().now.waiting, 0);

    pool.stop(Deadline::after(20s));
    EXPECT_EQ(server.state().open, 0);
    const Stats stats = pool.stats();
    EXPECT_EQ(stats.opened, std::accumulate(stats.closed.begin(), stats.closed.end(), 0ULL));
    EXPECT_EQ(stats.abandoned, 0);
}

// Borrowers, cancellers and stop() meet at the worst moment.
TEST(Pool, StopInTheMiddleOfACrowdAnswersEverybody) {
    for (int round = 0; round < 20; ++round) {
        FakeOpener server;
        Config config;
        config.target = 2;
        Pool pool(config, server, system_clock(), nullptr, null_logger(), "ending");
        std::vector<std::future<void>> crowd;
        for (int i = 0; i < 8; ++i) {
            crowd.push_back(std::async(std::launch::async, [&] {
                while (true) {
                    try {
                        Loan loan = pool.acquire(Deadline::after(20s), {});
                    } catch (const Error& error) {
                        ASSERT_EQ(error.code(), Code::unavailable) << error.what();
                        return;
                    }
                }
            }));
        }
        ASSERT_TRUE(server.wait([](const auto& state) { return state.opened > 0; }));
        pool.stop(Deadline::after(20s));
        for (auto& one : crowd) {
            one.get();
        }
        EXPECT_EQ(server.state().open, 0);
    }
}

}  // namespace
}  // namespace holdfast::pool
