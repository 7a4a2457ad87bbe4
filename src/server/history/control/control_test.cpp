#include "history/control/control.hpp"

#include "history/describe/describe.hpp"
#include "history/test/run_fixture.hpp"
#include <gmock/gmock.h>

#include <holdfast/testing/check.hpp>

namespace holdfast::server::history::tests {

namespace {

using temporal::api::workflow::v1::PendingActivityInfo;
using temporal::api::workflowservice::v1::DescribeWorkflowExecutionResponse;
using testing::ElementsAre;
using testing::IsEmpty;

// One activity of the type Charge, with the id a, scheduled by event 5.
class ActivityControlTest : public RunFixture {
protected:
    void schedule(Span retry_interval = 1s, Span schedule_to_close = 0s) {
        Command command = schedule_activity_command("a", 10s, schedule_to_close);
        auto& attributes = *command.mutable_schedule_activity_task_command_attributes();
        *attributes.mutable_heartbeat_timeout() = to_duration(5s);
        *attributes.mutable_retry_policy()->mutable_initial_interval() =
            to_duration(retry_interval);
        start();
        poll();
        ASSERT_TRUE(complete({command})) << refusal->message;
    }

    bool pause(const std::string& request_id = "", const ActivitySelection& which = {.id = "a"}) {
        return transition([&](Transition& t) {
            return pause_activities(
                t, which, {.identity = "ann", .reason = "noise", .request_id = request_id});
        });
    }
    bool unpause(const ActivityUnpausing& unpausing = {}) {
        return transition(
            [&](Transition& t) { return unpause_activities(t, {.id = "a"}, unpausing); });
    }
    bool reset(const ActivityResetting& resetting = {}) {
        return transition(
            [&](Transition& t) { return reset_activities(t, {.id = "a"}, resetting); });
    }
    // The new options, or none if they are refused.
    ActivityOptions change_options(const ActivityOptions& options,
                                   const std::vector<std::string>& paths) {
        ActivityOptionsChange change{.options = options};
        for (const std::string& path : paths) {
            change.mask.add_paths(path);
        }
        return changed(change);
    }
    ActivityOptions changed(const ActivityOptionsChange& change) {
        ActivityOptions now;
        transition([&](Transition& t) -> std::optional<Refusal> {
            const auto answer = change_activity_options(t, {.id = "a"}, change);
            if (const auto* refused = std::get_if<Refusal>(&answer)) {
                return *refused;
            }
            now = std::get<ActivityOptions>(answer);
            return std::nullopt;
        });
        return now;
    }

    [[nodiscard]] const state::Activity& activity() const { return run().activities().at(5); }
    [[nodiscard]] PendingActivityInfo described() const {
        DescribeWorkflowExecutionResponse response;
        describe(run(), response);
        EXPECT_EQ(response.pending_activities_size(), 1);
        return response.pending_activities().empty() ? PendingActivityInfo{}
                                                     : response.pending_activities(0);
    }
    [[nodiscard]] std::string shown_pauses() const {
        DescribeWorkflowExecutionResponse response;
        describe(run(), response);
        const auto& shown = response.workflow_execution_info().search_attributes().indexed_fields();
        const auto found = shown.find("TemporalPauseInfo");
        return found == shown.end() ? "" : found->second.data();
    }

