// A run and those that it asks of: its children, and the runs that it signals and cancels.
#include "history/child/child.hpp"

#include "history/projection.hpp"
#include "history/test/run_fixture.hpp"
#include <gmock/gmock.h>

#include <holdfast/testing/check.hpp>

namespace holdfast::server::history::tests {

namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class ChildTest : public RunFixture {
protected:
    // Event 5 asks for the child.
    void start_with_child(ParentClosePolicy policy = PARENT_CLOSE_POLICY_UNSPECIFIED) {
        start();
        poll();
        Command command = start_child_command("child", policy);
        (*command.mutable_start_child_workflow_execution_command_attributes()
              ->mutable_header()
              ->mutable_fields())["trace"]
            .set_data("7");
        ASSERT_TRUE(complete({command})) << refusal->message;
    }

    bool child_is_started(const std::string& run_id = "child-run") {
        return transition([&](Transition& t) { return child_started(t, 5, run_id); });
    }

    bool child_has_closed(const ChildReport& report) {
        return transition([&](Transition& t) { return child_closed(t, report); });
    }
};

ChildReport report_of(const HistoryEvent& closing, const std::string& run_id = "child-run") {
    return {.parent_namespace_id = "namespace-id",
            .parent_workflow_id = "order-7",
            .parent_run_id = "run-1",
            .initiated_event_id = 5,
            .workflow_id = "child",
            .run_id = run_id,
            .first_run_id = "child-run",
            .closing = closing};
}

HistoryEvent completed(const std::string& result) {
    HistoryEvent event;
    event.set_event_type(EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED);
    event.mutable_workflow_execution_completed_event_attributes()
        ->mutable_result()
        ->add_payloads()
        ->set_data(result);
    return event;
}

// A closed child of run-1, and what it tells.
std::optional<ChildReport> told_by(const HistoryEvent& closing, const std::string& next_run = "") {
    state::Run run;
    run.set_workflow_id("child");
    run.set_run_id("child-run-2");
    run.set_phase(state::PHASE_COMPLETED);
    run.set_new_execution_run_id(next_run);
    run.mutable_started()->set_first_execution_run_id("child-run");
    run.mutable_started()->set_parent_initiated_event_id(5);
    run.mutable_started()->mutable_parent_workflow_execution()->set_workflow_id("order-7");
    run.mutable_started()->mutable_parent_workflow_execution()->set_run_id("run-1");
    return report_to_parent(run, closing);
}

TEST_F(ChildTest, AStartedChildIsToldToTheWorkflow) {
    start_with_child();
    EXPECT_THAT(made(), ElementsAre(Task::Kind::start_child));
    EXPECT_EQ(child_step(run(), 5), ChildStep::start);
    ASSERT_TRUE(child_is_started());
    EXPECT_TRUE(history().ends_with("6 ChildWorkflowExecutionStarted, 7 WorkflowTaskScheduled"))
        << history();
    const auto& started = event(6).child_workflow_execution_started_event_attributes();
    EXPECT_EQ(started.initiated_event_id(), 5);
    EXPECT_EQ(started.workflow_execution().workflow_id(), "child");
    EXPECT_EQ(started.workflow_execution().run_id(), "child-run");
    EXPECT_EQ(started.header().fields().at("trace").data(), "7");
    EXPECT_EQ(child_step(run(), 5), ChildStep::schedule);
}

// The server dies between the start of the child and the commit of event 31, and tries again.
TEST_F(ChildTest, AChildIsStartedOnce) {
    HOLDFAST_CHECK("server H208");
    start_with_child();
    EXPECT_EQ(child_request_id(run(), 5), "run-1:5:0");
    ASSERT_TRUE(child_is_started());
    EXPECT_TRUE(child_is_started());
    EXPECT_FALSE(last.changed);
    EXPECT_FALSE(child_is_started("another run"));
    EXPECT_EQ(refusal->kind, Refused::not_found);
}

TEST_F(ChildTest, TheResultOfAChildNamesItAndItsStart) {
    HOLDFAST_CHECK("server H189");
    start_with_child();
    child_is_started();
    ASSERT_TRUE(child_has_closed(report_of(completed("done"))));
    const auto& end = event(8).child_workflow_execution_completed_event_attributes();
    EXPECT_EQ(end.result().payloads(0).data(), "done");
    EXPECT_EQ(end.namespace_id(), "namespace-id");
    EXPECT_EQ(end.workflow_execution().run_id(), "child-run");
    EXPECT_EQ(end.workflow_type().name(), "Child");
    EXPECT_EQ(end.initiated_event_id(), 5);
    EXPECT_EQ(end.started_event_id(), 6);
    EXPECT_TRUE(run().children().empty());
    EXPECT_FALSE(child_has_closed(report_of(completed("done")))) << "it was told already";
    EXPECT_EQ(refusal->kind, Refused::not_found);
}

TEST_F(ChildTest, EachEndOfAChildHasItsEvent) {
    HOLDFAST_CHECK("server H190");
    const std::vector<std::pair<EventType, EventType>> ends{
        {EVENT_TYPE_WORKFLOW_EXECUTION_FAILED, EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_FAILED},
        {EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED, EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_CANCELED},
        {EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT, EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_TIMED_OUT},
        {EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED, EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_TERMINATED}};
    start();
    poll();
    ASSERT_TRUE(complete({start_child_command("child"),
                          start_child_command("child"),
                          start_child_command("child"),
                          start_child_command("child")}));
    std::int64_t initiated = 5;
    for (const auto& [closing, told] : ends) {
        HistoryEvent event;
        event.set_event_type(closing);
        ChildReport report = report_of(event);
        report.initiated_event_id = initiated++;
        ASSERT_TRUE(child_has_closed(report));
        EXPECT_EQ(last.batches.back().events(1).event_type(), told);
    }
}

TEST_F(ChildTest, AFailedChildTellsWhyAndThatItIsNotRetried) {
    start_with_child();
    child_is_started();
    HistoryEvent failed;
    failed.set_event_type(EVENT_TYPE_WORKFLOW_EXECUTION_FAILED);
    auto& attributes = *failed.mutable_workflow_execution_failed_event_attributes();
    *attributes.mutable_failure() = application_failure("Broken");
    attributes.set_retry_state(RETRY_STATE_MAXIMUM_ATTEMPTS_REACHED);
    ASSERT_TRUE(child_has_closed(report_of(failed)));
    const auto& end = event(8).child_workflow_execution_failed_event_attributes();
    EXPECT_EQ(end.failure().application_failure_info().type(), "Broken");
    EXPECT_EQ(end.retry_state(), RETRY_STATE_MAXIMUM_ATTEMPTS_REACHED);
}

// The child is quick: it has closed before the report of its start arrives.
TEST_F(ChildTest, AnEndThatComesFirstBringsTheStart) {
    start_with_child();
    ASSERT_TRUE(child_has_closed(report_of(completed("done"), "child-run-2")));
    EXPECT_TRUE(
        history().ends_with("6 ChildWorkflowExecutionStarted, "
                            "7 ChildWorkflowExecutionCompleted, 8 WorkflowTaskScheduled"))
        << history();
    EXPECT_EQ(
        event(6).child_workflow_execution_started_event_attributes().workflow_execution().run_id(),
        "child-run");
    EXPECT_EQ(event(7).child_workflow_execution_completed_event_attributes().started_event_id(), 6);
    EXPECT_FALSE(child_is_started()) << "its record is gone with its end";
}

TEST_F(ChildTest, BothMayWaitForAWorkerThatIsAtWork) {
    start_with_child();
    signal("look");
    poll();
    ASSERT_TRUE(child_is_started());
    ASSERT_TRUE(child_has_closed(report_of(completed("done"))));
    ASSERT_TRUE(complete());
    EXPECT_TRUE(
        history().ends_with("10 ChildWorkflowExecutionStarted, "
                            "11 ChildWorkflowExecutionCompleted, 12 WorkflowTaskScheduled"))
        << history();
    EXPECT_EQ(event(11).child_workflow_execution_completed_event_attributes().started_event_id(),
              10);
}

TEST_F(ChildTest, AnotherRunOfTheSameIdIsNotTheChild) {
    start_with_child();
    child_is_started();
    ChildReport report = report_of(completed("done"));
    report.first_run_id = "another run";
    EXPECT_FALSE(child_has_closed(report));
    EXPECT_EQ(refusal->kind, Refused::not_found);
    report = report_of(completed("done"));
    report.workflow_id = "another child";
    EXPECT_FALSE(child_has_closed(report));
}

TEST_F(ChildTest, AChildWhoseIdIsTakenIsNotStartedAndTheParentGoesOn) {
    HOLDFAST_CHECK("server H191");
    start_with_child();
    const auto fail = [&] {
        return transition([](Transition& t) {
            return child_start_failed(
                t, 5, START_CHILD_WORKFLOW_EXECUTION_FAILED_CAUSE_WORKFLOW_ALREADY_EXISTS);
        });
    };
    ASSERT_TRUE(fail());
    EXPECT_TRUE(history().ends_with("6 StartChildWorkflowExecutionFailed, 7 WorkflowTaskScheduled"))
        << history();
    const auto& failed = event(6).start_child_workflow_execution_failed_event_attributes();
    EXPECT_EQ(failed.workflow_id(), "child");
    EXPECT_EQ(failed.initiated_event_id(), 5);
    EXPECT_EQ(failed.workflow_task_completed_event_id(), 0);
    EXPECT_FALSE(fail()) << "it is told once";
}

TEST_F(ChildTest, AChildThatIsStartedCannotFailToStart) {
    start_with_child();
    child_is_started();
    EXPECT_FALSE(transition([](Transition& t) {
        return child_start_failed(
            t, 5, START_CHILD_WORKFLOW_EXECUTION_FAILED_CAUSE_WORKFLOW_ALREADY_EXISTS);
    }));
}

TEST_F(ChildTest, ARunThatGoesOnInAnotherTellsNothing) {
    HOLDFAST_CHECK("server H193");
    HOLDFAST_CHECK("server H195");
    HistoryEvent failed;
    failed.set_event_type(EVENT_TYPE_WORKFLOW_EXECUTION_FAILED);
    EXPECT_FALSE(told_by(failed, "child-run-3")) << "a retry, or the next run of a cron";
    EXPECT_TRUE(told_by(failed)) << "the last attempt";
    HistoryEvent terminated;
    terminated.set_event_type(EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED);
    EXPECT_TRUE(told_by(terminated)) << "a cron ends for good";
}

TEST_F(ChildTest, TheLastRunOfAChildIsTheOneThatIsTold) {
    HOLDFAST_CHECK("server H194");
    start_with_child();
    child_is_started();
    const auto report = told_by(completed("done"));
    ASSERT_TRUE(report);
    ASSERT_TRUE(child_has_closed(*report));
    EXPECT_EQ(event(8)
                  .child_workflow_execution_completed_event_attributes()
                  .workflow_execution()
                  .run_id(),
              "child-run-2");
}

TEST_F(ChildTest, ARunWithoutAParentTellsNothing) {
    start();
    terminate();
    EXPECT_FALSE(report_to_parent(run(), event(3)));
}

TEST_F(ChildTest, ItsEndEndsItsChildren) {
    HOLDFAST_CHECK("server H196");
    HOLDFAST_CHECK("server H207");
    start_with_child();
    EXPECT_EQ(
        event(5).start_child_workflow_execution_initiated_event_attributes().parent_close_policy(),
        PARENT_CLOSE_POLICY_TERMINATE);
    child_is_started();
    poll();
    complete({complete_command()});
    EXPECT_THAT(children_to_end(run()),
                ElementsAre(ChildEnd{"child", "child-run", PARENT_CLOSE_POLICY_TERMINATE}));
    EXPECT_EQ(parent_close_termination().reason(), "by parent close policy");
    EXPECT_EQ(parent_close_termination().identity(), "history-service");
}

TEST_F(ChildTest, APolicyMayCancelAChildOrLeaveIt) {
    HOLDFAST_CHECK("server H197");
    start();
    poll();
    complete({start_child_command("left", PARENT_CLOSE_POLICY_ABANDON),
              start_child_command("canceled", PARENT_CLOSE_POLICY_REQUEST_CANCEL),
              start_child_command("unstarted")});
    child_is_started("left-run");
    transition([](Transition& t) { return child_started(t, 6, "canceled-run"); });
    terminate();
    EXPECT_THAT(
        children_to_end(run()),
        ElementsAre(ChildEnd{"canceled", "canceled-run", PARENT_CLOSE_POLICY_REQUEST_CANCEL}));
    const auto cancel = parent_close_cancel(run());
    EXPECT_EQ(cancel.external_workflow_execution().run_id(), "run-1");
    EXPECT_TRUE(cancel.cause().empty());
    EXPECT_EQ(child_step(run(), 5), ChildStep::schedule) << "the one that is left has to begin";
    EXPECT_EQ(child_step(run(), 6), ChildStep::nothing);
    EXPECT_EQ(child_step(run(), 7), ChildStep::nothing) << "it is dropped";
}

TEST_F(ChildTest, ItsTerminationReachesAChildThatHasNotBegun) {
    HOLDFAST_CHECK("server H198");
    Started waiting;
    *waiting.mutable_first_workflow_task_backoff() = to_duration(10s);
    start(waiting);
    transition([](Transition& t) { return terminate_run(t, parent_close_termination()); });
    EXPECT_EQ(history(), "1 Started, 2 Terminated");
}

TEST_F(ChildTest, ContinuingAsNewEndsItsChildrenToo) {
    HOLDFAST_CHECK("server H199");
    start_with_child();
    child_is_started();
    poll();
    complete({continue_as_new_command()});
    EXPECT_EQ(children_to_end(run()).size(), 1U);
}

TEST_F(ChildTest, TheNumberOfPendingChildrenIsBounded) {
    HOLDFAST_CHECK("server H200");
    limits.pending_max = 1;
    start_with_child();
    child_is_started();
    poll();
    EXPECT_FALSE(complete({start_child_command("second")}));
    EXPECT_TRUE(refusal->message.starts_with("PendingChildWorkflowsLimitExceeded: "));
    ASSERT_TRUE(child_has_closed(report_of(completed("done"))));
    poll();
    EXPECT_TRUE(complete({start_child_command("second")})) << "there is room again";
}

TEST_F(ChildTest, OnlyItsParentReachesAChild) {
    state::Run child;
    child.mutable_started()->mutable_parent_workflow_execution()->set_workflow_id("order-7");
    child.mutable_started()->mutable_parent_workflow_execution()->set_run_id("run-1");
    state::Run parent = new_run("namespace-id", "run-1");
    parent.set_workflow_id("order-7");
    EXPECT_FALSE(refuse_other_parent(child, parent));
    EXPECT_TRUE(refuse_other_parent(new_run("namespace-id", "run-3"), parent));
    parent.set_run_id("run-2");
    const auto refused = refuse_other_parent(child, parent);
    ASSERT_TRUE(refused);
    EXPECT_EQ(refused->message, "workflow parent does not match");
}

class ExternalTest : public RunFixture {
protected:
    void start_and_signal() {
        Command command;
        command.set_command_type(COMMAND_TYPE_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION);
        auto& attributes = *command.mutable_signal_external_workflow_execution_command_attributes();
        attributes.mutable_execution()->set_workflow_id("other");
        attributes.set_signal_name("go");
        attributes.mutable_input()->add_payloads()->set_data("in");
        attributes.set_control("lever");
        start();
        poll();
        ASSERT_TRUE(complete({command})) << refusal->message;
    }

