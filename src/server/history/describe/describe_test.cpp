#include "history/describe/describe.hpp"

#include "history/child/child.hpp"
#include "history/test/run_fixture.hpp"

#include <holdfast/testing/check.hpp>

namespace holdfast::server::history::tests {

namespace {

using temporal::api::workflow::v1::PendingActivityInfo;
using temporal::api::workflowservice::v1::DescribeWorkflowExecutionResponse;

class DescribeTest : public RunFixture {
protected:
    [[nodiscard]] DescribeWorkflowExecutionResponse described() const {
        DescribeWorkflowExecutionResponse response;
        describe(run(), response);
        return response;
    }

    [[nodiscard]] PendingActivityInfo described_activity() const {
        const DescribeWorkflowExecutionResponse response = described();
        EXPECT_EQ(response.pending_activities_size(), 1);
        return response.pending_activities().empty() ? PendingActivityInfo{}
                                                     : response.pending_activities(0);
    }

    // Event 5 schedules it.
    void start_with_activity() {
        start();
        poll();
        ASSERT_TRUE(complete({schedule_activity_command("a", 10s, 60s)}));
    }
};

TEST_F(DescribeTest, AnOpenRunShowsItsCountsAndItsWorkflowTask) {
    HOLDFAST_CHECK("server H320");
    start();
    poll();
    signal("it waits in the buffer");
    const auto response = described();
    const auto& info = response.workflow_execution_info();
    EXPECT_EQ(info.execution().workflow_id(), "order-7");
    EXPECT_EQ(info.type().name(), "Order");
    EXPECT_EQ(info.status(), WORKFLOW_EXECUTION_STATUS_RUNNING);
    EXPECT_EQ(info.history_length(), 3);
    EXPECT_EQ(info.state_transition_count(), 3);
    EXPECT_GT(info.history_size_bytes(), 0);
    EXPECT_FALSE(info.has_close_time());
    EXPECT_FALSE(info.has_execution_duration());
    EXPECT_EQ(info.root_execution().run_id(), "run-1");
    EXPECT_EQ(info.first_run_id(), "run-1");
    EXPECT_EQ(response.pending_workflow_task().state(), PENDING_WORKFLOW_TASK_STATE_STARTED);
    EXPECT_EQ(response.pending_workflow_task().attempt(), 1);
    EXPECT_EQ(response.execution_config().task_queue().name(), "queue");
    EXPECT_EQ(span_of(response.execution_config().default_workflow_task_timeout()), 10s);
    EXPECT_FALSE(response.execution_config().has_workflow_run_timeout());
}

TEST_F(DescribeTest, ATransientWorkflowTaskIsShown) {
    start();
    poll();
    fail_task();
    EXPECT_EQ(described().pending_workflow_task().attempt(), 2);
    EXPECT_EQ(described().pending_workflow_task().state(), PENDING_WORKFLOW_TASK_STATE_SCHEDULED);
}

TEST_F(DescribeTest, AClosedRunShowsHowLongItLasted) {
    HOLDFAST_CHECK("server H321");
    Started delayed;
    *delayed.mutable_first_workflow_task_backoff() = to_duration(3s);
    start(delayed);
    advance(3s);
    poll();
    advance(2s);
    complete({complete_command()});
    const auto info = described().workflow_execution_info();
    EXPECT_EQ(info.status(), WORKFLOW_EXECUTION_STATUS_COMPLETED);
    EXPECT_EQ(time_of(info.close_time()) - time_of(info.start_time()), 5s);
    EXPECT_EQ(span_of(info.execution_duration()), 2s);
}

TEST_F(DescribeTest, ARunThatEndsBeforeItBeginsHasLastedNoTime) {
    Started delayed;
    *delayed.mutable_first_workflow_task_backoff() = to_duration(3s);
    start(delayed);
    terminate();
    EXPECT_EQ(span_of(described().workflow_execution_info().execution_duration()), 0s);
}

TEST_F(DescribeTest, MemoAndMetadataOfTheStartAreShown) {
    HOLDFAST_CHECK("server H20");
    StartExtras extras;
    extras.user_metadata.emplace().mutable_summary()->set_data("why");
    Started started;
    started.set_workflow_id("order-7");
    (*started.mutable_memo()->mutable_fields())["m"].set_data("1");
    transition([&](Transition& t) -> std::optional<Refusal> {
        started.mutable_workflow_type()->set_name("Order");
        started.mutable_task_queue()->set_name("queue");
        normalise_timeouts(started, limits);
        start_run(t, started, "start-request", extras);
        return std::nullopt;
    });
    EXPECT_EQ(event(1).user_metadata().summary().data(), "why");
    const auto response = described();
    EXPECT_EQ(response.execution_config().user_metadata().summary().data(), "why");
    EXPECT_EQ(response.workflow_execution_info().memo().fields().at("m").data(), "1");
}

TEST_F(DescribeTest, ARequestShowsTheEventThatItMade) {
    start();
    const auto info = described().workflow_extended_info();
    EXPECT_EQ(info.request_id_infos().at("start-request").event_id(), 1);
    EXPECT_EQ(info.request_id_infos().at("start-request").event_type(),
              EVENT_TYPE_WORKFLOW_EXECUTION_STARTED);
    EXPECT_TRUE(info.has_run_expiration_time());
    EXPECT_FALSE(info.has_execution_expiration_time());
    EXPECT_FALSE(info.cancel_requested());
    cancel();
    EXPECT_TRUE(described().workflow_extended_info().cancel_requested());
}

TEST_F(DescribeTest, AnActivityShowsWhereItIs) {
    HOLDFAST_CHECK("server H145");
    start_with_activity();
    PendingActivityInfo info = described_activity();
    EXPECT_EQ(info.activity_id(), "a");
    EXPECT_EQ(info.state(), PENDING_ACTIVITY_STATE_SCHEDULED);
    EXPECT_EQ(info.attempt(), 1);
    EXPECT_EQ(time_of(info.expiration_time()) - time_of(info.scheduled_time()), 60s);
    EXPECT_EQ(span_of(info.activity_options().start_to_close_timeout()), 10s);
    EXPECT_FALSE(info.has_next_attempt_schedule_time());

    start_activity(5);
    heartbeat(5, "half");
    info = described_activity();
    EXPECT_EQ(info.state(), PENDING_ACTIVITY_STATE_STARTED);
    EXPECT_EQ(info.last_worker_identity(), "worker");
    EXPECT_EQ(info.heartbeat_details().payloads(0).data(), "half");
    EXPECT_TRUE(info.has_last_started_time());

    fail_activity(5, application_failure("Oops"));
    info = described_activity();
    EXPECT_EQ(info.state(), PENDING_ACTIVITY_STATE_SCHEDULED);
    EXPECT_EQ(info.attempt(), 2);
    EXPECT_EQ(info.last_failure().application_failure_info().type(), "Oops");
    EXPECT_EQ(info.last_worker_identity(), "worker");
    EXPECT_EQ(span_of(info.current_retry_interval()), 1s);
    EXPECT_TRUE(info.has_next_attempt_schedule_time());

    advance(1s);
    EXPECT_FALSE(described_activity().has_next_attempt_schedule_time()) << "it waits for a worker";
}

TEST_F(DescribeTest, AnActivityThatIsToStopSaysSo) {
    start_with_activity();
    start_activity(5);
    signal("stop");
    poll();
    ASSERT_TRUE(complete({cancel_activity_command(5)}));
    EXPECT_EQ(described_activity().state(), PENDING_ACTIVITY_STATE_CANCEL_REQUESTED);
}

TEST_F(DescribeTest, PendingChildrenAreListedInTheirOrder) {
    HOLDFAST_CHECK("server H209");
    start();
    poll();
    complete(
        {start_child_command("first"), start_child_command("second", PARENT_CLOSE_POLICY_ABANDON)});
    transition([](Transition& t) { return child_started(t, 6, "second-run"); });
    const auto response = described();
    ASSERT_EQ(response.pending_children_size(), 2);
    EXPECT_EQ(response.pending_children(0).workflow_id(), "first");
    EXPECT_TRUE(response.pending_children(0).run_id().empty());
    EXPECT_EQ(response.pending_children(1).run_id(), "second-run");
    EXPECT_EQ(response.pending_children(1).workflow_type_name(), "Child");
    EXPECT_EQ(response.pending_children(1).initiated_id(), 6);
    EXPECT_EQ(response.pending_children(1).parent_close_policy(), PARENT_CLOSE_POLICY_ABANDON);
}

TEST_F(DescribeTest, AChildShowsItsParentAndItsRoot) {
    Started started;
    started.set_parent_workflow_namespace_id("namespace-id");
    started.mutable_parent_workflow_execution()->set_workflow_id("parent");
    started.mutable_root_workflow_execution()->set_workflow_id("grandparent");
    start(started);
    const auto info = described().workflow_execution_info();
    EXPECT_EQ(info.parent_namespace_id(), "namespace-id");
    EXPECT_EQ(info.parent_execution().workflow_id(), "parent");
    EXPECT_EQ(info.root_execution().workflow_id(), "grandparent");
}

}  // namespace

}  // namespace holdfast::server::history::tests
