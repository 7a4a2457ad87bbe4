// What a query of a run gets: no worker at all, one of its own, or the next workflow task.
//
// A query that is asked while a workflow task is pending rides with it, so that its answer knows
// everything that was acknowledged before it.
#pragma once

#include <cstdint>
#include <string>
#include <variant>

#include "history/times.hpp"
#include <server/history/state.pb.h>
#include <temporal/api/enums/v1/query.pb.h>
#include <temporal/api/enums/v1/workflow.pb.h>

namespace holdfast::server::history {

struct QueryTerms {
    temporal::api::enums::v1::QueryRejectCondition reject{};
    Time deadline;  // Of the caller.
};

// The caller did not want an answer of a run with this status.
struct QueryRejected {
    temporal::api::enums::v1::WorkflowExecutionStatus status{};
};

// No worker can answer it now.
struct QueryNotReady {
    std::string message;
};

enum class QueryRoute : std::uint8_t {
    direct,    // A task of its own, for a worker that waits.
    buffered,  // With the next workflow task that starts.
};

using QueryPlan = std::variant<QueryRoute, QueryRejected, QueryNotReady>;

[[nodiscard]] QueryPlan plan_query(const state::Run& run, const QueryTerms& terms);

// Whether a workflow task is to come or pending that a query of the run has to wait for.
[[nodiscard]] bool buffers_queries(const state::Run& run);

}  // namespace holdfast::server::history
