#include "matching/pace.hpp"

#include <limits>

#include "matching/test/matching_fixture.hpp"
#include <gtest/gtest.h>

#include <holdfast/testing/check.hpp>

namespace holdfast::server::matching::tests {
namespace {

class QueueRateTest : public MatchingTest {
protected:
    std::size_t left() const { return matching.view(payments).backlog; }

    // So many polls that tasks wait for nothing but the rate.
    void poll_often(const PollInfo& info, int polls = 50) {
        for (int i = 0; i < polls; ++i) {
            calls.push_back(poll(payments, info));
        }
    }

    std::vector<PollCall> calls;
};

TEST_F(QueueRateTest, AWorkersLimitHoldsAfterTheTasksOfOneSecond) {
    HOLDFAST_CHECK("server Q34");
    add_tasks(payments, 20);
    poll_often(worker_at(5));
    EXPECT_EQ(left(), 14U) << "a full store of five, and one more";
    alarms.advance(200ms);
    EXPECT_EQ(left(), 13U);
    alarms.advance(1s);
    EXPECT_EQ(left(), 8U);
    alarms.advance(1s);
    EXPECT_EQ(left(), 3U);
    alarms.advance(1s);
    EXPECT_EQ(left(), 0U);
}

TEST_F(QueueRateTest, ThePollThatComesLastSetsTheLimit) {
    HOLDFAST_CHECK("server Q35");
    add_tasks(payments, 20);
    poll_often(worker_at(5));
    EXPECT_EQ(left(), 14U);
    poll(payments, worker("bob"));
    EXPECT_EQ(left(), 0U) << "without a limit, all polls that wait get a task";
}

TEST_F(QueueRateTest, ANewTaskWaitsForTheRateAsWell) {
    poll_often(worker_at(1), 3);
    for (int i = 0; i < 2; ++i) {
        auto reserved = matching.reserve(payments, default_priority);
        ASSERT_TRUE(reserved);
        deliver(std::move(*reserved), task("pay"));
    }
    EXPECT_FALSE(matching.reserve(payments, default_priority));
    matching.add(payments, task("pay"));
    EXPECT_EQ(left(), 1U);
    alarms.advance(1s);
    EXPECT_EQ(left(), 0U);
}

TEST_F(QueueRateTest, ATaskThatTurnsOutVoidCostsNothing) {
    starter.serve([](const QueueKey&, const QueuedTask& started, Reservation poller) {
        if (std::stoi(started.workflow_id) > 10) {
            deliver(std::move(poller), started);
        }
    });
    add_tasks(payments, 20);
    poll_often(worker_at(5));
    EXPECT_EQ(left(), 4U) << "ten void ones, and six that count";
}

TEST_F(QueueRateTest, ATaskThatCouldNotBeCommittedCostsNothing) {
    poll_often(worker_at(1), 2);
    for (int i = 0; i < 10; ++i) {
        EXPECT_TRUE(matching.reserve(payments, default_priority)) << "which is given back at once";
    }
}

TEST_F(QueueRateTest, AConfiguredRateOfNoneStopsTheQueueUntilItIsRaised) {
    HOLDFAST_CHECK("server Q37");
    matching.limit_rate(payments, 0);
    add_tasks(payments, 3);
    poll_often(worker_at(100), 4);
    EXPECT_FALSE(matching.reserve(payments, 1));
    alarms.advance(30s);
    EXPECT_EQ(left(), 3U);
    matching.limit_rate(payments, 1);
    EXPECT_EQ(left(), 1U);
    alarms.advance(1s);
    EXPECT_EQ(left(), 0U);
    matching.limit_rate(payments, std::nullopt);
    alarms.advance(1s);
    EXPECT_TRUE(matching.reserve(payments, default_priority));
}

TEST_F(QueueRateTest, AWorkerThatAsksForNothingStopsTheQueue) {
    add_tasks(payments, 1);
    poll(payments, worker_at(0));
    EXPECT_EQ(left(), 1U);
    poll(payments, worker_at(1));
    EXPECT_EQ(left(), 0U);
}

TEST_F(QueueRateTest, WhatDoesNotLimitAnythingIsNoLimit) {
    poll_often(worker_at(std::numeric_limits<double>::quiet_NaN()), 10);
    poll_often(worker_at(-1), 10);
    poll_often(worker_at(std::numeric_limits<double>::infinity()), 10);
    add_tasks(payments, 30);
    EXPECT_EQ(left(), 0U);
}

// The worker that asked for one task in three years must not bind the one that comes after it.
TEST_F(QueueRateTest, ATinyLimitEndsWhenItIsReplaced) {
    add_tasks(payments, 4);
    poll(payments, worker_at(1e-8));
    poll(payments, worker_at(1e-8));
    EXPECT_EQ(left(), 3U);
    poll(payments, worker_at(10));
    alarms.advance(1s);
    EXPECT_EQ(left(), 1U);
}

TEST_F(QueueRateTest, WorkflowTasksHaveNoRate) {
    PollInfo info = worker_at(0);
    const PollCall call = poll(orders, info);
    matching.limit_rate(orders, 0);
    add("order-1");
    EXPECT_EQ(call.result(), "order-1");
}

}  // namespace
}  // namespace holdfast::server::matching::tests