    void start_and_cancel() {
        Command command;
        command.set_command_type(COMMAND_TYPE_REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION);
        auto& attributes =
            *command.mutable_request_cancel_external_workflow_execution_command_attributes();
        attributes.set_workflow_id("other");
        attributes.set_reason("late");
        start();
        poll();
        ASSERT_TRUE(complete({command})) << refusal->message;
    }
};

TEST_F(ExternalTest, ASignalReachesAnotherRunInItsName) {
    HOLDFAST_CHECK("server H201");
    start_and_signal();
    EXPECT_THAT(made(), ElementsAre(Task::Kind::signal_external));
    const auto sent = external_signal(run(), event(5));
    EXPECT_EQ(sent.signal_name(), "go");
    EXPECT_EQ(sent.input().payloads(0).data(), "in");
    EXPECT_EQ(sent.identity(), "history-service");
    EXPECT_EQ(sent.external_workflow_execution().workflow_id(), "order-7");
    EXPECT_FALSE(sent.request_id().empty()) << "the target must know a repeat";
    ASSERT_TRUE(transition([](Transition& t) { return external_signaled(t, 5); }));
    EXPECT_TRUE(history().ends_with("6 ExternalWorkflowExecutionSignaled, 7 WorkflowTaskScheduled"))
        << history();
    const auto& told = event(6).external_workflow_execution_signaled_event_attributes();
    EXPECT_EQ(told.workflow_execution().workflow_id(), "other");
    EXPECT_EQ(told.control(), "lever");
    EXPECT_FALSE(transition([](Transition& t) { return external_signaled(t, 5); }));
    EXPECT_EQ(refusal->kind, Refused::not_found);
}

TEST_F(ExternalTest, ASignalThatFindsNothingIsToldWithItsCause) {
    HOLDFAST_CHECK("server H203");
    start_and_signal();
    ASSERT_TRUE(transition([](Transition& t) {
        return external_signal_failed(
            t,
            5,
            SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_FAILED_CAUSE_EXTERNAL_WORKFLOW_EXECUTION_NOT_FOUND);
    }));
    const auto& failed = event(6).signal_external_workflow_execution_failed_event_attributes();
    EXPECT_EQ(failed.initiated_event_id(), 5);
    EXPECT_EQ(failed.workflow_task_completed_event_id(), 0);
    EXPECT_EQ(failed.workflow_execution().workflow_id(), "other");
    EXPECT_THAT(run().external_signals(), IsEmpty());
}

TEST_F(ExternalTest, ACancelReachesAnotherRunWithItsReason) {
    HOLDFAST_CHECK("server H204");
    start_and_cancel();
    const auto sent = external_cancel(run(), event(5));
    EXPECT_EQ(sent.cause(), "late");
    EXPECT_EQ(sent.external_initiated_event_id(), 5);
    EXPECT_EQ(sent.external_workflow_execution().run_id(), "run-1");
    ASSERT_TRUE(transition([](Transition& t) { return external_cancel_requested(t, 5); }));
    EXPECT_TRUE(
        history().ends_with("6 ExternalWorkflowExecutionCancelRequested, 7 WorkflowTaskScheduled"))
        << history();
    EXPECT_FALSE(transition([](Transition& t) { return external_cancel_requested(t, 5); }));
}

TEST_F(ExternalTest, ACancelThatFindsNothingIsToldWithItsCause) {
    HOLDFAST_CHECK("server H205");
    start_and_cancel();
    ASSERT_TRUE(transition([](Transition& t) {
        return external_cancel_failed(
            t,
            5,
            CANCEL_EXTERNAL_WORKFLOW_EXECUTION_FAILED_CAUSE_EXTERNAL_WORKFLOW_EXECUTION_NOT_FOUND);
    }));
    const auto& failed =
        event(6).request_cancel_external_workflow_execution_failed_event_attributes();
    EXPECT_EQ(failed.workflow_execution().workflow_id(), "other");
    EXPECT_THAT(run().external_cancels(), IsEmpty());
    EXPECT_TRUE(history().ends_with("7 WorkflowTaskScheduled")) << history();
}

TEST_F(ExternalTest, AnAnswerAfterItsEndIsRefused) {
    start_and_signal();
    terminate();
    EXPECT_FALSE(transition([](Transition& t) { return external_signaled(t, 5); }));
    EXPECT_EQ(refusal->message, "workflow execution already completed");
}

}  // namespace

}  // namespace holdfast::server::history::tests
