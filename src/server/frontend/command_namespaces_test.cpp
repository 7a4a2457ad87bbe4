#include "frontend/test/frontend_fixture.hpp"

namespace holdfast::server::frontend::tests {

namespace {

namespace enums = temporal::api::enums::v1;

class CommandNamespaces : public FrontendTest {
protected:
    // Completes the first workflow task of order-7 with the start of a child.
    api::RespondWorkflowTaskCompletedRequest child_in(const std::string& namespace_name) {
        start_order();
        api::RespondWorkflowTaskCompletedRequest request;
        request.set_namespace_("home");
        request.set_task_token(turns.poll_task(order));
        auto& command = *request.add_commands();
        command.set_command_type(enums::COMMAND_TYPE_START_CHILD_WORKFLOW_EXECUTION);
        auto& attributes = *command.mutable_start_child_workflow_execution_command_attributes();
        attributes.set_namespace_(namespace_name);
        attributes.set_workflow_id("order-8");
        attributes.mutable_workflow_type()->set_name("Order");
        return request;
    }

    [[nodiscard]] bool task_stays() {
        return turns.run_of(order)->run.workflow_task().started_event_id() == 3;
    }
};

TEST_F(CommandNamespaces, AChildInANamespaceThatIsNotThereLeavesTheTaskAsItIs) {
    const auto refusal = refused("RespondWorkflowTaskCompleted", child_in("nowhere"));
    EXPECT_EQ(refusal, namespace_not_found("nowhere"));
    EXPECT_TRUE(task_stays());
}

TEST_F(CommandNamespaces, AChildInAnotherNamespaceIsRefused) {
    const auto refusal = refused("RespondWorkflowTaskCompleted", child_in("retired"));
    EXPECT_EQ(refusal,
              rpc::Refusal(rpc::StatusCode::invalid_argument,
                           "unable to process cross namespace command between home and retired"));
    EXPECT_TRUE(task_stays());
}

TEST_F(CommandNamespaces, AChildWithoutANamespaceHasThatOfItsParent) {
    call<api::RespondWorkflowTaskCompletedResponse>("RespondWorkflowTaskCompleted", child_in(""));
    const auto& children = turns.run_of(order)->run.children();
    ASSERT_EQ(children.size(), 1U);
    EXPECT_EQ(children.at(5).initiated().namespace_(), "home");
}

}  // namespace

}  // namespace holdfast::server::frontend::tests
