// Queries through the whole server: which worker gets them, and what the caller reads.
#include <functional>

#include "engine/test/server_fixture.hpp"
#include <temporal/api/errordetails/v1/message.pb.h>

#include <holdfast/testing/check.hpp>

namespace holdfast::server::engine::tests {
namespace {

using namespace temporal::api::enums::v1;  // NOLINT(google-build-using-namespace): 10 names of it.
class ServerQueryTest : public ServerTest {
protected:
    using Task = api::PollWorkflowTaskQueueResponse;
    using Completed = api::RespondWorkflowTaskCompletedRequest;

    Pending<api::QueryWorkflowResponse> ask(const std::string& workflow_id,
                                            std::chrono::seconds patience = 60s,
                                            QueryRejectCondition reject = {},
                                            const std::string& run_id = "") {
        api::QueryWorkflowRequest request;
        request.set_namespace_("default");
        request.mutable_execution()->set_workflow_id(workflow_id);
        request.mutable_execution()->set_run_id(run_id);
        request.mutable_query()->set_query_type("total");
        request.mutable_query()->mutable_query_args()->add_payloads()->set_data("1");
        request.set_query_reject_condition(reject);
        auto answer = std::make_shared<std::optional<rpc::Answer>>();
        auto call = std::make_shared<rpc::Call>(
            rpc::CallInfo{.method = frontend::workflow_service("QueryWorkflow"),
                          .deadline = clock.wall_now() + patience,
                          .caller = {}},
            [answer](rpc::Answer given) { *answer = std::move(given); });
        process->dispatch.run(call, request.SerializeAsString());
        process->executor.run_all();
        return Pending<api::QueryWorkflowResponse>(std::move(answer), std::move(call));
    }

    Pending<api::RespondWorkflowTaskCompletedResponse> complete_with(
        const Task& task, const std::function<void(Completed&)>& fill) {
        Completed request;
        request.set_namespace_("default");
        request.set_identity("worker");
        request.set_task_token(task.task_token());
        fill(request);
        return begin<api::RespondWorkflowTaskCompletedResponse>("RespondWorkflowTaskCompleted",
                                                                request);
    }
    // Answers all queries of the task.
    static void answer_queries(const Task& task, const std::string& data, Completed& request) {
        for (const auto& [id, query] : task.queries()) {
            auto& result = (*request.mutable_query_results())[id];
            result.set_result_type(QUERY_RESULT_TYPE_ANSWERED);
            result.mutable_answer()->add_payloads()->set_data(data);
        }
    }
    Pending<api::RespondQueryTaskCompletedResponse> answer(
        const Task& task,
        const std::string& data,
        const std::function<void(api::RespondQueryTaskCompletedRequest&)>& change = {}) {
        api::RespondQueryTaskCompletedRequest request;
        request.set_namespace_("default");
        request.set_task_token(task.task_token());
        request.set_completed_type(QUERY_RESULT_TYPE_ANSWERED);
        request.mutable_query_result()->add_payloads()->set_data(data);
        if (change) {
            change(request);
        }
        return begin<api::RespondQueryTaskCompletedResponse>("RespondQueryTaskCompleted", request);
    }
    static std::string told(const Pending<api::QueryWorkflowResponse>& query) {
        const auto response = query.response();
        return response.query_result().payloads_size() == 1
                   ? response.query_result().payloads(0).data()
                   : "no result";
    }

