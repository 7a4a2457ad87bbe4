// Resets on a store, as clients and workers see them.
#include "engine/test/server_fixture.hpp"

#include <holdfast/testing/check.hpp>

namespace holdfast::server::engine::tests {
namespace {

using namespace temporal::api::enums::v1;  // NOLINT(google-build-using-namespace): 10 names of it.

class Resets : public ServerTest {
protected:
    Pending<api::ResetWorkflowExecutionResponse> reset(std::int64_t finish_event_id,
                                                       const std::string& run_id = "",
                                                       const std::string& request_id = "reset") {
        api::ResetWorkflowExecutionRequest request;
        request.set_namespace_("default");
        request.mutable_workflow_execution()->set_workflow_id("order");
        request.mutable_workflow_execution()->set_run_id(run_id);
        request.set_request_id(request_id);
        request.set_reason("bad build");
        request.set_workflow_task_finish_event_id(finish_event_id);
        return begin<api::ResetWorkflowExecutionResponse>("ResetWorkflowExecution", request);
    }

    api::DescribeWorkflowExecutionResponse describe(const std::string& run_id) {
        api::DescribeWorkflowExecutionRequest request;
        request.set_namespace_("default");
        request.mutable_execution()->set_workflow_id("order");
        request.mutable_execution()->set_run_id(run_id);
        return begin<api::DescribeWorkflowExecutionResponse>("DescribeWorkflowExecution", request)
            .response();
    }

    void remove(const std::string& run_id) {
        api::DeleteWorkflowExecutionRequest request;
        request.set_namespace_("default");
        request.mutable_workflow_execution()->set_workflow_id("order");
        request.mutable_workflow_execution()->set_run_id(run_id);
        EXPECT_EQ(begin<api::DeleteWorkflowExecutionResponse>("DeleteWorkflowExecution", request)
                      .refusal(),
                  nullptr);
    }

    // How many events a reader gets that begins with the last one.
    int backwards(const std::string& run_id) {
        api::GetWorkflowExecutionHistoryReverseRequest request;
        request.set_namespace_("default");
        request.mutable_execution()->set_workflow_id("order");
        request.mutable_execution()->set_run_id(run_id);
        request.set_maximum_page_size(1);
        int events = 0;
        do {
            const auto page = begin<api::GetWorkflowExecutionHistoryReverseResponse>(
                                  "GetWorkflowExecutionHistoryReverse", request)
                                  .response();
            events += page.history().events_size();
            request.set_next_page_token(page.next_page_token());
        } while (!request.next_page_token().empty());
        return events;
    }

    // Completes the workflow task that a worker gets now.
    void work(std::vector<Command> commands) {
        EXPECT_EQ(complete(poll().response(), std::move(commands)).refusal(), nullptr);
    }

    // A run that has completed its only workflow task and is open; 1 to 4, and a timer.
    std::string begin_order() {
        const std::string run_id = start("order").run_id();
        work({timer_command("t", 3600s)});
        return run_id;
    }

