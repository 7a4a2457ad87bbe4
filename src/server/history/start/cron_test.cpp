#include "history/start/cron.hpp"

#include "history/start/first_run.hpp"
#include "history/test/run_fixture.hpp"

#include <holdfast/testing/check.hpp>

namespace holdfast::server::history::tests {

namespace {

constexpr Time midnight{std::chrono::sys_days{std::chrono::year{2026} / 3 / 1}};

class CronTest : public RunFixture {
protected:
    // Its first run begins at midnight.
    void start_cron(const std::string& schedule, Started started = {}) {
        started.set_cron_schedule(schedule);
        started.set_initiator(CONTINUE_AS_NEW_INITIATOR_CRON_SCHEDULE);
        *started.mutable_first_workflow_task_backoff() =
            to_duration(cron_backoff(schedule, midnight, midnight));
        start(started);
    }

    // The first run begins at its slot and ends after this long.
    void run_for(Span span, Command last_command) {
        advance(span_of(run().started().first_workflow_task_backoff()));
        poll();
        advance(span);
        ASSERT_TRUE(complete({std::move(last_command)})) << refusal->message;
    }

    [[nodiscard]] Span backoff_of_next() const {
        return last.next ? span_of(last.next->started.first_workflow_task_backoff()) : 0s;
    }
};

Started retried_once() {
    Started started;
    started.mutable_retry_policy()->set_maximum_attempts(2);
    *started.mutable_retry_policy()->mutable_initial_interval() = to_duration(1s);
    started.mutable_retry_policy()->set_backoff_coefficient(1);
    return started;
}

Command complete_with(const std::string& result) {
    Command command = complete_command();
    command.mutable_complete_workflow_execution_command_attributes()
        ->mutable_result()
        ->add_payloads()
        ->set_data(result);
    return command;
}

TEST(CronBackoffTest, TheFirstSlotIsAfterTheStart) {
    EXPECT_EQ(cron_backoff("@every 3s", midnight, midnight), 3s);
    EXPECT_EQ(cron_backoff("*/5 * * * *", midnight, midnight), 5min);
    EXPECT_EQ(cron_backoff("*/5 * * * *", midnight + 4min + 59s, midnight + 4min + 59s), 1s);
    EXPECT_EQ(cron_backoff("@daily", midnight + 300ms, midnight + 300ms), 24h)
        << "rounded up to whole seconds";
}

TEST(CronBackoffTest, ASlotAtThisMomentCounts) {
    EXPECT_EQ(cron_backoff("*/5 * * * *", midnight, midnight + 5min), 0s);
    EXPECT_EQ(cron_backoff("@every 3s", midnight, midnight + 3s), 0s);
}

TEST(CronBackoffTest, AnIntervalIsCountedInWholeSeconds) {
    EXPECT_EQ(cron_backoff("@every 2500ms", midnight, midnight), 2s);
    EXPECT_EQ(cron_backoff("@every 2s", midnight + 2300ms, midnight + 3s), 1s);
}

// Berlin is two hours ahead of UTC in July, and one in December.
TEST(CronBackoffTest, ATimeZoneMovesTheSlots) {
    HOLDFAST_CHECK("server H178");
    const std::string at_nine = "CRON_TZ=Europe/Berlin 0 9 * * *";
    const Time summer{std::chrono::sys_days{std::chrono::year{2026} / 7 / 1}};
    const Time winter{std::chrono::sys_days{std::chrono::year{2026} / 12 / 1}};
    EXPECT_EQ(cron_backoff(at_nine, summer, summer), 7h);
    EXPECT_EQ(cron_backoff(at_nine, winter, winter), 8h);
    EXPECT_EQ(cron_backoff("TZ=America/New_York 0 9 * * *", winter, winter), 14h);
    EXPECT_EQ(cron_backoff("CRON_TZ=Europe/Berlin @every 5s", summer, summer), 5s);
}

// On March 29 of 2026 the clocks of Berlin go from 2:00 to 3:00, which is 1:00 in UTC.
TEST(CronBackoffTest, AnHourThatIsLeftOutHasNoSlot) {
    const Time evening{std::chrono::sys_days{std::chrono::year{2026} / 3 / 28} + 22h};
    EXPECT_EQ(cron_backoff("CRON_TZ=Europe/Berlin 30 2 * * *", evening, evening), 26h + 30min)
        << "on the 30th at 0:30 in UTC";
    EXPECT_EQ(cron_backoff("CRON_TZ=Europe/Berlin 30 3 * * *", evening, evening), 3h + 30min);
}

// On October 25 of 2026 they go from 3:00 back to 2:00, which is 1:00 in UTC.
TEST(CronBackoffTest, AnHourThatComesTwiceHasTwoSlots) {
    const std::string schedule = "CRON_TZ=Europe/Berlin 30 2 * * *";
    const Time evening{std::chrono::sys_days{std::chrono::year{2026} / 10 / 24} + 22h};
    EXPECT_EQ(cron_backoff(schedule, evening, evening), 2h + 30min);
    const Time first = evening + 2h + 30min;
    EXPECT_EQ(cron_backoff(schedule, first, first + 1s), 1h - 1s);
    EXPECT_EQ(cron_backoff(schedule, first + 1h, first + 1h + 1s), 24h - 1s);
}

TEST(CronBackoffTest, ATimeZoneMustBeKnown) {
    HOLDFAST_CHECK("server H178");
    EXPECT_TRUE(valid_cron("TZ=Europe/Berlin @daily"));
    for (const std::string zone : {"Europe/Atlantis",
                                   "",
                                   "/etc/localtime",
                                   "../zoneinfo/UTC",
                                   "Fixed/UTC+01:00:00",
                                   "localtime"}) {
        EXPECT_FALSE(valid_cron("CRON_TZ=" + zone + " 0 9 * * *")) << zone;
    }
    EXPECT_FALSE(valid_cron("CRON_TZ=Europe/Berlin")) << "nothing follows";
}

TEST(CronBackoffTest, WhatDoesNotParseIsNotValid) {
    EXPECT_TRUE(valid_cron("0 9 * * MON-FRI"));
    EXPECT_TRUE(valid_cron("CRON_TZ=UTC 0 9 * * ?"));
    EXPECT_TRUE(valid_cron("@every 1h30m"));
    for (const std::string wrong : {"", "* * *", "@every", "@every 0s", "61 * * * *", "@never"}) {
        EXPECT_FALSE(valid_cron(wrong)) << wrong;
    }
}

TEST_F(CronTest, TheFirstRunWaitsForItsSlot) {
    HOLDFAST_CHECK("server H170");
    start_cron("@every 3s");
    EXPECT_EQ(history(), "1 Started");
    const auto& written = event(1).workflow_execution_started_event_attributes();
    EXPECT_EQ(written.initiator(), CONTINUE_AS_NEW_INITIATOR_CRON_SCHEDULE);
    EXPECT_EQ(span_of(written.first_workflow_task_backoff()), 3s);
    EXPECT_EQ(time_of(run().execution_time()) - time_of(run().start_time()), 3s);
}

TEST_F(CronTest, ACompletedRunIsFollowedByTheNext) {
    HOLDFAST_CHECK("server H171");
    start_cron("@every 3s");
    run_for(1s, complete_with("first"));
    ASSERT_TRUE(last.next);
    EXPECT_EQ(event(5).workflow_execution_completed_event_attributes().new_execution_run_id(),
              last.next->run_id);
    const Started& next = last.next->started;
    EXPECT_EQ(next.last_completion_result().payloads(0).data(), "first");
    EXPECT_EQ(next.initiator(), CONTINUE_AS_NEW_INITIATOR_CRON_SCHEDULE);
    EXPECT_EQ(next.continued_execution_run_id(), "run-1");
    EXPECT_EQ(next.attempt(), 1);
    EXPECT_TRUE(next.identity().empty());
    EXPECT_EQ(backoff_of_next(), 2s);
}

TEST_F(CronTest, AFailedRunKeepsTheResultOfTheOneBefore) {
    HOLDFAST_CHECK("server H172");
    Started started;
    started.mutable_last_completion_result()->add_payloads()->set_data("earlier");
    start_cron("@every 3s", started);
    run_for(1s, fail_command("Oops"));
    ASSERT_TRUE(last.next);
    EXPECT_EQ(last.next->started.last_completion_result().payloads(0).data(), "earlier");
    EXPECT_EQ(last.next->started.continued_failure().application_failure_info().type(), "Oops");
    EXPECT_EQ(event(5).workflow_execution_failed_event_attributes().retry_state(),
              RETRY_STATE_RETRY_POLICY_NOT_SET);
}

TEST_F(CronTest, ARunThatTimesOutIsFollowedByTheNext) {
    HOLDFAST_CHECK("server H173");
    Started started;
    *started.mutable_workflow_run_timeout() = to_duration(5s);
    start_cron("@every 3s", started);
    advance(8s);
    ASSERT_EQ(run().status(), WORKFLOW_EXECUTION_STATUS_TIMED_OUT);
    ASSERT_TRUE(last.next);
    EXPECT_EQ(event(3).workflow_execution_timed_out_event_attributes().retry_state(),
              RETRY_STATE_RETRY_POLICY_NOT_SET);
    const Failure& failure = last.next->started.continued_failure();
    EXPECT_EQ(failure.message(), "workflow timeout");
    EXPECT_EQ(failure.timeout_failure_info().timeout_type(), TIMEOUT_TYPE_START_TO_CLOSE);
    EXPECT_EQ(backoff_of_next(), 1s) << "the slots are at 3, 6 and 9 seconds";
}

TEST_F(CronTest, SlotsThatALongRunMissesAreLeftOut) {
    HOLDFAST_CHECK("server H174");
    start_cron("@every 3s");
    run_for(7s, complete_command());
    EXPECT_EQ(backoff_of_next(), 2s) << "it ends at 10, and the slots are at 3, 6, 9 and 12";
}

TEST_F(CronTest, AFailureIsRetriedBeforeTheNextSlot) {
    HOLDFAST_CHECK("server H175");
    start_cron("@every 60s", retried_once());
    run_for(1s, fail_command());
    ASSERT_TRUE(last.next);
    EXPECT_EQ(last.next->started.initiator(), CONTINUE_AS_NEW_INITIATOR_RETRY);
    EXPECT_EQ(backoff_of_next(), 1s);
}

TEST_F(CronTest, WhenTheAttemptsAreUsedUpTheNextSlotFollows) {
    Started started = retried_once();
    started.set_attempt(2);
    start_cron("@every 60s", started);
    run_for(1s, fail_command());
    ASSERT_TRUE(last.next);
    EXPECT_EQ(last.next->started.initiator(), CONTINUE_AS_NEW_INITIATOR_CRON_SCHEDULE);
    EXPECT_EQ(last.next->started.attempt(), 1);
    EXPECT_EQ(event(5).workflow_execution_failed_event_attributes().retry_state(),
              RETRY_STATE_MAXIMUM_ATTEMPTS_REACHED);
}

TEST_F(CronTest, ATerminationBeforeTheSlotEndsIt) {
    HOLDFAST_CHECK("server H176");
    start_cron("@every 60s");
    terminate();
    EXPECT_EQ(history(), "1 Started, 2 Terminated");
    EXPECT_FALSE(last.next);
}

TEST_F(CronTest, ASignalWaitsForTheSlot) {
    HOLDFAST_CHECK("server H177");
    start_cron("@every 60s");
    signal("early");
    EXPECT_EQ(history(), "1 Started, 2 Signaled");
    advance(60s);
    EXPECT_EQ(history(), "1 Started, 2 Signaled, 3 WorkflowTaskScheduled");
}

TEST_F(CronTest, ACanceledRunIsTheLast) {
    start_cron("@every 3s");
    Command cancel_command;
    cancel_command.set_command_type(COMMAND_TYPE_CANCEL_WORKFLOW_EXECUTION);
    cancel_command.mutable_cancel_workflow_execution_command_attributes();
    run_for(1s, cancel_command);
    EXPECT_EQ(run().status(), WORKFLOW_EXECUTION_STATUS_CANCELED);
    EXPECT_FALSE(last.next);
}

TEST_F(CronTest, ContinuingAsNewDoesNotWaitForTheSlot) {
    start_cron("@every 60s");
    Command again = continue_as_new_command();
    again.mutable_continue_as_new_workflow_execution_command_attributes()->set_cron_schedule(
        "@every 60s");
    run_for(2s, again);
    ASSERT_TRUE(last.next);
    EXPECT_EQ(backoff_of_next(), 0s);
    EXPECT_EQ(last.next->started.cron_schedule(), "@every 60s");
}

TEST_F(CronTest, TheExecutionTimeoutEndsTheChain) {
    Started started;
    *started.mutable_workflow_execution_timeout() = to_duration(10s);
    start_cron("@every 6s", started);
    run_for(1s, complete_command());
    EXPECT_FALSE(last.next) << "the next slot is at 12 seconds";
    EXPECT_EQ(run().status(), WORKFLOW_EXECUTION_STATUS_COMPLETED);
}

}  // namespace

}  // namespace holdfast::server::history::tests
