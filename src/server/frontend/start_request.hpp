// What a request to start a workflow asks the engine for.
#pragma once

#include <variant>

#include "engine/turn.hpp"
#include "frontend/workflow_rpc.hpp"

namespace temporal::api::workflowservice::v1 {
class SignalWithStartWorkflowExecutionRequest;
class StartWorkflowExecutionRequest;
}  // namespace temporal::api::workflowservice::v1

namespace holdfast::server::frontend {

using StartCall = temporal::api::workflowservice::v1::StartWorkflowExecutionRequest;
using SignalWithStartCall =
    temporal::api::workflowservice::v1::SignalWithStartWorkflowExecutionRequest;

// What is wrong with the request, in the order of the reference server; nothing if all is well.
[[nodiscard]] Problem start_problem(const FrontendParts& parts, const StartCall& request);
[[nodiscard]] Problem start_problem(const FrontendParts& parts, const SignalWithStartCall& request);

// Requires: the request has no problem.
[[nodiscard]] std::variant<engine::StartRequest, rpc::Refusal> start_request(
    const Scene& scene, const StartCall& request);
[[nodiscard]] std::variant<engine::StartRequest, rpc::Refusal> start_request(
    const Scene& scene, const SignalWithStartCall& request);

}  // namespace holdfast::server::frontend
