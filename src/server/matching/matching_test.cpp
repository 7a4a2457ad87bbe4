#include "matching/matching.hpp"

#include <string>
#include <vector>

#include "matching/test/matching_fixture.hpp"
#include <gtest/gtest.h>

#include <holdfast/testing/check.hpp>

namespace holdfast::server::matching::tests {
namespace {

using Results = std::vector<std::string>;

TEST_F(MatchingTest, AWaitingPollGetsANewTaskAndNothingIsLeftInTheBacklog) {
    HOLDFAST_CHECK("server Q1");
    const PollCall first = poll();
    const PollCall second = poll();
    add("order-1");
    EXPECT_EQ(first.result(), "order-1");
    EXPECT_EQ(second.result(), "waiting");
    EXPECT_TRUE(start_in_commit("order-2"));
    EXPECT_EQ(second.result(), "order-2");
    EXPECT_EQ(backlog(), 0U);
    EXPECT_FALSE(start_in_commit("order-3")) << "no poll is left";
}

TEST_F(MatchingTest, TasksThatWaitAreDeliveredFirstInFirstOut) {
    HOLDFAST_CHECK("server Q2");
    add("first");
    add("second");
    add("third");
    EXPECT_EQ(results({poll(), poll(), poll(), poll()}),
              (Results{"first", "second", "third", "waiting"}));
}

TEST_F(MatchingTest, PollsAreServedInTheOrderInWhichTheyCame) {
    const std::vector<PollCall> polls{poll("ann"), poll("bob"), poll("cid")};
    add("first");
    add("second");
    EXPECT_EQ(results(polls), (Results{"first", "second", "waiting"}));
}

TEST_F(MatchingTest, APollIsAnsweredEmptyASecondBeforeItsDeadline) {
    HOLDFAST_CHECK("server Q4");
    const PollCall call = poll(orders, worker("ann"), 5s);
    alarms.advance(3999ms);
    EXPECT_EQ(call.result(), "waiting");
    alarms.advance(1ms);
    EXPECT_EQ(call.result(), "empty");
    add("order-1");
    EXPECT_EQ(backlog(), 1U) << "a poll that is over must not get a task";
}

TEST_F(MatchingTest, APollWaitsAMinuteHoweverLongItsCallerWould) {
    HOLDFAST_CHECK("server Q5");
    const PollCall call = poll(orders, worker("ann"), 120s);
    alarms.advance(59s);
    EXPECT_EQ(call.result(), "waiting");
    alarms.advance(1s);
    EXPECT_EQ(call.result(), "empty");
}

TEST_F(MatchingTest, APollWithoutADeadlineWaitsAMinute) {
    const PollCall call;
    matching.poll(call.poll(orders, worker("ann")));
    alarms.advance(59s);
    EXPECT_EQ(call.result(), "waiting");
    alarms.advance(1s);
    EXPECT_EQ(call.result(), "empty");
}

TEST_F(MatchingTest, APollWithoutTimeLeftIsAnsweredEmptyAtOnce) {
    add("order-1");
    EXPECT_EQ(poll(orders, worker("ann"), 1s).result(), "empty");
    EXPECT_EQ(backlog(), 1U);
}

TEST_F(MatchingTest, ATaskNeverGoesToAPollWhoseCallerHasLeft) {
    HOLDFAST_CHECK("server Q6");
    const PollCall gone = poll();
    gone.cancel();
    add("order-1");
    EXPECT_EQ(backlog(), 1U);
    EXPECT_EQ(poll().result(), "order-1");
    EXPECT_EQ(gone.result(), "cancelled");
    EXPECT_EQ(alarms.waiting(), 0U) << "the alarm of a poll must end with it";
}

TEST_F(MatchingTest, ACallerThatLeftBeforeItsPollCameLeavesNoPoll) {
    const PollCall gone;
    gone.cancel();
    matching.poll(gone.poll(orders, worker("ann")));
    add("order-1");
    EXPECT_EQ(backlog(), 1U);
    EXPECT_EQ(poll().result(), "order-1");
}

TEST_F(MatchingTest, QueuesOfOneNameAndDifferentTypesShareNothing) {
    HOLDFAST_CHECK("server Q9");
    for (const QueueType type : {QueueType::workflow, QueueType::activity, QueueType::nexus}) {
        const PollCall call = poll(queue_of("one", type), worker("ann"));
        for (const QueueType other : {QueueType::workflow, QueueType::activity, QueueType::nexus}) {
            if (other != type) {
                matching.add(queue_of("one", other), task("another's"));
            }
        }
        EXPECT_EQ(call.result(), "waiting");
        matching.add(queue_of("one", type), task("ours"));
        EXPECT_EQ(call.result(), "ours");
        for (const QueueType other : {QueueType::workflow, QueueType::activity, QueueType::nexus}) {
            while (matching.view(queue_of("one", other)).backlog > 0) {
                poll(queue_of("one", other), worker("ann"));
            }
        }
    }
}

TEST_F(MatchingTest, AStickyQueueHasAWorkerWhileAPollWaitsAndTenSecondsLonger) {
    EXPECT_FALSE(matching.polled_recently(orders));
    const PollCall call = poll();
    alarms.advance(59s);
    EXPECT_TRUE(matching.polled_recently(orders));
    alarms.advance(1s);
    EXPECT_EQ(call.result(), "empty");
    alarms.advance(9999ms);
    EXPECT_TRUE(matching.polled_recently(orders));
    alarms.advance(1ms);
    EXPECT_FALSE(matching.polled_recently(orders));
}

// A worker that dies cancels its polls: that must not count as a sign of life.
TEST_F(MatchingTest, APollThatWasCancelledDoesNotKeepAStickyQueue) {
    const PollCall call = poll();
    alarms.advance(30s);
    call.cancel();
    EXPECT_FALSE(matching.polled_recently(orders));
}

TEST_F(MatchingTest, AnUnloadedQueueAnswersItsPollsEmptyAndHasNoWorker) {
    matching.unload(orders);  // It does not exist yet.
    const std::vector<PollCall> polls{poll("ann"), poll("bob")};
    matching.unload(orders);
    EXPECT_EQ(results(polls), (Results{"empty", "empty"}));
    EXPECT_FALSE(matching.polled_recently(orders));
    EXPECT_TRUE(matching.view(orders).pollers.empty());
    const PollCall again = poll();
    EXPECT_TRUE(matching.polled_recently(orders)) << "the worker came back";
    EXPECT_EQ(again.result(), "waiting");
}

TEST_F(MatchingTest, PollsOfAWorkerThatEndsAreAnsweredEmpty) {
    HOLDFAST_CHECK("server Q15");
    HOLDFAST_CHECK("server Q17");
    const std::vector<PollCall> polls{poll(orders, worker("ann", "key-1")),
                                      poll(payments, worker("ann", "key-1")),
                                      poll(orders, worker("bob", "key-2")),
                                      poll(orders, worker("cid"))};
    matching.end_polls("key-1", std::vector{orders, payments});
    EXPECT_EQ(results(polls), (Results{"empty", "empty", "waiting", "waiting"}));
    EXPECT_TRUE(matching.view(payments).pollers.empty());
    ASSERT_EQ(matching.view(orders).pollers.size(), 2U);
    for (const PollerView& poller : matching.view(orders).pollers) {
        EXPECT_NE(poller.identity, "ann");
    }
}

TEST_F(MatchingTest, NewPollsOfAWorkerThatEndedAreAnsweredEmptyForHalfAMinute) {
    HOLDFAST_CHECK("server Q16");
    matching.end_polls("key-1", std::vector{orders});
    add("order-1");
    EXPECT_EQ(poll(orders, worker("ann", "key-1")).result(), "empty");
    EXPECT_TRUE(matching.view(orders).pollers.empty());
    EXPECT_EQ(poll(orders, worker("bob", "key-2")).result(), "order-1");
    alarms.advance(30s);
    EXPECT_EQ(poll(orders, worker("ann", "key-1")).result(), "waiting");
}

TEST_F(MatchingTest, ATaskThatExpiredInTheBacklogIsNotDelivered) {
    HOLDFAST_CHECK("server Q19");
    QueuedTask late = task("late");
    late.expiry = clock.wall_now() + 10s;
    matching.add(orders, late);
    add("order-2");
    alarms.advance(10s);
    EXPECT_EQ(poll().result(), "order-2");
    EXPECT_EQ(backlog(), 0U);
}

TEST_F(MatchingTest, APollGoesOnWaitingWhenItsTaskIsVoid) {
    HOLDFAST_CHECK("server Q20");
    starter.serve([](const QueueKey&, const QueuedTask& started, Reservation poller) {
        if (started.workflow_id != "terminated") {
            deliver(std::move(poller), started);
        }
    });
    add("terminated");
    const PollCall call = poll();
    EXPECT_EQ(call.result(), "waiting");
    EXPECT_EQ(backlog(), 0U);
    add("order-2");
    EXPECT_EQ(call.result(), "order-2");
}

TEST_F(MatchingTest, TasksGoByPriority) {
    HOLDFAST_CHECK("server Q29");
    add("five", 5);
    add("nine", 9);
    add("three", 3);
    add("unset", 0);
    add("one", 1);
    EXPECT_EQ(matching.view(orders).backlog_by_priority, (std::vector<std::size_t>{1, 0, 2, 0, 2}));
    EXPECT_EQ(results({poll(), poll(), poll(), poll(), poll()}),
              (Results{"one", "three", "unset", "five", "nine"}));
}

TEST_F(MatchingTest, APollerIsListedWithItsIdentityAndItsLastPoll) {
    HOLDFAST_CHECK("server Q42");
    const PollCall first = poll(payments, worker_at(5));
    const PollCall other = poll(payments, worker("bob"));
    alarms.advance(7s);
    matching.add(payments, task("pay-1"));
    const QueueView view = matching.view(payments);
    ASSERT_EQ(view.pollers.size(), 2U);
    EXPECT_EQ(view.pollers[0].identity, "ann");
    EXPECT_EQ(view.pollers[0].last_access, clock.wall_now());
    EXPECT_EQ(view.pollers[0].tasks_per_second, 5);
    EXPECT_EQ(view.pollers[1].identity, "bob");
    EXPECT_EQ(view.pollers[1].last_access, clock.wall_now() - 7s);
    EXPECT_EQ(view.pollers[1].tasks_per_second, std::nullopt);
}

TEST_F(MatchingTest, APollerIsListedForFiveMinutes) {
    HOLDFAST_CHECK("server Q43");
    const PollCall call = poll();
    add("order-1");
    alarms.advance(5min - 1s);
    EXPECT_EQ(matching.view(orders).pollers.size(), 1U);
    alarms.advance(1s);
    EXPECT_TRUE(matching.view(orders).pollers.empty());
}

TEST_F(MatchingTest, TheBacklogIsCountedByPriorityWithItsAge) {
    HOLDFAST_CHECK("server Q45");
    add("order-1");
    clock.advance(2s);
    add("order-2");
    add("order-3");
    clock.advance(1s);
    const QueueView view = matching.view(orders);
    EXPECT_EQ(view.backlog, 3U);
    EXPECT_EQ(view.backlog_by_priority, (std::vector<std::size_t>{0, 0, 3, 0, 0}));
    EXPECT_EQ(view.backlog_age, 3s);
    EXPECT_EQ(matching.view(payments).backlog, 0U);
    EXPECT_EQ(matching.view(payments).backlog_by_priority.size(), 5U);
}

TEST_F(MatchingTest, RatesAreThoseOfTheLastThirtySeconds) {
    clock.advance(1h);
    poll();
    add_tasks(orders, 20);  // One of them is started.
    clock.advance(10s);
    EXPECT_DOUBLE_EQ(matching.view(orders).add_rate, 2.0);
    EXPECT_DOUBLE_EQ(matching.view(orders).dispatch_rate, 0.1);
    clock.advance(40s);
    EXPECT_DOUBLE_EQ(matching.view(orders).add_rate, 0);
}

TEST_F(MatchingTest, ATaskThatIsPutBackIsTheFirstAgainAfterAPause) {
    keep_reservations();
    add("order-1");
    const PollCall call = poll();
    add("order-2");
    starter.serve_at_once();
    matching.put_back(orders, tasks_kept.front());
    EXPECT_EQ(backlog(), 2U);
    clock.advance(1ms);
    EXPECT_FALSE(start_in_commit("order-3"));
    EXPECT_EQ(call.result(), "waiting") << "its reservation has not been given back";
    alarms.advance(100ms);
    kept.clear();
    EXPECT_EQ(call.result(), "order-1");
    EXPECT_EQ(poll().result(), "order-2");
}

TEST_F(MatchingTest, TasksThatArePutBackKeepTheirOrder) {
    std::vector<QueuedTask> tasks;
    for (const std::string name : {"order-1", "order-2", "order-3"}) {
        tasks.push_back(task(name));
        clock.advance(1ms);
    }
    matching.add(orders, tasks[2]);
    matching.put_back(orders, tasks[0]);
    matching.put_back(orders, tasks[1]);
    alarms.advance(1s);
    EXPECT_EQ(results({poll(), poll(), poll()}), (Results{"order-1", "order-2", "order-3"}));
}

// When the store does not answer, each start fails at once. The backlog must not be run through
// again and again.
TEST_F(MatchingTest, ManyTasksThatArePutBackStopTheQueueForAPause) {
    int tried = 0;
    starter.serve([&](const QueueKey& queue, QueuedTask started, Reservation) {
        ++tried;
        matching.put_back(queue, std::move(started));
    });
    add_tasks(orders, 1000);
    const PollCall call = poll();
    EXPECT_EQ(tried, 16);
    EXPECT_EQ(backlog(), 1000U);
    starter.serve_at_once();
    alarms.advance(100ms);
    EXPECT_EQ(call.result(), "1");
}

TEST_F(MatchingTest, TasksStayWhenIdleQueuesAreForgotten) {
    add("order-1");
    for (int i = 0; i < 2000; ++i) {
        poll(queue_of("sticky-" + std::to_string(i), QueueType::workflow), worker("ann")).cancel();
    }
    alarms.advance(10min);
    for (int i = 2000; i < 4000; ++i) {
        poll(queue_of("sticky-" + std::to_string(i), QueueType::workflow), worker("ann")).cancel();
    }
    EXPECT_EQ(poll().result(), "order-1");
}

}  // namespace
}  // namespace holdfast::server::matching::tests
