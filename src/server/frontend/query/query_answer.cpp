#include "frontend/query/query_answer.hpp"

#include <string>

#include "frontend/oversize.hpp"
#include <temporal/api/enums/v1/query.pb.h>
#include <temporal/api/errordetails/v1/message.pb.h>
#include <temporal/api/workflowservice/v1/request_response.pb.h>

namespace holdfast::server::frontend {

namespace {

namespace enums = temporal::api::enums::v1;

using temporal::api::failure::v1::Failure;

constexpr const char* too_large_text = "Blob data size exceeds limit.";

// `failure` is empty if the worker gave a text only.
rpc::Refusal query_failed(const std::string& message, const Failure* failure) {
    temporal::api::errordetails::v1::QueryFailedFailure detail;
    if (failure != nullptr) {
        *detail.mutable_failure() = *failure;
    }
    return {rpc::StatusCode::invalid_argument, message, detail};
}

rpc::Refusal too_large_to_answer() {
    return query_failed(too_large_text, nullptr);
}

template <class Worker>
rpc::Refusal failed_by(const Worker& said, const history::Limits& limits) {
    if (said.failure().ByteSizeLong() > limits.blob_bytes_max ||
        said.error_message().size() > limits.blob_bytes_max) {
        return too_large_to_answer();
    }
    return query_failed(said.error_message(), said.has_failure() ? &said.failure() : nullptr);
}

}  // namespace

QueryAnswer answer_of(const temporal::api::query::v1::WorkflowQueryResult& result,
                      const history::Limits& limits) {
    const bool answered = result.result_type() == enums::QUERY_RESULT_TYPE_ANSWERED &&
                          result.has_answer() && result.error_message().empty();
    const bool failed = result.result_type() == enums::QUERY_RESULT_TYPE_FAILED &&
                        !result.has_answer() && !result.error_message().empty();
    if (failed) {
        return failed_by(result, limits);
    }
    if (!answered) {
        return rpc::Refusal(rpc::StatusCode::internal, "the result of a query contradicts itself");
    }
    if (too_large(result.answer(), limits)) {
        return too_large_to_answer();
    }
    return result.answer();
}

QueryAnswer answer_of(
    const temporal::api::workflowservice::v1::RespondQueryTaskCompletedRequest& request,
    const history::Limits& limits) {
    switch (request.completed_type()) {
        case enums::QUERY_RESULT_TYPE_ANSWERED:
            if (too_large(request.query_result(), limits)) {
                return too_large_to_answer();
            }
            return request.query_result();
        case enums::QUERY_RESULT_TYPE_FAILED:
            return failed_by(request, limits);
        default:
            return rpc::Refusal(rpc::StatusCode::internal,
                                "the worker neither answered the query nor failed it");
    }
}

rpc::Refusal not_ready(const history::QueryNotReady& reason) {
    return {rpc::StatusCode::failed_precondition,
            reason.message,
            temporal::api::errordetails::v1::WorkflowNotReadyFailure()};
}

}  // namespace holdfast::server::frontend
