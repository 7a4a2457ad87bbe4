#include "history/reset/reset.hpp"

#include "history/child/child.hpp"
#include "history/due.hpp"
#include "history/test/run_fixture.hpp"
#include "history/update/update.hpp"
#include <gmock/gmock.h>

#include <holdfast/testing/check.hpp>

namespace holdfast::server::history::tests {

namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class ResetTest : public RunFixture {
protected:
    static ResetOptions at(std::int64_t finish_event_id) {
        ResetOptions options;
        options.finish_event_id = finish_event_id;
        options.reason = "bad build";
        return options;
    }

    std::string refused(std::int64_t finish_event_id) {
        EXPECT_FALSE(reset(at(finish_event_id)));
        return refusal ? refusal->message : "not refused";
    }

    // 1 to 4, then what the commands make.
    void begin(std::vector<Command> commands = {}) {
        start();
        poll();
        ASSERT_TRUE(complete(std::move(commands))) << refusal->message;
    }

    // Another workflow task, by a signal: four events that begin with it.
    void go_on(std::vector<Command> commands = {}) {
        signal("next");
        poll();
        ASSERT_TRUE(complete(std::move(commands))) << refusal->message;
    }

    void accept(const std::string& update_id) {
        temporal::api::update::v1::Request request;
        request.mutable_meta()->set_update_id(update_id);
        transition([&](Transition& t) -> std::optional<Refusal> {
            temporal::api::update::v1::Acceptance message;
            message.set_accepted_request_message_id(update_id + "/request");
            EXPECT_EQ(accept_update(t, update_id, message, &request), std::nullopt);
            return std::nullopt;
        });
    }

    // Of a child that event 5 asked for.
    ChildReport child_report() {
        ChildReport report{.parent_namespace_id = "namespace-id",
                           .parent_workflow_id = "order-7",
                           .parent_run_id = "run-1",
                           .initiated_event_id = 5,
                           .workflow_id = "child",
                           .run_id = "child-run",
                           .first_run_id = "child-run",
                           .closing = {}};
        report.closing.set_event_type(EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED);
        return report;
    }
    bool start_child() {
        return transition([](Transition& t) { return child_started(t, 5, "child-run"); });
    }
    bool end_child() {
        return transition([&](Transition& t) { return child_closed(t, child_report()); });
    }
};

TEST_F(ResetTest, TheNewRunGoesOnFromThePoint) {
    HOLDFAST_CHECK("server H296");
    begin({start_timer_command("t", 1s)});
    advance(1s);
    poll();
    ASSERT_TRUE(complete({fail_command()}));
    ASSERT_TRUE(reset(at(9))) << refusal->message;
    EXPECT_EQ(history(),
              "1 Started, 2 WorkflowTaskScheduled, 3 WorkflowTaskStarted, 4 WorkflowTaskCompleted, "
              "5 TimerStarted, 6 TimerFired, 7 WorkflowTaskScheduled, 8 WorkflowTaskStarted, "
              "9 WorkflowTaskFailed, 10 WorkflowTaskScheduled");
    const auto& failed = event(9).workflow_task_failed_event_attributes();
    EXPECT_EQ(failed.cause(), WORKFLOW_TASK_FAILED_CAUSE_RESET_WORKFLOW);
    EXPECT_EQ(failed.failure().message(), "bad build");
    EXPECT_TRUE(failed.failure().has_reset_workflow_failure_info());
    EXPECT_EQ(failed.identity(), "history-service");
    EXPECT_EQ(failed.base_run_id(), "run-1");
    EXPECT_EQ(failed.new_run_id(), "run-2");
    EXPECT_EQ(event(10).workflow_task_scheduled_event_attributes().attempt(), 1);
    EXPECT_EQ(run().status(), WORKFLOW_EXECUTION_STATUS_RUNNING);
    EXPECT_EQ(run().started().original_execution_run_id(), "run-1");
    EXPECT_EQ(base.reset_run_id(), "run-2");
    poll();
    EXPECT_TRUE(complete({complete_command()}));
}

TEST_F(ResetTest, APointHasAWorkflowTask) {
    HOLDFAST_CHECK("server H298");
    begin({start_timer_command("t", 1s), start_timer_command("u", 9s)});
    advance(1s);
    poll();
    ASSERT_TRUE(complete({complete_command()}));
    const std::string range = "Workflow task finish ID must be > 1 && <= workflow last event ID.";
    EXPECT_EQ(refused(1), range);
    EXPECT_EQ(refused(12), range);
    EXPECT_EQ(refused(2),
              "StateRebuilder unable to Rebuild mutable state to event ID: 1, version: 0, this "
              "event must be at the boundary");
    EXPECT_EQ(refused(7),
              "Can only reset workflow to event ID in range [WorkflowTaskScheduled +1, "
              "WorkflowTaskStarted + 1]: 7");
    ASSERT_TRUE(reset(at(9)));
    EXPECT_TRUE(
        history().ends_with("8 WorkflowTaskScheduled, 9 WorkflowTaskStarted, "
                            "10 WorkflowTaskFailed, 11 WorkflowTaskScheduled"))
        << history();
    EXPECT_EQ(event(9).workflow_task_started_event_attributes().identity(), "history-service");
}

TEST_F(ResetTest, SignalsAfterThePointComeAgain) {
    HOLDFAST_CHECK("server H299");
    begin();
    signal("first", "request-1");
    signal("second");
    ASSERT_TRUE(reset(at(4)));
    EXPECT_EQ(history(),
              "1 Started, 2 WorkflowTaskScheduled, 3 WorkflowTaskStarted, 4 WorkflowTaskFailed, "
              "5 Signaled, 6 Signaled, 7 WorkflowTaskScheduled");
    const auto& first = event(5).workflow_execution_signaled_event_attributes();
    EXPECT_EQ(first.signal_name(), "first");
    EXPECT_EQ(first.request_id(), "request-1");
    EXPECT_EQ(run().signal_count(), 2);
    signal("first again", "request-1");
    EXPECT_EQ(run().signal_count(), 2) << "it is known here as well";
}

TEST_F(ResetTest, ExcludedSignalsAreDropped) {
    HOLDFAST_CHECK("server H299");
    begin();
    signal("first");
    ResetOptions options = at(4);
    options.reapply_signals = false;
    ASSERT_TRUE(reset(options));
    EXPECT_TRUE(history().ends_with("4 WorkflowTaskFailed, 5 WorkflowTaskScheduled")) << history();
}

// The worker has the first task when the signal comes and the workflow is reset.
TEST_F(ResetTest, ABufferedSignalComesAgain) {
    HOLDFAST_CHECK("server H301");
    start();
    poll();
    signal("late");
    ASSERT_TRUE(reset(at(3)));
    EXPECT_EQ(history(),
              "1 Started, 2 WorkflowTaskScheduled, 3 WorkflowTaskStarted, 4 WorkflowTaskFailed, "
              "5 Signaled, 6 WorkflowTaskScheduled");
}

TEST_F(ResetTest, ABufferedSignalThatIsExcludedIsDropped) {
    HOLDFAST_CHECK("server H301");
    start();
    poll();
    signal("late");
    ResetOptions options = at(3);
    options.reapply_signals = false;
    ASSERT_TRUE(reset(options));
    EXPECT_TRUE(history().ends_with("4 WorkflowTaskFailed, 5 WorkflowTaskScheduled")) << history();
}

TEST_F(ResetTest, AnUpdateThatWasAcceptedIsAdmittedAgain) {
    HOLDFAST_CHECK("server H300");
    begin();
    accept("u");
    ASSERT_TRUE(reset(at(4)));
    EXPECT_TRUE(
        history().ends_with("4 WorkflowTaskFailed, 5 UpdateAdmitted, 6 WorkflowTaskScheduled"))
        << history();
    const auto& admitted = event(5).workflow_execution_update_admitted_event_attributes();
    EXPECT_EQ(admitted.request().meta().update_id(), "u");
    EXPECT_EQ(admitted.origin(), UPDATE_ADMITTED_EVENT_ORIGIN_REAPPLY);
    EXPECT_EQ(update_stage(run(), "u"), UpdateStage::admitted);
}

TEST_F(ResetTest, AnUpdateThatIsExcludedIsForgotten) {
    HOLDFAST_CHECK("server H300");
    begin();
    accept("u");
    ResetOptions options = at(4);
    options.reapply_updates = false;
    ASSERT_TRUE(reset(options));
    EXPECT_EQ(update_stage(run(), "u"), UpdateStage::unknown);
}

// Event 47 has the request already.
TEST_F(ResetTest, TheAcceptanceOfAnAdmittedUpdateDoesNotRepeatItsRequest) {
    begin();
    accept("u");
    ASSERT_TRUE(reset(at(4)));
    poll();
    accept("u");
    EXPECT_FALSE(
        event(8).workflow_execution_update_accepted_event_attributes().has_accepted_request());
}

TEST_F(ResetTest, ItsOwnOperationsFollow) {
    HOLDFAST_CHECK("server H308");
    begin();
    signal("old");
    ResetOptions options = at(4);
    options.identity = "client";
    OptionsChange change;
    change.whole = true;
    change.priority.set_priority_key(1);
    options.operations.emplace_back(change);
    ResetSignal asked;
    asked.set_signal_name("new");
    options.operations.emplace_back(asked);
    ASSERT_TRUE(reset(options));
    EXPECT_TRUE(
        history().ends_with("4 WorkflowTaskFailed, 5 Signaled, 6 OptionsUpdated, "
                            "7 Signaled, 8 WorkflowTaskScheduled"))
        << history();
    EXPECT_EQ(event(7).workflow_execution_signaled_event_attributes().signal_name(), "new");
    EXPECT_EQ(event(6).workflow_execution_options_updated_event_attributes().identity(), "client");
    EXPECT_EQ(run().priority().priority_key(), 1);
}

TEST_F(ResetTest, OptionsThatChangedAfterThePointChangeAgain) {
    begin();
    OptionsChange change;
    change.whole = true;
    change.priority.set_priority_key(1);
    ASSERT_TRUE(transition([&](Transition& t) { return change_options(t, change, "client"); }));
    ASSERT_TRUE(reset(at(4)));
    EXPECT_TRUE(history().ends_with("5 OptionsUpdated, 6 WorkflowTaskScheduled")) << history();
    EXPECT_EQ(run().priority().priority_key(), 1);
}

TEST_F(ResetTest, TooManySignalsRefuseIt) {
    begin();
    signal("one");
    signal("two");
    limits.signals_max = 1;
    EXPECT_FALSE(reset(at(4)));
    ASSERT_TRUE(refusal);
    EXPECT_EQ(refusal->kind, Refused::invalid_argument);
}

TEST_F(ResetTest, AWishToCancelIsNotKept) {
    begin();
    cancel();
    ASSERT_TRUE(reset(at(4)));
    EXPECT_FALSE(run().cancel_requested());
    EXPECT_TRUE(history().ends_with("4 WorkflowTaskFailed, 5 WorkflowTaskScheduled")) << history();
}

TEST_F(ResetTest, ItsTimeBeginsAnew) {
    Started started;
    *started.mutable_workflow_run_timeout() = to_duration(60s);
    *started.mutable_workflow_execution_timeout() = to_duration(90s);
    start(started);
    const Time begin = time_of(run().start_time());
    poll();
    ASSERT_TRUE(complete());
    advance(20s);
    ASSERT_TRUE(reset(at(4)));
    EXPECT_EQ(time_of(run().start_time()), begin + 20s);
    EXPECT_EQ(time_of(run().execution_time()), begin + 20s);
    EXPECT_EQ(time_of(run().run_expiration()), begin + 80s);
    EXPECT_EQ(time_of(run().started().workflow_execution_expiration_time()), begin + 110s);
    EXPECT_EQ(time_of(run().original_start_time()), begin);
    EXPECT_TRUE(run().request_ids().contains("start-request"));
}

TEST_F(ResetTest, PendingActivitiesAreDispatchedAgain) {
    HOLDFAST_CHECK("server H310");
    begin({schedule_activity_command("a")});
    start_activity(5);
    go_on();
    complete_activity(5);
    ASSERT_TRUE(reset(at(9)));
    EXPECT_THAT(made(), ElementsAre(Task::Kind::activity, Task::Kind::workflow_task));
    EXPECT_FALSE(run().activities().at(5).started()) << "the worker of the base answers to nothing";
    EXPECT_EQ(run().activities().at(5).first_scheduled_time().seconds(),
              run().start_time().seconds());
    EXPECT_TRUE(start_activity(5, "another-poll"));
    EXPECT_TRUE(complete_activity(5));
}

TEST_F(ResetTest, PendingTimersFireWhenTheyAreDue) {
    HOLDFAST_CHECK("server H310");
    begin({start_timer_command("short", 2s), start_timer_command("long", 60s)});
    go_on();
    advance(2s);
    ASSERT_TRUE(reset(at(10))) << refusal->message;
    EXPECT_EQ(run().timers().size(), 2);
    advance(0s);
    EXPECT_FALSE(run().timers().contains("short")) << "it has been due for long";
    EXPECT_TRUE(run().timers().contains("long"));
    advance(58s);
    EXPECT_THAT(run().timers(), IsEmpty());
}

TEST_F(ResetTest, APendingChildReportsToTheNewRun) {
    HOLDFAST_CHECK("server H305");
    begin({start_child_command("child")});
    start_child();
    poll();
    ASSERT_TRUE(complete());
    ASSERT_TRUE(reset(at(9))) << history();
    EXPECT_THAT(children_to_end(base), IsEmpty()) << "a reset is no end for children";
    ASSERT_TRUE(end_child()) << "it still names the base run";
    EXPECT_TRUE(history().ends_with("11 ChildWorkflowExecutionTerminated")) << history();
}

TEST_F(ResetTest, TheEndOfAChildComesAgain) {
    HOLDFAST_CHECK("server H307");
    begin({start_child_command("child")});
    start_child();
    poll();
    ASSERT_TRUE(complete());
    end_child();
    ASSERT_TRUE(reset(at(9)));
    EXPECT_TRUE(
        history().ends_with("9 WorkflowTaskFailed, 10 ChildWorkflowExecutionTerminated, "
                            "11 WorkflowTaskScheduled"))
        << history();
    EXPECT_EQ(event(10).child_workflow_execution_terminated_event_attributes().started_event_id(),
              6);
    EXPECT_THAT(run().children(), IsEmpty());
}

// The point lies between the wish for the child and its start.
TEST_F(ResetTest, TheStartOfAChildComesAgain) {
    begin({start_child_command("child")});
    go_on();
    start_child();
    end_child();
    ASSERT_TRUE(reset(at(9)));
    EXPECT_TRUE(
        history().ends_with("9 WorkflowTaskFailed, 10 ChildWorkflowExecutionStarted, "
                            "11 ChildWorkflowExecutionTerminated, "
                            "12 WorkflowTaskScheduled"))
        << history();
    EXPECT_EQ(event(11).child_workflow_execution_terminated_event_attributes().started_event_id(),
              10);
}

TEST_F(ResetTest, AChildThatIsNotKnownToRunIsStartedOrAdopted) {
    begin({start_child_command("child")});
    go_on();
    ASSERT_TRUE(reset(at(9)));
    EXPECT_THAT(made(), ElementsAre(Task::Kind::start_child, Task::Kind::workflow_task));
    state::Run child = run();
    child.mutable_started()->set_parent_workflow_namespace_id("namespace-id");
    child.mutable_started()->set_parent_initiated_event_id(5);
    child.mutable_started()->mutable_parent_workflow_execution()->set_workflow_id("order-7");
    child.mutable_started()->mutable_parent_workflow_execution()->set_run_id("run-1");
    EXPECT_TRUE(adopts(run(), 5, child)) << "the base has started it";
    child.mutable_started()->mutable_parent_workflow_execution()->set_run_id("run-7");
    EXPECT_FALSE(adopts(run(), 5, child)) << "another run's";
}

// Both runs ask for a child in event 9, and they are not the same one.
TEST_F(ResetTest, AChildOfTheBaseAloneIsNotOneOfTheNewRun) {
    begin();
    go_on({start_child_command("child")});
    ASSERT_TRUE(reset(at(8)));
    poll();
    ASSERT_TRUE(complete({start_child_command("child")}));
    EXPECT_FALSE(shares_event(run(), "run-1", 9));
    EXPECT_TRUE(shares_event(run(), "run-1", 7));
    EXPECT_TRUE(shares_event(run(), "run-2", 9));
}

TEST_F(ResetTest, ARunThatAResetEndsTellsNoParent) {
    Started started;
    started.mutable_parent_workflow_execution()->set_workflow_id("parent");
    started.mutable_parent_workflow_execution()->set_run_id("parent-run");
    start(started);
    poll();
    ASSERT_TRUE(complete());
    ASSERT_TRUE(reset(at(4)));
    EXPECT_EQ(base.status(), WORKFLOW_EXECUTION_STATUS_TERMINATED);
    EXPECT_FALSE(report_to_parent(base, {}));
    poll();
    ASSERT_TRUE(complete({complete_command()}));
    EXPECT_TRUE(report_to_parent(run(), event(run().next_event_id() - 1)));
}

// A task that failed before comes with a later attempt, whose events are in the history.
TEST_F(ResetTest, ALaterAttemptIsAPointAsWell) {
    start();
    poll();
    fail_task();
    poll();
    ASSERT_TRUE(complete({start_timer_command("t", 1s)}));
    ASSERT_EQ(event(5).workflow_task_scheduled_event_attributes().attempt(), 2);
    ASSERT_TRUE(reset(at(7))) << refusal->message;
    EXPECT_TRUE(
        history().ends_with("6 WorkflowTaskStarted, 7 WorkflowTaskFailed, "
                            "8 WorkflowTaskScheduled"))
        << history();
    EXPECT_EQ(event(8).workflow_task_scheduled_event_attributes().attempt(), 1);
}

}  // namespace

}  // namespace holdfast::server::history::tests
