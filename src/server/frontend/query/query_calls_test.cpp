#include "frontend/query/query_tasks.hpp"
#include "frontend/test/frontend_fixture.hpp"
#include "history/outside.hpp"
#include <server/engine/token.pb.h>
#include <temporal/api/errordetails/v1/message.pb.h>

#include <holdfast/testing/check.hpp>

namespace holdfast::server::frontend::tests {

namespace {

namespace enums = temporal::api::enums::v1;

using rpc::StatusCode;
using temporal::api::query::v1::WorkflowQueryResult;

class QueryCalls : public FrontendTest {
protected:
    QueryCalls() {
        request.set_namespace_("home");
        request.mutable_execution()->set_workflow_id("order-7");
        request.mutable_query()->set_query_type("total");
    }

    void TearDown() override { dispatch.stop(); }  // Answers what still waits.

    // A query that waits for the first workflow task.
    std::shared_ptr<rpc::Call> ask() {
        answers.clear();
        auto asked = begin("QueryWorkflow", request);
        EXPECT_TRUE(answers.empty()) << "it waits";
        return asked;
    }
    rpc::Refusal refused_by(const WorkflowQueryResult& result) {
        ask();
        turns.buffered_query->answered(result);
        return refusal();
    }
    static api::RespondQueryTaskCompletedRequest answer_of_worker(const std::string& token) {
        api::RespondQueryTaskCompletedRequest answer;
        answer.set_namespace_("home");
        answer.set_task_token(token);
        answer.set_completed_type(enums::QUERY_RESULT_TYPE_ANSWERED);
        return answer;
    }
    static std::string token_of(const std::string& queue, const std::string& id) {
        engine::token::Task token;
        token.mutable_query()->set_namespace_id(home_id);
        token.mutable_query()->set_queue(queue);
        token.mutable_query()->set_id(id);
        return token.SerializeAsString();
    }
    // The task of a query that a worker has: the run is idle.
    std::string task_of_idle_run() {
        start_order();
        api::RespondWorkflowTaskCompletedRequest completed;
        completed.set_namespace_("home");
        completed.set_task_token(turns.poll_task(order));
        call<api::RespondWorkflowTaskCompletedResponse>("RespondWorkflowTaskCompleted", completed);
        ask();
        api::PollWorkflowTaskQueueRequest poll;
        poll.set_namespace_("home");
        poll.mutable_task_queue()->set_name("orders");
        deadline = clock.wall_now() + std::chrono::seconds{70};
        begin("PollWorkflowTaskQueue", poll);
        deadline.reset();
        return response<api::PollWorkflowTaskQueueResponse>().task_token();
    }

