// What operators do with activities, and what a worker takes with its completion, in the store.
#include "engine/engine.hpp"
#include "engine/test/server_fixture.hpp"

#include <holdfast/testing/check.hpp>

namespace holdfast::server::engine::tests {
namespace {

namespace enums = temporal::api::enums::v1;

Command eager_activity_command(const std::string& id) {
    Command command = activity_command(id);
    command.mutable_schedule_activity_task_command_attributes()->set_request_eager_execution(true);
    return command;
}

Command keyword_command(const std::string& name, const std::string& data) {
    Command command;
    command.set_command_type(enums::COMMAND_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES);
    auto& payload = (*command.mutable_upsert_workflow_search_attributes_command_attributes()
                          ->mutable_search_attributes()
                          ->mutable_indexed_fields())[name];
    (*payload.mutable_metadata())["encoding"] = "json/plain";
    payload.set_data(data);
    return command;
}

// Requests about the activity `charge` of the workflow `order`.
template <class Request>
Request about_charge() {
    Request request;
    request.set_namespace_("default");
    request.mutable_execution()->set_workflow_id("order");
    request.set_identity("ann");
    request.set_id("charge");
    return request;
}

api::DescribeWorkflowExecutionRequest about_order() {
    api::DescribeWorkflowExecutionRequest request;
    request.set_namespace_("default");
    request.mutable_execution()->set_workflow_id("order");
    return request;
}

// The worker has the activity with the answer, and the commit that stored it is the only one.
TEST_P(ServerTest, AnEagerActivityIsStartedByTheCommitOfItsCompletion) {
    auto elsewhere = poll_activity();
    start("order");
    const auto task = poll().response();
    const auto before = process->engine.counts().run_commits;
    const auto reply = complete(task, {eager_activity_command("charge")}).response();
    EXPECT_EQ(process->engine.counts().run_commits - before, 1);
    ASSERT_EQ(reply.activity_tasks_size(), 1);
    const auto& activity = reply.activity_tasks(0);
    EXPECT_EQ(activity.activity_id(), "charge");
    EXPECT_EQ(activity.input().payloads(0).data(), "\"charge\"");
    EXPECT_EQ(activity.attempt(), 1);
    EXPECT_EQ(activity.workflow_execution().workflow_id(), "order");
    EXPECT_TRUE(elsewhere.waits());
    restart();
    EXPECT_EQ(complete(activity).refusal(), nullptr);
    EXPECT_TRUE(history("order").ends_with("7 ActivityTaskCompleted, 8 WorkflowTaskScheduled"));
}

// It waits on its queue, in a stored row, when it is paused; then the process dies.
TEST_P(ServerTest, APausedActivityStaysPausedInTheNextProcess) {
    start("order");
    EXPECT_EQ(complete(poll().response(), {activity_command("charge")}).refusal(), nullptr);
    const auto paused = begin<api::PauseActivityResponse>(
        "PauseActivity", about_charge<api::PauseActivityRequest>());
    EXPECT_EQ(paused.refusal(), nullptr);
    EXPECT_TRUE(poll_activity().waits());
    restart();
    auto worker = poll_activity();
    advance(30s);
    EXPECT_TRUE(worker.waits());
    const auto described =
        begin<api::DescribeWorkflowExecutionResponse>("DescribeWorkflowExecution", about_order())
            .response();
    ASSERT_EQ(described.pending_activities_size(), 1);
    EXPECT_EQ(described.pending_activities(0).state(), enums::PENDING_ACTIVITY_STATE_PAUSED);
    const auto unpaused = begin<api::UnpauseActivityResponse>(
        "UnpauseActivity", about_charge<api::UnpauseActivityRequest>());
    EXPECT_EQ(unpaused.refusal(), nullptr);
    EXPECT_EQ(complete(worker.response()).refusal(), nullptr);
}

TEST_P(ServerTest, ChangedOptionsMoveAnActivityToItsNewQueue) {
    start("order");
    EXPECT_EQ(complete(poll().response(), {activity_command("charge")}).refusal(), nullptr);
    auto request = about_charge<api::UpdateActivityOptionsRequest>();
    request.mutable_activity_options()->mutable_task_queue()->set_name("elsewhere");
    request.mutable_activity_options()->mutable_start_to_close_timeout()->set_seconds(33);
    request.mutable_update_mask()->add_paths("task_queue.name");
    request.mutable_update_mask()->add_paths("startToCloseTimeout");
    const auto changed =
        begin<api::UpdateActivityOptionsResponse>("UpdateActivityOptions", request).response();
    EXPECT_EQ(changed.activity_options().start_to_close_timeout().seconds(), 33);
    restart();
    EXPECT_TRUE(poll_activity().waits());
    api::PollActivityTaskQueueRequest elsewhere;
    elsewhere.set_namespace_("default");
    elsewhere.mutable_task_queue()->set_name("elsewhere");
    const auto task = begin<api::PollActivityTaskQueueResponse>("PollActivityTaskQueue", elsewhere);
    EXPECT_EQ(task.response().start_to_close_timeout().seconds(), 33);
}

// The request is known by the event that it left, also to the next process.
TEST_P(ServerTest, AnAttachedRequestIsKnownByItsEvent) {
    const auto first = start("order");
    api::StartWorkflowExecutionRequest request;
    request.set_namespace_("default");
    request.set_workflow_id("order");
    request.set_request_id("second");
    request.mutable_workflow_type()->set_name("Order");
    request.mutable_task_queue()->set_name("queue");
    request.set_workflow_id_conflict_policy(enums::WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING);
    request.mutable_on_conflict_options()->set_attach_request_id(true);
    for (const bool again : {false, true}) {
        SCOPED_TRACE(again);
        const auto reply =
            begin<api::StartWorkflowExecutionResponse>("StartWorkflowExecution", request)
                .response();
        EXPECT_EQ(reply.run_id(), first.run_id());
        EXPECT_FALSE(reply.started());
        const auto& reference = reply.link().workflow_event().request_id_ref();
        EXPECT_EQ(reference.request_id(), "second");
        EXPECT_EQ(reference.event_type(), enums::EVENT_TYPE_WORKFLOW_EXECUTION_OPTIONS_UPDATED);
        EXPECT_EQ(history("order"), "1 Started, 2 WorkflowTaskScheduled, 3 OptionsUpdated");
        restart();
    }
    const auto described =
        begin<api::DescribeWorkflowExecutionResponse>("DescribeWorkflowExecution", about_order())
            .response();
    const auto& requests = described.workflow_extended_info().request_id_infos();
    EXPECT_EQ(requests.at("second").event_id(), 3);
    EXPECT_EQ(requests.at("start").event_id(), 1);
}

TEST_P(ServerTest, AnUnknownSearchAttributeOfACommandFailsTheWorkflowTask) {
    HOLDFAST_CHECK("server H105");
    start("order");
    const auto unknown = complete(poll().response(), {keyword_command("Colour", "\"red\"")});
    ASSERT_NE(unknown.refusal(), nullptr);
    EXPECT_EQ(unknown.refusal()->message,
              "BadSearchAttributes: Namespace default has no mapping defined for search attribute "
              "Colour");
    const auto wrong = complete(poll().response(), {keyword_command("BatcherUser", "7")});
    ASSERT_NE(wrong.refusal(), nullptr);
    EXPECT_TRUE(wrong.refusal()->message.starts_with("invalid value for search attribute"))
        << wrong.refusal()->message;
    advance(10s);
    EXPECT_EQ(complete(poll().response(), {keyword_command("BatcherUser", "\"ann\"")}).refusal(),
              nullptr);
    const auto described =
        begin<api::DescribeWorkflowExecutionResponse>("DescribeWorkflowExecution", about_order())
            .response();
    const auto& shown = described.workflow_execution_info().search_attributes().indexed_fields();
    EXPECT_EQ(shown.at("BatcherUser").metadata().at("type"), "Keyword");
}

}  // namespace
}  // namespace holdfast::server::engine::tests