    const std::string kept = "1 Started, 2 WorkflowTaskScheduled, 3 WorkflowTaskStarted, ";
};

TEST_P(Resets, TheCurrentRunEndsAndANewOneGoesOn) {
    HOLDFAST_CHECK("server H296");
    const std::string base = begin_order();
    const std::string made = reset(4).response().run_id();
    EXPECT_TRUE(history("order", base).ends_with("5 TimerStarted, 6 Terminated"));
    EXPECT_EQ(history("order"), kept + "4 WorkflowTaskFailed, 5 WorkflowTaskScheduled");
    EXPECT_EQ(backwards(made), 5);
    EXPECT_EQ(describe(base).workflow_extended_info().reset_run_id(), made);
    restart();
    EXPECT_EQ(describe("").workflow_execution_info().execution().run_id(), made);
    EXPECT_TRUE(describe(made).workflow_extended_info().has_last_reset_time());
    const auto task = poll().response();
    EXPECT_EQ(task.history().events_size(), 6);
    EXPECT_EQ(task.attempt(), 1);
    EXPECT_EQ(complete(task, {complete_command()}).refusal(), nullptr);
    EXPECT_TRUE(history("order", made).ends_with("7 WorkflowTaskCompleted, 8 Completed"));
    EXPECT_EQ(backwards(made), 8);
    EXPECT_EQ(backwards(base), 6);
}

TEST_P(Resets, AWorkerThatWaitsGetsTheTaskWithTheCommit) {
    begin_order();
    auto worker = poll();
    const auto before = process->engine.counts().run_commits;
    const std::string made = reset(4).response().run_id();
    EXPECT_EQ(process->engine.counts().run_commits - before, 1U);
    const auto task = worker.response();
    EXPECT_EQ(task.workflow_execution().run_id(), made);
    EXPECT_EQ(task.history().events_size(), 6);
    EXPECT_EQ(task.history().events(0).event_id(), 1);
}

TEST_P(Resets, AClosedRunIsReset) {
    HOLDFAST_CHECK("server H297");
    const std::string base = start("order").run_id();
    work({complete_command()});
    const std::string made = reset(4).response().run_id();
    EXPECT_TRUE(history("order", base).ends_with("5 Completed"));
    EXPECT_EQ(describe(base).workflow_extended_info().reset_run_id(), made);
    work({complete_command()});
    EXPECT_TRUE(history("order", made).ends_with("8 Completed")) << history("order", made);
}

TEST_P(Resets, AnEarlierRunIsResetWhileAnotherOneRuns) {
    HOLDFAST_CHECK("server H302");
    const std::string base = start("order").run_id();
    work({complete_command()});
    const std::string running = start("order", "another").run_id();
    const std::string made = reset(4, base).response().run_id();
    EXPECT_TRUE(history("order", running).ends_with("Terminated"));
    EXPECT_EQ(describe("").workflow_execution_info().execution().run_id(), made);
    EXPECT_EQ(describe(made).workflow_execution_info().first_run_id(), base);
    EXPECT_TRUE(describe(running).workflow_extended_info().reset_run_id().empty());
}

TEST_P(Resets, AnEarlierRunIsResetWhenAnotherOneHasClosed) {
    HOLDFAST_CHECK("server H302");
    const std::string base = start("order").run_id();
    work({complete_command()});
    const std::string closed = start("order", "another").run_id();
    work({complete_command()});
    restart();
    const std::string made = reset(4, base).response().run_id();
    EXPECT_TRUE(history("order", closed).ends_with("5 Completed"));
    EXPECT_EQ(describe("").workflow_execution_info().execution().run_id(), made);
}

TEST_P(Resets, ARunIsResetAgainAndItsResetAsWell) {
    HOLDFAST_CHECK("server H303");
    const std::string base = begin_order();
    const std::string second = reset(4, base, "one").response().run_id();
    const std::string third = reset(4, base, "two").response().run_id();
    EXPECT_EQ(describe(base).workflow_extended_info().reset_run_id(), third);
    EXPECT_TRUE(history("order", second).ends_with("Terminated"));
    work({complete_command()});
    const std::string fourth = reset(7, third, "three").response().run_id();
    EXPECT_EQ(history("order", fourth),
              kept +
                  "4 WorkflowTaskFailed, 5 WorkflowTaskScheduled, 6 WorkflowTaskStarted, "
                  "7 WorkflowTaskFailed, 8 WorkflowTaskScheduled");
    const auto task = poll().response();
    EXPECT_EQ(task.history()
                  .events(0)
                  .workflow_execution_started_event_attributes()
                  .original_execution_run_id(),
              base);
    EXPECT_EQ(backwards(fourth), 9);
}

// The request that started the current run is known to have been done.
TEST_P(Resets, ARequestThatStartedTheCurrentRunIsNotAReset) {
    const std::string base = begin_order();
    EXPECT_EQ(reset(4, "", "start").response().run_id(), base);
    const std::string made = reset(4).response().run_id();
    EXPECT_EQ(start("order").run_id(), made) << "the new run has the request of its base";
}

TEST_P(Resets, SignalsOfLaterRunsOfTheChainComeAgain) {
    HOLDFAST_CHECK("server H304");
    const std::string base = start("order").run_id();
    Command again;
    again.set_command_type(COMMAND_TYPE_CONTINUE_AS_NEW_WORKFLOW_EXECUTION);
    again.mutable_continue_as_new_workflow_execution_command_attributes();
    advance(2s);
    work({again});
    EXPECT_EQ(signal("order", "of the second run").refusal(), nullptr);
    const auto busy = poll().response();
    EXPECT_EQ(signal("order", "buffered").refusal(), nullptr);
    restart();
    EXPECT_EQ(reset(4, base).refusal(), nullptr);
    EXPECT_EQ(history("order"),
              kept + "4 WorkflowTaskFailed, 5 Signaled, 6 Signaled, 7 WorkflowTaskScheduled");
    EXPECT_NE(complete(busy, {complete_command()}).refusal(), nullptr);
}

TEST_P(Resets, WhatWasPendingAtThePointBeginsAnew) {
    HOLDFAST_CHECK("server H310");
    const std::string base = start("order").run_id();
    work({activity_command("a"), timer_command("t", 60s)});
    const auto old = poll_activity().response();
    EXPECT_EQ(signal("order", "next").refusal(), nullptr);
    work({});
    EXPECT_EQ(reset(10).refusal(), nullptr);
    const auto activity = poll_activity().response();
    EXPECT_EQ(activity.activity_id(), "a");
    EXPECT_EQ(activity.input().payloads(0).data(), "\"a\"") << "read from the shared part";
    EXPECT_NE(activity.workflow_execution().run_id(), base);
    EXPECT_NE(complete(old).refusal(), nullptr);
    restart();
    EXPECT_EQ(complete(activity).refusal(), nullptr);
    work({});
    advance(60s);
    EXPECT_TRUE(history("order").ends_with("TimerFired, 17 WorkflowTaskScheduled"))
        << history("order");
}

// What two runs share goes with the last of them.
TEST_P(Resets, ARunOutlivesTheOneThatItWasMadeOf) {
    const std::string base = begin_order();
    const std::string made = reset(4).response().run_id();
    remove(base);
    EXPECT_EQ(history("order", base), "");
    restart();
    EXPECT_EQ(history("order", made), kept + "4 WorkflowTaskFailed, 5 WorkflowTaskScheduled");
    EXPECT_EQ(backwards(made), 5);
    const std::string again = reset(4, made, "again").response().run_id();
    remove(made);
    restart();
    EXPECT_EQ(history("order", again), kept + "4 WorkflowTaskFailed, 5 WorkflowTaskScheduled");
    work({complete_command()});
    remove(again);
    EXPECT_EQ(db.number("SELECT count(*) FROM history_node"), 0);
}

TEST_P(Resets, ABaseOutlivesTheRunThatWasMadeOfIt) {
    const std::string base = begin_order();
    const std::string made = reset(4).response().run_id();
    remove(made);
    restart();
    EXPECT_TRUE(history("order", base).ends_with("5 TimerStarted, 6 Terminated"));
}

TEST_P(Resets, TheRetentionOfTheBaseIsNotThatOfTheNewRun) {
    const std::string base = begin_order();
    const std::string made = reset(4).response().run_id();
    advance(25h);
    advance(1s);  // What was far away is read from the database first.
    EXPECT_EQ(history("order", base), "");
    EXPECT_EQ(history("order", made), kept + "4 WorkflowTaskFailed, 5 WorkflowTaskScheduled");
}

TEST_P(Resets, ARunIsResetWhenTheCurrentOneWasDeleted) {
    HOLDFAST_CHECK("server H311");
    const std::string base = start("order").run_id();
    work({complete_command()});
    const std::string current = start("order", "another").run_id();
    work({complete_command()});
    remove(current);
    const std::string made = reset(4, base).response().run_id();
    EXPECT_EQ(describe("").workflow_execution_info().execution().run_id(), made);
    work({complete_command()});
}

// The parent is reset while its child runs.
TEST_P(Resets, AChildReportsToTheRunThatGoesOn) {
    HOLDFAST_CHECK("server H305");
    start("order");
    Command command;
    command.set_command_type(COMMAND_TYPE_START_CHILD_WORKFLOW_EXECUTION);
    auto& attributes = *command.mutable_start_child_workflow_execution_command_attributes();
    attributes.set_workflow_id("child");
    attributes.mutable_workflow_type()->set_name("Child");
    attributes.mutable_task_queue()->set_name("children");
    work({command});
    work({});
    EXPECT_EQ(reset(9).refusal(), nullptr);
    EXPECT_EQ(history("child"), "1 Started, 2 WorkflowTaskScheduled") << "it lives on";
    restart();
    EXPECT_EQ(complete(poll("children").response(), {complete_command()}).refusal(), nullptr);
    EXPECT_TRUE(history("order").ends_with(
        "9 WorkflowTaskFailed, 10 WorkflowTaskScheduled, 11 ChildWorkflowExecutionCompleted"))
        << history("order");
}

// A child that the base asked for after the point stays, and is none of the new run's.
TEST_P(Resets, ALaterChildLivesOnByItself) {
    HOLDFAST_CHECK("server H306");
    start("order");
    Command command;
    command.set_command_type(COMMAND_TYPE_START_CHILD_WORKFLOW_EXECUTION);
    auto& attributes = *command.mutable_start_child_workflow_execution_command_attributes();
    attributes.set_workflow_id("child");
    attributes.mutable_workflow_type()->set_name("Child");
    attributes.mutable_task_queue()->set_name("children");
    work({command});
    EXPECT_EQ(reset(4).refusal(), nullptr);
    EXPECT_EQ(history("child"), "1 Started, 2 WorkflowTaskScheduled");
    work({command});
    EXPECT_TRUE(history("order").ends_with(
        "8 StartChildWorkflowExecutionInitiated, 9 StartChildWorkflowExecutionFailed, "
        "10 WorkflowTaskScheduled"))
        << history("order");
}

TEST_P(Resets, AProcessThatLostTheDatabaseResetsNothing) {
    const std::string base = begin_order();
    const std::string before = history("order");
    {
        Process newer(db, clock, log, limits);
        const auto refused = reset(4);
        ASSERT_NE(refused.refusal(), nullptr);
        EXPECT_EQ(refused.refusal()->code, rpc::StatusCode::unavailable);
    }
    restart();
    EXPECT_EQ(history("order"), before);
    EXPECT_TRUE(describe(base).workflow_extended_info().reset_run_id().empty());
    EXPECT_EQ(reset(4).refusal(), nullptr);
}

INSTANTIATE_TEST_SUITE_P(Every, Resets, test::every_backend(), test::backend_name);

}  // namespace
}  // namespace holdfast::server::engine::tests
