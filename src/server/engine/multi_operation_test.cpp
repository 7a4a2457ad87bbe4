// Update-with-start.
#include "engine/test/update_fixture.hpp"
#include <temporal/api/errordetails/v1/message.pb.h>

#include <holdfast/testing/check.hpp>

namespace holdfast::server::engine::tests {
namespace {

using rpc::StatusCode;
using Both = Pending<api::ExecuteMultiOperationResponse>;

class UpdateWithStartTest : public UpdateServerTest {
protected:
    Both both(WorkflowIdConflictPolicy policy,
              const std::string& update_id,
              const std::string& request_id = "one",
              WorkflowIdReusePolicy reuse = WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE) {
        api::ExecuteMultiOperationRequest request;
        request.set_namespace_("default");
        auto& start = *request.add_operations()->mutable_start_workflow();
        start.set_namespace_("default");
        start.set_workflow_id("order");
        start.set_request_id(request_id);
        start.mutable_workflow_type()->set_name("Order");
        start.mutable_task_queue()->set_name("queue");
        start.set_workflow_id_conflict_policy(policy);
        start.set_workflow_id_reuse_policy(reuse);
        *request.add_operations()->mutable_update_workflow() = update_request(update_id);
        return begin<api::ExecuteMultiOperationResponse>("ExecuteMultiOperation", request);
    }

    // "5 | Operation was aborted.": the codes and texts of both operations.
    static std::vector<std::string> statuses(const Both& call) {
        temporal::api::errordetails::v1::MultiOperationExecutionFailure failure;
        std::vector<std::string> texts;
        if (call.refusal() == nullptr || !failure.ParseFromString(call.refusal()->detail)) {
            return texts;
        }
        EXPECT_EQ(call.refusal()->message, "Update-with-Start could not be executed.");
        for (const auto& status : failure.statuses()) {
            texts.push_back(std::to_string(status.code()) + " | " + status.message());
        }
        return texts;
    }