    api::QueryWorkflowRequest request;
    const std::string large = std::string((std::size_t{2} << 20) + 1, 'x');
};

TEST_F(QueryCalls, AQueryNeedsAWorkflowAndAType) {
    HOLDFAST_CHECK("server F64");
    start_order();
    request.mutable_query()->clear_query_type();
    EXPECT_EQ(refused("QueryWorkflow", request),
              rpc::Refusal(StatusCode::invalid_argument, "QueryType is not set on request."));
    request.clear_query();
    EXPECT_EQ(refused("QueryWorkflow", request).message, "WorkflowQuery is not set on request.");
    request.clear_execution();
    EXPECT_EQ(refused("QueryWorkflow", request).message, "Execution is not set on request.");
}

TEST_F(QueryCalls, ArgumentsAreLimited) {
    start_order();
    request.mutable_query()->mutable_query_args()->add_payloads()->set_data(large);
    EXPECT_EQ(refused("QueryWorkflow", request).message, "Blob data size exceeds limit.");
}

TEST_F(QueryCalls, AnUnknownWorkflowIsNotFound) {
    const auto refusal = refused("QueryWorkflow", request);
    EXPECT_EQ(refusal.code, StatusCode::not_found);
    EXPECT_EQ(refusal.detail_type, "temporal.api.errordetails.v1.NotFoundFailure");
}

TEST_F(QueryCalls, ARunThatIsNotReadyIsSaidByADetail) {
    start_order();
    static_cast<void>(turns.apply(*turns.run_of(order), [](history::Transition& transition) {
        return history::terminate_run(transition, {});
    }));
    const auto refusal = refused("QueryWorkflow", request);
    EXPECT_EQ(refusal.code, StatusCode::failed_precondition);
    EXPECT_EQ(refusal.detail_type, "temporal.api.errordetails.v1.WorkflowNotReadyFailure");
    request.set_query_reject_condition(enums::QUERY_REJECT_CONDITION_NOT_OPEN);
    EXPECT_EQ(call<api::QueryWorkflowResponse>("QueryWorkflow", request).query_rejected().status(),
              enums::WORKFLOW_EXECUTION_STATUS_TERMINATED);
}

TEST_F(QueryCalls, AFailureOfTheWorkerIsTheDetail) {
    HOLDFAST_CHECK("server F66");
    start_order();
    WorkflowQueryResult result;
    result.set_result_type(enums::QUERY_RESULT_TYPE_FAILED);
    result.set_error_message("no such total");
    auto refusal = refused_by(result);
    EXPECT_EQ(refusal.code, StatusCode::invalid_argument);
    EXPECT_EQ(refusal.message, "no such total");
    EXPECT_EQ(refusal.detail_type, "temporal.api.errordetails.v1.QueryFailedFailure");
    EXPECT_TRUE(refusal.detail.empty()) << "the worker gave a text only";

    result.mutable_failure()->set_message("broke");
    refusal = refused_by(result);
    temporal::api::errordetails::v1::QueryFailedFailure detail;
    ASSERT_TRUE(detail.ParseFromString(refusal.detail));
    EXPECT_EQ(detail.failure().message(), "broke");
}

TEST_F(QueryCalls, AResultThatContradictsItselfFailsTheQueryAlone) {
    start_order();
    WorkflowQueryResult result;
    EXPECT_EQ(refused_by(result).code, StatusCode::internal);
    result.set_result_type(enums::QUERY_RESULT_TYPE_ANSWERED);
    EXPECT_EQ(refused_by(result).code, StatusCode::internal) << "without an answer";
    result.mutable_answer();
    result.set_error_message("but");
    EXPECT_EQ(refused_by(result).code, StatusCode::internal);
    result.set_result_type(enums::QUERY_RESULT_TYPE_FAILED);
    EXPECT_EQ(refused_by(result).code, StatusCode::internal);
}

TEST_F(QueryCalls, AnAnswerThatIsTooLargeFailsTheQuery) {
    start_order();
    WorkflowQueryResult result;
    result.set_result_type(enums::QUERY_RESULT_TYPE_ANSWERED);
    result.mutable_answer()->add_payloads()->set_data(large);
    EXPECT_EQ(refused_by(result).message, "Blob data size exceeds limit.");
    EXPECT_EQ(refused_by(result).code, StatusCode::invalid_argument);
}

TEST_F(QueryCalls, ATaskAnswerThatIsTooLargeFailsTheQueryAndNotTheWorker) {
    HOLDFAST_CHECK("server F83");
    HOLDFAST_CHECK("server Q28");
    auto answer = answer_of_worker(task_of_idle_run());
    answer.mutable_query_result()->add_payloads()->set_data(large + large.substr(0, 1U << 20));
    answers.clear();
    begin("RespondQueryTaskCompleted", answer);
    ASSERT_EQ(answers.size(), 2U) << "the caller's, and the worker's";
    const auto& of_caller = std::get<rpc::Refusal>(answers[0]);
    EXPECT_EQ(of_caller.message, "Blob data size exceeds limit.");
    EXPECT_EQ(of_caller.detail_type, "temporal.api.errordetails.v1.QueryFailedFailure");
    EXPECT_TRUE(std::holds_alternative<std::string>(answers[1]));
}

TEST_F(QueryCalls, TheTokenOfAQueryIsLookedAt) {
    HOLDFAST_CHECK("server Q26");
    const std::string token = task_of_idle_run();
    EXPECT_EQ(refused("RespondQueryTaskCompleted", answer_of_worker("garbage")).message,
              "Error deserializing task token.");
    EXPECT_EQ(refused("RespondQueryTaskCompleted", answer_of_worker(token_of("", "id"))),
              rpc::Refusal(StatusCode::invalid_argument, "Invalid TaskToken."));
    auto elsewhere = answer_of_worker(token);
    elsewhere.set_namespace_("retired");
    EXPECT_EQ(refused("RespondQueryTaskCompleted", elsewhere).message,
              "Operation requested with a token from a different namespace.");
    call<api::RespondQueryTaskCompletedResponse>("RespondQueryTaskCompleted",
                                                 answer_of_worker(token));
    const auto again = refused("RespondQueryTaskCompleted", answer_of_worker(token));
    EXPECT_EQ(again.code, StatusCode::not_found);
    EXPECT_EQ(again.message, "query task not found, or already expired");
}

TEST_F(QueryCalls, AStopAnswersWhatWaits) {
    start_order();
    ask();
    dispatch.stop();
    EXPECT_EQ(refusal().code, StatusCode::unavailable);
    EXPECT_TRUE(turns.buffered_query->over());
    EXPECT_EQ(alarms.pending(), 0U);
}

// However many callers wait, the queries in memory have a bound.
TEST_F(QueryCalls, OnlySoManyWaitAtTheSameTime) {
    start_order();
    std::vector<std::shared_ptr<rpc::Call>> waiting;
    for (std::size_t i = 0; i < QueryTasks::waiting_max; ++i) {
        waiting.push_back(ask());
    }
    const auto one_more = refused("QueryWorkflow", request);
    EXPECT_EQ(one_more.code, StatusCode::resource_exhausted);
    EXPECT_EQ(one_more.detail_type, "temporal.api.errordetails.v1.ResourceExhaustedFailure");
    waiting.back()->cancel();
    ask();
}

}  // namespace

}  // namespace holdfast::server::frontend::tests
