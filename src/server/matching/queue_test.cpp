#include "matching/queue.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include "matching/test/matching_fixture.hpp"
#include <gtest/gtest.h>

namespace holdfast::server::matching::tests {
namespace {

using Names = std::vector<std::string>;

class ReservationTest : public MatchingTest {
protected:
    Reservation reserved() {
        auto found = matching.reserve(orders, default_priority);
        if (!found) {
            throw std::logic_error("no poll waits");
        }
        return std::move(*found);
    }
    // Lets the reservation go, as an engine whose commit failed.
    static void give_back(Reservation reservation) { static_cast<void>(reservation.info()); }
};

TEST_F(ReservationTest, SaysWhichPollItOwns) {
    poll("ann");
    const Reservation poller = reserved();
    EXPECT_EQ(poller.info().identity, "ann");
    EXPECT_EQ(poller.queue(), orders);
    EXPECT_FALSE(poller.over());
}

TEST_F(ReservationTest, APollIsReservedOnce) {
    poll();
    const Reservation poller = reserved();
    EXPECT_FALSE(matching.reserve(orders, default_priority));
    add("order-1");
    EXPECT_EQ(backlog(), 1U);
}

TEST_F(ReservationTest, APollThatComesBackIsTheFirstOfItsQueue) {
    const std::vector<PollCall> polls{poll("ann"), poll("bob")};
    give_back(reserved());
    add("order-1");
    EXPECT_EQ(results(polls), (Names{"order-1", "waiting"}));
}

// The task came while the only poll was reserved: nothing but the return brings them together.
TEST_F(ReservationTest, APollThatComesBackGetsTheTaskThatCameMeanwhile) {
    const PollCall call = poll();
    Reservation poller = reserved();
    add("order-1");
    EXPECT_EQ(call.result(), "waiting");
    give_back(std::move(poller));
    EXPECT_EQ(call.result(), "order-1");
    EXPECT_EQ(backlog(), 0U);
}

TEST_F(ReservationTest, APollDoesNotExpireWhileItIsReserved) {
    const PollCall call = poll();
    Reservation poller = reserved();
    alarms.advance(2min);
    EXPECT_EQ(call.result(), "waiting");
    EXPECT_TRUE(deliver(std::move(poller), task("order-1")));
    EXPECT_EQ(call.result(), "order-1");
}

TEST_F(ReservationTest, APollThatComesBackTooLateIsAnsweredEmpty) {
    const PollCall call = poll();
    Reservation poller = reserved();
    alarms.advance(60s);
    add("order-1");
    give_back(std::move(poller));
    EXPECT_EQ(call.result(), "empty");
    EXPECT_EQ(backlog(), 1U);
}

TEST_F(ReservationTest, APollThatComesBackInTimeExpiresAsItWouldHave) {
    const PollCall call = poll();
    alarms.advance(20s);
    give_back(reserved());
    alarms.advance(40s - 1ms);
    EXPECT_EQ(call.result(), "waiting");
    alarms.advance(1ms);
    EXPECT_EQ(call.result(), "empty");
}

// A poll that finds a task when it comes has not waited yet: nothing has been set to end it.
TEST_F(ReservationTest, APollThatWasMatchedAtOnceExpiresWhenItComesBack) {
    keep_reservations();
    add("void");
    const PollCall call = poll();
    ASSERT_EQ(kept.size(), 1U);
    EXPECT_EQ(alarms.waiting(), 0U);
    kept.clear();
    EXPECT_EQ(call.result(), "waiting");
    alarms.advance(60s);
    EXPECT_EQ(call.result(), "empty");
}

TEST_F(ReservationTest, ACallerThatLeavesIsSeenInTheReservation) {
    const PollCall call = poll();
    Reservation poller = reserved();
    call.cancel();
    EXPECT_TRUE(poller.over());
    EXPECT_FALSE(deliver(std::move(poller), task("order-1")));
    EXPECT_EQ(call.result(), "cancelled");
}

TEST_F(ReservationTest, APollWhoseCallerLeftDoesNotComeBack) {
    const PollCall gone = poll("ann");
    const PollCall other = poll("bob");
    Reservation poller = reserved();
    gone.cancel();
    give_back(std::move(poller));
    add("order-1");
    EXPECT_EQ(gone.result(), "cancelled");
    EXPECT_EQ(other.result(), "order-1");
}

TEST_F(ReservationTest, AStopAnswersWaitingPollsEmptyAndReservedOnesWhenTheyComeBack) {
    const std::vector<PollCall> polls{poll("ann"), poll("bob"), poll("cid")};
    Reservation given_back = reserved();
    Reservation delivered = reserved();
    matching.stop();
    EXPECT_EQ(results(polls), (Names{"waiting", "waiting", "empty"}));
    give_back(std::move(given_back));
    deliver(std::move(delivered), task("order-1"));
    EXPECT_EQ(results(polls), (Names{"empty", "order-1", "empty"}));
}

TEST_F(ReservationTest, AfterAStopPollsAreAnsweredEmptyAndNoTaskIsStarted) {
    add("order-1");
    matching.stop();
    EXPECT_EQ(poll().result(), "empty");
    EXPECT_EQ(backlog(), 1U);
}

// The transport tells each call that the server stops, before or after the queues hear of it.
TEST_F(ReservationTest, ACallThatHearsOfTheStopIsAnsweredEmpty) {
    const std::vector<PollCall> polls{poll("ann"), poll("bob")};
    Reservation poller = reserved();
    polls[0].server_stops();
    polls[1].server_stops();
    EXPECT_EQ(results(polls), (Names{"waiting", "empty"}));
    give_back(std::move(poller));
    EXPECT_EQ(results(polls), (Names{"empty", "empty"}));
}

TEST_F(ReservationTest, MayOutliveTheQueues) {
    const PollCall call = poll();
    {
        const Reservation poller = reserved();
        own.reset();
        EXPECT_EQ(call.result(), "waiting");
    }
    EXPECT_EQ(call.result(), "empty");
    alarms.advance(2min);
}

TEST_F(ReservationTest, APollOfAnUnloadedQueueDoesNotComeBack) {
    const PollCall call = poll();
    Reservation poller = reserved();
    matching.unload(orders);
    EXPECT_EQ(call.result(), "waiting");
    give_back(std::move(poller));
    EXPECT_EQ(call.result(), "empty");
    EXPECT_FALSE(matching.polled_recently(orders));
}

TEST_F(ReservationTest, ADeliveryAfterAnUnloadIsNoSignOfLife) {
    const PollCall call = poll();
    Reservation poller = reserved();
    matching.unload(orders);
    deliver(std::move(poller), task("order-1"));
    EXPECT_EQ(call.result(), "order-1");
    EXPECT_FALSE(matching.polled_recently(orders));
    EXPECT_TRUE(matching.view(orders).pollers.empty());
}

TEST_F(ReservationTest, APollOfAWorkerThatEndedDoesNotComeBack) {
    const std::vector<PollCall> polls{poll(orders, worker("ann", "key-1")),
                                      poll(orders, worker("ann", "key-1"))};
    Reservation given_back = reserved();
    Reservation delivered = reserved();
    matching.end_polls("key-1", std::vector{orders});
    give_back(std::move(given_back));
    deliver(std::move(delivered), task("order-1"));
    EXPECT_EQ(results(polls), (Names{"empty", "order-1"}));
    EXPECT_TRUE(matching.view(orders).pollers.empty());
}

// A starter that lets go at once brings the next task. That must not take a stack frame per task.
TEST_F(ReservationTest, ALongBacklogOfVoidTasksIsRunThroughWithoutRecursion) {
    int started = 0;
    int depth = 0;
    int deepest = 0;
    starter.serve([&](const QueueKey&, const QueuedTask&, Reservation poller) {
        ++started;
        deepest = std::max(deepest, ++depth);
        give_back(std::move(poller));
        --depth;
    });
    add_tasks(orders, 20'000);
    const PollCall call = poll();
    EXPECT_EQ(started, 20'000);
    EXPECT_EQ(deepest, 1);
    EXPECT_EQ(call.result(), "waiting");
}

TEST_F(ReservationTest, AStarterMayUseTheQueues) {
    starter.serve([&](const QueueKey& queue, const QueuedTask& started, Reservation poller) {
        if (started.workflow_id == "order-1") {
            matching.add(queue, task("order-2"));
            EXPECT_EQ(matching.view(queue).backlog, 1U);
            EXPECT_FALSE(matching.reserve(queue, default_priority));
        }
        deliver(std::move(poller), started);
    });
    const PollCall call = poll();
    add("order-1");
    EXPECT_EQ(call.result(), "order-1");
    EXPECT_EQ(poll().result(), "order-2");
}

// The queue stands still because many tasks were put back, so that a poll and tasks wait.
TEST_F(ReservationTest, NoneIsGivenForATaskIfThoseBeforeItWait) {
    starter.serve([this](const QueueKey& queue, QueuedTask started, Reservation) {
        matching.put_back(queue, std::move(started));
    });
    add_tasks(orders, 20);
    poll();
    EXPECT_FALSE(matching.reserve(orders, default_priority));
    EXPECT_FALSE(matching.reserve(orders, default_priority + 1));
    EXPECT_TRUE(matching.reserve(orders, default_priority - 1));
}

class OfferTest : public MatchingTest {
protected:
    OfferId offer(const std::string& query) {
        return matching.offer(
            orders, [this, query](Reservation poller) { deliver(std::move(poller), task(query)); });
    }
};

TEST_F(OfferTest, AWaitingPollTakesItAtOnce) {
    const PollCall call = poll();
    const OfferId query = offer("query");
    EXPECT_EQ(call.result(), "query");
    EXPECT_FALSE(matching.withdraw(query));
}

TEST_F(OfferTest, TheNextPollTakesItOnce) {
    offer("query");
    EXPECT_EQ(poll().result(), "query");
    EXPECT_EQ(poll().result(), "waiting");
}

TEST_F(OfferTest, ComesBeforeTasksOfDefaultPriorityAndAfterHigherOnes) {
    add("default");
    add("high", 2);
    add("low", 4);
    offer("query");
    offer("query-2");
    EXPECT_EQ(results({poll(), poll(), poll(), poll(), poll()}),
              (Names{"high", "query", "query-2", "default", "low"}));
}

TEST_F(OfferTest, IsNotTakenOnceItIsWithdrawn) {
    const OfferId query = offer("query");
    EXPECT_TRUE(matching.withdraw(query));
    EXPECT_FALSE(matching.withdraw(query));
    EXPECT_EQ(poll().result(), "waiting");
}

TEST_F(OfferTest, CountsAsATaskAddedAndDispatched) {
    offer("query");
    poll();
    clock.advance(10s);
    EXPECT_DOUBLE_EQ(matching.view(orders).add_rate, 0.1);
    EXPECT_DOUBLE_EQ(matching.view(orders).dispatch_rate, 0.1);
}

TEST_F(OfferTest, APollThatItLetsGoWaitsAgain) {
    matching.offer(orders, [](const Reservation&) {});
    const PollCall call = poll();
    EXPECT_EQ(call.result(), "waiting");
    add("order-1");
    EXPECT_EQ(call.result(), "order-1");
}

}  // namespace
}  // namespace holdfast::server::matching::tests
