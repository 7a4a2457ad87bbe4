// What can come between a borrow by the short way and its return: the end of the pool, connections
// that must go, connections that grow old, and others who wait.
#include <atomic>
#include <barrier>
#include <functional>
#include <future>
#include <latch>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "test/pool_fixture.hpp"
#include "threaded/test/fake_opener.hpp"
#include <gtest/gtest.h>

#include <holdfast/base/manual_clock.hpp>
#include <holdfast/base/metrics.hpp>
#include <holdfast/pool/pool.hpp>
#include <holdfast/testing/check.hpp>

namespace holdfast::pool {
namespace {

using namespace std::chrono_literals;
using test::soon;

constexpr int crowd = 4;

std::uint64_t closed(const Pool& pool, Reason reason) {
    return pool.stats().closed[static_cast<std::size_t>(reason)];
}

// --- Many threads, by the machine's clock ---

class CrowdedPool : public testing::Test {
protected:
    void start(const Config& config) {
        pool.emplace(config, server, system_clock(), nullptr, null_logger(), "orders", 1);
        ASSERT_TRUE(pool->wait_ready(config.target, soon(), {}));
    }

    // Each thread has one connection and there are no waiters, so only the short way is taken.
    std::vector<Loan> borrow_all(int n) {
        std::vector<Loan> loans;
        for (int i = 0; i < n; ++i) {
            loans.push_back(pool->acquire(soon(), {}));
        }
        return loans;
    }

    // All loans end at the same moment as `meanwhile` happens.
    template <class Meanwhile>
    static void end_together(std::vector<Loan> loans, Meanwhile&& meanwhile) {
        std::latch go{static_cast<std::ptrdiff_t>(loans.size()) + 1};
        std::vector<std::jthread> threads;
        for (Loan& loan : loans) {
            threads.emplace_back([&go, own = std::move(loan)]() mutable {
                const Loan mine = std::move(own);
                go.arrive_and_wait();
            });
        }
        go.arrive_and_wait();
        meanwhile();
    }

