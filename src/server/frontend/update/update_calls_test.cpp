#include "frontend/test/frontend_fixture.hpp"
#include <temporal/api/errordetails/v1/message.pb.h>

#include <holdfast/testing/check.hpp>

namespace holdfast::server::frontend::tests {

namespace {

namespace enums = temporal::api::enums::v1;

using rpc::StatusCode;

class UpdateCalls : public FrontendTest {
protected:
    UpdateCalls() {
        request = about_order<api::UpdateWorkflowExecutionRequest>();
        request.mutable_request()->mutable_meta()->set_update_id("u");
        request.mutable_request()->mutable_input()->set_name("add");
        both.set_namespace_("home");
        *both.add_operations()->mutable_start_workflow() = start_request("order-7");
        *both.add_operations()->mutable_update_workflow() = request;
    }

    std::string refused_update() { return refused("UpdateWorkflowExecution", request).message; }

    // "INVALID_ARGUMENT: text" of each operation.
    std::vector<std::string> statuses() {
        const rpc::Refusal all = refused("ExecuteMultiOperation", both);
        temporal::api::errordetails::v1::MultiOperationExecutionFailure failure;
        EXPECT_TRUE(failure.ParseFromString(all.detail));
        EXPECT_EQ(all.message, "Update-with-Start could not be executed.");
        EXPECT_EQ(all.code, StatusCode::invalid_argument);
        std::vector<std::string> texts;
        for (const auto& status : failure.statuses()) {
            texts.push_back(std::to_string(status.code()) + " " + status.message());
        }
        return texts;
    }

    api::UpdateWorkflowExecutionRequest request;
    api::ExecuteMultiOperationRequest both;
};

TEST_F(UpdateCalls, AnUpdateNamesWhatItNeeds) {
    EXPECT_EQ(refused_update(), "workflow not found for ID: order-7");
    start_order();
    request.mutable_request()->clear_meta();
    EXPECT_EQ(refused_update(), "Update meta is not set on request.");
    request.mutable_request()->mutable_meta()->set_update_id(std::string(1001, 'u'));
    EXPECT_EQ(refused_update(), "UpdateId length exceeds limit.");
    request.mutable_request()->mutable_meta()->set_update_id("u");
    request.mutable_request()->clear_input();
    EXPECT_EQ(refused_update(), "Update input is not set on request.");
    request.mutable_request()->mutable_input();
    EXPECT_EQ(refused_update(), "Update name is not set on request.");
    request.mutable_request()->mutable_input()->set_name("add");
    request.set_first_execution_run_id("11111111-1111-4111-8111-111111111111");
    EXPECT_EQ(refused_update(), "workflow execution not found");
    api::PollWorkflowExecutionUpdateRequest poll;
    poll.set_namespace_("home");
    EXPECT_EQ(refused("PollWorkflowExecutionUpdate", poll).message,
              "UpdateRef is not set on request.");
}

TEST_F(UpdateCalls, AnAdmissionAloneIsNotWaitedFor) {
    HOLDFAST_CHECK("server F54");
    request.mutable_wait_policy()->set_lifecycle_stage(
        enums::UPDATE_WORKFLOW_EXECUTION_LIFECYCLE_STAGE_ADMITTED);
    const rpc::Refusal refusal = refused("UpdateWorkflowExecution", request);
    EXPECT_EQ(refusal.code, StatusCode::permission_denied);
    EXPECT_EQ(refusal.detail_type, "temporal.api.errordetails.v1.PermissionDeniedFailure");
}

TEST_F(UpdateCalls, OperationsAreAStartAndAnUpdate) {
    HOLDFAST_CHECK("server F51");
    const std::string text = "Operations have to be exactly [Start, Update].";
    auto operations = both.operations();
    both.mutable_operations()->SwapElements(0, 1);
    EXPECT_EQ(refused("ExecuteMultiOperation", both).message, text);
    both.mutable_operations()->RemoveLast();
    EXPECT_EQ(refused("ExecuteMultiOperation", both).message, text);
    *both.mutable_operations() = operations;
    *both.add_operations() = operations[1];
    EXPECT_EQ(refused("ExecuteMultiOperation", both).message, text);
    EXPECT_EQ(refused("ExecuteMultiOperation", both).detail_type, "");
}

TEST_F(UpdateCalls, EachOperationHasItsOwnStatus) {
    HOLDFAST_CHECK("server F52");
    const std::string aborted = "10 Operation was aborted.";
    auto& start = *both.mutable_operations(0)->mutable_start_workflow();
    auto& update = *both.mutable_operations(1)->mutable_update_workflow();
    start.set_cron_schedule("* * * * *");
    EXPECT_EQ(statuses(), (std::vector<std::string>{"3 CronSchedule is not allowed.", aborted}));
    start.clear_cron_schedule();
    start.set_request_eager_execution(true);
    EXPECT_EQ(statuses()[0], "3 RequestEagerExecution is not supported.");
    start.set_request_eager_execution(false);
    start.mutable_workflow_start_delay()->set_seconds(1);
    EXPECT_EQ(statuses()[0], "3 WorkflowStartDelay is not supported.");
    start.clear_workflow_start_delay();
    update.set_first_execution_run_id("11111111-1111-4111-8111-111111111111");
    EXPECT_EQ(statuses(),
              (std::vector<std::string>{aborted, "3 FirstExecutionRunId is not allowed."}));
    update.clear_first_execution_run_id();
    update.mutable_workflow_execution()->set_run_id("11111111-1111-4111-8111-111111111111");
    EXPECT_EQ(statuses()[1], "3 RunId is not allowed.");
    update.mutable_workflow_execution()->clear_run_id();
    update.mutable_workflow_execution()->set_workflow_id("another");
    EXPECT_EQ(statuses()[1], "3 WorkflowId is not consistent with previous operation(s).");
    update.set_namespace_("retired");
    start.set_namespace_("retired");
    EXPECT_EQ(
        statuses(),
        (std::vector<std::string>{"3 Operation namespace did not match request's namespace.",
                                  "3 Operation namespace did not match request's namespace."}));
}

}  // namespace

}  // namespace holdfast::server::frontend::tests
