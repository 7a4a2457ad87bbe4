// What becomes of a query, as its caller reads it.
#pragma once

#include <variant>

#include "history/limits.hpp"
#include "history/query/query.hpp"
#include "rpc/refusal.hpp"
#include <temporal/api/common/v1/message.pb.h>
#include <temporal/api/query/v1/message.pb.h>

namespace temporal::api::workflowservice::v1 {
class RespondQueryTaskCompletedRequest;
}

namespace holdfast::server::frontend {

using QueryAnswer =
    std::variant<temporal::api::common::v1::Payloads, history::QueryRejected, rpc::Refusal>;

// Of a result that came with the completion of a workflow task.
[[nodiscard]] QueryAnswer answer_of(const temporal::api::query::v1::WorkflowQueryResult& result,
                                    const history::Limits& limits);
// Of the completion of a query task.
[[nodiscard]] QueryAnswer answer_of(
    const temporal::api::workflowservice::v1::RespondQueryTaskCompletedRequest& request,
    const history::Limits& limits);

[[nodiscard]] rpc::Refusal not_ready(const history::QueryNotReady& reason);

}  // namespace holdfast::server::frontend