    FakeOpener server;
    std::optional<Pool> pool;
};

// A connection that is kept after stop() has looked would never be closed, and stop() would wait.
TEST_F(CrowdedPool, StopFindsEveryConnectionHoweverItComesHome) {
    for (int round = 0; round < 20; ++round) {
        start(full(crowd));
        end_together(borrow_all(crowd), [&] { pool->stop(soon()); });
        EXPECT_EQ(pool->stats().now.total(), 0);
        EXPECT_EQ(pool->stats().abandoned, 0);
        EXPECT_EQ(server.state().open, 0);
        EXPECT_FALSE(pool->try_acquire());
    }
}

TEST_F(CrowdedPool, StopEndsBorrowersThatNeverWait) {
    for (int round = 0; round < 20; ++round) {
        start(full(crowd));
        std::latch running{crowd};
        std::vector<std::future<Code>> borrowers;
        for (int i = 0; i < crowd; ++i) {
            borrowers.push_back(std::async(std::launch::async, [&] {
                {
                    const Loan first = pool->acquire(soon(), {});
                }
                running.count_down();
                for (;;) {
                    const auto code = test::code_of([&] { (void)pool->acquire(soon(), {}); });
                    if (code) {
                        return *code;
                    }
                }
            }));
        }
        running.wait();
        pool->stop(soon());
        for (auto& borrower : borrowers) {
            EXPECT_EQ(borrower.get(), Code::unavailable);
        }
        EXPECT_EQ(pool->stats().now.total(), 0);
        EXPECT_EQ(server.state().open, 0);
    }
}

// The pool and its last loans end together: each connection is closed once, by the last of them,
// and nothing destroyed is used.
TEST_F(CrowdedPool, ThePoolMayEndWhileItsLoansDo) {
    for (int round = 0; round < 20; ++round) {
        start(full(crowd));
        std::vector<Loan> loans = borrow_all(crowd);
        loans.back().mark_bad();
        end_together(std::move(loans), [&] { pool.reset(); });
        EXPECT_EQ(server.state().open, 0);
        EXPECT_EQ(server.state().closed, server.state().opened);
    }
}

// All are lent, so none can go but by coming home; exactly so many as were asked for do.
TEST_F(CrowdedPool, AsManyGoAsMust) {
    for (int round = 0; round < 20; ++round) {
        const int before = server.state().closed;
        start(full(crowd));
        std::vector<Loan> loans = borrow_all(crowd);
        pool->shed(2);
        end_together(std::move(loans), [] {});
        ASSERT_TRUE(server.wait([&](const auto& state) { return state.closed == before + 2; }));
        ASSERT_TRUE(pool->wait_ready(crowd, soon(), {})) << "and others take their place";
        EXPECT_EQ(closed(*pool, Reason::slot_lost), 2U);
        EXPECT_EQ(pool->stats().now.in_use, 0);
        pool.reset();
    }
}

// The pool is told at the very moment when they are returned: connections that are ready by then
// are closed instead.
TEST_F(CrowdedPool, AsManyGoAsMustWheneverThatIsSaid) {
    for (int round = 0; round < 20; ++round) {
        const int before = server.state().closed;
        start(full(crowd));
        end_together(borrow_all(crowd), [&] { pool->shed(2); });
        ASSERT_TRUE(server.wait([&](const auto& state) { return state.closed == before + 2; }));
        ASSERT_TRUE(pool->wait_ready(crowd, soon(), {}));
        EXPECT_EQ(closed(*pool, Reason::slot_lost), 2U);
        pool.reset();
    }
}

// Those who find nothing ready stand in line; what comes home at that moment must find them there.
TEST_F(CrowdedPool, NobodyIsLeftInLineWhileAConnectionIsIdle) {
    start(full(1));
    constexpr int rounds = 200;
    std::atomic<bool> left = false;
    const auto borrow = [&]() -> std::optional<Loan> {
        if (left) {
            return std::nullopt;
        }
        try {
            return pool->acquire(soon(), {});
        } catch (const Error&) {  // `deadline`: no connection came.
            left = true;
            return std::nullopt;
        }
    };
    std::barrier round{2};
    const std::jthread other([&] {
        for (int i = 0; i < rounds; ++i) {
            std::optional<Loan> loan = borrow();
            round.arrive_and_wait();  // The one borrows when the other gives back,
            if (i % 2 == 0) {
                std::this_thread::yield();  // or a moment before.
            }
            loan.reset();
            round.arrive_and_wait();
        }
    });
    for (int i = 0; i < rounds; ++i) {
        round.arrive_and_wait();
        const std::optional<Loan> loan = borrow();
        round.arrive_and_wait();
    }
    EXPECT_FALSE(left);
}

// --- One thread, at the worst moment ---

// Does something just when a connection that was lent is looked at, before its borrower has it.
class ProbedOpener final : public Opener {
public:
    struct Probed final : Connection {
        explicit Probed(ProbedOpener& server) : server_(server) {}
        ~Probed() override { ++server_.closed; }
        [[nodiscard]] bool usable() noexcept override {
            const auto look = std::exchange(server_.probe, nullptr);
            return look ? look() : true;
        }

    private:
        ProbedOpener& server_;
    };

    [[nodiscard]] std::unique_ptr<Connection> open(Deadline /*deadline*/,
                                                   std::stop_token /*stop*/,
                                                   OpenPhases& /*phases*/) override {
        ++opened;
        return std::make_unique<Probed>(*this);
    }

    std::function<bool()> probe;  // Whether it lives. Once.
    std::atomic<int> opened = 0;
    std::atomic<int> closed = 0;
};

class ProbedPool : public testing::Test {
protected:
    void start(const Config& config) {
        pool.emplace(config, server, clock, nullptr, null_logger(), "orders", 1);
        ASSERT_TRUE(pool->wait_ready(config.target, in(5s), {}));
        ASSERT_TRUE(clock.wait_for_sleepers(1, soon())) << "the thread that ticks";
    }
    [[nodiscard]] Deadline in(std::chrono::nanoseconds time) const {
        return Deadline::at(clock.steady_now() + time);
    }
    // Only a test that fails has to help: then their time is over.
    void join(std::future<void>& borrower) {
        if (borrower.wait_for(20s) != std::future_status::ready) {
            ADD_FAILURE() << "somebody is left in line";
            clock.advance(1min);
        }
        borrower.get();
    }
    void stop() {
        pool->stop(in(5s));
        EXPECT_EQ(pool->stats().now.total(), 0);
        EXPECT_EQ(server.closed, server.opened);
    }

