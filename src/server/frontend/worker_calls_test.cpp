#include "frontend/test/frontend_fixture.hpp"
#include "history/activity.hpp"
#include <server/engine/token.pb.h>

#include <holdfast/testing/check.hpp>

namespace holdfast::server::frontend::tests {

namespace {

namespace enums = temporal::api::enums::v1;

using rpc::StatusCode;

class WorkerCalls : public FrontendTest {
protected:
    // Runs order-7 up to a started activity "charge", and returns the token of its attempt.
    std::string start_activity() {
        start_order();
        api::RespondWorkflowTaskCompletedRequest request;
        request.set_namespace_("home");
        request.set_task_token(turns.poll_task(order));
        auto& command = *request.add_commands();
        command.set_command_type(enums::COMMAND_TYPE_SCHEDULE_ACTIVITY_TASK);
        auto& attributes = *command.mutable_schedule_activity_task_command_attributes();
        attributes.set_activity_id("charge");
        attributes.mutable_activity_type()->set_name("Charge");
        attributes.mutable_task_queue()->set_name("orders");
        attributes.mutable_start_to_close_timeout()->set_seconds(10);
        call<api::RespondWorkflowTaskCompletedResponse>("RespondWorkflowTaskCompleted", request);
        static_cast<void>(turns.apply(*turns.run_of(order), [](history::Transition& transition) {
            return history::start_activity(transition, scheduled_event_id, 0, "worker", "poll");
        }));
        engine::token::Task task;
        auto& token = *task.mutable_activity();
        token.set_namespace_id(home_id);
        token.set_workflow_id("order-7");
        token.set_run_id(turns.run_of(order)->run.run_id());
        token.set_scheduled_event_id(scheduled_event_id);
        token.set_attempt(1);
        token.set_activity_id("charge");
        return task.SerializeAsString();
    }

    [[nodiscard]] bool pending() { return !turns.run_of(order)->run.activities().empty(); }

    // The last event of this type.
    const temporal::api::history::v1::HistoryEvent& event(enums::EventType type) {
        static const temporal::api::history::v1::HistoryEvent none;
        const temporal::api::history::v1::HistoryEvent* found = &none;
        for (const auto& batch : turns.run_of(order)->batches) {
            for (const auto& event : batch.events()) {
                found = event.event_type() == type ? &event : found;
            }
        }
        return *found;
    }