    // Runs the workflow up to its first wait.
    void become_idle(const std::string& workflow_id) {
        start(workflow_id);
        ASSERT_EQ(complete(poll().response(), {}).refusal(), nullptr);
    }
    void become_idle_with_sticky(const std::string& workflow_id) {
        start(workflow_id);
        const auto task = poll().response();
        ASSERT_EQ(complete_with(task,
                                [](Completed& request) {
                                    auto& sticky = *request.mutable_sticky_attributes();
                                    sticky.mutable_worker_task_queue()->set_name("sticky");
                                    sticky.mutable_schedule_to_start_timeout()->set_seconds(5);
                                })
                      .refusal(),
                  nullptr);
    }
    void terminate(const std::string& workflow_id) {
        api::TerminateWorkflowExecutionRequest request;
        request.set_namespace_("default");
        request.mutable_workflow_execution()->set_workflow_id(workflow_id);
        ASSERT_EQ(
            begin<api::TerminateWorkflowExecutionResponse>("TerminateWorkflowExecution", request)
                .refusal(),
            nullptr);
    }
    std::uint64_t commits() {
        const auto counts = process->engine.counts();
        return counts.run_commits + counts.other_commits;
    }
};

TEST_P(ServerQueryTest, AnIdleRunIsAskedOnItsStickyQueueWithoutHistory) {
    HOLDFAST_CHECK("server H235");
    HOLDFAST_CHECK("server Q24");
    become_idle_with_sticky("order");
    const auto worker = poll("sticky");
    const auto before = commits();
    const auto query = ask("order");
    const Task task = worker.response();
    EXPECT_EQ(task.query().query_type(), "total");
    EXPECT_EQ(task.query().query_args().payloads(0).data(), "1");
    EXPECT_EQ(task.workflow_execution().workflow_id(), "order");
    EXPECT_EQ(task.workflow_type().name(), "Order");
    EXPECT_EQ(task.attempt(), 1);
    EXPECT_EQ(task.started_event_id(), 0);
    EXPECT_EQ(task.previous_started_event_id(), 3);
    EXPECT_TRUE(task.has_history());
    EXPECT_EQ(task.history().events_size(), 0);
    EXPECT_TRUE(task.next_page_token().empty());
    EXPECT_TRUE(query.waits());
    EXPECT_EQ(answer(task, "7").refusal(), nullptr);
    EXPECT_EQ(told(query), "7");
    EXPECT_EQ(commits(), before) << "a query changes nothing";
}

TEST_P(ServerQueryTest, AStickyWorkerThatIsSlowGivesWayToTheNormalQueue) {
    HOLDFAST_CHECK("server H236");
    become_idle_with_sticky("order");
    auto sticky = poll("sticky");
    const auto normal = poll();
    const auto before = commits();
    const auto query = ask("order");
    const Task lost = sticky.response();  // And the worker dies.
    advance(4s);
    EXPECT_TRUE(normal.waits());
    advance(1s);
    const Task task = normal.response();
    EXPECT_EQ(task.history().events_size(), 4);
    EXPECT_EQ(task.history().events(0).event_id(), 1);
    EXPECT_EQ(answer(lost, "late").refusal()->code, rpc::StatusCode::not_found);
    EXPECT_EQ(answer(task, "7").refusal(), nullptr);
    EXPECT_EQ(told(query), "7");
    EXPECT_EQ(commits(), before);
}

TEST_P(ServerQueryTest, AStickyQueueWithoutItsWorkerIsNotAsked) {
    HOLDFAST_CHECK("server H236");
    become_idle_with_sticky("order");
    const auto query = ask("order");
    const Task task = poll().response();
    EXPECT_EQ(task.history().events_size(), 4);
    answer(task, "7");
    EXPECT_EQ(told(query), "7");
}

TEST_P(ServerQueryTest, AQueryRidesWithTheTaskThatIsPending) {
    HOLDFAST_CHECK("server H237");
    HOLDFAST_CHECK("server H248");
    become_idle("order");
    signal("order", "paid");
    const auto before = commits();
    const auto query = ask("order");
    EXPECT_EQ(commits(), before);
    const Task task = poll().response();
    EXPECT_FALSE(task.has_query());
    ASSERT_EQ(task.queries().size(), 1U);
    EXPECT_EQ(task.queries().begin()->second.query_type(), "total");
    EXPECT_EQ(task.history().events(4).event_type(), EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED);
    const auto done =
        complete_with(task, [&](Completed& request) { answer_queries(task, "7", request); });
    EXPECT_EQ(done.refusal(), nullptr);
    EXPECT_EQ(told(query), "7");
}

TEST_P(ServerQueryTest, AQueryBeforeTheFirstTaskIsAnsweredWithIt) {
    HOLDFAST_CHECK("server H241");
    start("order");
    const auto query = ask("order");
    const Task task = poll().response();
    ASSERT_EQ(task.queries().size(), 1U);
    complete_with(task, [&](Completed& request) {
        answer_queries(task, "7", request);
        *request.add_commands() = complete_command();
    });
    EXPECT_EQ(told(query), "7") << "the run closed with this completion";
}

TEST_P(ServerQueryTest, AQueryThatFailsTellsWhy) {
    HOLDFAST_CHECK("server H238");
    HOLDFAST_CHECK("server Q27");
    become_idle("order");
    const auto direct = ask("order");
    answer(poll().response(), "", [](auto& request) {
        request.clear_query_result();
        request.set_completed_type(QUERY_RESULT_TYPE_FAILED);
        request.set_error_message("no such total");
        request.mutable_failure()->set_message("no such total");
    });
    signal("order", "paid");
    const auto buffered = ask("order");
    const Task task = poll().response();
    complete_with(task, [&](Completed& request) {
        auto& result = (*request.mutable_query_results())[task.queries().begin()->first];
        result.set_result_type(QUERY_RESULT_TYPE_FAILED);
        result.set_error_message("no such total");
        result.mutable_failure()->set_message("no such total");
    });
    for (const auto& query : {direct, buffered}) {
        ASSERT_NE(query.refusal(), nullptr);
        EXPECT_EQ(query.refusal()->code, rpc::StatusCode::invalid_argument);
        EXPECT_EQ(query.refusal()->message, "no such total");
        temporal::api::errordetails::v1::QueryFailedFailure detail;
        EXPECT_EQ(query.refusal()->detail_type, detail.GetDescriptor()->full_name());
        EXPECT_TRUE(detail.ParseFromString(query.refusal()->detail));
        EXPECT_EQ(detail.failure().message(), "no such total");
    }
}

TEST_P(ServerQueryTest, AClosedRunAnswersUnlessTheCallerRejectsIt) {
    HOLDFAST_CHECK("server H239");
    start("order");
    complete(poll().response(), {complete_command()});
    restart();  // It is read again.
    const auto query = ask("order");
    const Task task = poll().response();
    EXPECT_EQ(task.history().events_size(), 5);
    answer(task, "7");
    EXPECT_EQ(told(query), "7");
    const auto rejected = ask("order", 60s, QUERY_REJECT_CONDITION_NOT_OPEN).response();
    EXPECT_EQ(rejected.query_rejected().status(), WORKFLOW_EXECUTION_STATUS_COMPLETED);
    EXPECT_FALSE(rejected.has_query_result());
}

TEST_P(ServerQueryTest, AnEarlierRunIsAskedByItsId) {
    const std::string earlier = start("order", "first").run_id();
    complete(poll().response(), {complete_command()});
    start("order", "second");
    const auto query = ask("order", 60s, {}, earlier);
    const auto first_task = poll().response();
    const auto second_task = poll().response();
    EXPECT_EQ(first_task.query().query_type(), "total") << "before tasks of default priority";
    EXPECT_EQ(first_task.workflow_execution().run_id(), earlier);
    EXPECT_FALSE(second_task.has_query());
    answer(first_task, "7");
    EXPECT_EQ(told(query), "7");
    const auto unknown = ask("order", 60s, {}, "44444444-4444-4444-8444-444444444444");
    ASSERT_NE(unknown.refusal(), nullptr);
    EXPECT_EQ(unknown.refusal()->code, rpc::StatusCode::not_found);
}

TEST_P(ServerQueryTest, OneQueryIsBufferedAndTheNextIsRefused) {
    HOLDFAST_CHECK("server H245");
    start("order");
    auto first = ask("order");
    const auto second = ask("order");
    ASSERT_NE(second.refusal(), nullptr);
    EXPECT_EQ(second.refusal()->code, rpc::StatusCode::resource_exhausted);
    EXPECT_EQ(second.refusal()->message,
              "query buffer is full, cannot accept new consistent queries");
    EXPECT_EQ(rpc::exhaustion(*second.refusal())->cause, "BusyWorkflow");
    first.cancel();
    process->executor.run_all();
    const auto third = ask("order");
    EXPECT_TRUE(third.waits()) << "the first caller has left";
    EXPECT_EQ(poll().response().queries().size(), 1U);
}

// The worker had the task before the query came.
TEST_P(ServerQueryTest, AQueryThatMissedItsTaskIsAskedDirectly) {
    become_idle("order");
    signal("order", "paid");
    const Task missed = poll().response();
    const auto query = ask("order");
    complete(missed, {complete_command()});
    EXPECT_TRUE(query.waits());
    const Task task = poll().response();
    EXPECT_EQ(task.query().query_type(), "total");
    answer(task, "7");
    EXPECT_EQ(told(query), "7");
}

TEST_P(ServerQueryTest, AQueryRidesOnIfAnotherTaskFollows) {
    become_idle("order");
    signal("order", "paid");
    const Task missed = poll().response();
    const auto query = ask("order");
    const auto done = complete_with(missed, [](Completed& request) {
        request.set_force_create_new_workflow_task(true);  // It needs more time.
        request.set_return_new_workflow_task(true);
    });
    const Task task = done.response().workflow_task();
    ASSERT_EQ(task.queries().size(), 1U) << "the task in the reply has it";
    complete_with(task, [&](Completed& request) { answer_queries(task, "7", request); });
    EXPECT_EQ(told(query), "7");
}

TEST_P(ServerQueryTest, ATaskThatFailsKeepsItsQueries) {
    become_idle("order");
    signal("order", "paid");
    const auto query = ask("order");
    const Task failed = poll().response();
    const auto done = complete_with(failed, [&](Completed& request) {
        answer_queries(failed, "wrong", request);
        *request.add_commands() = activity_command("");  // Without an id: refused.
    });
    EXPECT_NE(done.refusal(), nullptr);
    EXPECT_TRUE(query.waits()) << "what a refused completion says does not count";
    const Task task = poll().response();
    EXPECT_EQ(task.attempt(), 2);
    ASSERT_EQ(task.queries().size(), 1U);
    complete_with(task, [&](Completed& request) { answer_queries(task, "7", request); });
    EXPECT_EQ(told(query), "7");
}

TEST_P(ServerQueryTest, ARunThatEndsBeforeItsFirstTaskDoesNotAnswer) {
    start("order");
    const auto query = ask("order");
    terminate("order");
    ASSERT_NE(query.refusal(), nullptr);
    EXPECT_EQ(query.refusal()->code, rpc::StatusCode::failed_precondition);
    EXPECT_EQ(query.refusal()->message,
              "Workflow execution closed before WorkflowTaskStarted event");
}

TEST_P(ServerQueryTest, AWorkerPagesThroughALongHistory) {
    HOLDFAST_CHECK("server H246");
    constexpr int signals = 260;
    start("order");
    for (int i = 0; i < signals; ++i) {
        signal("order", "paid");
    }
    complete(poll().response(), {});
    restart();  // Nothing of it is in memory.
    ask("order");
    const Task task = poll().response();
    EXPECT_EQ(task.history().events(0).event_id(), 1);
    ASSERT_FALSE(task.next_page_token().empty());
    api::GetWorkflowExecutionHistoryRequest request;
    request.set_namespace_("default");
    *request.mutable_execution() = task.workflow_execution();
    request.set_next_page_token(task.next_page_token());
    const auto rest =
        begin<api::GetWorkflowExecutionHistoryResponse>("GetWorkflowExecutionHistory", request)
            .response();
    EXPECT_EQ(rest.history().events(0).event_id(),
              task.history().events().rbegin()->event_id() + 1);
    EXPECT_EQ(rest.history().events().rbegin()->event_type(), EVENT_TYPE_WORKFLOW_TASK_COMPLETED);
    EXPECT_TRUE(rest.next_page_token().empty());
}

TEST_P(ServerQueryTest, ARunWithoutAnyWorkerIsAskedUntilTheDeadline) {
    HOLDFAST_CHECK("server F65");
    HOLDFAST_CHECK("server H247");
    start("order");
    const auto query = ask("order", 3s);
    advance(2s + 900ms);
    EXPECT_TRUE(query.waits());
    advance(100ms);
    ASSERT_NE(query.refusal(), nullptr);
    EXPECT_EQ(query.refusal()->code, rpc::StatusCode::deadline_exceeded);
}

TEST_P(ServerQueryTest, AQueueWithoutPollsIsNamedShortlyBeforeTheDeadline) {
    HOLDFAST_CHECK("server Q25");
    become_idle("order");
    const auto early = ask("order", 10s);
    advance(10s);
    ASSERT_NE(early.refusal(), nullptr);
    EXPECT_EQ(early.refusal()->code, rpc::StatusCode::deadline_exceeded)
        << "a worker polled a moment ago";
    advance(11s);
    const auto late = ask("order", 10s);
    advance(8s);
    EXPECT_TRUE(late.waits());
    advance(1s);
    ASSERT_NE(late.refusal(), nullptr);
    EXPECT_EQ(late.refusal()->code, rpc::StatusCode::failed_precondition);
    EXPECT_EQ(late.refusal()->message,
              "no poller seen for task queue recently, worker may be down");
}

TEST_P(ServerQueryTest, AnAnswerAfterTheCallerHasLeftIsNotFound) {
    HOLDFAST_CHECK("server H249");
    become_idle("order");
    auto query = ask("order");
    const Task task = poll().response();
    query.cancel();
    const auto late = answer(task, "7");
    ASSERT_NE(late.refusal(), nullptr);
    EXPECT_EQ(late.refusal()->code, rpc::StatusCode::not_found);
    EXPECT_EQ(late.refusal()->message, "query task not found, or already expired");
}

TEST_P(ServerQueryTest, ACallerThatLeavesTakesItsQueryOutOfTheQueue) {
    become_idle("order");
    auto query = ask("order");
    query.cancel();
    EXPECT_TRUE(poll().waits());
}

// The process finds out that another one has the database.
TEST_P(ServerQueryTest, AQueryOfARunThatIsForgottenSaysSo) {
    start("order");
    const auto query = ask("order");
    Process newer(db, clock, log, limits);
    EXPECT_NE(signal("order", "late").refusal(), nullptr);
    ASSERT_NE(query.refusal(), nullptr);
    EXPECT_EQ(query.refusal()->code, rpc::StatusCode::unavailable);
    EXPECT_EQ(query.refusal()->message, "buffered query cleared, please retry");
}

TEST_P(ServerQueryTest, ARunWithAQueryStaysInMemory) {
    limits.cached_bytes_max = 1;
    restart();
    start("order");
    const auto query = ask("order");
    start("other");
    EXPECT_TRUE(query.waits());
    const Task task = poll().response();
    EXPECT_EQ(task.workflow_execution().workflow_id(), "order");
    EXPECT_EQ(task.queries().size(), 1U);
}

INSTANTIATE_TEST_SUITE_P(Every, ServerQueryTest, test::every_backend(), test::backend_name);

}  // namespace
}  // namespace holdfast::server::engine::tests