    const std::string scheduled = "5 ActivityTaskScheduled";
};

TEST_F(ActivityControlTest, APausedActivityIsNotDispatchedAndDoesNotTimeOut) {
    HOLDFAST_CHECK("server H147");
    schedule(1s, 60s);
    const int queued = activity().stamp();
    ASSERT_TRUE(pause());
    EXPECT_THAT(made(), IsEmpty());
    EXPECT_EQ(described().state(), PENDING_ACTIVITY_STATE_PAUSED);
    EXPECT_EQ(described().pause_info().manual().reason(), "noise");
    EXPECT_EQ(described().pause_info().manual().identity(), "ann");
    EXPECT_EQ(shown_pauses(), R"(["property:activityType=Charge"])");
    EXPECT_FALSE(transition([&](Transition& t) {
        return history::start_activity(t, 5, queued, "worker", "late");
    })) << "what was on the queue is void";
    advance(120s);
    EXPECT_TRUE(history().ends_with(scheduled)) << history();
    ASSERT_TRUE(unpause());
    EXPECT_THAT(made(), ElementsAre(Task::Kind::activity));
    EXPECT_EQ(shown_pauses(), "");
    advance(0s);
    EXPECT_EQ(event(6)
                  .activity_task_timed_out_event_attributes()
                  .failure()
                  .timeout_failure_info()
                  .timeout_type(),
              TIMEOUT_TYPE_SCHEDULE_TO_CLOSE)
        << history();
}

TEST_F(ActivityControlTest, AnAttemptUnderWayIsToldAndItsFailureLeavesThePause) {
    HOLDFAST_CHECK("server H148");
    schedule();
    ASSERT_TRUE(start_activity(5));
    EXPECT_FALSE(heartbeat(5, "before")->paused);
    ASSERT_TRUE(pause());
    EXPECT_EQ(described().state(), PENDING_ACTIVITY_STATE_PAUSE_REQUESTED);
    EXPECT_TRUE(heartbeat(5, "after")->paused);
    advance(60s);
    EXPECT_TRUE(activity().started()) << "it has no timeout now";
    ASSERT_TRUE(fail_activity(5, application_failure()));
    EXPECT_EQ(activity().attempt(), 2);
    EXPECT_EQ(described().state(), PENDING_ACTIVITY_STATE_PAUSED);
    EXPECT_FALSE(described().has_next_attempt_schedule_time());
    advance(600s);
    EXPECT_TRUE(activity().in_backoff()) << "it is not dispatched";
    ASSERT_TRUE(unpause());
    ASSERT_TRUE(start_activity(5));
    ASSERT_TRUE(pause());
    EXPECT_TRUE(complete_activity(5, 2)) << "a paused activity may complete";
    EXPECT_TRUE(run().activities().empty());
}

TEST_F(ActivityControlTest, APausedActivityThatFailsForGoodEnds) {
    schedule();
    start_activity(5);
    pause();
    ASSERT_TRUE(fail_activity(5, application_failure("Broken", true)));
    EXPECT_TRUE(run().activities().empty());
}

TEST_F(ActivityControlTest, OnlyTheSameRequestMayPauseItAgain) {
    HOLDFAST_CHECK("server H149");
    schedule();
    ASSERT_TRUE(pause("one"));
    EXPECT_TRUE(pause("one"));
    EXPECT_FALSE(last.changed);
    EXPECT_FALSE(pause("two"));
    EXPECT_EQ(refusal->kind, Refused::failed_precondition);
    EXPECT_EQ(refusal->message, "activity is already paused");
    EXPECT_TRUE(pause("two", {.type = "Charge"})) << "the others of its type would be paused";
}

TEST_F(ActivityControlTest, AnUnknownActivityAndAClosedRunAreNotFound) {
    schedule();
    EXPECT_FALSE(pause("", {.id = "b"}));
    EXPECT_EQ(refusal->message,
              "Can't find pending activity with such ID. Invalid activityID or activity already "
              "completed");
    EXPECT_TRUE(pause("", {.type = "Other"}));
    EXPECT_FALSE(last.changed);
    terminate();
    EXPECT_FALSE(pause());
    EXPECT_EQ(refusal->message, "workflow execution already completed");
}

TEST_F(ActivityControlTest, AnUnpausedActivityIsDispatchedAtOnceEvenFromItsBackoff) {
    HOLDFAST_CHECK("server H150");
    schedule(1000s);
    start_activity(5);
    heartbeat(5, "half");
    fail_activity(5, application_failure());
    ASSERT_TRUE(activity().in_backoff());
    pause();
    ASSERT_TRUE(unpause({.reset_attempts = true, .reset_heartbeat = true}));
    EXPECT_THAT(made(), ElementsAre(Task::Kind::activity));
    EXPECT_FALSE(activity().in_backoff());
    EXPECT_EQ(activity().attempt(), 1);
    EXPECT_FALSE(activity().has_last_heartbeat_details());
    EXPECT_TRUE(unpause());
    EXPECT_FALSE(last.changed) << "it is not paused any more";
    EXPECT_TRUE(start_activity(5));
}

TEST_F(ActivityControlTest, AResetEndsABackoff) {
    HOLDFAST_CHECK("server H151");
    schedule(1000s);
    start_activity(5);
    fail_activity(5, application_failure());
    ASSERT_EQ(activity().attempt(), 2);
    ASSERT_TRUE(reset());
    EXPECT_THAT(made(), ElementsAre(Task::Kind::activity));
    EXPECT_EQ(activity().attempt(), 1);
    EXPECT_FALSE(activity().has_last_failure());
    EXPECT_EQ(activity().last_worker_identity(), "worker");
    start_activity(5);
    ASSERT_TRUE(complete_activity(5, 1));
    EXPECT_EQ(event(6).activity_task_started_event_attributes().attempt(), 1);
    EXPECT_FALSE(event(6).activity_task_started_event_attributes().has_last_failure());
}

TEST_F(ActivityControlTest, AResetTellsTheFirstAttemptAndDropsItsDetailsIfItSaysSo) {
    HOLDFAST_CHECK("server H152");
    for (const bool drop : {false, true}) {
        SCOPED_TRACE(drop);
        if (!drop) {
            schedule();
        }
        start_activity(5);
        heartbeat(5, "half");
        ASSERT_TRUE(reset({.reset_heartbeat = drop}));
        EXPECT_THAT(made(), IsEmpty());
        EXPECT_TRUE(activity().started());
        EXPECT_TRUE(heartbeat(5, "more")->reset);
        ASSERT_TRUE(fail_activity(5, application_failure()));
        EXPECT_EQ(activity().has_last_heartbeat_details(), !drop);
        advance(10s);
    }
    start_activity(5);
    EXPECT_FALSE(heartbeat(5, "next")->reset) << "the next attempt is not told";
}

TEST_F(ActivityControlTest, AResetCutsALaterAttemptOff) {
    schedule();
    start_activity(5);
    fail_activity(5, application_failure());
    advance(1s);
    start_activity(5);
    reset();
    EXPECT_FALSE(complete_activity(5, 2));
    EXPECT_EQ(refusal->kind, Refused::not_found);
}

TEST_F(ActivityControlTest, AResetMayKeepThePause) {
    HOLDFAST_CHECK("server H153");
    schedule();
    pause();
    ASSERT_TRUE(reset({.keep_paused = true}));
    EXPECT_EQ(described().state(), PENDING_ACTIVITY_STATE_PAUSED);
    EXPECT_THAT(made(), IsEmpty());
    ASSERT_TRUE(reset());
    EXPECT_EQ(described().state(), PENDING_ACTIVITY_STATE_SCHEDULED);
    EXPECT_THAT(made(), ElementsAre(Task::Kind::activity));
}

TEST_F(ActivityControlTest, TheOriginalOptionsComeBack) {
    HOLDFAST_CHECK("server H154");
    schedule();
    ActivityOptions options;
    options.mutable_task_queue()->set_name("elsewhere");
    *options.mutable_start_to_close_timeout() = to_duration(33s);
    const ActivityOptions now =
        change_options(options, {"task_queue.name", "start_to_close_timeout"});
    EXPECT_EQ(span_of(now.start_to_close_timeout()), 33s);
    EXPECT_EQ(now.task_queue().name(), "elsewhere");
    EXPECT_EQ(span_of(now.heartbeat_timeout()), 5s) << "the mask does not name it";
    EXPECT_THAT(made(), ElementsAre(Task::Kind::activity)) << "on the other queue";
    EXPECT_EQ(described().activity_options().task_queue().name(), "elsewhere");
    ASSERT_TRUE(reset({.restore_options = true}));
    EXPECT_EQ(span_of(activity().scheduled().start_to_close_timeout()), 10s);
    change_options(options, {"start_to_close_timeout"});
    const ActivityOptions restored = changed({.restore = true});
    EXPECT_EQ(span_of(restored.start_to_close_timeout()), 10s);
    EXPECT_EQ(restored.task_queue().name(), "queue");
}

TEST_F(ActivityControlTest, AShorterIntervalCountsFromTheEndOfTheLastAttempt) {
    HOLDFAST_CHECK("server H155");
    schedule(100s);
    start_activity(5);
    fail_activity(5, application_failure());
    advance(2s);
    ActivityOptions options;
    *options.mutable_retry_policy()->mutable_initial_interval() = to_duration(5s);
    change_options(options, {"retry_policy.initial_interval"});
    advance(2s);
    EXPECT_TRUE(activity().in_backoff());
    advance(1s);
    EXPECT_FALSE(activity().in_backoff()) << "5 s after the failure";
    EXPECT_TRUE(start_activity(5));
}

TEST_F(ActivityControlTest, AShorterTimeoutMayBeOverAlready) {
    HOLDFAST_CHECK("server H156");
    schedule(1s, 600s);
    start_activity(5);
    heartbeat(5, "still here");
    advance(4s);
    ActivityOptions options;
    *options.mutable_schedule_to_close_timeout() = to_duration(3s);
    change_options(options, {"schedule_to_close_timeout"});
    advance(0s);
    EXPECT_TRUE(run().activities().empty()) << history();
    EXPECT_NE(history().find("ActivityTaskTimedOut"), std::string::npos);
}

TEST_F(ActivityControlTest, OptionsThatAnActivityCannotHaveAreRefused) {
    schedule();
    ActivityOptions options;
    change_options(options, {"task_queue"});
    EXPECT_EQ(refusal->message, "missing task queue name");
    change_options(options, {"start_to_close_timeout"});
    EXPECT_TRUE(refusal->message.starts_with("a valid StartToCloseTimeout")) << refusal->message;
    options.mutable_retry_policy()->set_backoff_coefficient(0.5);
    change_options(options, {"retry_policy.backoff_coefficient"});
    EXPECT_EQ(refusal->message, "BackoffCoefficient cannot be less than 1 on retry policy.");
    EXPECT_FALSE(last.changed);
}

// Between the pause and the unpause the run is in its state only: nothing of it is an event.
TEST_F(ActivityControlTest, NothingOfItIsInTheHistory) {
    schedule();
    start_activity(5);
    pause();
    ActivityOptions options;
    *options.mutable_heartbeat_timeout() = to_duration(2s);
    change_options(options, {"heartbeat_timeout"});
    reset({.reset_heartbeat = true, .keep_paused = true});
    unpause({.jitter = 5s});
    EXPECT_TRUE(history().ends_with(scheduled)) << history();
}

}  // namespace

}  // namespace holdfast::server::history::tests