    static constexpr std::int64_t scheduled_event_id = 5;
    const std::string large = std::string((std::size_t{2} << 20) + 1, 'x');
};

TEST_F(WorkerCalls, ATokenThatIsMissingOrDamagedIsRefused) {
    HOLDFAST_CHECK("server F7");
    HOLDFAST_CHECK("server F8");
    api::RecordActivityTaskHeartbeatRequest heartbeat;
    heartbeat.set_namespace_("home");
    EXPECT_EQ(refused("RecordActivityTaskHeartbeat", heartbeat).message,
              "Task token not set on request.");
    for (const char* bytes : {"random", "\x0a\x00", "\xff\xff"}) {
        heartbeat.set_task_token(bytes);
        EXPECT_EQ(refused("RecordActivityTaskHeartbeat", heartbeat),
                  rpc::Refusal(StatusCode::invalid_argument, "Error deserializing task token."));
        api::RespondWorkflowTaskCompletedRequest completed;
        completed.set_namespace_("home");
        completed.set_task_token(bytes);
        EXPECT_EQ(refused("RespondWorkflowTaskCompleted", completed).message,
                  "Error deserializing task token.");
    }
}

TEST_F(WorkerCalls, TheTokenOfAWorkflowTaskIsNotOneOfAnActivity) {
    start_order();
    api::RespondActivityTaskCompletedRequest request;
    request.set_namespace_("home");
    request.set_task_token(turns.poll_task(order));
    EXPECT_EQ(refused("RespondActivityTaskCompleted", request).message,
              "Error deserializing task token.");
}

TEST_F(WorkerCalls, ATokenNamesItsNamespace) {
    HOLDFAST_CHECK("server F5");
    start_order();
    api::RespondWorkflowTaskCompletedRequest request;
    request.set_task_token(turns.poll_task(order));
    call<api::RespondWorkflowTaskCompletedResponse>("RespondWorkflowTaskCompleted", request);
    EXPECT_FALSE(turns.run_of(order)->run.has_workflow_task());
}

TEST_F(WorkerCalls, ATokenOfAnotherNamespaceIsRefusedAndChangesNothing) {
    HOLDFAST_CHECK("server F6");
    api::RespondActivityTaskCompletedRequest request;
    request.set_task_token(start_activity());
    request.set_namespace_("retired");
    EXPECT_EQ(refused("RespondActivityTaskCompleted", request).message,
              "Operation requested with a token from a different namespace.");
    EXPECT_TRUE(pending());
}

TEST_F(WorkerCalls, ACompletionGetsTheNextTaskIfItAsksForItAndThereIsOne) {
    start_order();
    api::RespondWorkflowTaskCompletedRequest request;
    request.set_namespace_("home");
    request.set_task_token(turns.poll_task(order));
    request.set_return_new_workflow_task(true);
    request.set_force_create_new_workflow_task(true);
    const auto with =
        call<api::RespondWorkflowTaskCompletedResponse>("RespondWorkflowTaskCompleted", request);
    ASSERT_TRUE(with.has_workflow_task());
    request.set_task_token(with.workflow_task().task_token());
    request.set_force_create_new_workflow_task(false);
    EXPECT_FALSE(
        call<api::RespondWorkflowTaskCompletedResponse>("RespondWorkflowTaskCompleted", request)
            .has_workflow_task());
}

TEST_F(WorkerCalls, ATaskFailureThatIsTooLargeIsReplaced) {
    HOLDFAST_CHECK("server F78");
    start_order();
    api::RespondWorkflowTaskFailedRequest request;
    request.set_namespace_("home");
    request.set_task_token(turns.poll_task(order));
    request.mutable_failure()->set_message(large);
    call<api::RespondWorkflowTaskFailedResponse>("RespondWorkflowTaskFailed", request);
    EXPECT_EQ(event(enums::EVENT_TYPE_WORKFLOW_TASK_FAILED)
                  .workflow_task_failed_event_attributes()
                  .failure()
                  .message(),
              "Failure exceeds size limit.");
}

TEST_F(WorkerCalls, HeartbeatDetailsThatAreTooLargeFailTheActivity) {
    HOLDFAST_CHECK("server F79");
    api::RecordActivityTaskHeartbeatRequest request;
    request.set_namespace_("home");
    request.set_task_token(start_activity());
    EXPECT_FALSE(
        call<api::RecordActivityTaskHeartbeatResponse>("RecordActivityTaskHeartbeat", request)
            .cancel_requested());
    EXPECT_TRUE(pending());
    request.mutable_details()->add_payloads()->set_data(large);
    EXPECT_TRUE(
        call<api::RecordActivityTaskHeartbeatResponse>("RecordActivityTaskHeartbeat", request)
            .cancel_requested());
    EXPECT_FALSE(pending());
}

TEST_F(WorkerCalls, AResultThatIsTooLargeFailsTheActivity) {
    HOLDFAST_CHECK("server F80");
    api::RespondActivityTaskCompletedRequest request;
    request.set_namespace_("home");
    request.set_task_token(start_activity());
    request.mutable_result()->add_payloads()->set_data(large);
    call<api::RespondActivityTaskCompletedResponse>("RespondActivityTaskCompleted", request);
    EXPECT_EQ(event(enums::EVENT_TYPE_ACTIVITY_TASK_FAILED)
                  .activity_task_failed_event_attributes()
                  .failure()
                  .message(),
              "Complete result exceeds size limit.");
}

TEST_F(WorkerCalls, AFailureNeedsApplicationInfoAndIsReplacedIfTooLarge) {
    HOLDFAST_CHECK("server F81");
    api::RespondActivityTaskFailedRequest request;
    request.set_namespace_("home");
    request.set_task_token(start_activity());
    request.mutable_failure()->mutable_canceled_failure_info();
    EXPECT_EQ(refused("RespondActivityTaskFailed", request).message,
              "Failure must have ApplicationFailureInfo.");
    request.mutable_failure()->mutable_application_failure_info();
    request.mutable_failure()->set_message(large);
    const auto response =
        call<api::RespondActivityTaskFailedResponse>("RespondActivityTaskFailed", request);
    ASSERT_EQ(response.failures_size(), 1);
    EXPECT_EQ(response.failures(0).message(), "Failure exceeds size limit.");
    EXPECT_FALSE(pending());
}

TEST_F(WorkerCalls, AnActivityEndsByItsIdAsWell) {
    HOLDFAST_CHECK("server F82");
    start_activity();
    api::RespondActivityTaskCompletedByIdRequest request;
    request.set_namespace_("home");
    request.set_activity_id("charge");
    EXPECT_EQ(refused("RespondActivityTaskCompletedById", request).message,
              "WorkflowId is not set on request.");
    request.set_workflow_id("order-7");
    request.set_activity_id("nope");
    EXPECT_EQ(refused("RespondActivityTaskCompletedById", request).message,
              "cannot find pending activity with ActivityID nope, check workflow execution history "
              "for more details");
    request.set_activity_id("charge");
    call<api::RespondActivityTaskCompletedByIdResponse>("RespondActivityTaskCompletedById",
                                                        request);
    EXPECT_FALSE(pending());
}

class Polls : public FrontendTest {
protected:
    Polls() {
        request.set_namespace_("home");
        request.mutable_task_queue()->set_name("orders");
        within(std::chrono::seconds{70});
    }
    void within(std::chrono::seconds wait) { deadline = clock.wall_now() + wait; }

