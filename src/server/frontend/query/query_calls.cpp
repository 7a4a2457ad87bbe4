#include <algorithm>
#include <chrono>

#include "frontend/frontend.hpp"
#include "frontend/query/live_query.hpp"
#include "frontend/workflow_rpc.hpp"
#include <temporal/api/enums/v1/failed_cause.pb.h>
#include <temporal/api/errordetails/v1/message.pb.h>

namespace holdfast::server::frontend {

namespace {

namespace api = temporal::api::workflowservice::v1;
namespace details = temporal::api::errordetails::v1;

using Tasks = std::shared_ptr<QueryTasks>;
using engine::token::Query;

constexpr std::chrono::seconds query_wait_without_deadline{60};
constexpr std::chrono::minutes query_wait_max{10};

Problem query_problem(const FrontendParts& parts, const api::QueryWorkflowRequest& request) {
    const auto* execution = request.has_execution() ? &request.execution() : nullptr;
    if (auto problem = execution_problem(execution, parts.limits)) {
        return problem;
    }
    if (!request.has_query()) {
        return invalid("WorkflowQuery is not set on request.");
    }
    if (request.query().query_type().empty()) {
        return invalid("QueryType is not set on request.");
    }
    return blob_problem(request.query().query_args().ByteSizeLong(), parts.limits);
}

std::chrono::nanoseconds wait_of(const rpc::CallInfo& info, const Clock& clock) {
    if (!info.deadline) {
        return query_wait_without_deadline;
    }
    // A deadline may be far beyond what a sum of nanoseconds can hold.
    const auto left =
        std::chrono::floor<std::chrono::microseconds>(*info.deadline) - clock.wall_now();
    return std::clamp<std::chrono::microseconds>(
        left, std::chrono::microseconds{0}, query_wait_max);
}

rpc::Refusal too_many_queries() {
    details::ResourceExhaustedFailure detail;
    detail.set_cause(temporal::api::enums::v1::RESOURCE_EXHAUSTED_CAUSE_CONCURRENT_LIMIT);
    detail.set_scope(temporal::api::enums::v1::RESOURCE_EXHAUSTED_SCOPE_SYSTEM);
    return {rpc::StatusCode::resource_exhausted, "too many queries wait for workers", detail};
}

void query_workflow(const Parts& parts,
                    const Tasks& tasks,
                    const api::QueryWorkflowRequest& request,
                    LiveQuery::Reply reply) {
    const auto in = parts->namespaces.resolve(request.namespace_(), NamespaceUse::ordinary);
    if (const auto* refusal = std::get_if<rpc::Refusal>(&in)) {
        std::move(reply).refuse(*refusal);
        return;
    }
    if (auto problem = query_problem(*parts, request)) {
        std::move(reply).refuse(*std::move(problem));
        return;
    }
    auto place = QueryTasks::take_place(tasks);
    if (!place) {
        std::move(reply).refuse(too_many_queries());
        return;
    }
    const engine::WorkflowKey workflow{std::get<ResolvedNamespace>(in).id,
                                       request.execution().workflow_id()};
    const std::chrono::nanoseconds wait = wait_of(reply.info(), parts->clock);
    const auto live = std::make_shared<LiveQuery>(
        parts,
        tasks,
        std::move(place),
        AskedQuery{.workflow = workflow,
                   .run_id = request.execution().run_id(),
                   .query = request.query(),
                   .terms = {.reject = request.query_reject_condition(),
                             .deadline = parts->clock.wall_now() + wait},
                   .until = parts->clock.steady_now() + wait});
    parts->turns.answer(
        workflow, std::move(reply), [live](engine::Turn& turn, LiveQuery::Reply& kept) {
            live->begin(turn, std::move(kept));
        });
}

Problem task_problem(const FrontendParts& parts,
                     const std::variant<Query, rpc::Refusal>& token,
                     const api::RespondQueryTaskCompletedRequest& request) {
    if (const auto* refusal = std::get_if<rpc::Refusal>(&token)) {
        return *refusal;
    }
    const auto in =
        namespace_of_token(parts.namespaces, request.namespace_(), std::get<Query>(token));
    if (const auto* refusal = std::get_if<rpc::Refusal>(&in)) {
        return *refusal;
    }
    return std::nullopt;
}

void answer_query(const FrontendParts& parts,
                  QueryTasks& tasks,
                  const api::RespondQueryTaskCompletedRequest& request,
                  rpc::Reply<api::RespondQueryTaskCompletedResponse> reply) {
    const auto token = task_token<Query>(request.task_token());
    if (auto problem = task_problem(parts, token, request)) {
        std::move(reply).refuse(*std::move(problem));
        return;
    }
    const std::shared_ptr<LiveQuery> live = tasks.take(std::get<Query>(token).id());
    if (!live) {
        std::move(reply).refuse({rpc::StatusCode::not_found,
                                 "query task not found, or already expired",
                                 details::NotFoundFailure()});
        return;
    }
    live->answer(answer_of(request, parts.limits));
    std::move(reply).send();
}

}  // namespace

void add_queries(rpc::Dispatch& dispatch, const Parts& parts) {
    const Tasks tasks = std::make_shared<QueryTasks>();
    dispatch.add<api::QueryWorkflowRequest, api::QueryWorkflowResponse>(
        workflow_service("QueryWorkflow"),
        [parts, tasks](const api::QueryWorkflowRequest& request, LiveQuery::Reply reply) {
            query_workflow(parts, tasks, request, std::move(reply));
        });
    dispatch.add<api::RespondQueryTaskCompletedRequest, api::RespondQueryTaskCompletedResponse>(
        workflow_service("RespondQueryTaskCompleted"),
        [parts, tasks](const api::RespondQueryTaskCompletedRequest& request,
                       rpc::Reply<api::RespondQueryTaskCompletedResponse> reply) {
            answer_query(*parts, *tasks, request, std::move(reply));
        });
}

}  // namespace holdfast::server::frontend
