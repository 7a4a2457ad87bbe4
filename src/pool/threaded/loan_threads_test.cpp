// Loans that are empty, or outlive their pool; and pools that follow each other.
#include <optional>
#include <utility>

#include "test/pool_fixture.hpp"
#include "threaded/test/fake_opener.hpp"
#include <gtest/gtest.h>

#include <holdfast/base/metrics.hpp>
#include <holdfast/pool/pool.hpp>
#include <holdfast/testing/check.hpp>

namespace holdfast::pool {
namespace {

using namespace std::chrono_literals;
using test::soon;

class LoanStory : public testing::Test {
protected:
    void start(int target) {
        pool.emplace(full(target), server, system_clock(), &metrics, null_logger(), "orders", 1);
        ASSERT_TRUE(pool->wait_ready(target, soon(), {}));
    }

    [[nodiscard]] double value(std::string_view name) const {
        return metrics.value(name, {{"db", "orders"}});
    }

    FakeOpener server;
    Metrics metrics;
    std::optional<Pool> pool;
};

TEST_F(LoanStory, OneThatWasMovedFromGivesNothingBack) {
    HOLDFAST_CHECK("connections res.return_null");
    HOLDFAST_CHECK("connections wrap.null_conn");
    start(2);
    std::optional<Loan> first = pool->acquire(soon(), {});
    std::optional<Loan> second = std::move(*first);
    first.reset();
    EXPECT_EQ(pool->stats().now.in_use, 1) << "it is the second's now";
    *second = pool->acquire(soon(), {});
    EXPECT_EQ(pool->stats().now.in_use, 1) << "what it held before went home";
    second.reset();
    EXPECT_EQ(pool->stats().now.ready, 2);
    EXPECT_EQ(server.state().closed, 0);
}

TEST_F(LoanStory, OneThatIsMarkedBadAfterItsPoolIsGoneIsClosedAllTheSame) {
    HOLDFAST_CHECK("connections wrap.null_reservoir");
    start(1);
    Loan loan = pool->acquire(soon(), {});
    pool.reset();
    EXPECT_EQ(server.state().closed, 0);
    EXPECT_TRUE(loan->usable()) << "it is still ours";
    loan.mark_bad();
    {
        const Loan last = std::move(loan);
    }
    EXPECT_EQ(server.state().closed, 1);
}

// As on postgres://, which has no limiter.
TEST_F(LoanStory, AnOpenerThatAsksNobodyForPermitsFillsThePool) {
    HOLDFAST_CHECK("connections open.no_limiter");
    start(20);
    const auto times = [&](std::string_view phase) {
        return metrics.value("holdfast_sql_pool_open_seconds",
                             {{"db", "orders"}, {"stage", phase}});
    };
    EXPECT_EQ(times("all"), 20);
    EXPECT_EQ(times("permit"), 0);
    EXPECT_EQ(times("slot"), 0);
}

TEST_F(LoanStory, APoolThatFollowsAnotherFillsUpAndItsNumbersGoOn) {
    HOLDFAST_CHECK("connections fill.restart");
    HOLDFAST_CHECK("connections stats.lifecycle");
    start(5);
    static_cast<void>(pool->acquire(soon(), {}));
    pool->stop(soon());
    pool->stop(soon());
    EXPECT_EQ(server.state().open, 0) << "drained";
    EXPECT_EQ(value("holdfast_sql_pool_ready"), 0);
    pool.reset();

    start(5);
    EXPECT_EQ(value("holdfast_sql_pool_ready"), 5);
    static_cast<void>(pool->acquire(soon(), {}));
    EXPECT_EQ(value("holdfast_sql_pool_lent_total"), 2);
    EXPECT_EQ(value("holdfast_sql_pool_opened_total"), 10);
    pool->stop(soon());
    EXPECT_EQ(value("holdfast_sql_pool_ready"), 0);
}

}  // namespace
}  // namespace holdfast::pool
