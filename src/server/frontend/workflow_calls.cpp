#include "frontend/frontend.hpp"
#include "frontend/refusals.hpp"
#include "frontend/run_link.hpp"
#include "frontend/workflow_rpc.hpp"
#include "history/note.hpp"
#include "history/outside.hpp"
#include <temporal/api/workflowservice/v1/request_response.pb.h>

namespace holdfast::server::frontend {

namespace {

namespace api = temporal::api::workflowservice::v1;
namespace events = temporal::api::history::v1;

using Target = std::variant<std::string, rpc::Refusal>;

template <class Request>
const temporal::api::common::v1::WorkflowExecution* workflow_execution_of(const Request& request) {
    return request.has_workflow_execution() ? &request.workflow_execution() : nullptr;
}

Problem on_wire(const std::optional<history::Refusal>& refusal) {
    return refusal ? Problem(wire_refusal(*refusal)) : std::nullopt;
}

// A request may say which chain of runs it means.
std::optional<history::Refusal> other_chain(const history::Transition& transition,
                                            const std::string& first_execution_run_id) {
    if (first_execution_run_id.empty() ||
        transition.run().started().first_execution_run_id() == first_execution_run_id) {
        return std::nullopt;
    }
    return history::Refusal{history::Refused::not_found, "workflow execution not found"};
}

Target signalled(const FrontendParts& parts, const api::SignalWorkflowExecutionRequest& request) {
    const history::Limits& limits = parts.limits;
    if (auto problem = execution_problem(workflow_execution_of(request), limits)) {
        return *std::move(problem);
    }
    if (auto problem = name_problem("SignalName", request.signal_name(), limits)) {
        return *std::move(problem);
    }
    if (auto problem = length_problem("RequestId", request.request_id(), limits)) {
        return *std::move(problem);
    }
    if (auto problem = length_problem("Identity", request.identity(), limits)) {
        return *std::move(problem);
    }
    if (auto problem = links_problem(request.links())) {
        return *std::move(problem);
    }
    if (auto problem = blob_problem(request.input().ByteSizeLong(), limits)) {
        return *std::move(problem);
    }
    return request.workflow_execution().workflow_id();
}

Problem signal(const Scene& scene,
               engine::Turn& turn,
               const api::SignalWorkflowExecutionRequest& request,
               api::SignalWorkflowExecutionResponse& response) {
    const auto& execution = request.workflow_execution();
    const auto found = turn.find(execution.run_id());
    if (const auto* refusal = std::get_if<history::Refusal>(&found)) {
        return wire_refusal(*refusal);
    }
    // The reply names the run, and the current one may be another after the change.
    const std::string run_id = std::get<const history::state::Run*>(found)->run_id();
    events::WorkflowExecutionSignaledEventAttributes attributes;
    attributes.set_signal_name(request.signal_name());
    attributes.set_identity(request.identity());
    attributes.set_request_id(request.request_id());
    if (request.has_input()) {
        *attributes.mutable_input() = request.input();
    }
    if (request.has_header()) {
        *attributes.mutable_header() = request.header();
    }
    const auto links = distinct(request.links());
    const auto refusal = turn.change(run_id, [&](history::Transition& transition) {
        return history::signal_run(transition, attributes, false, links);
    });
    *response.mutable_link() =
        link_to_signal(scene.in.name, execution.workflow_id(), run_id, request.request_id());
    return on_wire(refusal);
}

Target cancelled(const FrontendParts& parts,
                 const api::RequestCancelWorkflowExecutionRequest& request) {
    if (auto problem = execution_problem(workflow_execution_of(request), parts.limits)) {
        return *std::move(problem);
    }
    if (auto problem = length_problem("RequestId", request.request_id(), parts.limits)) {
        return *std::move(problem);
    }
    if (auto problem = blob_problem(request.reason().size(), parts.limits)) {
        return *std::move(problem);
    }
    if (auto problem = links_problem(request.links())) {
        return *std::move(problem);
    }
    return request.workflow_execution().workflow_id();
}

Problem cancel(const Scene&,
               engine::Turn& turn,
               const api::RequestCancelWorkflowExecutionRequest& request,
               api::RequestCancelWorkflowExecutionResponse&) {
    events::WorkflowExecutionCancelRequestedEventAttributes attributes;
    attributes.set_cause(request.reason());
    attributes.set_identity(request.identity());
    return on_wire(turn.change(
        request.workflow_execution().run_id(),
        [&](history::Transition& transition) -> std::optional<history::Refusal> {
            if (auto refusal = other_chain(transition, request.first_execution_run_id())) {
                return refusal;
            }
            history::request_cancel(transition, attributes);
            return std::nullopt;
        }));
}

Target terminated(const FrontendParts& parts,
                  const api::TerminateWorkflowExecutionRequest& request) {
    if (auto problem = execution_problem(workflow_execution_of(request), parts.limits)) {
        return *std::move(problem);
    }
    if (auto problem = blob_problem(request.details().ByteSizeLong(), parts.limits)) {
        return *std::move(problem);
    }
    if (auto problem = blob_problem(request.reason().size(), parts.limits)) {
        return *std::move(problem);
    }
    if (auto problem = links_problem(request.links())) {
        return *std::move(problem);
    }
    return request.workflow_execution().workflow_id();
}

Problem terminate(const Scene&,
                  engine::Turn& turn,
                  const api::TerminateWorkflowExecutionRequest& request,
                  api::TerminateWorkflowExecutionResponse&) {
    events::WorkflowExecutionTerminatedEventAttributes attributes;
    attributes.set_reason(request.reason().empty() ? "terminated by user via frontend"
                                                   : request.reason());
    attributes.set_identity(request.identity().empty() ? "frontend-service" : request.identity());
    if (request.has_details()) {
        *attributes.mutable_details() = request.details();
    }
    return on_wire(turn.change(
        request.workflow_execution().run_id(),
        [&](history::Transition& transition) -> std::optional<history::Refusal> {
            if (transition.open()) {
                if (auto refusal = other_chain(transition, request.first_execution_run_id())) {
                    return refusal;
                }
            }
            return history::terminate_run(transition, attributes);
        }));
}

Target deleted(const FrontendParts& parts, const api::DeleteWorkflowExecutionRequest& request) {
    if (auto problem = execution_problem(workflow_execution_of(request), parts.limits)) {
        return *std::move(problem);
    }
    return request.workflow_execution().workflow_id();
}

Problem remove(const Scene&,
               engine::Turn& turn,
               const api::DeleteWorkflowExecutionRequest& request,
               api::DeleteWorkflowExecutionResponse&) {
    return on_wire(turn.remove(request.workflow_execution().run_id()));
}

Target unstuck(const FrontendParts& parts, const api::ResetStickyTaskQueueRequest& request) {
    const auto* execution = request.has_execution() ? &request.execution() : nullptr;
    if (auto problem = execution_problem(execution, parts.limits)) {
        return *std::move(problem);
    }
    return request.execution().workflow_id();
}

Problem reset_sticky(const Scene&,
                     engine::Turn& turn,
                     const api::ResetStickyTaskQueueRequest& request,
                     api::ResetStickyTaskQueueResponse&) {
    return on_wire(
        turn.change(request.execution().run_id(),
                    [](history::Transition& transition) -> std::optional<history::Refusal> {
                        if (!transition.open()) {
                            return history::already_completed();
                        }
                        if (!transition.run().sticky_queue().empty()) {
                            transition.note(history::note::Sticky{});
                        }
                        return std::nullopt;
                    }));
}

}  // namespace

void add_workflow_calls(rpc::Dispatch& dispatch, const Parts& parts) {
    constexpr auto use = NamespaceUse::ordinary;
    add_workflow_rpc<api::SignalWorkflowExecutionRequest, api::SignalWorkflowExecutionResponse>(
        dispatch, parts, "SignalWorkflowExecution", use, signalled, signal);
    add_workflow_rpc<api::RequestCancelWorkflowExecutionRequest,
                     api::RequestCancelWorkflowExecutionResponse>(
        dispatch, parts, "RequestCancelWorkflowExecution", use, cancelled, cancel);
    add_workflow_rpc<api::TerminateWorkflowExecutionRequest,
                     api::TerminateWorkflowExecutionResponse>(
        dispatch, parts, "TerminateWorkflowExecution", use, terminated, terminate);
    add_workflow_rpc<api::DeleteWorkflowExecutionRequest, api::DeleteWorkflowExecutionResponse>(
        dispatch, parts, "DeleteWorkflowExecution", use, deleted, remove);
    add_workflow_rpc<api::ResetStickyTaskQueueRequest, api::ResetStickyTaskQueueResponse>(
        dispatch, parts, "ResetStickyTaskQueue", use, unstuck, reset_sticky);
}

}  // namespace holdfast::server::frontend