    ManualClock clock;
    ProbedOpener server;
    std::optional<Pool> pool;
};

TEST_F(ProbedPool, WhoIsCancelledWithADeadConnectionInHandLeavesNothingBehind) {
    start(full(1));
    std::stop_source cancel;
    server.probe = [&] {
        cancel.request_stop();
        return false;
    };
    EXPECT_EQ(test::code_of([&] { (void)pool->acquire(in(5s), cancel.get_token()); }),
              Code::cancelled);
    EXPECT_EQ(pool->stats().now.in_use, 0);
    EXPECT_EQ(closed(*pool, Reason::dead), 1U);
    {
        const Loan again = pool->acquire(in(5s), {});
    }
    stop();
}

TEST_F(ProbedPool, WhoHasADeadConnectionInHandWhenThePoolStopsIsRefused) {
    start(full(2));
    server.probe = [&] {
        pool->stop(in(0s));
        return false;
    };
    EXPECT_EQ(test::code_of([&] { (void)pool->acquire(in(5s), {}); }), Code::unavailable);
    stop();
}

TEST_F(ProbedPool, WhatWasLentWhenThePoolStopsIsStillALoan) {
    start(full(1));
    server.probe = [&] {
        pool->stop(in(0s));
        return true;
    };
    {
        const Loan loan = pool->acquire(in(5s), {});
        EXPECT_EQ(pool->stats().now.in_use, 1);
        EXPECT_EQ(pool->stats().abandoned, 1);
    }
    EXPECT_EQ(closed(*pool, Reason::shutdown), 1U) << "and closed when it has come home";
    stop();
}

// Ann comes while Bob finds out that what he was lent is dead. His turn was before hers.
TEST_F(ProbedPool, ADeadConnectionCostsNobodyTheirPlace) {
    start(full(1));
    std::promise<void> bob_is_done;
    std::future<void> ann;
    server.probe = [&] {
        ann = std::async(std::launch::async, [&] {
            const Loan loan = pool->acquire(in(5s), {});
            EXPECT_EQ(bob_is_done.get_future().wait_for(0s), std::future_status::ready);
        });
        EXPECT_TRUE(clock.wait_for_sleepers(2, soon()));
        return false;
    };
    {
        const Loan bob = pool->acquire(in(5s), {});
        EXPECT_EQ(pool->stats().now.waiting, 1);
        bob_is_done.set_value();
    }
    join(ann);
    stop();
}

// Ann waits, so what comes home is hers; who comes a moment later finds nothing.
TEST_F(ProbedPool, WhoeverComesLaterDoesNotGoAheadOfThoseWhoWait) {
    start(full(1));
    std::promise<void> end;
    std::optional<Loan> only = pool->acquire(in(5s), {});
    auto ann = std::async(std::launch::async, [&] {
        const Loan loan = pool->acquire(in(5s), {});
        end.get_future().wait();
    });
    ASSERT_TRUE(clock.wait_for_sleepers(2, soon()));
    only.reset();
    EXPECT_FALSE(pool->try_acquire()) << "it is lent, though Ann may not have woken yet";
    end.set_value();
    join(ann);
    EXPECT_TRUE(pool->try_acquire());
    stop();
}

TEST_F(ProbedPool, AWaiterWhoseTimeIsOverDoesNotTakeWhatComesHome) {
    start(full(1));
    std::optional<Loan> only = pool->acquire(in(5s), {});
    auto ann = std::async(std::launch::async,
                          [&] { return test::code_of([&] { (void)pool->acquire(in(1s), {}); }); });
    ASSERT_TRUE(clock.wait_for_sleepers(2, soon()));
    clock.advance(1s);
    only.reset();
    EXPECT_EQ(ann.get(), Code::deadline);
    EXPECT_TRUE(pool->try_acquire()) << "and it is there for the next";
    stop();
}

TEST_F(ProbedPool, AConnectionThatGrewOldWhileItWasLentIsNotKept) {
    Config config = full(1);
    config.life = 10min;
    config.life_jitter = 0s;
    start(config);
    {
        const Loan loan = pool->acquire(in(5s), {});
        clock.advance(10min);
    }
    EXPECT_EQ(closed(*pool, Reason::expired), 1U);
    {
        const Loan next = pool->acquire(in(5s), {});
    }
    EXPECT_EQ(server.opened, 2);
    stop();
}

}  // namespace
}  // namespace holdfast::pool
