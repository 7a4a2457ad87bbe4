#include "frontend/test/frontend_fixture.hpp"

#include <holdfast/testing/check.hpp>

namespace holdfast::server::frontend::tests {

namespace {

class OptionsCalls : public FrontendTest {
protected:
    OptionsCalls() : request(about_order<api::UpdateWorkflowExecutionOptionsRequest>()) {
        request.set_identity("client");
        request.mutable_workflow_execution_options()->mutable_priority()->set_priority_key(1);
        request.mutable_update_mask()->add_paths("priority");
    }
    rpc::Refusal refused_by(const std::string& path) {
        request.mutable_update_mask()->set_paths(0, path);
        return refused("UpdateWorkflowExecutionOptions", request);
    }

    api::UpdateWorkflowExecutionOptionsRequest request;
};

TEST_F(OptionsCalls, APriorityIsSetAndTold) {
    start_order();
    const auto response = call<api::UpdateWorkflowExecutionOptionsResponse>(
        "UpdateWorkflowExecutionOptions", request);
    EXPECT_EQ(response.workflow_execution_options().priority().priority_key(), 1);
    EXPECT_EQ(turns.run_of(order)->run.priority().priority_key(), 1);
}

TEST_F(OptionsCalls, AMaskAndOptionsAreNeeded) {
    HOLDFAST_CHECK("server F71");
    auto without = request;
    without.clear_update_mask();
    EXPECT_EQ(refused("UpdateWorkflowExecutionOptions", without).message,
              "UpdateMask is not set on request.");
    without = request;
    without.clear_workflow_execution_options();
    EXPECT_EQ(refused("UpdateWorkflowExecutionOptions", without).code,
              rpc::StatusCode::invalid_argument);
}

TEST_F(OptionsCalls, APathThatNamesNothingIsRefused) {
    start_order();
    EXPECT_EQ(refused_by("nothing").code, rpc::StatusCode::invalid_argument);
    EXPECT_EQ(refused_by("versioning_override").code, rpc::StatusCode::permission_denied);
    EXPECT_EQ(refused_by("time_skipping_config").code, rpc::StatusCode::unimplemented);
    request.mutable_workflow_execution_options()->mutable_priority()->set_priority_key(-1);
    EXPECT_EQ(refused_by("priority").code, rpc::StatusCode::invalid_argument);
}

}  // namespace

}  // namespace holdfast::server::frontend::tests
