#include <algorithm>
#include <utility>

#include "frontend/frontend.hpp"
#include "frontend/refusals.hpp"
#include "frontend/reset/options_change.hpp"
#include "frontend/workflow_rpc.hpp"
#include "history/reset/reset.hpp"
#include <fmt/format.h>
#include <temporal/api/workflowservice/v1/request_response.pb.h>

namespace holdfast::server::frontend {

namespace {

namespace api = temporal::api::workflowservice::v1;
namespace enums = temporal::api::enums::v1;

using ResetCall = api::ResetWorkflowExecutionRequest;

// What follows the reset is checked as if it came by itself.
Problem post_reset_problem(const ResetCall& request, const history::Limits& limits) {
    for (const auto& operation : request.post_reset_operations()) {
        if (operation.has_update_workflow_options()) {
            const auto& asked = operation.update_workflow_options();
            auto change = options_change(asked.workflow_execution_options(), asked.update_mask());
            if (auto* refusal = std::get_if<rpc::Refusal>(&change)) {
                return std::move(*refusal);
            }
            continue;
        }
        if (!operation.has_signal_workflow()) {
            return invalid("unsupported post reset operation");
        }
        const auto& signal = operation.signal_workflow();
        if (auto problem = name_problem("SignalName", signal.signal_name(), limits)) {
            return problem;
        }
        if (auto problem = blob_problem(signal.input().ByteSizeLong(), limits)) {
            return problem;
        }
        if (auto problem = links_problem(signal.links())) {
            return problem;
        }
    }
    return std::nullopt;
}

std::variant<std::string, rpc::Refusal> reset_target(const FrontendParts& parts,
                                                     const ResetCall& request) {
    const history::Limits& limits = parts.limits;
    const auto* execution =
        request.has_workflow_execution() ? &request.workflow_execution() : nullptr;
    if (auto problem = execution_problem(execution, limits)) {
        return *std::move(problem);
    }
    if (auto problem = name_problem("RequestId", request.request_id(), limits)) {
        return *std::move(problem);
    }
    if (auto problem = blob_problem(request.reason().size(), limits)) {
        return *std::move(problem);
    }
    if (!enums::ResetReapplyType_IsValid(request.reset_reapply_type())) {
        return invalid(fmt::format("unknown reset reapply type: {}",
                                   static_cast<int>(request.reset_reapply_type())));
    }
    if (auto problem = post_reset_problem(request, limits)) {
        return *std::move(problem);
    }
    return request.workflow_execution().workflow_id();
}

bool leaves_out(const ResetCall& request, enums::ResetReapplyExcludeType type) {
    const auto& types = request.reset_reapply_exclude_types();
    return std::find(types.begin(), types.end(), type) != types.end();
}

history::ResetSignal signal_of(
    const temporal::api::workflow::v1::PostResetOperation::SignalWorkflow& asked) {
    history::ResetSignal signal;
    signal.set_signal_name(asked.signal_name());
    signal.set_identity("history-service");
    if (asked.has_input()) {
        *signal.mutable_input() = asked.input();
    }
    if (asked.has_header()) {
        *signal.mutable_header() = asked.header();
    }
    return signal;
}

history::ResetOptions reset_options(const ResetCall& request) {
    const auto type = request.reset_reapply_type();
    history::ResetOptions options;
    options.finish_event_id = request.workflow_task_finish_event_id();
    options.reason = request.reason();
    options.reapply_signals = type != enums::RESET_REAPPLY_TYPE_NONE &&
                              !leaves_out(request, enums::RESET_REAPPLY_EXCLUDE_TYPE_SIGNAL);
    options.reapply_updates = type != enums::RESET_REAPPLY_TYPE_NONE &&
                              type != enums::RESET_REAPPLY_TYPE_SIGNAL &&
                              !leaves_out(request, enums::RESET_REAPPLY_EXCLUDE_TYPE_UPDATE);
    options.identity = request.identity();
    for (const auto& operation : request.post_reset_operations()) {
        if (operation.has_signal_workflow()) {
            options.operations.emplace_back(signal_of(operation.signal_workflow()));
        } else {  // It was found good before.
            const auto& asked = operation.update_workflow_options();
            options.operations.emplace_back(std::get<history::OptionsChange>(
                options_change(asked.workflow_execution_options(), asked.update_mask())));
        }
    }
    return options;
}

Problem reset_workflow(const Scene&,
                       engine::Turn& turn,
                       const ResetCall& request,
                       api::ResetWorkflowExecutionResponse& response) {
    engine::Or<std::string> made = turn.reset({.base_run_id = request.workflow_execution().run_id(),
                                               .request_id = request.request_id(),
                                               .options = reset_options(request)});
    if (const auto* refusal = std::get_if<history::Refusal>(&made)) {
        return wire_refusal(*refusal);
    }
    response.set_run_id(std::get<std::string>(std::move(made)));
    return std::nullopt;
}

}  // namespace

void add_workflow_reset(rpc::Dispatch& dispatch, const Parts& parts) {
    add_workflow_rpc<ResetCall, api::ResetWorkflowExecutionResponse>(dispatch,
                                                                     parts,
                                                                     "ResetWorkflowExecution",
                                                                     NamespaceUse::ordinary,
                                                                     reset_target,
                                                                     reset_workflow);
}

}  // namespace holdfast::server::frontend
