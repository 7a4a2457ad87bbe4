#include "frontend/namespace_gate.hpp"

#include <cstddef>

#include <fmt/format.h>
#include <temporal/api/errordetails/v1/message.pb.h>

namespace holdfast::server::frontend {

namespace {

namespace enums = temporal::api::enums::v1;

constexpr std::size_t namespace_bytes_max = 1000;

std::string short_name(enums::NamespaceState state) {
    switch (state) {
        case enums::NAMESPACE_STATE_REGISTERED:
            return "Registered";
        case enums::NAMESPACE_STATE_DEPRECATED:
            return "Deprecated";
        case enums::NAMESPACE_STATE_DELETED:
            return "Deleted";
        default:
            return "Unspecified";
    }
}

}  // namespace

std::optional<rpc::Refusal> name_refusal(const std::string& name) {
    if (name.empty()) {
        return rpc::Refusal(rpc::StatusCode::invalid_argument, "Namespace is empty.");
    }
    if (name.size() > namespace_bytes_max) {
        return rpc::Refusal(rpc::StatusCode::invalid_argument, "Namespace length exceeds limit.");
    }
    return std::nullopt;
}

rpc::Refusal namespace_not_found(const std::string& name) {
    temporal::api::errordetails::v1::NamespaceNotFoundFailure failure;
    failure.set_namespace_(name);
    return {rpc::StatusCode::not_found, fmt::format("Namespace {} is not found.", name), failure};
}

std::optional<rpc::Refusal> state_refusal(const ResolvedNamespace& found, NamespaceUse use) {
    const bool deprecated_too = use == NamespaceUse::ordinary;
    if (found.state == enums::NAMESPACE_STATE_REGISTERED ||
        (deprecated_too && found.state == enums::NAMESPACE_STATE_DEPRECATED)) {
        return std::nullopt;
    }
    temporal::api::errordetails::v1::NamespaceInvalidStateFailure failure;
    failure.set_namespace_(found.name);
    failure.set_state(found.state);
    failure.add_allowed_states(enums::NAMESPACE_STATE_REGISTERED);
    std::string allowed = short_name(enums::NAMESPACE_STATE_REGISTERED);
    if (deprecated_too) {
        failure.add_allowed_states(enums::NAMESPACE_STATE_DEPRECATED);
        allowed += " or " + short_name(enums::NAMESPACE_STATE_DEPRECATED);
    }
    return rpc::Refusal(
        rpc::StatusCode::failed_precondition,
        fmt::format(
            "Namespace has invalid state: {}. Must be {}.", short_name(found.state), allowed),
        failure);
}

}  // namespace holdfast::server::frontend
