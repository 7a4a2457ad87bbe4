#include "engine/engine.hpp"

#include "engine/test/server_fixture.hpp"

#include <holdfast/testing/check.hpp>

namespace holdfast::server::engine::tests {
namespace {

// The figure that workflows are charged for.
TEST_P(ServerTest, AChainOfActivitiesCostsTwoCommitsEachAndTwoMore) {
    auto worker = poll();
    auto activities = poll_activity();
    const auto before = process->engine.counts().run_commits;
    start("order");
    constexpr int steps = 3;
    for (int step = 0; step < steps; ++step) {
        const auto task = worker.response();
        worker = poll();
        EXPECT_EQ(complete(task, {activity_command(std::to_string(step))}).refusal(), nullptr);
        const auto activity = activities.response();
        activities = poll_activity();
        EXPECT_EQ(activity.input().payloads(0).data(), "\"" + std::to_string(step) + "\"");
        EXPECT_EQ(complete(activity).refusal(), nullptr);
    }
    EXPECT_EQ(complete(worker.response(), {complete_command()}).refusal(), nullptr);
    EXPECT_EQ(process->engine.counts().run_commits - before, 2 * steps + 2);
    EXPECT_TRUE(history("order").ends_with("23 Completed")) << history("order");
}

TEST_P(ServerTest, ATaskThatWaitedGoesToTheNextPoll) {
    start("order");
    const auto task = poll().response();
    EXPECT_EQ(task.started_event_id(), 3);
    EXPECT_EQ(task.attempt(), 1);
    EXPECT_EQ(task.history().events_size(), 3);
    EXPECT_EQ(complete(task, {complete_command()}).refusal(), nullptr);
    EXPECT_EQ(history("order"),
              "1 Started, 2 WorkflowTaskScheduled, 3 WorkflowTaskStarted, "
              "4 WorkflowTaskCompleted, 5 Completed");
}

// The process dies when the task is stored and no worker has it.
TEST_P(ServerTest, ATaskThatWaitedOutlivesTheProcess) {
    HOLDFAST_CHECK("server Q22");
    start("order");
    restart();
    EXPECT_EQ(poll().response().started_event_id(), 3);
}

// The process dies when a worker has the task: the worker goes on with the next process.
TEST_P(ServerTest, AWorkerCompletesItsTaskAtTheNextProcess) {
    HOLDFAST_CHECK("server H323");
    start("order");
    const auto task = poll().response();
    restart();
    EXPECT_TRUE(poll().waits()) << "one worker has the task already";
    EXPECT_EQ(complete(task, {activity_command("a")}).refusal(), nullptr);
    const auto activity = poll_activity().response();
    restart();
    EXPECT_EQ(complete(activity).refusal(), nullptr);
    EXPECT_EQ(complete(poll().response(), {complete_command()}).refusal(), nullptr);
}

TEST_P(ServerTest, ATimerFiresInTheNextProcess) {
    start("order");
    EXPECT_EQ(complete(poll().response(), {timer_command("t", 60s)}).refusal(), nullptr);
    restart();
    advance(59s);
    EXPECT_TRUE(history("order").ends_with("5 TimerStarted"));
    advance(1s);
    EXPECT_TRUE(history("order").ends_with("6 TimerFired, 7 WorkflowTaskScheduled"));
    EXPECT_EQ(complete(poll().response(), {complete_command()}).refusal(), nullptr);
}

// A worker took the task and died.
TEST_P(ServerTest, ATaskThatIsNotAnsweredComesAgain) {
    start("order");
    EXPECT_EQ(poll().response().attempt(), 1);
    auto next = poll();
    EXPECT_TRUE(next.waits());
    advance(10s);
    const auto task = next.response();
    EXPECT_EQ(task.attempt(), 2);
    EXPECT_EQ(complete(task, {complete_command()}).refusal(), nullptr);
}

TEST_P(ServerTest, ASignalIsStoredOnceHoweverOftenItComes) {
    start("order");
    EXPECT_EQ(signal("order", "paid", "one").refusal(), nullptr);
    restart();
    EXPECT_EQ(signal("order", "paid", "one").refusal(), nullptr);
    EXPECT_EQ(history("order"), "1 Started, 2 WorkflowTaskScheduled, 3 Signaled");
}

// Two processes on one database: the older one finds out at its next write.
TEST_P(ServerTest, AProcessThatLostTheDatabaseWritesNothing) {
    start("order");
    Process newer(db, clock, log, limits);
    const auto refused = signal("order", "late");
    ASSERT_NE(refused.refusal(), nullptr);
    EXPECT_EQ(refused.refusal()->code, rpc::StatusCode::unavailable);
    restart();
    EXPECT_EQ(history("order"), "1 Started, 2 WorkflowTaskScheduled");
}

TEST_P(ServerTest, AStartIsRepeatedWithoutASecondRun) {
    HOLDFAST_CHECK("server H2");
    const auto first = start("order", "once");
    const auto again = start("order", "once");
    EXPECT_EQ(first.run_id(), again.run_id());
    EXPECT_TRUE(again.started());
    EXPECT_EQ(history("order"), "1 Started, 2 WorkflowTaskScheduled");
}

INSTANTIATE_TEST_SUITE_P(Every, ServerTest, test::every_backend(), test::backend_name);

}  // namespace
}  // namespace holdfast::server::engine::tests
