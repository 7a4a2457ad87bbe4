#include "frontend/test/frontend_fixture.hpp"

#include <holdfast/testing/check.hpp>

namespace holdfast::server::frontend::tests {

namespace {

namespace enums = temporal::api::enums::v1;

class ResetCalls : public FrontendTest {
protected:
    ResetCalls() : request(about_order<api::ResetWorkflowExecutionRequest>()) {
        request.set_request_id("once");
        request.set_workflow_task_finish_event_id(4);
        request.set_reason("bad build");
    }

    history::ResetOptions asked() {
        call<api::ResetWorkflowExecutionResponse>("ResetWorkflowExecution", request);
        return turns.last_reset.options;
    }
    std::string text() { return refused("ResetWorkflowExecution", request).message; }

    api::ResetWorkflowExecutionRequest request;
};

TEST_F(ResetCalls, AResetNamesItsPoint) {
    request.mutable_workflow_execution()->set_run_id("00000000-0000-4000-8000-000000000007");
    const history::ResetOptions options = asked();
    EXPECT_EQ(options.finish_event_id, 4);
    EXPECT_EQ(options.reason, "bad build");
    EXPECT_TRUE(options.reapply_signals);
    EXPECT_TRUE(options.reapply_updates);
    EXPECT_EQ(turns.last_reset.base_run_id, "00000000-0000-4000-8000-000000000007");
    EXPECT_EQ(turns.last_reset.request_id, "once");
}

TEST_F(ResetCalls, ARequestIdIsNeeded) {
    HOLDFAST_CHECK("server F68");
    request.clear_request_id();
    EXPECT_EQ(text(), "RequestId is not set on request.");
}

TEST_F(ResetCalls, TypesAndExclusionsSayWhatIsDropped) {
    request.set_reset_reapply_type(enums::RESET_REAPPLY_TYPE_SIGNAL);
    EXPECT_TRUE(asked().reapply_signals);
    EXPECT_FALSE(asked().reapply_updates);
    request.set_reset_reapply_type(enums::RESET_REAPPLY_TYPE_NONE);
    EXPECT_FALSE(asked().reapply_signals);
    EXPECT_FALSE(asked().reapply_updates);
    request.clear_reset_reapply_type();
    request.add_reset_reapply_exclude_types(enums::RESET_REAPPLY_EXCLUDE_TYPE_SIGNAL);
    EXPECT_FALSE(asked().reapply_signals);
    EXPECT_TRUE(asked().reapply_updates);
    request.add_reset_reapply_exclude_types(enums::RESET_REAPPLY_EXCLUDE_TYPE_UPDATE);
    EXPECT_FALSE(asked().reapply_updates);
}

TEST_F(ResetCalls, OperationsMayFollow) {
    auto& signal = *request.add_post_reset_operations()->mutable_signal_workflow();
    EXPECT_EQ(text(), "SignalName is not set on request.");
    signal.set_signal_name("go");
    signal.mutable_input()->add_payloads()->set_data("1");
    auto& update = *request.add_post_reset_operations()->mutable_update_workflow_options();
    update.mutable_workflow_execution_options()->mutable_priority()->set_priority_key(1);
    update.mutable_update_mask()->add_paths("priority");
    const auto options = asked();
    ASSERT_EQ(options.operations.size(), 2U);
    const auto& sent = std::get<history::ResetSignal>(options.operations[0]);
    EXPECT_EQ(sent.signal_name(), "go");
    EXPECT_EQ(sent.identity(), "history-service");
    EXPECT_EQ(sent.input().payloads_size(), 1);
    const auto& change = std::get<history::OptionsChange>(options.operations[1]);
    EXPECT_EQ(change.priority.priority_key(), 1);
}

TEST_F(ResetCalls, OtherOperationsAreRefused) {
    request.add_post_reset_operations();
    EXPECT_EQ(refused("ResetWorkflowExecution", request).code, rpc::StatusCode::invalid_argument);
    request.mutable_post_reset_operations(0)
        ->mutable_update_workflow_options()
        ->mutable_update_mask()
        ->add_paths("versioning_override");
    EXPECT_EQ(refused("ResetWorkflowExecution", request).code, rpc::StatusCode::permission_denied);
}

}  // namespace

}  // namespace holdfast::server::frontend::tests
