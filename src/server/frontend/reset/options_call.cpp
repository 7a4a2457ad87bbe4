#include <utility>

#include "frontend/frontend.hpp"
#include "frontend/refusals.hpp"
#include "frontend/reset/options_change.hpp"
#include "frontend/workflow_rpc.hpp"
#include <fmt/format.h>
#include <temporal/api/workflowservice/v1/request_response.pb.h>

namespace holdfast::server::frontend {

namespace {

namespace api = temporal::api::workflowservice::v1;

using OptionsCall = api::UpdateWorkflowExecutionOptionsRequest;

// Sets what a path names. False if it names nothing.
bool mark(history::OptionsChange& change, std::string_view path) {
    if (path == "priority") {
        change.whole = true;
    } else if (path == "priority.priority_key" || path == "priority.priorityKey") {
        change.priority_key = true;
    } else if (path == "priority.fairness_key" || path == "priority.fairnessKey") {
        change.fairness_key = true;
    } else if (path == "priority.fairness_weight" || path == "priority.fairnessWeight") {
        change.fairness_weight = true;
    } else {
        return false;
    }
    return true;
}

bool names(std::string_view path, std::string_view snake, std::string_view camel) {
    return path.starts_with(snake) || path.starts_with(camel);
}

std::variant<std::string, rpc::Refusal> options_target(const FrontendParts& parts,
                                                       const OptionsCall& request) {
    const auto* execution =
        request.has_workflow_execution() ? &request.workflow_execution() : nullptr;
    if (auto problem = execution_problem(execution, parts.limits)) {
        return *std::move(problem);
    }
    if (!request.has_workflow_execution_options()) {
        return invalid("WorkflowExecutionOptions is not set on request.");
    }
    if (!request.has_update_mask()) {
        return invalid("UpdateMask is not set on request.");
    }
    auto change = options_change(request.workflow_execution_options(), request.update_mask());
    if (auto* refusal = std::get_if<rpc::Refusal>(&change)) {
        return std::move(*refusal);
    }
    return request.workflow_execution().workflow_id();
}

Problem change_workflow_options(const Scene&,
                                engine::Turn& turn,
                                const OptionsCall& request,
                                api::UpdateWorkflowExecutionOptionsResponse& response) {
    // It was found good before.
    const auto change = std::get<history::OptionsChange>(
        options_change(request.workflow_execution_options(), request.update_mask()));
    temporal::api::common::v1::Priority priority;
    const auto refusal =
        turn.change(request.workflow_execution().run_id(), [&](history::Transition& transition) {
            auto refused = history::change_options(transition, change, request.identity());
            priority = transition.run().priority();
            return refused;
        });
    if (refusal) {
        return wire_refusal(*refusal);
    }
    *response.mutable_workflow_execution_options()->mutable_priority() = priority;
    return std::nullopt;
}

}  // namespace

std::variant<history::OptionsChange, rpc::Refusal> options_change(
    const temporal::api::workflow::v1::WorkflowExecutionOptions& options,
    const google::protobuf::FieldMask& mask) {
    history::OptionsChange change;
    change.priority = options.priority();
    for (const std::string& path : mask.paths()) {
        if (names(path, "versioning_override", "versioningOverride")) {
            return rpc::Refusal{rpc::StatusCode::permission_denied,
                                "worker deployment versions are disabled on this server"};
        }
        if (names(path, "time_skipping_config", "timeSkippingConfig")) {
            return rpc::Refusal{rpc::StatusCode::unimplemented,
                                "TimeSkippingConfig is not supported yet"};
        }
        if (!mark(change, path)) {
            return invalid(fmt::format("error parsing UpdateMask: unknown path \"{}\"", path));
        }
    }
    if (auto problem = priority_problem(change.priority)) {
        return *std::move(problem);
    }
    return change;
}

void add_workflow_options(rpc::Dispatch& dispatch, const Parts& parts) {
    add_workflow_rpc<OptionsCall, api::UpdateWorkflowExecutionOptionsResponse>(
        dispatch,
        parts,
        "UpdateWorkflowExecutionOptions",
        NamespaceUse::ordinary,
        options_target,
        change_workflow_options);
}

}  // namespace holdfast::server::frontend