    api::PollWorkflowTaskQueueRequest request;
};

TEST_F(Polls, APollNeedsADeadlineThatLeavesTime) {
    HOLDFAST_CHECK("server F72");
    HOLDFAST_CHECK("server F73");
    deadline.reset();
    EXPECT_EQ(refused("PollWorkflowTaskQueue", request),
              rpc::Refusal(StatusCode::invalid_argument, "Context timeout is not set."));
    within(std::chrono::seconds{1});
    EXPECT_EQ(refused("PollWorkflowTaskQueue", request),
              rpc::Refusal(StatusCode::failed_precondition, "Context timeout is too short."));
}

TEST_F(Polls, APollNamesAQueueAndAKnownNamespace) {
    HOLDFAST_CHECK("server F3");
    HOLDFAST_CHECK("server F29");
    request.mutable_task_queue()->clear_name();
    EXPECT_EQ(refused("PollWorkflowTaskQueue", request).message, "missing task queue name");
    request.mutable_task_queue()->set_name("/_sys/orders/1");
    EXPECT_EQ(refused("PollWorkflowTaskQueue", request).message,
              "task queue name cannot start with reserved prefix /_sys/");
    auto start = start_request("order-7");
    start.mutable_task_queue()->set_name("/_sys/orders/1");
    EXPECT_EQ(refused("StartWorkflowExecution", start).message,
              "task queue name cannot start with reserved prefix /_sys/");
    request.mutable_task_queue()->set_name("orders");
    request.set_namespace_("nowhere");
    EXPECT_EQ(refused("PollWorkflowTaskQueue", request).detail_type,
              "temporal.api.errordetails.v1.NamespaceNotFoundFailure");
}

TEST_F(Polls, AVersionedPollNeedsABuildIdAndIsNotPermitted) {
    HOLDFAST_CHECK("server F88");
    auto& options = *request.mutable_deployment_options();
    options.set_worker_versioning_mode(enums::WORKER_VERSIONING_MODE_VERSIONED);
    EXPECT_EQ(refused("PollWorkflowTaskQueue", request).code, StatusCode::invalid_argument);
    options.set_deployment_name("shop");
    options.set_build_id("1");
    EXPECT_EQ(refused("PollWorkflowTaskQueue", request).code, StatusCode::permission_denied);
}

}  // namespace

}  // namespace holdfast::server::frontend::tests
