#include "engine/test/update_fixture.hpp"
#include <temporal/api/errordetails/v1/message.pb.h>

#include <holdfast/testing/check.hpp>

namespace holdfast::server::engine::tests {
namespace {

using rpc::StatusCode;

class UpdatesTest : public UpdateServerTest {};

constexpr const char* idle_order =
    "1 Started, 2 WorkflowTaskScheduled, 3 WorkflowTaskStarted, 4 WorkflowTaskCompleted";

TEST_P(UpdatesTest, AnUpdateIsOneCommitAndARejectedOneIsNone) {
    start_idle();
    auto worker = poll();
    const auto before = process->engine.counts().run_commits;
    const auto refused = update("bad");
    EXPECT_TRUE(refused.waits());
    const auto reply = answer(worker.response(), {rejection("bad")}).response();
    EXPECT_EQ(reply.reset_history_event_id(), 3);
    EXPECT_EQ(refused.response().outcome().failure().message(), "negative");
    EXPECT_EQ(refused.response().link().workflow().reason(), "Update rejected");
    EXPECT_EQ(process->engine.counts().run_commits, before);
    EXPECT_EQ(history("order"), idle_order);

    worker = poll();
    const auto done = update("good");
    const auto task = worker.response();
    EXPECT_EQ(messages_of(task), "good/request@5");
    EXPECT_EQ(task.started_event_id(), 6);
    EXPECT_EQ(task.history().events().rbegin()->event_id(), 6) << "its own events are there";
    answer(task, {acceptance("good"), response("good")});
    EXPECT_EQ(process->engine.counts().run_commits, before + 1);
    EXPECT_EQ(done.response().stage(), completed);
    EXPECT_EQ(done.response().outcome().success().payloads(0).data(), "5");
    EXPECT_EQ(done.response().link().workflow_event().request_id_ref().event_type(),
              EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED);
    EXPECT_TRUE(history("order").ends_with(
        "5 WorkflowTaskScheduled, 6 WorkflowTaskStarted, 7 WorkflowTaskCompleted, "
        "8 UpdateAccepted, 9 UpdateCompleted"))
        << history("order");
}

TEST_P(UpdatesTest, AClientMayWaitForTheAcceptanceAndPollForTheRest) {
    HOLDFAST_CHECK("server H281");
    HOLDFAST_CHECK("server H285");
    start_idle();
    const auto asked = update("u", accepted);
    answer(poll().response(), {acceptance("u")});
    EXPECT_EQ(asked.response().stage(), accepted);
    EXPECT_FALSE(asked.response().has_outcome());
    EXPECT_EQ(
        poll_update("u", UPDATE_WORKFLOW_EXECUTION_LIFECYCLE_STAGE_UNSPECIFIED).response().stage(),
        accepted);
    const auto polled = poll_update("u");
    EXPECT_TRUE(polled.waits());
    signal("order", "go");
    answer(poll().response(), {response("u")}, {message_command("u/complete"), complete_command()});
    EXPECT_EQ(polled.response().outcome().success().payloads(0).data(), "5");
    EXPECT_EQ(update("u", accepted).response().stage(), completed);
    restart();
    EXPECT_EQ(poll_update("u").response().outcome().success().payloads(0).data(), "5")
        << "also after the close, as long as the run is kept";
    EXPECT_EQ(poll_update("other").refusal()->message, "update \"other\" not found");
    EXPECT_EQ(poll_update("other").refusal()->code, StatusCode::not_found);
}

TEST_P(UpdatesTest, OneIdIsOneUpdate) {
    HOLDFAST_CHECK("server H274");
    start_idle();
    const auto first = update("u");
    const auto second = update("u");
    const auto task = poll().response();
    const auto third = update("u");
    EXPECT_EQ(messages_of(task), "u/request@5");
    answer(task, {acceptance("u"), response("u")});
    for (const auto& call : {first, second, third, update("u")}) {
        EXPECT_EQ(call.response().outcome().success().payloads(0).data(), "5");
    }
    restart();
    EXPECT_EQ(update("u").response().outcome().success().payloads(0).data(), "5");
}

// What waits was in memory only; the client asks again, which SDKs do for it.
TEST_P(UpdatesTest, AnUpdateThatTheProcessLostIsAskedForAgain) {
    HOLDFAST_CHECK("server H271");
    HOLDFAST_CHECK("server H272");
    start_idle();
    update("u");
    restart();
    const auto worker = poll();
    EXPECT_TRUE(worker.waits());
    const auto again = update("u");
    const auto task = worker.response();
    EXPECT_EQ(messages_of(task), "u/request@5");
    restart();
    const auto refused = answer(task, {acceptance("u"), response("u")});
    ASSERT_NE(refused.refusal(), nullptr);
    EXPECT_EQ(refused.refusal()->code, StatusCode::not_found);
    const auto last = update("u");
    answer(poll().response(), {acceptance("u"), response("u")});
    EXPECT_EQ(last.response().stage(), completed);
}

TEST_P(UpdatesTest, AWorkerBringsBackWhatTheProcessLost) {
    HOLDFAST_CHECK("server H273");
    start("order");
    update("u");
    const auto task = poll().response();
    EXPECT_EQ(messages_of(task), "u/request@2");
    restart();
    EXPECT_EQ(answer(task, {acceptance("u", true)}).refusal(), nullptr);
    const auto attached = update("u");
    EXPECT_TRUE(attached.waits());
    signal("order", "go");
    answer(poll().response(), {response("u")});
    EXPECT_EQ(attached.response().stage(), completed);
}

TEST_P(UpdatesTest, AClientIsToldAfterTwentySecondsHowFarItIs) {
    HOLDFAST_CHECK("server H284");
    start_idle();
    const auto slow = update("u");
    advance(19s);
    EXPECT_TRUE(slow.waits());
    advance(1s);
    EXPECT_EQ(slow.response().stage(), admitted);
    EXPECT_FALSE(slow.response().has_outcome());
    const auto polled = poll_update("u");
    answer(poll().response(), {acceptance("u")});
    EXPECT_TRUE(polled.waits());
    advance(20s);
    EXPECT_EQ(polled.response().stage(), accepted);
}

TEST_P(UpdatesTest, WithoutTheStickyWorkerAnotherOneGetsTheUpdate) {
    HOLDFAST_CHECK("server H257");
    start("order");
    auto sticky = completion(poll().response(), {});
    sticky.mutable_sticky_attributes()->mutable_worker_task_queue()->set_name("worker-1");
    sticky.mutable_sticky_attributes()->mutable_schedule_to_start_timeout()->set_seconds(5);
    answer(sticky);
    const auto asked = update("u");
    const auto task = poll().response();
    EXPECT_EQ(messages_of(task), "u/request@5");
    EXPECT_EQ(task.history().events(0).event_id(), 1);
    answer(task, {acceptance("u"), response("u")});
    EXPECT_EQ(asked.response().stage(), completed);
}

TEST_P(UpdatesTest, ACompletionTakesTheNextUpdatesWithIt) {
    start("order");
    const auto task = poll().response();
    const auto asked = update("u");
    auto request = completion(task, {});
    request.set_return_new_workflow_task(true);
    const auto next = answer(request).response().workflow_task();
    EXPECT_EQ(messages_of(next), "u/request@5");
    EXPECT_EQ(next.history().events(0).event_id(), 4);
    answer(next, {acceptance("u"), response("u")});
    EXPECT_EQ(asked.response().stage(), completed);
}

TEST_P(UpdatesTest, TheEndOfARunAnswersItsUpdates) {
    HOLDFAST_CHECK("server H267");
    HOLDFAST_CHECK("server H269");
    HOLDFAST_CHECK("server H286");
    start_idle();
    const auto done = update("done");
    const auto bad = update("bad");
    const auto open = update("open", accepted);
    const auto task = poll().response();
    const auto late = update("late");
    answer(task,
           {acceptance("done"), response("done"), rejection("bad"), acceptance("open")},
           {message_command("done/accept"),
            message_command("done/complete"),
            message_command("bad/reject"),
            message_command("open/accept"),
            complete_command()});
    EXPECT_TRUE(done.response().outcome().has_success());
    EXPECT_EQ(bad.response().outcome().failure().message(), "negative");
    EXPECT_EQ(open.response().stage(), completed);
    const auto failure = open.response().outcome().failure();
    EXPECT_EQ(failure.application_failure_info().type(), "AcceptedUpdateCompletedWorkflow");
    ASSERT_NE(late.refusal(), nullptr);
    EXPECT_EQ(late.refusal()->code, StatusCode::not_found);
    EXPECT_EQ(late.refusal()->message, "workflow update was aborted by closing workflow");
    EXPECT_EQ(update("new").refusal()->message, "workflow execution already completed");
    EXPECT_TRUE(update("done").response().outcome().has_success());
    EXPECT_TRUE(update("open").response().outcome().has_failure());
    EXPECT_TRUE(poll_update("open").response().outcome().has_failure());
}

TEST_P(UpdatesTest, ARunThatContinuesSendsItsClientsToTheNext) {
    HOLDFAST_CHECK("server H268");
    start_idle();
    const auto taken = update("taken");
    const auto task = poll().response();
    const auto late = update("late");
    Command next;
    next.set_command_type(COMMAND_TYPE_CONTINUE_AS_NEW_WORKFLOW_EXECUTION);
    next.mutable_continue_as_new_workflow_execution_command_attributes();
    answer(task, {acceptance("taken")}, {message_command("taken/accept"), next});
    EXPECT_TRUE(taken.response().outcome().has_failure());
    ASSERT_NE(late.refusal(), nullptr);
    EXPECT_EQ(late.refusal()->code, StatusCode::resource_exhausted);
    EXPECT_EQ(late.refusal()->detail_type, "temporal.api.errordetails.v1.ResourceExhaustedFailure");
    EXPECT_EQ(poll_update("taken").refusal()->code, StatusCode::not_found);
    const auto again = update("late");
    advance(1s);
    answer(poll().response(), {acceptance("late"), response("late")});
    EXPECT_EQ(again.response().stage(), completed);
}

TEST_P(UpdatesTest, ARunThatTimesOutAnswersItsUpdates) {
    HOLDFAST_CHECK("server H295");
    api::StartWorkflowExecutionRequest request;
    request.set_namespace_("default");
    request.set_workflow_id("order");
    request.mutable_workflow_type()->set_name("Order");
    request.mutable_task_queue()->set_name("queue");
    request.mutable_workflow_run_timeout()->set_seconds(8);
    begin<api::StartWorkflowExecutionResponse>("StartWorkflowExecution", request);
    complete(poll().response(), {});
    const auto taken = update("taken");
    answer(poll().response(), {acceptance("taken")});
    const auto late = update("late");
    advance(8s);
    EXPECT_TRUE(taken.response().outcome().has_failure());
    ASSERT_NE(late.refusal(), nullptr);
    EXPECT_EQ(late.refusal()->code, StatusCode::not_found);
}

TEST_P(UpdatesTest, ABrokenMessageTellsTheClientThatTheWorkflowIsNotReady) {
    start_idle();
    const auto asked = update("u");
    EXPECT_NE(answer(poll().response(), {response("u")}).refusal(), nullptr);
    ASSERT_NE(asked.refusal(), nullptr);
    EXPECT_EQ(asked.refusal()->code, StatusCode::failed_precondition);
    EXPECT_EQ(asked.refusal()->detail_type, "temporal.api.errordetails.v1.WorkflowNotReadyFailure");
}

TEST_P(UpdatesTest, AnIdMadeByTheServerIsInTheReply) {
    HOLDFAST_CHECK("server F55");
    HOLDFAST_CHECK("server F56");
    start_idle();
    auto request = update_request("");
    request.clear_wait_policy();
    const auto asked =
        begin<api::UpdateWorkflowExecutionResponse>("UpdateWorkflowExecution", request);
    const auto task = poll().response();
    const std::string id = task.messages(0).protocol_instance_id();
    EXPECT_EQ(id.size(), 36);
    answer(task, {acceptance(id)});
    EXPECT_TRUE(asked.waits()) << "without a policy it waits for the outcome";
    signal("order", "go");
    answer(poll().response(), {response(id)});
    EXPECT_EQ(asked.response().update_ref().update_id(), id);
}

TEST_P(UpdatesTest, TheEleventhUpdateAtATimeIsRefused) {
    start_idle();
    for (int i = 0; i < 10; ++i) {
        EXPECT_TRUE(update(std::to_string(i)).waits());
    }
    const auto refused = update("10");
    ASSERT_NE(refused.refusal(), nullptr);
    temporal::api::errordetails::v1::ResourceExhaustedFailure detail;
    ASSERT_TRUE(detail.ParseFromString(refused.refusal()->detail));
    EXPECT_EQ(detail.cause(), RESOURCE_EXHAUSTED_CAUSE_CONCURRENT_LIMIT);
    EXPECT_EQ(detail.scope(), RESOURCE_EXHAUSTED_SCOPE_NAMESPACE);
}

// The cache has no room for a single run, and this one is nowhere else.
TEST_P(UpdatesTest, AWaitingUpdateIsNotDroppedWithItsRun) {
    limits.cached_bytes_max = 0;
    restart();
    start_idle();
    const auto asked = update("u");
    start("another");
    const auto task = poll().response();
    EXPECT_EQ(messages_of(task), "u/request@5");
    start("a third");
    EXPECT_EQ(answer(task, {acceptance("u"), response("u")}).refusal(), nullptr);
    EXPECT_EQ(asked.response().stage(), completed);
}

// A workflow task that leaves nothing carries queries as any other does.
TEST_P(UpdatesTest, AQueryIsAnsweredBesideARejectedUpdate) {
    HOLDFAST_CHECK("server H287");
    start_idle();
    const auto asked = update("u");
    api::QueryWorkflowRequest query;
    query.set_namespace_("default");
    query.mutable_execution()->set_workflow_id("order");
    query.mutable_query()->set_query_type("total");
    const auto told = begin<api::QueryWorkflowResponse>("QueryWorkflow", query);
    const auto refused = begin<api::QueryWorkflowResponse>("QueryWorkflow", query);
    ASSERT_NE(refused.refusal(), nullptr) << "one query waits at most";
    const auto task = poll().response();
    EXPECT_EQ(messages_of(task), "u/request@5");
    ASSERT_EQ(task.queries().size(), 1);
    auto request = completion(task, {rejection("u")});
    auto& result = (*request.mutable_query_results())[task.queries().begin()->first];
    result.set_result_type(QUERY_RESULT_TYPE_ANSWERED);
    result.mutable_answer()->add_payloads()->set_data("7");
    answer(request);
    EXPECT_EQ(told.response().query_result().payloads(0).data(), "7");
    EXPECT_TRUE(asked.response().outcome().has_failure());
    EXPECT_EQ(history("order"), idle_order);
}

// Workers make the request of event 47, which is stored, and outlives the process.
TEST_P(UpdatesTest, AWorkerTakesAnUpdateOfAResetFromItsEvent) {
    start_idle();
    const auto asked = update("u");
    answer(poll().response(), {acceptance("u"), response("u")});
    api::ResetWorkflowExecutionRequest request;
    request.set_namespace_("default");
    request.mutable_workflow_execution()->set_workflow_id("order");
    request.set_workflow_task_finish_event_id(4);
    request.set_request_id("reset");
    const auto reset =
        begin<api::ResetWorkflowExecutionResponse>("ResetWorkflowExecution", request);
    ASSERT_EQ(reset.refusal(), nullptr) << reset.refusal()->message;
    restart();
    const auto task = poll().response();
    EXPECT_EQ(messages_of(task), "") << "a message would be a second request";
    EXPECT_TRUE(update("u").waits());
    EXPECT_EQ(answer(task, {acceptance("u"), response("u")}).refusal(), nullptr);
    EXPECT_TRUE(update("u").response().outcome().has_success());
    EXPECT_TRUE(history("order").ends_with(
        "5 UpdateAdmitted, 6 WorkflowTaskScheduled, 7 WorkflowTaskStarted, "
        "8 WorkflowTaskCompleted, 9 UpdateAccepted, 10 UpdateCompleted"))
        << history("order");
}

TEST_P(UpdatesTest, AnUpdateThatIsNotPolledIsStored) {
    start_idle();
    const auto asked = update("u");
    advance(5s);
    EXPECT_TRUE(history("order").ends_with(
        "5 WorkflowTaskScheduled, 6 WorkflowTaskTimedOut, 7 WorkflowTaskScheduled"))
        << history("order");
    const auto task = poll().response();
    EXPECT_EQ(messages_of(task), "u/request@7");
    answer(task, {acceptance("u"), response("u")});
    EXPECT_EQ(asked.response().stage(), completed);
}

TEST_P(UpdatesTest, AClientThatLeavesLeavesItsUpdate) {
    start_idle();
    auto asked = update("u");
    asked.cancel();
    answer(poll().response(), {acceptance("u"), response("u")});
    EXPECT_EQ(update("u").response().stage(), completed);
}

INSTANTIATE_TEST_SUITE_P(InAFile,
                         UpdatesTest,
                         testing::Values(test::Backend::sqlite),
                         test::backend_name);

}  // namespace
}  // namespace holdfast::server::engine::tests
