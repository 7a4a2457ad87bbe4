#include "history/start/first_run.hpp"

#include "history/projection.hpp"
#include "history/retry.hpp"
#include "history/test/run_fixture.hpp"
#include <gmock/gmock.h>

#include <holdfast/testing/check.hpp>

namespace holdfast::server::history::tests {

namespace {

using temporal::api::workflowservice::v1::SignalWithStartWorkflowExecutionRequest;
using temporal::api::workflowservice::v1::StartWorkflowExecutionRequest;

class FirstRunTest : public RunFixture {
protected:
    bool start_eagerly(const Started& wanted) {
        bool eager = false;
        Started started = wanted;
        started.set_workflow_id("order-7");
        started.mutable_task_queue()->set_name("queue");
        started.mutable_workflow_type()->set_name("Order");
        started.set_identity("client");
        normalise_timeouts(started, limits);
        transition([&](Transition& t) -> std::optional<Refusal> {
            eager = start_run_eagerly(t, started, "start-request");
            return std::nullopt;
        });
        return eager;
    }
};

StartWorkflowExecutionRequest order_request() {
    StartWorkflowExecutionRequest request;
    request.set_workflow_id("order-7");
    request.mutable_workflow_type()->set_name("Order");
    request.mutable_task_queue()->set_name("queue");
    request.set_identity("client");
    return request;
}

TEST_F(FirstRunTest, ARequestBecomesEventOne) {
    StartWorkflowExecutionRequest request = order_request();
    request.mutable_retry_policy()->set_maximum_attempts(3);
    const Started started = std::get<Started>(first_run(request, Time{}, limits));
    EXPECT_EQ(started.workflow_id(), "order-7");
    EXPECT_EQ(started.task_queue().kind(), TASK_QUEUE_KIND_NORMAL);
    EXPECT_EQ(started.identity(), "client");
    EXPECT_EQ(span_of(started.workflow_task_timeout()), 10s);
    EXPECT_EQ(span_of(started.retry_policy().initial_interval()), 1s) << "defaults are filled";
    EXPECT_TRUE(started.has_first_workflow_task_backoff());
    EXPECT_EQ(span_of(started.first_workflow_task_backoff()), 0s);
    EXPECT_FALSE(started.has_workflow_run_timeout());
}

TEST_F(FirstRunTest, ADelayIsItsFirstBackoff) {
    SignalWithStartWorkflowExecutionRequest request;
    *request.mutable_workflow_start_delay() = to_duration(7s);
    const Started started = std::get<Started>(first_run(request, Time{}, limits));
    EXPECT_EQ(span_of(started.first_workflow_task_backoff()), 7s);
    EXPECT_EQ(started.initiator(), CONTINUE_AS_NEW_INITIATOR_UNSPECIFIED);
}

TEST_F(FirstRunTest, AScheduleMakesItWaitForItsSlot) {
    StartWorkflowExecutionRequest request = order_request();
    request.set_cron_schedule("@every 4s");
    const Started started = std::get<Started>(first_run(request, Time{}, limits));
    EXPECT_EQ(span_of(started.first_workflow_task_backoff()), 4s);
    EXPECT_EQ(started.initiator(), CONTINUE_AS_NEW_INITIATOR_CRON_SCHEDULE);
}

TEST_F(FirstRunTest, ADelayAndAScheduleExcludeEachOther) {
    HOLDFAST_CHECK("server H25");
    StartWorkflowExecutionRequest request = order_request();
    request.set_cron_schedule("@daily");
    *request.mutable_workflow_start_delay() = to_duration(1s);
    EXPECT_EQ(std::get<Refusal>(first_run(request, Time{}, limits)).message,
              "CronSchedule and WorkflowStartDelay may not be used together.");
    request.clear_workflow_start_delay();
    request.set_cron_schedule("soon");
    EXPECT_EQ(std::get<Refusal>(first_run(request, Time{}, limits)).message,
              "invalid CronSchedule.");
}

TEST_F(FirstRunTest, AStartMakesTwoEvents) {
    HOLDFAST_CHECK("server H1");
    start();
    EXPECT_EQ(history(), "1 Started, 2 WorkflowTaskScheduled");
    EXPECT_EQ(last.batches.size(), 1U);
    EXPECT_THAT(made(), testing::ElementsAre(Task::Kind::workflow_task));
}

TEST_F(FirstRunTest, NullValuesOfAttributesAreNotKept) {
    HOLDFAST_CHECK("server H21");
    Started started;
    auto& fields = *started.mutable_search_attributes()->mutable_indexed_fields();
    fields["Kept"].set_data("1");
    fields["Dropped"].set_data("null");
    (*fields["Dropped"].mutable_metadata())["encoding"] = "json/plain";
    start(started);
    const auto& written = event(1).workflow_execution_started_event_attributes();
    EXPECT_TRUE(written.search_attributes().indexed_fields().contains("Kept"));
    EXPECT_FALSE(written.search_attributes().indexed_fields().contains("Dropped"));
}

TEST_F(FirstRunTest, AnEagerStartHasItsFirstTaskStarted) {
    HOLDFAST_CHECK("server H27");
    ASSERT_TRUE(start_eagerly({}));
    EXPECT_EQ(history(), "1 Started, 2 WorkflowTaskScheduled, 3 WorkflowTaskStarted");
    EXPECT_EQ(last.batches.size(), 1U);
    EXPECT_TRUE(made().empty()) << "the client has it, so the queue must not";
    EXPECT_TRUE(event(1).workflow_execution_started_event_attributes().eager_execution_accepted());
    const auto& task = event(3).workflow_task_started_event_attributes();
    EXPECT_EQ(task.identity(), "client");
    EXPECT_EQ(task.request_id(), "start-request");
    EXPECT_EQ(task.history_size_bytes(), 0);
    EXPECT_TRUE(complete({complete_command()}));
}

TEST_F(FirstRunTest, AnEagerTaskThatIsNotAnsweredGoesToTheQueue) {
    HOLDFAST_CHECK("server H28");
    start_eagerly({});
    advance(10s);
    EXPECT_TRUE(history().ends_with("4 WorkflowTaskTimedOut")) << history();
    EXPECT_THAT(made(), testing::ElementsAre(Task::Kind::workflow_task));
    EXPECT_TRUE(poll());
}

TEST_F(FirstRunTest, ARepeatedEagerStartGetsItsTaskWhileItStands) {
    HOLDFAST_CHECK("server H29");
    HOLDFAST_CHECK("server H30");
    start_eagerly({});
    EXPECT_TRUE(eager_task_stands(run(), "start-request"));
    EXPECT_FALSE(eager_task_stands(run(), "another request"));
    advance(10s);
    EXPECT_FALSE(eager_task_stands(run(), "start-request"));
}

TEST_F(FirstRunTest, AStartWithADelayIsNotEager) {
    HOLDFAST_CHECK("server H33");
    Started started;
    *started.mutable_first_workflow_task_backoff() = to_duration(3s);
    EXPECT_FALSE(start_eagerly(started));
    EXPECT_EQ(history(), "1 Started");
    EXPECT_FALSE(event(1).workflow_execution_started_event_attributes().eager_execution_accepted());
}

// The next run of an eager chain has no client that waits for it.
TEST_F(FirstRunTest, TheRetryOfAnEagerRunGoesThroughTheQueue) {
    HOLDFAST_CHECK("server H32");
    Started started;
    started.mutable_retry_policy()->set_maximum_attempts(2);
    fill_defaults(*started.mutable_retry_policy());
    start_eagerly(started);
    ASSERT_TRUE(complete({fail_command()}));
    ASSERT_TRUE(last.next);
    EXPECT_FALSE(last.next->started.eager_execution_accepted());
}

TEST_F(FirstRunTest, AChildKnowsItsParentAndItsRoot) {
    HOLDFAST_CHECK("server H187");
    HOLDFAST_CHECK("server H188");
    start();
    EXPECT_FALSE(
        event(1).workflow_execution_started_event_attributes().has_root_workflow_execution());
    poll();
    Command command = start_child_command("child");
    auto& asked = *command.mutable_start_child_workflow_execution_command_attributes();
    asked.mutable_input()->add_payloads()->set_data("in");
    (*asked.mutable_memo()->mutable_fields())["note"].set_data("1");
    ASSERT_TRUE(complete({command}));
    const Started child = child_run(run(), "default", event(5), Time{});
    EXPECT_EQ(child.parent_workflow_namespace(), "default");
    EXPECT_EQ(child.parent_workflow_execution().workflow_id(), "order-7");
    EXPECT_EQ(child.parent_workflow_execution().run_id(), "run-1");
    EXPECT_EQ(child.parent_initiated_event_id(), 5);
    EXPECT_EQ(child.root_workflow_execution().workflow_id(), "order-7");
    EXPECT_EQ(child.input().payloads(0).data(), "in");
    EXPECT_EQ(child.memo().fields().at("note").data(), "1");
    EXPECT_TRUE(child.identity().empty());

    state::Run in_between = new_run("namespace-id", "child-run");
    *in_between.mutable_started() = child;
    in_between.set_workflow_id("child");
    const Started grandchild = child_run(in_between, "default", event(5), Time{});
    EXPECT_EQ(grandchild.parent_workflow_execution().workflow_id(), "child");
    EXPECT_EQ(grandchild.root_workflow_execution().workflow_id(), "order-7");
}

TEST_F(FirstRunTest, AChildInheritsWhatItsPriorityDoesNotSay) {
    Started started;
    started.mutable_priority()->set_priority_key(2);
    started.mutable_priority()->set_fairness_key("tenant");
    start(started);
    poll();
    Command command = start_child_command("child");
    command.mutable_start_child_workflow_execution_command_attributes()
        ->mutable_priority()
        ->set_priority_key(4);
    ASSERT_TRUE(complete({command}));
    const Started child = child_run(run(), "default", event(5), Time{});
    EXPECT_EQ(child.priority().priority_key(), 4);
    EXPECT_EQ(child.priority().fairness_key(), "tenant");
}

}  // namespace

}  // namespace holdfast::server::history::tests
