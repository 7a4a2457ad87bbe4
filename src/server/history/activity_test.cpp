#include "history/activity.hpp"

#include "history/due.hpp"
#include "history/test/run_fixture.hpp"
#include <gmock/gmock.h>

#include <holdfast/testing/check.hpp>

namespace holdfast::server::history::tests {

namespace {

using testing::ElementsAre;

// One activity, scheduled by event 5.
class ActivityTest : public RunFixture {
protected:
    void schedule(const Command& command) {
        start();
        poll();
        ASSERT_TRUE(complete({command})) << refusal->message;
    }

    // Seven events are the schedule, the two of the activity, and the workflow task that follows.
    [[nodiscard]] const Failure& timeout() const {
        const std::int64_t id = run().next_event_id() - 2;
        return event(id).activity_task_timed_out_event_attributes().failure();
    }
};

Command with_retries(int attempts, Span schedule_to_close = 0s) {
    Command command = schedule_activity_command("a", 10s, schedule_to_close);
    command.mutable_schedule_activity_task_command_attributes()
        ->mutable_retry_policy()
        ->set_maximum_attempts(attempts);
    return command;
}

TEST_F(ActivityTest, ItsStartIsWrittenWithItsEnd) {
    HOLDFAST_CHECK("server H116");
    schedule(schedule_activity_command("a"));
    EXPECT_THAT(made(), ElementsAre(Task::Kind::activity));
    ASSERT_TRUE(start_activity(5));
    EXPECT_TRUE(history().ends_with("5 ActivityTaskScheduled")) << history();
    advance(2s);
    ASSERT_TRUE(complete_activity(5, 1));
    EXPECT_TRUE(
        history().ends_with("5 ActivityTaskScheduled, 6 ActivityTaskStarted, "
                            "7 ActivityTaskCompleted, 8 WorkflowTaskScheduled"))
        << history();
    EXPECT_EQ(event(7).activity_task_completed_event_attributes().started_event_id(), 6);
    EXPECT_EQ(time_of(event(7).event_time()) - time_of(event(6).event_time()), 2s);
}

TEST_F(ActivityTest, UnsetTimeoutsAndPolicyAreFilled) {
    HOLDFAST_CHECK("server H86");
    HOLDFAST_CHECK("server H90");
    schedule(schedule_activity_command("a"));
    const auto& scheduled = event(5).activity_task_scheduled_event_attributes();
    EXPECT_EQ(span_of(scheduled.start_to_close_timeout()), 10s);
    EXPECT_TRUE(scheduled.has_schedule_to_close_timeout());
    EXPECT_EQ(span_of(scheduled.schedule_to_close_timeout()), 0s);
    EXPECT_EQ(span_of(scheduled.schedule_to_start_timeout()), 0s);
    EXPECT_EQ(span_of(scheduled.retry_policy().initial_interval()), 1s);
    EXPECT_EQ(scheduled.retry_policy().backoff_coefficient(), 2.0);
    EXPECT_EQ(span_of(scheduled.retry_policy().maximum_interval()), 100s);
    EXPECT_EQ(scheduled.retry_policy().maximum_attempts(), 0);
}

TEST_F(ActivityTest, NoTimeoutExceedsTheOneAroundIt) {
    HOLDFAST_CHECK("server H87");
    HOLDFAST_CHECK("server H89");
    Command command = schedule_activity_command("a", 30s, 20s);
    *command.mutable_schedule_activity_task_command_attributes()->mutable_heartbeat_timeout() =
        to_duration(40s);
    schedule(command);
    const auto& scheduled = event(5).activity_task_scheduled_event_attributes();
    EXPECT_EQ(span_of(scheduled.start_to_close_timeout()), 20s);
    EXPECT_EQ(span_of(scheduled.heartbeat_timeout()), 20s);
}

TEST_F(ActivityTest, WithoutATimeoutItIsRefused) {
    HOLDFAST_CHECK("server H88");
    start();
    poll();
    EXPECT_FALSE(complete({schedule_activity_command("a", 0s)}));
    EXPECT_EQ(refusal->message,
              "BadScheduleActivityAttributes: a valid StartToCloseTimeout or "
              "ScheduleToCloseTimeout must be set on the activity. ActivityId=a "
              "ActivityType=Charge");
}

TEST_F(ActivityTest, AnIdIsUniqueAmongThePending) {
    HOLDFAST_CHECK("server H91");
    HOLDFAST_CHECK("server H92");
    schedule(schedule_activity_command("a"));
    signal("again");
    poll();
    EXPECT_FALSE(complete({schedule_activity_command("a")}));
    EXPECT_TRUE(refusal->message.starts_with("ScheduleActivityDuplicateId: "));
    start_activity(5);
    complete_activity(5);
    poll();
    EXPECT_TRUE(complete({schedule_activity_command("a")})) << refusal->message;
}

TEST_F(ActivityTest, PendingOnesAreBounded) {
    HOLDFAST_CHECK("server H93");
    limits.pending_max = 1;
    schedule(schedule_activity_command("a"));
    signal("more");
    poll();
    EXPECT_FALSE(complete({schedule_activity_command("b")}));
    EXPECT_EQ(refusal->message,
              "PendingActivitiesLimitExceeded: the number of pending activities, 1, has reached "
              "the per-workflow limit of 1");
}

TEST_F(ActivityTest, AnInputThatIsTooLargeTerminatesTheRun) {
    HOLDFAST_CHECK("server H109");
    limits.blob_bytes_max = 100;
    Command command = schedule_activity_command("a");
    command.mutable_schedule_activity_task_command_attributes()
        ->mutable_input()
        ->add_payloads()
        ->set_data(std::string(200, 'x'));
    start();
    poll();
    EXPECT_FALSE(complete({command}));
    EXPECT_EQ(refusal->kind, Refused::invalid_argument);
    EXPECT_TRUE(history().ends_with("4 WorkflowTaskFailed, 5 Terminated")) << history();
}

TEST_F(ActivityTest, AFailedAttemptLeavesNoEventAndKeepsItsHeartbeat) {
    HOLDFAST_CHECK("server H117");
    HOLDFAST_CHECK("server H121");
    schedule(schedule_activity_command("a"));
    start_activity(5);
    ASSERT_TRUE(heartbeat(5, "half"));
    ASSERT_TRUE(fail_activity(5, application_failure()));
    EXPECT_TRUE(history().ends_with("5 ActivityTaskScheduled")) << history();
    EXPECT_FALSE(start_activity(5)) << "it waits for its backoff";
    advance(1s);
    EXPECT_THAT(made(), ElementsAre(Task::Kind::activity));
    ASSERT_TRUE(start_activity(5));
    EXPECT_EQ(run().activities().at(5).attempt(), 2);
    EXPECT_EQ(run().activities().at(5).last_heartbeat_details().payloads(0).data(), "half");
}

TEST_F(ActivityTest, BackoffsGrowUpToTheMaximum) {
    HOLDFAST_CHECK("server H118");
    Command command = with_retries(0);
    *command.mutable_schedule_activity_task_command_attributes()
         ->mutable_retry_policy()
         ->mutable_maximum_interval() = to_duration(3s);
    schedule(command);
    for (const Span delay : {Span{1s}, Span{2s}, Span{3s}, Span{3s}}) {
        ASSERT_TRUE(start_activity(5));
        fail_activity(5, application_failure());
        advance(delay - 1ms);
        EXPECT_TRUE(run().activities().at(5).in_backoff());
        advance(1ms);
        EXPECT_FALSE(run().activities().at(5).in_backoff());
    }
}

TEST_F(ActivityTest, TheLastAttemptTellsOfTheOneBefore) {
    HOLDFAST_CHECK("server H119");
    schedule(with_retries(2));
    start_activity(5);
    fail_activity(5, application_failure("First"));
    advance(1s);
    start_activity(5);
    ASSERT_TRUE(fail_activity(5, application_failure("Second")));
    const auto& started = event(6).activity_task_started_event_attributes();
    EXPECT_EQ(started.attempt(), 2);
    EXPECT_EQ(started.last_failure().application_failure_info().type(), "First");
    EXPECT_EQ(event(7).activity_task_failed_event_attributes().retry_state(),
              RETRY_STATE_MAXIMUM_ATTEMPTS_REACHED);
}

TEST_F(ActivityTest, AFailureThatMustNotBeRetriedEndsIt) {
    HOLDFAST_CHECK("server H120");
    schedule(schedule_activity_command("a"));
    start_activity(5);
    ASSERT_TRUE(fail_activity(5, application_failure("Fatal", true)));
    EXPECT_EQ(event(7).activity_task_failed_event_attributes().retry_state(),
              RETRY_STATE_NON_RETRYABLE_FAILURE);
}

TEST_F(ActivityTest, AFailureMayChooseTheDelay) {
    HOLDFAST_CHECK("server H122");
    schedule(schedule_activity_command("a"));
    start_activity(5);
    Failure failure = application_failure();
    *failure.mutable_application_failure_info()->mutable_next_retry_delay() = to_duration(7s);
    fail_activity(5, failure);
    advance(7s - 1ms);
    EXPECT_TRUE(run().activities().at(5).in_backoff());
    advance(1ms);
    EXPECT_FALSE(run().activities().at(5).in_backoff());
}

TEST_F(ActivityTest, NoAttemptBeginsThatCannotBeInTime) {
    HOLDFAST_CHECK("server H123");
    schedule(with_retries(0, 1500ms));
    start_activity(5);
    advance(1s);
    ASSERT_TRUE(fail_activity(5, application_failure()));
    EXPECT_EQ(event(7).activity_task_failed_event_attributes().retry_state(), RETRY_STATE_TIMEOUT);
}

TEST_F(ActivityTest, ItsDeadlineHoldsDuringABackoff) {
    HOLDFAST_CHECK("server H124");
    schedule(with_retries(0, 2s));
    start_activity(5);
    Failure failure = application_failure("First");
    *failure.mutable_application_failure_info()->mutable_next_retry_delay() = to_duration(2s);
    fail_activity(5, failure);
    advance(2s);
    EXPECT_TRUE(history().ends_with("6 ActivityTaskTimedOut, 7 WorkflowTaskScheduled"))
        << history();
    const auto& attributes = event(6).activity_task_timed_out_event_attributes();
    EXPECT_EQ(attributes.started_event_id(), 0);
    EXPECT_EQ(attributes.retry_state(), RETRY_STATE_TIMEOUT);
    EXPECT_EQ(timeout().message(),
              "Not enough time to schedule next retry before activity ScheduleToClose timeout, "
              "giving up retrying");
    EXPECT_EQ(timeout().timeout_failure_info().timeout_type(), TIMEOUT_TYPE_SCHEDULE_TO_CLOSE);
    EXPECT_EQ(timeout().cause().application_failure_info().type(), "First");
}

TEST_F(ActivityTest, ItsDeadlineHoldsWhileItRuns) {
    HOLDFAST_CHECK("server H125");
    HOLDFAST_CHECK("server H131");
    schedule(with_retries(0, 3s));
    start_activity(5);
    advance(3s);
    EXPECT_EQ(timeout().timeout_failure_info().timeout_type(), TIMEOUT_TYPE_SCHEDULE_TO_CLOSE);
    EXPECT_FALSE(complete_activity(5));
    EXPECT_EQ(refusal->kind, Refused::not_found);
}

TEST_F(ActivityTest, WithoutAWorkerItTimesOutAndIsNotTriedAgain) {
    HOLDFAST_CHECK("server H126");
    Command command = schedule_activity_command("a");
    *command.mutable_schedule_activity_task_command_attributes()
         ->mutable_schedule_to_start_timeout() = to_duration(4s);
    schedule(command);
    advance(4s);
    EXPECT_TRUE(history().ends_with("6 ActivityTaskTimedOut, 7 WorkflowTaskScheduled"))
        << history();
    EXPECT_EQ(timeout().message(), "activity ScheduleToStart timeout");
}

TEST_F(ActivityTest, AnAttemptThatIsTooLongIsTriedAgain) {
    HOLDFAST_CHECK("server H127");
    HOLDFAST_CHECK("server H132");
    schedule(with_retries(2));
    start_activity(5);
    advance(10s);
    EXPECT_EQ(run().activities().at(5).attempt(), 2);
    advance(1s);
    start_activity(5);
    EXPECT_FALSE(complete_activity(5, 1)) << "the first attempt is over";
    advance(10s);
    EXPECT_EQ(timeout().message(), "activity StartToClose timeout");
    EXPECT_EQ(timeout().cause().message(), "activity StartToClose timeout");
}

TEST_F(ActivityTest, HeartbeatsKeepItAlive) {
    HOLDFAST_CHECK("server H128");
    HOLDFAST_CHECK("server H129");
    Command command = with_retries(1);
    *command.mutable_schedule_activity_task_command_attributes()->mutable_heartbeat_timeout() =
        to_duration(2s);
    schedule(command);
    start_activity(5);
    advance(1500ms);
    ASSERT_TRUE(heartbeat(5, "one"));
    advance(1500ms);
    ASSERT_TRUE(heartbeat(5, "two"));
    advance(2s);
    EXPECT_EQ(timeout().message(), "activity Heartbeat timeout");
    EXPECT_EQ(timeout().timeout_failure_info().last_heartbeat_details().payloads(0).data(), "two");
}

TEST_F(ActivityTest, ItIsCanceledOnlyIfTheWorkflowAsked) {
    HOLDFAST_CHECK("server H100");
    HOLDFAST_CHECK("server H133");
    HOLDFAST_CHECK("server H134");
    schedule(schedule_activity_command("a"));
    start_activity(5);
    EXPECT_FALSE(cancel_activity(5));
    EXPECT_EQ(refusal->kind, Refused::invalid_argument);
    signal("stop");
    poll();
    ASSERT_TRUE(complete({cancel_activity_command(5)}));
    EXPECT_TRUE(history().ends_with("ActivityTaskCancelRequested")) << history();
    const auto reply = heartbeat(5, "still here");
    ASSERT_TRUE(reply);
    EXPECT_TRUE(reply->cancel_requested);
    ASSERT_TRUE(cancel_activity(5));
    const std::int64_t canceled = run().next_event_id() - 2;
    EXPECT_EQ(event(canceled)
                  .activity_task_canceled_event_attributes()
                  .latest_cancel_requested_event_id(),
              canceled - 2);
}

TEST_F(ActivityTest, OneThatNoWorkerHasIsCanceledAtOnce) {
    HOLDFAST_CHECK("server H99");
    schedule(schedule_activity_command("a"));
    signal("stop");
    poll();
    ASSERT_TRUE(complete({cancel_activity_command(5), marker_command("m")}));
    EXPECT_TRUE(
        history().ends_with("10 ActivityTaskCancelRequested, 11 MarkerRecorded, "
                            "12 ActivityTaskCanceled, 13 WorkflowTaskScheduled"))
        << history();
    const auto& details = event(12).activity_task_canceled_event_attributes().details();
    ASSERT_EQ(details.payloads_size(), 1);
    EXPECT_EQ(details.payloads(0).data(), "\"ACTIVITY_ID_NOT_STARTED\"");
}

TEST_F(ActivityTest, ACancelOfAnUnknownOneIsRefused) {
    HOLDFAST_CHECK("server H101");
    start();
    poll();
    EXPECT_FALSE(complete({cancel_activity_command(77)}));
    EXPECT_EQ(refusal->message,
              "BadRequestCancelActivityAttributes: invalid history builder state for action: "
              "add-activitytask-cancel-requested-event, ScheduledEventID: 77");
}

TEST_F(ActivityTest, ItsEndWaitsForTheWorkflowTaskAndComesLast) {
    HOLDFAST_CHECK("server H68");
    HOLDFAST_CHECK("server H69");
    schedule(schedule_activity_command("a"));
    start_activity(5);
    signal("first");
    poll();
    signal("second");
    ASSERT_TRUE(complete_activity(5));
    signal("third");
    ASSERT_TRUE(complete({marker_command("m")}));
    EXPECT_TRUE(
        history().ends_with("10 MarkerRecorded, 11 Signaled, 12 ActivityTaskStarted, 13 Signaled, "
                            "14 ActivityTaskCompleted, 15 WorkflowTaskScheduled"))
        << history();
    EXPECT_EQ(event(14).activity_task_completed_event_attributes().started_event_id(), 12);
}

TEST_F(ActivityTest, AClosedRunHasNone) {
    HOLDFAST_CHECK("server H135");
    schedule(schedule_activity_command("a"));
    start_activity(5);
    terminate();
    EXPECT_FALSE(heartbeat(5, "x"));
    EXPECT_FALSE(complete_activity(5));
    EXPECT_EQ(refusal->message, "workflow execution already completed");
    EXPECT_EQ(next_due(run()), std::nullopt);
}

TEST_F(ActivityTest, ALargeFailureIsKeptByItsMessage) {
    HOLDFAST_CHECK("server H141");
    schedule(schedule_activity_command("a"));
    start_activity(5);
    Failure failure = application_failure();
    failure.set_message(std::string(8192, 'x'));
    fail_activity(5, failure);
    EXPECT_EQ(run().activities().at(5).last_failure().message(), "Failure exceeds size limit.");
}

}  // namespace

}  // namespace holdfast::server::history::tests
