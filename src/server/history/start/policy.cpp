#include "history/start/policy.hpp"

#include <fmt/format.h>

namespace holdfast::server::history {

namespace {

using namespace temporal::api::enums::v1;  // NOLINT(google-build-using-namespace): 50 names of it.

bool unspecified(WorkflowIdConflictPolicy conflict) {
    return conflict == WORKFLOW_ID_CONFLICT_POLICY_UNSPECIFIED;
}

bool is_running(WorkflowExecutionStatus status) {
    return status == WORKFLOW_EXECUTION_STATUS_RUNNING ||
           status == WORKFLOW_EXECUTION_STATUS_PAUSED;
}

bool ended_well(WorkflowExecutionStatus status) {
    return status == WORKFLOW_EXECUTION_STATUS_COMPLETED ||
           status == WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW;
}

std::optional<Refusal> contradiction(StartKind kind,
                                     WorkflowIdReusePolicy reuse,
                                     WorkflowIdConflictPolicy conflict) {
    if (kind == StartKind::signal_with_start && conflict == WORKFLOW_ID_CONFLICT_POLICY_FAIL) {
        return Refusal{Refused::invalid_argument,
                       "Invalid WorkflowIDConflictPolicy: WORKFLOW_ID_CONFLICT_POLICY_FAIL is not "
                       "supported for this operation."};
    }
    if (reuse == WORKFLOW_ID_REUSE_POLICY_TERMINATE_IF_RUNNING && !unspecified(conflict)) {
        return Refusal{Refused::invalid_argument,
                       "Invalid WorkflowIDReusePolicy: "
                       "WORKFLOW_ID_REUSE_POLICY_TERMINATE_IF_RUNNING cannot be used together "
                       "with a WorkflowIDConflictPolicy"};
    }
    if (reuse == WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE &&
        conflict == WORKFLOW_ID_CONFLICT_POLICY_TERMINATE_EXISTING) {
        return Refusal{Refused::invalid_argument,
                       "Invalid WorkflowIDReusePolicy: WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE "
                       "cannot be used together with WorkflowIdConflictPolicy "
                       "WORKFLOW_ID_CONFLICT_POLICY_TERMINATE_EXISTING"};
    }
    return std::nullopt;
}

StartOutcome beside_running(WorkflowIdConflictPolicy conflict, const CurrentRun& current) {
    switch (conflict) {
        case WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING:
            return start_outcome::UseExisting{};
        case WORKFLOW_ID_CONFLICT_POLICY_TERMINATE_EXISTING:
            return start_outcome::TerminateAndStart{};
        default:
            return start_outcome::AlreadyStarted{
                fmt::format("Workflow execution is already running. WorkflowId: {}, RunId: {}.",
                            current.workflow_id,
                            current.run_id)};
    }
}

StartOutcome after_closed(WorkflowIdReusePolicy reuse, const CurrentRun& current) {
    if (reuse == WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE) {
        return start_outcome::AlreadyStarted{
            fmt::format("Workflow execution already finished. WorkflowId: {}, RunId: {}. Workflow "
                        "Id reuse policy: reject duplicate workflow Id.",
                        current.workflow_id,
                        current.run_id)};
    }
    if (reuse == WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE_FAILED_ONLY &&
        ended_well(current.status)) {
        return start_outcome::AlreadyStarted{fmt::format(
            "Workflow execution already finished successfully. WorkflowId: {}, RunId: {}. Workflow "
            "Id reuse policy: allow duplicate workflow Id if last run failed.",
            current.workflow_id,
            current.run_id)};
    }
    return start_outcome::Start{};
}

}  // namespace

Or<StartPolicies> normalise_policies(StartKind kind,
                                     WorkflowIdReusePolicy reuse,
                                     WorkflowIdConflictPolicy conflict) {
    if (auto refusal = contradiction(kind, reuse, conflict)) {
        return *std::move(refusal);
    }
    if (reuse == WORKFLOW_ID_REUSE_POLICY_TERMINATE_IF_RUNNING) {
        return StartPolicies{.reuse = WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
                             .conflict = WORKFLOW_ID_CONFLICT_POLICY_TERMINATE_EXISTING};
    }
    const WorkflowIdConflictPolicy otherwise = kind == StartKind::signal_with_start
                                                   ? WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING
                                                   : WORKFLOW_ID_CONFLICT_POLICY_FAIL;
    return StartPolicies{.reuse = reuse == WORKFLOW_ID_REUSE_POLICY_UNSPECIFIED
                                      ? WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE
                                      : reuse,
                         .conflict = unspecified(conflict) ? otherwise : conflict};
}

CurrentRun current_run(const state::Run& run) {
    CurrentRun current{.workflow_id = run.workflow_id(),
                       .run_id = run.run_id(),
                       .first_execution_run_id = run.started().first_execution_run_id(),
                       .create_request_id = "",
                       .status = run.status(),
                       .requests = {}};
    for (const auto& [id, info] : run.request_ids()) {
        current.requests.emplace(id, info.event_type());
        if (info.event_type() == EVENT_TYPE_WORKFLOW_EXECUTION_STARTED) {
            current.create_request_id = id;
        }
    }
    return current;
}

StartOutcome decide_start(const StartPolicies& policies,
                          const std::string& request_id,
                          const CurrentRun* current) {
    if (current == nullptr) {
        return start_outcome::Start{};
    }
    if (const auto known = current->requests.find(request_id); known != current->requests.end()) {
        return start_outcome::Repeated{.started =
                                           known->second == EVENT_TYPE_WORKFLOW_EXECUTION_STARTED};
    }
    return is_running(current->status) ? beside_running(policies.conflict, *current)
                                       : after_closed(policies.reuse, *current);
}

temporal::api::history::v1::WorkflowExecutionTerminatedEventAttributes replacing_termination(
    const std::string& new_run_id) {
    temporal::api::history::v1::WorkflowExecutionTerminatedEventAttributes attributes;
    attributes.set_reason("TerminateIfRunning WorkflowIdReusePolicy");
    auto& details = *attributes.mutable_details()->add_payloads();
    (*details.mutable_metadata())["encoding"] = "json/plain";
    details.set_data(fmt::format("\"terminated by new runID: {}\"", new_run_id));
    attributes.set_identity("history-service");
    return attributes;
}

}  // namespace holdfast::server::history
