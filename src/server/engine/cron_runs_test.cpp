// Chains of runs with a cron schedule, from the call of the client on.
#include "engine/test/server_fixture.hpp"

#include <holdfast/testing/check.hpp>

namespace holdfast::server::engine::tests {
namespace {

using namespace temporal::api::enums::v1;  // NOLINT(google-build-using-namespace): 10 names of it.

class CronRuns : public ServerTest {
protected:
    api::StartWorkflowExecutionResponse start_cron(const std::string& schedule) {
        api::StartWorkflowExecutionRequest request;
        request.set_namespace_("default");
        request.set_workflow_id("order");
        request.set_request_id("start");
        request.mutable_workflow_type()->set_name("Order");
        request.mutable_task_queue()->set_name("queue");
        request.set_cron_schedule(schedule);
        return begin<api::StartWorkflowExecutionResponse>("StartWorkflowExecution", request)
            .response();
    }
};

TEST_P(CronRuns, ARunFollowsTheOtherAlsoInTheNextProcess) {
    HOLDFAST_CHECK("server H170");
    HOLDFAST_CHECK("server H171");
    const std::string first = start_cron("@every 5s").run_id();
    EXPECT_TRUE(poll().waits()) << "it is not its time yet";
    restart();
    auto worker = poll();
    advance(5s);
    const auto task = worker.response();
    ASSERT_EQ(task.workflow_execution().run_id(), first);
    Command end = complete_command();
    end.mutable_complete_workflow_execution_command_attributes()
        ->mutable_result()
        ->add_payloads()
        ->set_data("1");
    EXPECT_EQ(complete(task, {end}).refusal(), nullptr);
    restart();
    EXPECT_EQ(history("order"), "1 Started") << "of the next run";
    worker = poll();
    advance(5s);
    const auto next = worker.response();
    EXPECT_NE(next.workflow_execution().run_id(), first);
    const auto& started = next.history().events(0).workflow_execution_started_event_attributes();
    EXPECT_EQ(started.initiator(), CONTINUE_AS_NEW_INITIATOR_CRON_SCHEDULE);
    EXPECT_EQ(started.continued_execution_run_id(), first);
    EXPECT_EQ(started.last_completion_result().payloads(0).data(), "1");
}

TEST_P(CronRuns, ATerminationIsTheEndOfTheChain) {
    HOLDFAST_CHECK("server H176");
    start_cron("@every 5s");
    api::TerminateWorkflowExecutionRequest request;
    request.set_namespace_("default");
    request.mutable_workflow_execution()->set_workflow_id("order");
    EXPECT_EQ(begin<api::TerminateWorkflowExecutionResponse>("TerminateWorkflowExecution", request)
                  .refusal(),
              nullptr);
    advance(60s);
    EXPECT_EQ(history("order"), "1 Started, 2 Terminated");
}

// The parent hears of its child when the chain of the child ends.
TEST_P(CronRuns, AChildMayHaveAScheduleOfItsOwn) {
    HOLDFAST_CHECK("server H195");
    start("parent");
    Command command;
    command.set_command_type(COMMAND_TYPE_START_CHILD_WORKFLOW_EXECUTION);
    auto& attributes = *command.mutable_start_child_workflow_execution_command_attributes();
    attributes.set_workflow_id("order");
    attributes.mutable_workflow_type()->set_name("Child");
    attributes.set_cron_schedule("@every 5s");
    EXPECT_EQ(complete(poll().response(), {command}).refusal(), nullptr);
    EXPECT_EQ(history("order"), "1 Started");
    EXPECT_EQ(complete(poll().response(), {}).refusal(), nullptr) << "of the parent";
    auto worker = poll();
    advance(5s);
    EXPECT_EQ(complete(worker.response(), {complete_command()}).refusal(), nullptr);
    EXPECT_EQ(history("order"), "1 Started") << "of the next run";
    EXPECT_TRUE(history("parent").ends_with("9 WorkflowTaskCompleted")) << history("parent");
    api::TerminateWorkflowExecutionRequest request;
    request.set_namespace_("default");
    request.mutable_workflow_execution()->set_workflow_id("order");
    EXPECT_EQ(begin<api::TerminateWorkflowExecutionResponse>("TerminateWorkflowExecution", request)
                  .refusal(),
              nullptr);
    EXPECT_TRUE(history("parent").ends_with(
        "10 ChildWorkflowExecutionTerminated, 11 WorkflowTaskScheduled"))
        << history("parent");
}

INSTANTIATE_TEST_SUITE_P(Every, CronRuns, test::every_backend(), test::backend_name);

}  // namespace
}  // namespace holdfast::server::engine::tests
