#include "frontend/oversize.hpp"

#include <cstddef>

#include <holdfast/base/utf8.hpp>

namespace holdfast::server::frontend {

namespace {

using temporal::api::failure::v1::Failure;

constexpr std::size_t kept_bytes_max = 4000;

std::string beginning(const std::string& text) {
    std::string kept = text.substr(0, kept_bytes_max);
    kept.resize(valid_utf8_bytes(kept));  // Not within a character.
    return kept;
}

}  // namespace

bool too_large(const temporal::api::common::v1::Payloads& payloads, const history::Limits& limits) {
    return payloads.ByteSizeLong() > limits.blob_bytes_max;
}

Failure server_failure(const std::string& message) {
    Failure failure;
    failure.set_message(message);
    failure.set_source("Server");
    failure.mutable_server_failure_info()->set_non_retryable(true);
    return failure;
}

Failure replacement_of(const Failure& failure) {
    Failure replacement = server_failure("Failure exceeds size limit.");
    Failure& cause = *replacement.mutable_cause();
    cause.set_message(beginning(failure.message()));
    cause.set_source(beginning(failure.source()));
    if (failure.has_application_failure_info()) {
        auto& info = *cause.mutable_application_failure_info();
        info.set_type(beginning(failure.application_failure_info().type()));
        info.set_non_retryable(failure.application_failure_info().non_retryable());
    }
    return replacement;
}

}  // namespace holdfast::server::frontend
