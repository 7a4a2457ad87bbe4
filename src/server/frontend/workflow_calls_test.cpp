#include "frontend/test/frontend_fixture.hpp"
#include <temporal/api/errordetails/v1/message.pb.h>

#include <holdfast/api/services.hpp>
#include <holdfast/testing/check.hpp>

namespace holdfast::server::frontend::tests {

namespace {

namespace enums = temporal::api::enums::v1;

using rpc::StatusCode;

class StartCalls : public FrontendTest {
protected:
    std::string start_text(const api::StartWorkflowExecutionRequest& request) {
        return refused("StartWorkflowExecution", request).message;
    }
};

TEST_F(StartCalls, AStartAnswersWithTheRunAndALinkToItsFirstEvent) {
    const auto response = call<api::StartWorkflowExecutionResponse>("StartWorkflowExecution",
                                                                    start_request("order-7"));
    EXPECT_TRUE(response.started());
    EXPECT_EQ(response.first_execution_run_id(), response.run_id());
    EXPECT_EQ(response.status(), enums::WORKFLOW_EXECUTION_STATUS_RUNNING);
    EXPECT_EQ(response.link().workflow_event().namespace_(), "home");
    EXPECT_EQ(response.link().workflow_event().event_ref().event_id(), 1);
    EXPECT_FALSE(turns.last_start.request_id.empty()) << "one is made if there is none";
    EXPECT_EQ(turns.last_start.started.workflow_task_timeout().seconds(), 10);
}

TEST_F(StartCalls, ARunningWorkflowRefusesAnotherStartAndNamesItsRun) {
    HOLDFAST_CHECK("server F43");
    const std::string run_id = start_order();
    const auto refusal = refused("StartWorkflowExecution", start_request("order-7"));
    EXPECT_EQ(refusal.code, StatusCode::already_exists);
    temporal::api::errordetails::v1::WorkflowExecutionAlreadyStartedFailure detail;
    ASSERT_EQ(refusal.detail_type, detail.GetTypeName());
    ASSERT_TRUE(detail.ParseFromString(refusal.detail));
    EXPECT_EQ(detail.run_id(), run_id);
    EXPECT_EQ(detail.start_request_id(), "the first");
}

TEST_F(StartCalls, ANamespaceIsNamedKnownAndRegistered) {
    HOLDFAST_CHECK("server F9");
    auto request = start_request("order-7");
    request.clear_namespace_();
    EXPECT_EQ(start_text(request), "Namespace is empty.");
    request.set_namespace_("nowhere");
    EXPECT_EQ(refused("StartWorkflowExecution", request).code, StatusCode::not_found);
    EXPECT_EQ(refusal().message, "Namespace nowhere is not found.");
    request.set_namespace_("retired");
    EXPECT_EQ(refused("StartWorkflowExecution", request).code, StatusCode::failed_precondition);
    temporal::api::errordetails::v1::NamespaceInvalidStateFailure detail;
    ASSERT_TRUE(detail.ParseFromString(refusal().detail));
    EXPECT_EQ(detail.state(), enums::NAMESPACE_STATE_DEPRECATED);
    EXPECT_EQ(detail.allowed_states_size(), 1);
}

TEST_F(StartCalls, PoliciesThatContradictEachOtherAreRefused) {
    HOLDFAST_CHECK("server F45");
    HOLDFAST_CHECK("server F46");
    auto request = start_request("order-7");
    request.set_workflow_id_reuse_policy(enums::WORKFLOW_ID_REUSE_POLICY_TERMINATE_IF_RUNNING);
    request.set_workflow_id_conflict_policy(enums::WORKFLOW_ID_CONFLICT_POLICY_FAIL);
    EXPECT_EQ(start_text(request),
              "Invalid WorkflowIDReusePolicy: WORKFLOW_ID_REUSE_POLICY_TERMINATE_IF_RUNNING cannot "
              "be used together with a WorkflowIDConflictPolicy");
    request.set_workflow_id_reuse_policy(enums::WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE);
    request.set_workflow_id_conflict_policy(enums::WORKFLOW_ID_CONFLICT_POLICY_TERMINATE_EXISTING);
    EXPECT_EQ(refused("StartWorkflowExecution", request).code, StatusCode::invalid_argument);
    request.set_workflow_id_reuse_policy(enums::WORKFLOW_ID_REUSE_POLICY_TERMINATE_IF_RUNNING);
    request.clear_workflow_id_conflict_policy();
    call<api::StartWorkflowExecutionResponse>("StartWorkflowExecution", request);
    EXPECT_EQ(turns.last_start.reuse, enums::WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE);
    EXPECT_EQ(turns.last_start.conflict, enums::WORKFLOW_ID_CONFLICT_POLICY_TERMINATE_EXISTING);
}

TEST_F(StartCalls, ScheduleAndDelayAreCheckedTogether) {
    HOLDFAST_CHECK("server F47");
    HOLDFAST_CHECK("server F48");
    auto request = start_request("order-7");
    request.set_cron_schedule("never");
    EXPECT_EQ(start_text(request), "invalid CronSchedule.");
    request.mutable_workflow_start_delay()->set_seconds(5);
    EXPECT_EQ(start_text(request), "CronSchedule and WorkflowStartDelay may not be used together.");
    request.clear_cron_schedule();
    call<api::StartWorkflowExecutionResponse>("StartWorkflowExecution", request);
    EXPECT_EQ(turns.last_start.started.first_workflow_task_backoff().seconds(), 5);
}

TEST_F(StartCalls, AScheduleIsHandedOn) {
    auto request = start_request("order-7");
    request.set_cron_schedule("@every 90s");
    call<api::StartWorkflowExecutionResponse>("StartWorkflowExecution", request);
    EXPECT_EQ(turns.last_start.started.cron_schedule(), "@every 90s");
}

TEST_F(StartCalls, ATimeoutIsNotNegativeAndCappedAtACentury) {
    HOLDFAST_CHECK("server F31");
    auto request = start_request("order-7");
    request.mutable_workflow_run_timeout()->set_seconds(-1);
    EXPECT_EQ(start_text(request),
              "An invalid WorkflowRunTimeoutSeconds is set on request. cause: negative duration");
    request.mutable_workflow_run_timeout()->set_seconds(200LL * 366 * 24 * 3600);
    call<api::StartWorkflowExecutionResponse>("StartWorkflowExecution", request);
    EXPECT_EQ(history::span_of(turns.last_start.started.workflow_run_timeout()), history::span_max);
}

TEST_F(StartCalls, InputAndMemoHaveLimits) {
    HOLDFAST_CHECK("server F38");
    HOLDFAST_CHECK("server F40");
    const std::string large((std::size_t{2} << 20) + 1, 'x');
    auto request = start_request("order-7");
    request.mutable_input()->add_payloads()->set_data(large);
    EXPECT_EQ(start_text(request), "Blob data size exceeds limit.");
    request.clear_input();
    (*request.mutable_memo()->mutable_fields())["m"].set_data(large);
    EXPECT_EQ(start_text(request), "Memo size exceeds limit.");
}

TEST_F(StartCalls, ACallbackToAnAddressIsRefused) {
    auto request = start_request("order-7");
    request.add_completion_callbacks()->mutable_nexus()->set_url("http://elsewhere/");
    EXPECT_EQ(refused("StartWorkflowExecution", request).code, StatusCode::invalid_argument);
    EXPECT_EQ(turns.turns, 0U) << "nothing was begun";
}

TEST_F(StartCalls, ASignalWithStartUsesARunningWorkflowUnlessToldOtherwise) {
    HOLDFAST_CHECK("server F49");
    api::SignalWithStartWorkflowExecutionRequest request;
    request.set_namespace_("home");
    request.set_workflow_id("order-7");
    request.mutable_workflow_type()->set_name("Order");
    request.mutable_task_queue()->set_name("orders");
    request.set_signal_name("paid");
    request.set_workflow_id_conflict_policy(enums::WORKFLOW_ID_CONFLICT_POLICY_FAIL);
    EXPECT_EQ(refused("SignalWithStartWorkflowExecution", request).message,
              "Invalid WorkflowIDConflictPolicy: WORKFLOW_ID_CONFLICT_POLICY_FAIL is not supported "
              "for this operation.");
    request.clear_workflow_id_conflict_policy();
    call<api::SignalWithStartWorkflowExecutionResponse>("SignalWithStartWorkflowExecution",
                                                        request);
    EXPECT_EQ(turns.last_start.conflict, enums::WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING);
    ASSERT_TRUE(turns.last_start.signal);
    EXPECT_EQ(turns.last_start.signal->request_id(), turns.last_start.request_id);
}

class RunCalls : public FrontendTest {};

TEST_F(RunCalls, ASignalNeedsANameAndAnswersWithALink) {
    HOLDFAST_CHECK("server F50");
    const std::string run_id = start_order();
    auto request = about_order<api::SignalWorkflowExecutionRequest>();
    EXPECT_EQ(refused("SignalWorkflowExecution", request).message,
              "SignalName is not set on request.");
    request.set_signal_name("paid");
    request.set_request_id("once");
    const auto response =
        call<api::SignalWorkflowExecutionResponse>("SignalWorkflowExecution", request);
    EXPECT_EQ(response.link().workflow_event().run_id(), run_id);
    EXPECT_EQ(response.link().workflow_event().request_id_ref().request_id(), "once");
    EXPECT_EQ(turns.run_of(order)->run.signal_count(), 1);
}

TEST_F(RunCalls, AnUnknownWorkflowIsNotFoundWithItsDetail) {
    HOLDFAST_CHECK("server F69");
    auto signal = about_order<api::SignalWorkflowExecutionRequest>();
    signal.set_signal_name("paid");
    EXPECT_EQ(refused("SignalWorkflowExecution", signal),
              rpc::Refusal(StatusCode::not_found,
                           "workflow not found for ID: order-7",
                           temporal::api::errordetails::v1::NotFoundFailure()));
    const auto not_found = refusal();
    EXPECT_EQ(refused("RequestCancelWorkflowExecution",
                      about_order<api::RequestCancelWorkflowExecutionRequest>()),
              not_found);
    EXPECT_EQ(refused("TerminateWorkflowExecution",
                      about_order<api::TerminateWorkflowExecutionRequest>()),
              not_found);
    api::DescribeWorkflowExecutionRequest describe;
    describe.set_namespace_("home");
    describe.mutable_execution()->set_workflow_id("order-7");
    EXPECT_EQ(refused("DescribeWorkflowExecution", describe), not_found);
}

TEST_F(RunCalls, ATerminationWithoutReasonGetsTheDefaults) {
    HOLDFAST_CHECK("server F67");
    start_order();
    call<api::TerminateWorkflowExecutionResponse>(
        "TerminateWorkflowExecution", about_order<api::TerminateWorkflowExecutionRequest>());
    const auto& last = turns.run_of(order)->batches.back().events(0);
    const auto& attributes = last.workflow_execution_terminated_event_attributes();
    EXPECT_EQ(attributes.reason(), "terminated by user via frontend");
    EXPECT_EQ(attributes.identity(), "frontend-service");
}

TEST_F(RunCalls, AClosedRunTakesACancelAndRefusesATermination) {
    start_order();
    const auto terminate = about_order<api::TerminateWorkflowExecutionRequest>();
    call<api::TerminateWorkflowExecutionResponse>("TerminateWorkflowExecution", terminate);
    call<api::RequestCancelWorkflowExecutionResponse>(
        "RequestCancelWorkflowExecution",
        about_order<api::RequestCancelWorkflowExecutionRequest>());
    EXPECT_EQ(refused("TerminateWorkflowExecution", terminate).message,
              "workflow execution already completed");
}

TEST_F(RunCalls, ACancelOfAnotherChainIsNotFound) {
    start_order();
    auto request = about_order<api::RequestCancelWorkflowExecutionRequest>();
    request.set_first_execution_run_id(home_id);
    EXPECT_EQ(refused("RequestCancelWorkflowExecution", request).code, StatusCode::not_found);
    EXPECT_FALSE(turns.run_of(order)->run.cancel_requested());
}

TEST_F(RunCalls, AnExecutionIsNamedByIdsThatMakeSense) {
    HOLDFAST_CHECK("server F27");
    HOLDFAST_CHECK("server F28");
    api::DescribeWorkflowExecutionRequest request;
    request.set_namespace_("home");
    EXPECT_EQ(refused("DescribeWorkflowExecution", request).message,
              "Execution is not set on request.");
    request.mutable_execution()->set_workflow_id("order-7");
    request.mutable_execution()->set_run_id("the newest");
    EXPECT_EQ(refused("DescribeWorkflowExecution", request).message, "Invalid RunId.");
}

TEST_F(RunCalls, ADeprecatedNamespaceStillTakesSignals) {
    auto request = about_order<api::SignalWorkflowExecutionRequest>();
    request.set_namespace_("retired");
    request.set_signal_name("paid");
    EXPECT_EQ(refused("SignalWorkflowExecution", request).code, StatusCode::not_found)
        << "the workflow, not the namespace";
    EXPECT_EQ(refusal().message, "workflow not found for ID: order-7");
}

TEST_F(RunCalls, EveryMethodOfBothServicesAnswersAnEmptyRequestWithAStatus) {
    HOLDFAST_CHECK("server F24");
    HOLDFAST_CHECK("server F25");
    std::size_t methods = 0;
    for (const auto* service : holdfast::api::services()) {
        if (service->name() != "WorkflowService" && service->name() != "OperatorService") {
            continue;
        }
        for (int i = 0; i < service->method_count(); ++i, ++methods) {
            answers.clear();
            auto call = std::make_shared<rpc::Call>(
                rpc::CallInfo{
                    .method = "/" + service->full_name() + "/" + service->method(i)->name(),
                    .deadline = {},
                    .caller = {}},
                [this](rpc::Answer answer) { answers.push_back(std::move(answer)); });
            dispatch.run(call, "");
            ASSERT_EQ(answers.size(), 1U) << service->method(i)->full_name();
            EXPECT_NE(refusal().code, StatusCode::internal) << service->method(i)->full_name();
        }
    }
    EXPECT_GT(methods, 120U);
}

}  // namespace

}  // namespace holdfast::server::frontend::tests
