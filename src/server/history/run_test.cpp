// Timers, timeouts, chains of runs, and what reaches a run from outside.
#include "history/test/run_fixture.hpp"
#include <gmock/gmock.h>

#include <holdfast/testing/check.hpp>

namespace holdfast::server::history::tests {

namespace {

using testing::ElementsAre;

class RunTest : public RunFixture {
protected:
    void start_and_complete(std::vector<Command> commands) {
        start();
        poll();
        ASSERT_TRUE(complete(std::move(commands))) << refusal->message;
    }
};

Started with_retry(int attempts) {
    Started started;
    started.mutable_retry_policy()->set_maximum_attempts(attempts);
    *started.mutable_retry_policy()->mutable_initial_interval() = to_duration(5s);
    started.mutable_retry_policy()->set_backoff_coefficient(1);
    return started;
}

TEST_F(RunTest, TimersFireInOrder) {
    HOLDFAST_CHECK("server H159");
    start_and_complete({start_timer_command("late", 2s), start_timer_command("soon", 1s)});
    advance(1s);
    EXPECT_TRUE(history().ends_with("7 TimerFired, 8 WorkflowTaskScheduled")) << history();
    EXPECT_EQ(event(7).timer_fired_event_attributes().timer_id(), "soon");
    poll();
    complete();
    advance(1s);
    EXPECT_EQ(event(11).timer_fired_event_attributes().timer_id(), "late");
}

TEST_F(RunTest, TimersThatAreDueTogetherWakeTheWorkflowOnce) {
    HOLDFAST_CHECK("server H160");
    start_and_complete({start_timer_command("a", 1s), start_timer_command("b", 1s)});
    advance(1s);
    EXPECT_TRUE(history().ends_with("7 TimerFired, 8 TimerFired, 9 WorkflowTaskScheduled"))
        << history();
}

TEST_F(RunTest, ATimerOfNoTimeFires) {
    HOLDFAST_CHECK("server H161");
    start_and_complete({start_timer_command("now", 0s)});
    advance(0s);
    EXPECT_TRUE(history().ends_with("6 TimerFired, 7 WorkflowTaskScheduled")) << history();
}

TEST_F(RunTest, ATimerIdIsUniqueAmongThePending) {
    HOLDFAST_CHECK("server H95");
    start();
    poll();
    EXPECT_FALSE(complete({start_timer_command("t", 1s), start_timer_command("t", 2s)}));
    EXPECT_EQ(refusal->message,
              "StartTimerDuplicateId: invalid history builder state for action: "
              "add-timer-started-event, TimerID: t");
}

TEST_F(RunTest, ACanceledTimerNeverFires) {
    HOLDFAST_CHECK("server H96");
    start_and_complete({start_timer_command("t", 5s)});
    signal("no need");
    poll();
    ASSERT_TRUE(complete({cancel_timer_command("t")}));
    EXPECT_EQ(event(10).timer_canceled_event_attributes().identity(), "worker");
    advance(10s);
    EXPECT_TRUE(history().ends_with("10 TimerCanceled")) << history();
}

TEST_F(RunTest, AFiringThatNoWorkerHasSeenIsTakenBack) {
    HOLDFAST_CHECK("server H97");
    start_and_complete({start_timer_command("t", 5s)});
    signal("finish");
    poll();
    advance(5s);  // It fires while the worker decides.
    ASSERT_TRUE(complete({cancel_timer_command("t"), complete_command()})) << refusal->message;
    EXPECT_TRUE(history().ends_with("10 TimerCanceled, 11 Completed")) << history();
    EXPECT_EQ(event(10).timer_canceled_event_attributes().started_event_id(), 5);
}

TEST_F(RunTest, ACancelOfAnUnknownTimerIsRefused) {
    HOLDFAST_CHECK("server H98");
    start();
    poll();
    EXPECT_FALSE(complete({cancel_timer_command("zz")}));
    EXPECT_EQ(refusal->message,
              "BadCancelTimerAttributes: invalid history builder state for action: "
              "add-timer-canceled-event, TimerID: zz");
}

TEST_F(RunTest, WhatItAsksForInItsLastCompletionIsNotDone) {
    HOLDFAST_CHECK("server H103");
    start_and_complete({start_timer_command("t", 1s),
                        start_child_command("child"),
                        schedule_activity_command("a"),
                        complete_command()});
    EXPECT_TRUE(
        history().ends_with("5 TimerStarted, 6 StartChildWorkflowExecutionInitiated, "
                            "7 ActivityTaskScheduled, 8 Completed"))
        << history();
    EXPECT_THAT(made(), ElementsAre(Task::Kind::close));
}

TEST_F(RunTest, CancelingWhatWaitsDoesNotKeepItOpen) {
    HOLDFAST_CHECK("server H102");
    start_and_complete({schedule_activity_command("a"), start_timer_command("t", 5s)});
    signal("finish");
    poll();
    ASSERT_TRUE(
        complete({cancel_activity_command(5), cancel_timer_command("t"), complete_command()}))
        << refusal->message;
    EXPECT_EQ(run().status(), WORKFLOW_EXECUTION_STATUS_COMPLETED);
}

TEST_F(RunTest, TimeoutsAreCutByThoseAroundThem) {
    HOLDFAST_CHECK("server H18");
    HOLDFAST_CHECK("server H19");
    Started started;
    *started.mutable_workflow_execution_timeout() = to_duration(300s);
    *started.mutable_workflow_run_timeout() = to_duration(400s);
    *started.mutable_workflow_task_timeout() = to_duration(200s);
    start(started);
    const auto& written = event(1).workflow_execution_started_event_attributes();
    EXPECT_EQ(span_of(written.workflow_run_timeout()), 300s);
    EXPECT_EQ(span_of(written.workflow_task_timeout()), 120s);
    Started unset;
    normalise_timeouts(unset, limits);
    EXPECT_EQ(span_of(unset.workflow_task_timeout()), 10s);
}

TEST_F(RunTest, ItsTimeoutClosesItWhateverItsWorkerDoes) {
    HOLDFAST_CHECK("server H162");
    Started started;
    *started.mutable_workflow_run_timeout() = to_duration(5s);
    start(started);
    poll();
    advance(5s);
    EXPECT_TRUE(history().ends_with("4 WorkflowTaskFailed, 5 TimedOut")) << history();
    EXPECT_EQ(run().status(), WORKFLOW_EXECUTION_STATUS_TIMED_OUT);
    EXPECT_EQ(event(5).workflow_execution_timed_out_event_attributes().retry_state(),
              RETRY_STATE_RETRY_POLICY_NOT_SET);
}

TEST_F(RunTest, ARunThatTimesOutIsRetriedUnlessItsChainIsOver) {
    HOLDFAST_CHECK("server H167");
    Started started = with_retry(3);
    *started.mutable_workflow_run_timeout() = to_duration(5s);
    start(started);
    advance(5s);
    ASSERT_TRUE(last.next);
    EXPECT_EQ(last.next->started.attempt(), 2);
    EXPECT_EQ(last.next->started.continued_failure().message(), "workflow timeout");
    EXPECT_EQ(event(3).workflow_execution_timed_out_event_attributes().new_execution_run_id(),
              last.next->run_id);
}

TEST_F(RunTest, AChainThatIsOutOfTimeEnds) {
    HOLDFAST_CHECK("server H163");
    Started started = with_retry(0);
    *started.mutable_workflow_execution_timeout() = to_duration(5s);
    start(started);
    advance(5s);
    EXPECT_FALSE(last.next);
    EXPECT_EQ(event(3).workflow_execution_timed_out_event_attributes().retry_state(),
              RETRY_STATE_TIMEOUT);
}

TEST_F(RunTest, AFailedRunIsFollowedByItsRetry) {
    HOLDFAST_CHECK("server H165");
    start(with_retry(2));
    poll();
    ASSERT_TRUE(complete({fail_command("Oops")}));
    const auto& failed = event(5).workflow_execution_failed_event_attributes();
    EXPECT_EQ(failed.retry_state(), RETRY_STATE_IN_PROGRESS);
    ASSERT_TRUE(last.next);
    const Started& next = last.next->started;
    EXPECT_EQ(failed.new_execution_run_id(), last.next->run_id);
    EXPECT_EQ(next.initiator(), CONTINUE_AS_NEW_INITIATOR_RETRY);
    EXPECT_EQ(next.attempt(), 2);
    EXPECT_EQ(next.continued_execution_run_id(), "run-1");
    EXPECT_EQ(next.first_execution_run_id(), "run-1");
    EXPECT_EQ(next.continued_failure().application_failure_info().type(), "Oops");
    EXPECT_EQ(span_of(next.first_workflow_task_backoff()), 5s);
}

TEST_F(RunTest, RetriesEnd) {
    HOLDFAST_CHECK("server H166");
    start(with_retry(1));
    poll();
    ASSERT_TRUE(complete({fail_command()}));
    EXPECT_EQ(event(5).workflow_execution_failed_event_attributes().retry_state(),
              RETRY_STATE_MAXIMUM_ATTEMPTS_REACHED);
    EXPECT_FALSE(last.next);
}

TEST_F(RunTest, ATerminationIsNotRetried) {
    HOLDFAST_CHECK("server H168");
    start(with_retry(5));
    terminate();
    EXPECT_FALSE(last.next);
}

TEST_F(RunTest, ARetryHasTheMemoOfItsStart) {
    HOLDFAST_CHECK("server H169");
    Started started = with_retry(2);
    (*started.mutable_memo()->mutable_fields())["kept"].set_data("1");
    start(started);
    poll();
    Command modify;
    modify.set_command_type(COMMAND_TYPE_MODIFY_WORKFLOW_PROPERTIES);
    (*modify.mutable_modify_workflow_properties_command_attributes()
          ->mutable_upserted_memo()
          ->mutable_fields())["added"]
        .set_data("2");
    ASSERT_TRUE(complete({modify, fail_command()}));
    EXPECT_EQ(run().memo().size(), 2U);
    ASSERT_TRUE(last.next);
    EXPECT_EQ(last.next->started.memo().fields().size(), 1U);
}

TEST_F(RunTest, ItContinuesAsNewNoSoonerThanASecondAfterItBegan) {
    HOLDFAST_CHECK("server H180");
    start();
    advance(300ms);
    poll();
    ASSERT_TRUE(complete({continue_as_new_command()}));
    EXPECT_EQ(run().status(), WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW);
    ASSERT_TRUE(last.next);
    EXPECT_EQ(span_of(last.next->started.first_workflow_task_backoff()), 700ms);
    EXPECT_EQ(last.next->started.initiator(), CONTINUE_AS_NEW_INITIATOR_WORKFLOW);
}

TEST_F(RunTest, WhatTheCommandDoesNotNameComesFromTheOldRunOrIsNotThere) {
    HOLDFAST_CHECK("server H183");
    Started started = with_retry(3);
    (*started.mutable_memo()->mutable_fields())["old"].set_data("1");
    *started.mutable_workflow_run_timeout() = to_duration(60s);
    start(started);
    poll();
    ASSERT_TRUE(complete({continue_as_new_command()}));
    const Started& next = last.next->started;
    EXPECT_EQ(next.workflow_type().name(), "Order");
    EXPECT_EQ(next.task_queue().name(), "queue");
    EXPECT_EQ(span_of(next.workflow_run_timeout()), 60s);
    EXPECT_TRUE(next.memo().fields().empty());
    EXPECT_FALSE(next.has_retry_policy());
}

TEST_F(RunTest, ADelayedStartWaits) {
    HOLDFAST_CHECK("server H24");
    HOLDFAST_CHECK("server H221");
    Started started;
    *started.mutable_first_workflow_task_backoff() = to_duration(3s);
    start(started);
    EXPECT_EQ(history(), "1 Started");
    EXPECT_EQ(time_of(run().execution_time()) - time_of(run().start_time()), 3s);
    signal("early");
    EXPECT_EQ(history(), "1 Started, 2 Signaled");
    advance(3s);
    EXPECT_EQ(history(), "1 Started, 2 Signaled, 3 WorkflowTaskScheduled");
}

TEST_F(RunTest, ACancelRequestDoesNotWaitForADelayedStart) {
    Started started;
    *started.mutable_first_workflow_task_backoff() = to_duration(3s);
    start(started);
    cancel();
    EXPECT_EQ(history(), "1 Started, 2 CancelRequested, 3 WorkflowTaskScheduled");
    cancel();
    EXPECT_FALSE(last.changed) << "it was asked already";
}

TEST_F(RunTest, ARepeatedSignalIsTakenOnceEvenAfterTheEnd) {
    HOLDFAST_CHECK("server H213");
    HOLDFAST_CHECK("server H214");
    start_and_complete({});
    ASSERT_TRUE(signal("pay", "request-1"));
    ASSERT_TRUE(signal("pay", "request-1"));
    EXPECT_EQ(run().signal_count(), 1);
    terminate();
    EXPECT_TRUE(signal("pay", "request-1"));
    EXPECT_FALSE(signal("pay", "request-2"));
    EXPECT_EQ(refusal->message, "workflow execution already completed");
}

TEST_F(RunTest, SignalsAreBounded) {
    HOLDFAST_CHECK("server H215");
    limits.signals_max = 1;
    start();
    EXPECT_TRUE(signal("one"));
    EXPECT_FALSE(signal("two"));
    EXPECT_EQ(refusal->message, "exceeded workflow execution limit for signal events");
}

TEST_F(RunTest, AMarkerKeepsWhatItWasGiven) {
    HOLDFAST_CHECK("server H104");
    HOLDFAST_CHECK("server H112");
    Command marker = marker_command("m");
    (*marker.mutable_record_marker_command_attributes()->mutable_details())["d"]
        .add_payloads()
        ->set_data("x");
    marker.mutable_user_metadata()->mutable_summary()->set_data("why");
    start_and_complete({marker});
    const auto& written = event(5).marker_recorded_event_attributes();
    EXPECT_EQ(written.details().at("d").payloads(0).data(), "x");
    EXPECT_EQ(event(5).user_metadata().summary().data(), "why");
}

TEST_F(RunTest, AnUpsertOfNothingIsRefused) {
    HOLDFAST_CHECK("server H108");
    start();
    poll();
    Command upsert;
    upsert.set_command_type(COMMAND_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES);
    EXPECT_FALSE(complete({upsert}));
    EXPECT_TRUE(refusal->message.starts_with("BadSearchAttributes: "));
}

TEST_F(RunTest, ACancelOfAChildOfTheSameCompletionIsRefused) {
    HOLDFAST_CHECK("server H111");
    start();
    poll();
    Command cancel;
    cancel.set_command_type(COMMAND_TYPE_REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION);
    cancel.mutable_request_cancel_external_workflow_execution_command_attributes()->set_workflow_id(
        "child");
    EXPECT_FALSE(complete({start_child_command("child"), cancel}));
    EXPECT_THAT(refusal->message, testing::HasSubstr("not allowed in same workflow task"));
}

}  // namespace

}  // namespace holdfast::server::history::tests
