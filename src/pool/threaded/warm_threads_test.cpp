// Borrowing what is open already, by the short way: what others see of it.
#include <atomic>
#include <latch>
#include <map>
#include <optional>
#include <thread>
#include <vector>

#include "test/pool_fixture.hpp"
#include "threaded/test/fake_opener.hpp"
#include <gtest/gtest.h>

#include <holdfast/base/log_capture.hpp>
#include <holdfast/base/metrics.hpp>
#include <holdfast/pool/pool.hpp>
#include <holdfast/testing/check.hpp>

namespace holdfast::pool {
namespace {

using namespace std::chrono_literals;
using test::soon;

class WarmPool : public testing::Test {
protected:
    void start(const Config& config) {
        pool.emplace(config, server, system_clock(), &metrics, null_logger(), "orders", 1);
        ASSERT_TRUE(pool->wait_ready(config.target, soon(), {}));
    }

    [[nodiscard]] double value(std::string_view name) const {
        return metrics.value(name, {{"db", "orders"}});
    }

    FakeOpener server;
    Metrics metrics;
    std::optional<Pool> pool;
};

// They are not written while borrowers come and go, but computed when they are read.
TEST_F(WarmPool, WhatTheMetricsShowIsExactAtEveryMoment) {
    HOLDFAST_CHECK("connections res.size_metric");
    HOLDFAST_CHECK("connections wrap.close_metrics");
    start(full(3));
    for (int i = 1; i <= 10; ++i) {
        const Loan first = pool->acquire(soon(), {});
        const Loan second = pool->acquire(soon(), {});
        EXPECT_EQ(value("holdfast_sql_pool_in_use"), 2);
        EXPECT_EQ(value("holdfast_sql_pool_ready"), 1);
        EXPECT_EQ(value("holdfast_sql_pool_lent_total"), 2 * i);
    }
    EXPECT_EQ(value("holdfast_sql_pool_in_use"), 0);
    EXPECT_EQ(value("holdfast_sql_pool_ready"), 3);
    static_cast<void>(pool->acquire(soon(), {}));
    pool.reset();
    EXPECT_EQ(value("holdfast_sql_pool_lent_total"), 21) << "the last ones count, too";
    EXPECT_EQ(value("holdfast_sql_pool_ready"), 0);
}

TEST_F(WarmPool, TheMetricsTellTheStagesOfOpeningsAndWhatFailedInTheFirstFilling) {
    Config config = full(2);
    config.warm = 2;
    config.limits.backoff.fill({.first = 1ms, .most = 1ms});
    std::atomic<int> failures = 3;
    server.fail_with([&] {
        if (failures-- > 0) {
            throw OpenError(FailureClass::transport, Code::unavailable, "no route");
        }
    });
    pool.emplace(config, server, system_clock(), &metrics, null_logger(), "orders", 1);
    const WarmUp report = pool->warm_up({});
    EXPECT_TRUE(report.reached);
    EXPECT_EQ(report.failures, 3U);
    EXPECT_EQ(value("holdfast_sql_pool_warm_up_failures_total"), 3);
    const auto openings = [&](std::string_view phase) {
        return metrics.value("holdfast_sql_pool_open_seconds",
                             {{"db", "orders"}, {"stage", phase}});
    };
    EXPECT_EQ(openings("tcp"), 5) << "those that failed, too";
    EXPECT_EQ(openings("all"), 2);
    EXPECT_EQ(openings("tls"), 0) << "the fake server has none";
}

// Fails when it has come to a certain phase.
struct FailingOpener final : Opener {
    explicit FailingOpener(OpenPhase phase) : at(phase) {}
    [[nodiscard]] std::unique_ptr<Connection> open(Deadline,
                                                   std::stop_token,
                                                   OpenPhases& phases) override {
        phases.enter(at);
        OpenError error(FailureClass::full, Code::exhausted, "as the test wishes");
        error.set_sqlstate("53300");
        throw error;
    }
    const OpenPhase at;
};

TEST_F(WarmPool, AnOpeningThatFailedIsCountedByHowFarItCame) {
    HOLDFAST_CHECK("connections fill.lease_error");
    HOLDFAST_CHECK("connections fill.limiter_error");
    HOLDFAST_CHECK("connections fill.token_error");
    HOLDFAST_CHECK("connections fill.open_error");
    const std::map<OpenPhase, std::string_view> reasons{{OpenPhase::slot, "lease_acquire"},
                                                        {OpenPhase::permit, "rate_limit"},
                                                        {OpenPhase::token, "token_provider"},
                                                        {OpenPhase::resolve, "connection_open"},
                                                        {OpenPhase::tcp, "connection_open"},
                                                        {OpenPhase::tls, "connection_open"},
                                                        {OpenPhase::auth, "connection_open"},
                                                        {OpenPhase::init, "connection_open"}};
    ASSERT_EQ(reasons.size(), open_phase_count);
    for (const auto& [phase, reason] : reasons) {
        CapturingLogger log;
        FailingOpener opener(phase);
        Config config = full(1);
        config.meters.open_failure_reasons = true;
        Pool failing(config, opener, system_clock(), &metrics, log, std::string(to_string(phase)));
        ASSERT_TRUE(log.wait_for("open.failed", soon()));
        EXPECT_EQ(failing.stats().now.ready, 0);
        EXPECT_GE(metrics.value("holdfast_sql_pool_open_failures_total",
                                {{"db", to_string(phase)}, {"class", "full"}, {"reason", reason}}),
                  1);
        EXPECT_EQ(log.count("stage=" + std::string(to_string(phase)) +
                            " class=full sqlstate=53300 attempt=1"),
                  1U)
            << log.lines().at(0);
    }
}

// Short way and long way in turns: there are fewer connections than threads, so that some wait.
TEST_F(WarmPool, ACrowdLosesNoConnectionAndNoCount) {
    constexpr int threads = 6;
    constexpr int each = 2000;
    start(full(4));
    {
        std::latch ready{threads};
        std::vector<std::jthread> crowd;
        for (int t = 0; t < threads; ++t) {
            crowd.emplace_back([&] {
                ready.arrive_and_wait();
                for (int i = 0; i < each; ++i) {
                    const Loan loan = pool->acquire(soon(), {});
                    if (i % 500 == 0) {
                        static_cast<void>(metrics.expose());
                    }
                }
            });
        }
    }
    const Stats stats = pool->stats();
    EXPECT_EQ(stats.lent, threads * each);
    EXPECT_EQ(stats.now.in_use, 0);
    EXPECT_EQ(stats.now.ready, 4);
    EXPECT_EQ(stats.now.waiting, 0);
    EXPECT_EQ(value("holdfast_sql_pool_lent_total"), threads * each);
    EXPECT_EQ(server.state().opened, 4);
}

}  // namespace
}  // namespace holdfast::pool
