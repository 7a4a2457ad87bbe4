#include "history/query/query.hpp"

#include <optional>

#include "history/transition.hpp"

namespace holdfast::server::history {

namespace {

using namespace temporal::api::enums::v1;  // NOLINT(google-build-using-namespace): 10 names of it.

constexpr std::int32_t attempt_that_fails = 3;  // A query would fail like its workflow task.

bool rejects(QueryRejectCondition condition, WorkflowExecutionStatus status) {
    switch (condition) {
        case QUERY_REJECT_CONDITION_NOT_OPEN:
            return status != WORKFLOW_EXECUTION_STATUS_RUNNING;
        case QUERY_REJECT_CONDITION_NOT_COMPLETED_CLEANLY:
            return status != WORKFLOW_EXECUTION_STATUS_RUNNING &&
                   status != WORKFLOW_EXECUTION_STATUS_COMPLETED;
        default:
            return false;
    }
}

std::optional<QueryNotReady> not_ready(const state::Run& run, Time deadline) {
    const bool never_completed = run.last_completed_started_event_id() == 0;
    if (never_completed && run.phase() == state::PHASE_COMPLETED) {
        return QueryNotReady{"Workflow execution closed before WorkflowTaskStarted event"};
    }
    if (never_completed && in_first_backoff(run) && time_of(run.execution_time()) > deadline) {
        return QueryNotReady{"Workflow task is not scheduled yet."};
    }
    if (run.workflow_task().attempt() >= attempt_that_fails) {
        return QueryNotReady{"Unable to query workflow due to Workflow Task in failed state."};
    }
    return std::nullopt;
}

}  // namespace

bool buffers_queries(const state::Run& run) {
    return run.phase() != state::PHASE_COMPLETED &&
           (run.has_workflow_task() || run.last_completed_started_event_id() == 0);
}

QueryPlan plan_query(const state::Run& run, const QueryTerms& terms) {
    if (run.status() == WORKFLOW_EXECUTION_STATUS_PAUSED || rejects(terms.reject, run.status())) {
        return QueryRejected{run.status()};
    }
    if (auto problem = not_ready(run, terms.deadline)) {
        return *std::move(problem);
    }
    return buffers_queries(run) ? QueryRoute::buffered : QueryRoute::direct;
}

}  // namespace holdfast::server::history