    static constexpr auto use = WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING;
    static constexpr auto fail = WORKFLOW_ID_CONFLICT_POLICY_FAIL;
    static constexpr auto end = WORKFLOW_ID_CONFLICT_POLICY_TERMINATE_EXISTING;
    static constexpr const char* aborted = "10 | Operation was aborted.";
};

TEST_P(UpdateWithStartTest, TheFirstWorkflowTaskOfANewRunHasTheUpdate) {
    HOLDFAST_CHECK("server H289");
    for (const auto policy : {fail, use, end}) {
        auto worker = poll();
        const auto before = process->engine.counts().run_commits;
        const auto called = both(policy, "u", "request " + std::to_string(policy));
        const auto task = worker.response();
        EXPECT_EQ(messages_of(task), "u/request@2");
        answer(task, {acceptance("u"), response("u")});
        EXPECT_EQ(process->engine.counts().run_commits - before, 2);
        const auto reply = called.response();
        const auto& started = reply.responses(0).start_workflow();
        EXPECT_TRUE(started.started());
        EXPECT_EQ(started.run_id(), started.first_execution_run_id());
        EXPECT_EQ(started.link().workflow_event().event_ref().event_id(), 1);
        EXPECT_EQ(reply.responses(1).update_workflow().stage(), completed);
        EXPECT_TRUE(history("order").ends_with("5 UpdateAccepted, 6 UpdateCompleted"));
        api::DeleteWorkflowExecutionRequest gone;
        gone.set_namespace_("default");
        gone.mutable_workflow_execution()->set_workflow_id("order");
        begin<api::DeleteWorkflowExecutionResponse>("DeleteWorkflowExecution", gone);
    }
}

TEST_P(UpdateWithStartTest, ARejectedUpdateLeavesTheRunThatItStarted) {
    const auto called = both(fail, "u");
    answer(poll().response(), {rejection("u")});
    EXPECT_TRUE(called.response().responses(1).update_workflow().outcome().has_failure());
    EXPECT_TRUE(history("order").ends_with("3 WorkflowTaskStarted, 4 WorkflowTaskCompleted"));
}

TEST_P(UpdateWithStartTest, ARunningWorkflowIsUsedOrInTheWayOrReplaced) {
    HOLDFAST_CHECK("server H290");
    HOLDFAST_CHECK("server F53");
    start_idle();
    const auto refused = both(fail, "u");
    ASSERT_EQ(statuses(refused).size(), 2);
    EXPECT_TRUE(statuses(refused)[0].starts_with("6 | Workflow execution is already running."));
    EXPECT_EQ(statuses(refused)[1], aborted);
    EXPECT_EQ(refused.refusal()->code, StatusCode::already_exists);

    const auto used = both(use, "u", "two");
    answer(poll().response(), {acceptance("u"), response("u")});
    const auto answered = used.response().responses(0).start_workflow();
    EXPECT_FALSE(answered.started());
    EXPECT_EQ(answered.first_execution_run_id(), "");
    EXPECT_EQ(answered.status(), WORKFLOW_EXECUTION_STATUS_RUNNING);
    EXPECT_EQ(answered.link().workflow_event().event_ref().event_id(), 1);

    const auto replaced = both(end, "v", "three");
    answer(poll().response(), {acceptance("v"), response("v")});
    EXPECT_TRUE(replaced.response().responses(0).start_workflow().started());
    EXPECT_NE(replaced.response().responses(0).start_workflow().run_id(), answered.run_id());
}

TEST_P(UpdateWithStartTest, ARepeatChangesNothing) {
    HOLDFAST_CHECK("server H291");
    const auto first = both(end, "u", "one");
    const auto second = both(end, "u", "two");
    answer(poll().response(), {acceptance("u"), response("u")});
    const std::string run = first.response().responses(0).start_workflow().run_id();
    EXPECT_EQ(second.response().responses(0).start_workflow().run_id(), run);
    EXPECT_EQ(both(end, "u", "three").response().responses(0).start_workflow().run_id(), run);
    const auto repeated = both(fail, "v", "one");
    answer(poll().response(), {acceptance("v"), response("v")});
    EXPECT_EQ(repeated.response().responses(0).start_workflow().run_id(), run);
}

TEST_P(UpdateWithStartTest, AClosedWorkflowIsFollowedUnlessItIsInTheWay) {
    HOLDFAST_CHECK("server H292");
    start_idle();
    const auto asked = update("known");
    answer(poll().response(), {acceptance("known"), response("known")});
    api::TerminateWorkflowExecutionRequest terminate;
    terminate.set_namespace_("default");
    terminate.mutable_workflow_execution()->set_workflow_id("order");
    begin<api::TerminateWorkflowExecutionResponse>("TerminateWorkflowExecution", terminate);
    const auto known = both(fail, "known", "x");
    EXPECT_EQ(known.response().responses(0).start_workflow().status(),
              WORKFLOW_EXECUTION_STATUS_TERMINATED);
    EXPECT_TRUE(known.response().responses(1).update_workflow().outcome().has_success());
    const auto refused = both(fail, "new", "y", WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE);
    ASSERT_EQ(statuses(refused).size(), 2);
    EXPECT_TRUE(statuses(refused)[0].starts_with("6 | "));
    const auto started = both(fail, "new", "z");
    answer(poll().response(), {acceptance("new"), response("new")});
    EXPECT_TRUE(started.response().responses(0).start_workflow().started());
}

// The run ends between the request and its worker: what is meant is a run that answers.
TEST_P(UpdateWithStartTest, ARunThatClosesIsFollowedOnceByANewOne) {
    HOLDFAST_CHECK("server H293");
    start("order");
    const auto task = poll().response();
    const auto called = both(use, "u", "two");
    answer(task, {}, {complete_command()});
    EXPECT_TRUE(called.waits()) << "it has started another run";
    const auto next = poll().response();
    EXPECT_EQ(messages_of(next), "u/request@2");
    answer(next, {}, {complete_command()});
    ASSERT_EQ(statuses(called).size(), 2) << "that one was started by this call";
    EXPECT_EQ(statuses(called)[0], aborted);
    EXPECT_EQ(statuses(called)[1], "5 | workflow update was aborted by closing workflow");
}

TEST_P(UpdateWithStartTest, ASecondRunThatClosesIsTooMany) {
    HOLDFAST_CHECK("server H293");
    start("order");
    const auto task = poll().response();
    const auto called = both(use, "u", "two");
    Command next;
    next.set_command_type(COMMAND_TYPE_CONTINUE_AS_NEW_WORKFLOW_EXECUTION);
    next.mutable_continue_as_new_workflow_execution_command_attributes();
    answer(task, {}, {next});
    const auto second = poll().response();
    EXPECT_EQ(messages_of(second), "u/request@2");
    answer(second, {}, {complete_command()});
    ASSERT_EQ(statuses(called).size(), 2);
    EXPECT_EQ(statuses(called)[1], "10 | workflow update was aborted by closing workflow");
    EXPECT_EQ(called.refusal()->code, StatusCode::aborted);
}

TEST_P(UpdateWithStartTest, ALimitOfUpdatesKeepsItsCauseAndScope) {
    HOLDFAST_CHECK("server H294");
    start_idle();
    for (int i = 0; i < 10; ++i) {
        update(std::to_string(i));
    }
    const auto refused = both(use, "10", "two");
    ASSERT_EQ(statuses(refused).size(), 2);
    EXPECT_EQ(statuses(refused)[0], aborted);
    EXPECT_EQ(refused.refusal()->code, StatusCode::resource_exhausted);
    temporal::api::errordetails::v1::MultiOperationExecutionFailure failure;
    ASSERT_TRUE(failure.ParseFromString(refused.refusal()->detail));
    temporal::api::errordetails::v1::ResourceExhaustedFailure detail;
    ASSERT_TRUE(failure.statuses(1).details(0).UnpackTo(&detail));
    EXPECT_EQ(detail.cause(), RESOURCE_EXHAUSTED_CAUSE_CONCURRENT_LIMIT);
    EXPECT_EQ(detail.scope(), RESOURCE_EXHAUSTED_SCOPE_NAMESPACE);
}

INSTANTIATE_TEST_SUITE_P(InAFile,
                         UpdateWithStartTest,
                         testing::Values(test::Backend::sqlite),
                         test::backend_name);

}  // namespace
}  // namespace holdfast::server::engine::tests
