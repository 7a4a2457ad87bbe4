// The reservoir with real threads: filled at the start, checked while it is idle, made smaller when
// slots are lost.
#include <future>
#include <memory>
#include <optional>
#include <vector>

#include "threaded/test/fake_opener.hpp"
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

class ReservoirStory : public testing::Test {
protected:
    void start(const Config& config) {
        pool = std::make_unique<Pool>(config, server, clock, &metrics, log, "orders", 1);
    }

    // The keeper sleeps until its next look, by the clock that the test moves.
    void look() {
        ASSERT_TRUE(clock.wait_for_sleepers(1, soon()));
        clock.advance(1s);
    }

    // The deadline, too, is by the clock that the test moves.
    [[nodiscard]] bool is_ready(int count) {
        return pool->wait_ready(count, Deadline::at(clock.steady_now() + 5s), {});
    }

    [[nodiscard]] std::vector<Loan> borrow_all(int count) {
        std::vector<Loan> loans;
        loans.reserve(static_cast<std::size_t>(count));
        for (int i = 0; i < count; ++i) {
            loans.push_back(pool->acquire(Deadline::at(clock.steady_now() + 5s), {}));
        }
        return loans;
    }

    void kill(std::vector<Loan>& loans) {
        for (const Loan& loan : loans) {
            static_cast<FakeOpener::Connection&>(*loan).alive = false;
        }
    }

    ManualClock clock;
    CapturingLogger log;
    Metrics metrics;
    FakeOpener server;
    std::unique_ptr<Pool> pool;
};

TEST_F(ReservoirStory, IsFullBeforeAnybodyAsks) {
    HOLDFAST_CHECK("connections fill.log");
    start(reservoir(20));
    const WarmUp report = pool->warm_up({});
    EXPECT_TRUE(report.reached);
    EXPECT_EQ(report.open, 20);
    EXPECT_EQ(report.failures, 0U);
    EXPECT_EQ(server.state().open_max, 20);
    EXPECT_EQ(log.count("fill.start"), 1U);
    EXPECT_EQ(log.count("fill.complete"), 1U);
}

TEST_F(ReservoirStory, ServesOnceItIsWarmAndFillsUpLater) {
    server.hold_up(1);  // One of the openings hangs.
    Config config = reservoir(4);
    config.warm = 3;
    start(config);
    EXPECT_TRUE(pool->warm_up({}).reached);
    server.release(1);
    EXPECT_TRUE(is_ready(4));
}

TEST_F(ReservoirStory, ThatDoesNotFillInTimeStartsAllTheSame) {
    server.fail_with([] { throw OpenError(FailureClass::auth, Code::unauthorized, "no"); });
    Config config = reservoir(4);
    config.warm_up_max = 0s;
    start(config);
    const WarmUp report = pool->warm_up({});
    EXPECT_FALSE(report.reached);
    EXPECT_EQ(report.open, 0);
    EXPECT_EQ(log.count("fill.timeout"), 1U);
}

// The worst night: every connection is cut while all are idle. In the morning the pool is full.
TEST_F(ReservoirStory, RefillsThoughNobodyAsks) {
    start(reservoir(10));
    ASSERT_TRUE(pool->warm_up({}).reached);
    {
        auto loans = borrow_all(10);
        kill(loans);
    }
    look();
    ASSERT_TRUE(server.wait([](const auto& state) { return state.opened == 20; }));
    EXPECT_TRUE(is_ready(10));
    EXPECT_EQ(pool->stats().closed[static_cast<std::size_t>(Reason::dead)], 10U);
}

TEST_F(ReservoirStory, AnOperatorIsToldOfADipAndOfThoseWhoFindNothing) {
    HOLDFAST_CHECK("connections res.log");
    start(reservoir(4));
    EXPECT_EQ(log.count("pool.created"), 1U);
    ASSERT_TRUE(pool->warm_up({}).reached);
    look();
    ASSERT_TRUE(clock.wait_for_sleepers(1, soon()));
    server.fail_with([] { throw OpenError(FailureClass::transport, Code::unavailable, "away"); });
    {
        auto loans = borrow_all(4);
        kill(loans);
    }
    auto waiting = std::async(std::launch::async, [this] {
        return test::code_of(
            [this] { (void)pool->acquire(Deadline::at(clock.steady_now() + 1h), {}); });
    });
    while (log.count("pool.empty") < 2) {                 // Once a second, and the dip once.
        ASSERT_TRUE(clock.wait_for_sleepers(2, soon()));  // The keeper, and who waits.
        clock.advance(1s);
    }
    EXPECT_EQ(log.count("pool.dip"), 1U);
    pool->stop(Deadline::at(clock.steady_now()));
    EXPECT_EQ(waiting.get(), Code::unavailable);
}

TEST_F(ReservoirStory, LooksManyTimesAndHarmsNobody) {
    Config config = reservoir(10);
    config.limits.looks_max = 3;
    start(config);
    ASSERT_TRUE(pool->warm_up({}).reached);
    const auto loans = borrow_all(4);
    for (int i = 0; i < 5; ++i) {
        look();
    }
    ASSERT_TRUE(clock.wait_for_sleepers(1, soon()));
    EXPECT_EQ(pool->stats().now.ready, 6);
    EXPECT_EQ(server.state().calls, 10);
    EXPECT_EQ(server.state().closed, 0);
}

TEST_F(ReservoirStory, ShedsWhatItMayNotHold) {
    start(reservoir(4));
    ASSERT_TRUE(pool->warm_up({}).reached);
    server.hold_up(100);  // Without a slot nothing opens.
    std::optional loan = pool->acquire(Deadline::at(clock.steady_now() + 5s), {});
    pool->shed(4);
    ASSERT_TRUE(server.wait([](const auto& state) { return state.closed == 3; }));
    loan.reset();
    ASSERT_TRUE(server.wait([](const auto& state) { return state.closed == 4; }));
    EXPECT_EQ(pool->stats().closed[static_cast<std::size_t>(Reason::slot_lost)], 4U);
}

TEST_F(ReservoirStory, AnOperatorIsToldOfALoanThatGrowsTooOld) {
    start(reservoir(1));
    ASSERT_TRUE(pool->warm_up({}).reached);
    const auto loans = borrow_all(1);
    ASSERT_TRUE(clock.wait_for_sleepers(1, soon()));
    clock.advance(59min);
    ASSERT_TRUE(clock.wait_for_sleepers(1, soon()));
    EXPECT_EQ(log.count("conn.overage"), 1U);
}

TEST_F(ReservoirStory, StopsInTheMiddleOfFilling) {
    HOLDFAST_CHECK("connections fill.start_twice");
    server.hold_up(100);
    start(reservoir(20));
    ASSERT_TRUE(server.wait([](const auto& state) { return state.blocked == 8; }));
    pool->stop(Deadline::at(clock.steady_now()));
    pool->stop(Deadline::at(clock.steady_now()));
    pool.reset();
    EXPECT_EQ(server.state().open, 0);
    EXPECT_EQ(server.state().blocked, 0);
}

}  // namespace
}  // namespace holdfast::pool
