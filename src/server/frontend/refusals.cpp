#include "frontend/refusals.hpp"

#include <temporal/api/enums/v1/failed_cause.pb.h>
#include <temporal/api/errordetails/v1/message.pb.h>

namespace holdfast::server::frontend {

rpc::Refusal wire_refusal(const history::Refusal& refusal) {
    namespace details = temporal::api::errordetails::v1;
    namespace enums = temporal::api::enums::v1;
    switch (refusal.kind) {
        case history::Refused::not_found:
            return {rpc::StatusCode::not_found, refusal.message, details::NotFoundFailure()};
        case history::Refused::invalid_argument:
            return {rpc::StatusCode::invalid_argument, refusal.message};
        case history::Refused::failed_precondition:
            return {rpc::StatusCode::failed_precondition, refusal.message};
        case history::Refused::not_ready:
            return {rpc::StatusCode::failed_precondition,
                    refusal.message,
                    details::WorkflowNotReadyFailure()};
        case history::Refused::unavailable:
            return {rpc::StatusCode::unavailable, refusal.message};
        case history::Refused::busy:
        case history::Refused::concurrent_limit:
            break;
    }
    details::ResourceExhaustedFailure exhausted;
    exhausted.set_cause(refusal.kind == history::Refused::busy
                            ? enums::RESOURCE_EXHAUSTED_CAUSE_BUSY_WORKFLOW
                            : enums::RESOURCE_EXHAUSTED_CAUSE_CONCURRENT_LIMIT);
    exhausted.set_scope(enums::RESOURCE_EXHAUSTED_SCOPE_NAMESPACE);
    return {rpc::StatusCode::resource_exhausted, refusal.message, exhausted};
}

rpc::Refusal wire_refusal(const engine::AlreadyStarted& existing) {
    temporal::api::errordetails::v1::WorkflowExecutionAlreadyStartedFailure detail;
    detail.set_start_request_id(existing.start_request_id);
    detail.set_run_id(existing.run_id);
    detail.set_first_execution_run_id(existing.first_execution_run_id);
    return {rpc::StatusCode::already_exists, existing.message, detail};
}

}  // namespace holdfast::server::frontend
