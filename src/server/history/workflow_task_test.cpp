#include "history/test/run_fixture.hpp"
#include <gmock/gmock.h>

#include <holdfast/testing/check.hpp>

namespace holdfast::server::history::tests {

namespace {

using testing::ElementsAre;

class WorkflowTaskTest : public RunFixture {};

TEST_F(WorkflowTaskTest, AStartSchedulesTheFirstOne) {
    start();
    EXPECT_EQ(history(), "1 Started, 2 WorkflowTaskScheduled");
    EXPECT_EQ(run().status(), WORKFLOW_EXECUTION_STATUS_RUNNING);
    EXPECT_THAT(made(), ElementsAre(Task::Kind::workflow_task));
}

TEST_F(WorkflowTaskTest, ACompletionWithoutCommandsLeavesTheRunIdle) {
    HOLDFAST_CHECK("server H38");
    start();
    ASSERT_TRUE(poll());
    ASSERT_TRUE(complete());
    EXPECT_EQ(history(),
              "1 Started, 2 WorkflowTaskScheduled, 3 WorkflowTaskStarted, 4 WorkflowTaskCompleted");
    EXPECT_FALSE(run().has_workflow_task());
    EXPECT_THAT(made(), ElementsAre());
}

TEST_F(WorkflowTaskTest, AWorkerMayAskForAnother) {
    HOLDFAST_CHECK("server H39");
    start();
    poll();
    ASSERT_TRUE(complete({marker_command("local")}, true));
    EXPECT_TRUE(history().ends_with("5 MarkerRecorded, 6 WorkflowTaskScheduled")) << history();
}

TEST_F(WorkflowTaskTest, ASecondCompletionFindsNoTask) {
    HOLDFAST_CHECK("server H40");
    start();
    poll();
    ASSERT_TRUE(complete());
    EXPECT_FALSE(complete());
    ASSERT_TRUE(refusal);
    EXPECT_EQ(refusal->message, "Workflow task not found.");
    EXPECT_FALSE(last.changed);
}

TEST_F(WorkflowTaskTest, TheSamePollAgainGetsTheSameTaskAndAnotherPollDoesNot) {
    HOLDFAST_CHECK("server H82");
    start();
    ASSERT_TRUE(poll("queue", "first"));
    EXPECT_TRUE(poll("queue", "first"));
    EXPECT_FALSE(last.changed);
    EXPECT_FALSE(poll("queue", "second"));
}

TEST_F(WorkflowTaskTest, AClosedRunIsNotDelivered) {
    HOLDFAST_CHECK("server H83");
    start();
    terminate();
    EXPECT_FALSE(poll());
    EXPECT_EQ(refusal->message, "workflow execution already completed");
}

TEST_F(WorkflowTaskTest, AStickyWorkerIsAskedFirst) {
    HOLDFAST_CHECK("server H44");
    sticky_queue = "sticky-1";
    start();
    poll();
    complete();
    signal("go");
    const auto& queue = event(6).workflow_task_scheduled_event_attributes().task_queue();
    EXPECT_EQ(queue.name(), "sticky-1");
    EXPECT_EQ(queue.kind(), TASK_QUEUE_KIND_STICKY);
    EXPECT_EQ(queue.normal_name(), "queue");
}

TEST_F(WorkflowTaskTest, AStickyWorkerThatIsGoneIsWaitedForOnlySoLong) {
    HOLDFAST_CHECK("server H46");
    sticky_queue = "sticky-1";
    start();
    poll();
    complete();
    signal("go");
    advance(5s);
    EXPECT_TRUE(history().ends_with(
        "5 Signaled, 6 WorkflowTaskScheduled, 7 WorkflowTaskTimedOut, 8 WorkflowTaskScheduled"))
        << history();
    EXPECT_EQ(event(7).workflow_task_timed_out_event_attributes().timeout_type(),
              TIMEOUT_TYPE_SCHEDULE_TO_START);
    const auto& next = event(8).workflow_task_scheduled_event_attributes();
    EXPECT_EQ(next.task_queue().name(), "queue");
    EXPECT_EQ(next.attempt(), 1);
}

TEST_F(WorkflowTaskTest, AFailureIsWrittenOnceAndTheNextAttemptLeavesNoEvents) {
    HOLDFAST_CHECK("server H48");
    HOLDFAST_CHECK("server H51");
    start();
    poll();
    ASSERT_TRUE(fail_task());
    EXPECT_TRUE(history().ends_with("4 WorkflowTaskFailed")) << history();
    EXPECT_THAT(made(), ElementsAre(Task::Kind::workflow_task));
    EXPECT_EQ(run().workflow_task().attempt(), 2);
    ASSERT_TRUE(poll());
    ASSERT_TRUE(fail_task());
    EXPECT_TRUE(history().ends_with("4 WorkflowTaskFailed")) << history();
    EXPECT_EQ(run().workflow_task().attempt(), 3);
}

TEST_F(WorkflowTaskTest, AReaderIsShownTheEventsOfATransientAttempt) {
    HOLDFAST_CHECK("server H49");
    start();
    poll();
    fail_task();
    poll();
    const History shown = transient_events(run());
    ASSERT_EQ(shown.events_size(), 2);
    EXPECT_EQ(shown.events(0).event_id(), 5);
    EXPECT_EQ(shown.events(0).workflow_task_scheduled_event_attributes().attempt(), 2);
    EXPECT_EQ(shown.events(1).event_id(), 6);
    EXPECT_EQ(shown.events(1).workflow_task_started_event_attributes().scheduled_event_id(), 5);
}

TEST_F(WorkflowTaskTest, ATransientAttemptIsWrittenWhenItCompletes) {
    HOLDFAST_CHECK("server H50");
    HOLDFAST_CHECK("server H73");
    start();
    poll();
    fail_task();
    poll();
    const std::int64_t told = run().workflow_task().history_size_bytes();
    ASSERT_TRUE(complete());
    EXPECT_TRUE(
        history().ends_with("4 WorkflowTaskFailed, 5 WorkflowTaskScheduled, "
                            "6 WorkflowTaskStarted, 7 WorkflowTaskCompleted"))
        << history();
    EXPECT_EQ(event(5).workflow_task_scheduled_event_attributes().attempt(), 2);
    EXPECT_EQ(event(6).workflow_task_started_event_attributes().history_size_bytes(), told);
}

TEST_F(WorkflowTaskTest, ASignalBeforeATransientAttemptMakesItAFirstOne) {
    HOLDFAST_CHECK("server H52");
    start();
    poll();
    fail_task();
    signal("go");
    ASSERT_TRUE(poll());
    EXPECT_TRUE(
        history().ends_with("4 WorkflowTaskFailed, 5 Signaled, 6 WorkflowTaskScheduled, "
                            "7 WorkflowTaskStarted"))
        << history();
    EXPECT_EQ(run().workflow_task().attempt(), 1);
}

TEST_F(WorkflowTaskTest, ASignalDuringAFailingAttemptIsSeenByTheNext) {
    HOLDFAST_CHECK("server H53");
    HOLDFAST_CHECK("server H60");
    HOLDFAST_CHECK("server H70");
    start();
    poll();
    signal("go");
    EXPECT_TRUE(history().ends_with("3 WorkflowTaskStarted")) << history();
    ASSERT_TRUE(fail_task());
    EXPECT_TRUE(history().ends_with("4 WorkflowTaskFailed, 5 Signaled, 6 WorkflowTaskScheduled"))
        << history();
    EXPECT_EQ(event(6).workflow_task_scheduled_event_attributes().attempt(), 1);
}

TEST_F(WorkflowTaskTest, AWorkerThatDoesNotAnswerLosesIt) {
    HOLDFAST_CHECK("server H54");
    start();
    poll();
    advance(10s);
    EXPECT_TRUE(history().ends_with("4 WorkflowTaskTimedOut")) << history();
    EXPECT_EQ(event(4).workflow_task_timed_out_event_attributes().timeout_type(),
              TIMEOUT_TYPE_START_TO_CLOSE);
    EXPECT_EQ(run().workflow_task().attempt(), 2);
}

TEST_F(WorkflowTaskTest, AFailureOfAStickyWorkerIsNotHeldAgainstOthers) {
    HOLDFAST_CHECK("server H55");
    sticky_queue = "sticky-1";
    start();
    poll();
    complete();
    signal("go");
    ASSERT_TRUE(poll("sticky-1"));
    ASSERT_TRUE(fail_task());
    EXPECT_TRUE(history().ends_with("8 WorkflowTaskFailed, 9 WorkflowTaskScheduled")) << history();
    EXPECT_EQ(event(9).workflow_task_scheduled_event_attributes().task_queue().name(), "queue");
}

TEST_F(WorkflowTaskTest, LaterAttemptsGetMoreTime) {
    HOLDFAST_CHECK("server H56");
    start();
    for (int attempt = 1; attempt < 4; ++attempt) {
        EXPECT_EQ(span_of(run().workflow_task().start_to_close_timeout()), 10s);
        poll();
        fail_task();
    }
    EXPECT_EQ(span_of(run().workflow_task().start_to_close_timeout()), 14s);
}

TEST_F(WorkflowTaskTest, HeartbeatsKeepItAliveUpToALimit) {
    HOLDFAST_CHECK("server H57");
    HOLDFAST_CHECK("server H58");
    start();
    poll();
    for (int minute = 0; minute < 30 * 12; ++minute) {
        advance(5s);
        if (!complete({}, true)) {
            break;
        }
        ASSERT_TRUE(poll());
    }
    ASSERT_TRUE(refusal);
    EXPECT_EQ(refusal->message, "workflow task heartbeat timeout");
    EXPECT_TRUE(history().ends_with("WorkflowTaskTimedOut")) << history();
}

TEST_F(WorkflowTaskTest, AnUnseenSignalKeepsTheRunOpen) {
    HOLDFAST_CHECK("server H61");
    HOLDFAST_CHECK("server H62");
    HOLDFAST_CHECK("server H63");
    start();
    poll();
    signal("wait");
    EXPECT_FALSE(complete({complete_command()}));
    EXPECT_EQ(refusal->message, "UnhandledCommand");
    EXPECT_TRUE(history().ends_with("4 WorkflowTaskFailed, 5 Signaled, 6 WorkflowTaskScheduled"))
        << history();
    ASSERT_TRUE(poll());
    EXPECT_FALSE(signal("too late"));
    EXPECT_EQ(refusal->kind, Refused::busy);
    ASSERT_TRUE(complete({complete_command()}));
    EXPECT_EQ(run().status(), WORKFLOW_EXECUTION_STATUS_COMPLETED);
    EXPECT_THAT(made(), ElementsAre(Task::Kind::close));
}

TEST_F(WorkflowTaskTest, ABufferThatOverflowsEndsIt) {
    HOLDFAST_CHECK("server H64");
    start();
    poll();
    for (int i = 0; i < 101; ++i) {
        ASSERT_TRUE(signal("s"));
    }
    EXPECT_EQ(run().signal_count(), 101);
    EXPECT_EQ(event(4).workflow_task_failed_event_attributes().cause(),
              WORKFLOW_TASK_FAILED_CAUSE_FORCE_CLOSE_COMMAND);
    EXPECT_TRUE(history().ends_with("105 Signaled, 106 WorkflowTaskScheduled")) << history();
    EXPECT_FALSE(complete());
}

TEST_F(WorkflowTaskTest, NothingFollowsACommandThatCloses) {
    HOLDFAST_CHECK("server H66");
    HOLDFAST_CHECK("server H113");
    start();
    poll();
    EXPECT_FALSE(complete({complete_command(), marker_command("late")}));
    EXPECT_EQ(refusal->kind, Refused::invalid_argument);
    EXPECT_EQ(refusal->message,
              "invalid command sequence: [CompleteWorkflowExecution, RecordMarker], command "
              "CompleteWorkflowExecution must be the last command.");
    EXPECT_FALSE(last.changed);
    const Command unknown;
    EXPECT_FALSE(complete({unknown}));
    EXPECT_FALSE(last.changed);
    EXPECT_TRUE(complete({complete_command()}));
}

TEST_F(WorkflowTaskTest, ABadCommandFailsItOnceAndThenOnlyTheRequest) {
    HOLDFAST_CHECK("server H67");
    start();
    poll();
    EXPECT_FALSE(complete({start_timer_command("", 1s)}));
    EXPECT_EQ(refusal->message,
              "BadStartTimerAttributes: TimerId is not set on StartTimerCommand.");
    EXPECT_EQ(event(4).workflow_task_failed_event_attributes().cause(),
              WORKFLOW_TASK_FAILED_CAUSE_BAD_START_TIMER_ATTRIBUTES);
    ASSERT_TRUE(poll());
    EXPECT_FALSE(complete({start_timer_command("", 1s)}));
    EXPECT_FALSE(last.changed);
    EXPECT_EQ(run().workflow_task().attempt(), 2);
}

TEST_F(WorkflowTaskTest, ACommandWithoutItsAttributesFailsIt) {
    start();
    poll();
    Command bare;
    bare.set_command_type(COMMAND_TYPE_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION);
    EXPECT_FALSE(complete({bare}));
    EXPECT_EQ(refusal->message,
              "BadSignalWorkflowExecutionAttributes: "
              "SignalExternalWorkflowExecutionCommandAttributes is not set on "
              "SignalExternalWorkflowExecutionCommand.");
    EXPECT_EQ(event(4).workflow_task_failed_event_attributes().cause(),
              WORKFLOW_TASK_FAILED_CAUSE_BAD_SIGNAL_WORKFLOW_EXECUTION_ATTRIBUTES);
}

TEST_F(WorkflowTaskTest, ALongHistorySuggestsToContinueAsNew) {
    HOLDFAST_CHECK("server H71");
    HOLDFAST_CHECK("server H72");
    limits.history_events_suggest = 3;
    limits.history_bytes_suggest = 1;
    start();
    poll();
    const auto& told = event(3).workflow_task_started_event_attributes();
    EXPECT_TRUE(told.suggest_continue_as_new());
    EXPECT_THAT(told.suggest_continue_as_new_reasons(),
                ElementsAre(SUGGEST_CONTINUE_AS_NEW_REASON_HISTORY_SIZE_TOO_LARGE,
                            SUGGEST_CONTINUE_AS_NEW_REASON_TOO_MANY_HISTORY_EVENTS));
}

TEST_F(WorkflowTaskTest, ATerminationDoesNotWaitForIt) {
    HOLDFAST_CHECK("server H78");
    HOLDFAST_CHECK("server H79");
    start();
    poll();
    signal("go");
    ASSERT_TRUE(terminate());
    EXPECT_TRUE(history().ends_with("4 WorkflowTaskFailed, 5 Signaled, 6 Terminated")) << history();
    EXPECT_EQ(event(4).workflow_task_failed_event_attributes().identity(), "history-service");
    EXPECT_EQ(run().completion_event_batch_id(), 6);
    EXPECT_FALSE(complete());
    EXPECT_EQ(refusal->message, "Workflow task not found.");
    EXPECT_FALSE(fail_task());
    EXPECT_EQ(refusal->message, "workflow execution already completed");
}

TEST_F(WorkflowTaskTest, ATerminationOfAScheduledOneWritesNoFailure) {
    HOLDFAST_CHECK("server H77");
    start();
    ASSERT_TRUE(terminate());
    EXPECT_EQ(history(), "1 Started, 2 WorkflowTaskScheduled, 3 Terminated");
}

TEST_F(WorkflowTaskTest, ATerminationOfATransientOneWritesNoFailure) {
    HOLDFAST_CHECK("server H80");
    start();
    poll();
    fail_task();
    poll();
    signal("go");
    ASSERT_TRUE(terminate());
    EXPECT_TRUE(history().ends_with("4 WorkflowTaskFailed, 5 Signaled, 6 Terminated")) << history();
}

TEST_F(WorkflowTaskTest, AMessageThatIsTooLargeTerminatesTheRun) {
    HOLDFAST_CHECK("server H81");
    start();
    poll();
    ASSERT_TRUE(fail_task(WORKFLOW_TASK_FAILED_CAUSE_GRPC_MESSAGE_TOO_LARGE));
    EXPECT_TRUE(history().ends_with("4 WorkflowTaskFailed, 5 Terminated")) << history();
}

TEST_F(WorkflowTaskTest, ARunThatOutgrowsItsHistoryIsTerminated) {
    HOLDFAST_CHECK("server H114");
    limits.history_events_max = 6;
    start();
    poll();
    complete();
    EXPECT_TRUE(signal("fits"));
    EXPECT_FALSE(signal("does not"));
    EXPECT_EQ(refusal->message, "Workflow history count exceeds limit.");
    EXPECT_EQ(event(7).workflow_execution_terminated_event_attributes().reason(),
              "Workflow history count exceeds limit.");
}

}  // namespace

}  // namespace holdfast::server::history::tests
