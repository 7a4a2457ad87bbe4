#include <algorithm>
#include <utility>

#include "history/command/command.hpp"
#include "history/payloads.hpp"
#include "history/retry.hpp"
#include "history/start/cron.hpp"
#include <fmt/format.h>

namespace holdfast::server::history {

namespace {

using namespace temporal::api::enums::v1;  // NOLINT(google-build-using-namespace): 50 names of it.
using temporal::api::command::v1::Command;
using temporal::api::command::v1::StartChildWorkflowExecutionCommandAttributes;
using temporal::api::history::v1::HistoryEvent;
using temporal::api::history::v1::StartChildWorkflowExecutionInitiatedEventAttributes;

CommandResult too_many(std::size_t pending,
                       const Completing& completing,
                       WorkflowTaskFailedCause cause,
                       std::string_view what) {
    const std::size_t most = completing.transition.limits().pending_max;
    if (pending < most) {
        return std::nullopt;
    }
    return CommandFailure{
        cause,
        fmt::format("the number of pending {}, {}, has reached the per-workflow limit of {}",
                    what,
                    pending,
                    most)};
}

// The other run must know a repeated delivery, so the request has an id from the beginning.
void add_request(Transition& transition, Task::Kind kind, std::int64_t initiated_event_id) {
    transition.note(note::ExternalRequest{.initiated_event_id = initiated_event_id,
                                          .request_id = transition.source().uuid()});
    transition.add_task({kind, initiated_event_id, 0});
}

std::optional<std::string> child_problem(
    const Completing& completing, const StartChildWorkflowExecutionCommandAttributes& attributes) {
    if (auto problem = id_problem(completing,
                                  attributes.workflow_id(),
                                  "WorkflowId is not set on StartChildWorkflowExecutionCommand.")) {
        return problem;
    }
    if (attributes.workflow_type().name().empty()) {
        return fmt::format(
            "Required field WorkflowType is not set on StartChildWorkflowExecutionCommand. "
            "WorkflowId={} Namespace={}",
            attributes.workflow_id(),
            attributes.namespace_());
    }
    if (auto problem = id_problem(completing, attributes.workflow_type().name(), "WorkflowType ")) {
        return problem;
    }
    if (!valid_span(attributes.workflow_execution_timeout()) ||
        !valid_span(attributes.workflow_run_timeout()) ||
        !valid_span(attributes.workflow_task_timeout())) {
        return "An invalid timeout is set on StartChildWorkflowExecutionCommand.";
    }
    if (attributes.has_retry_policy()) {
        auto policy = attributes.retry_policy();
        fill_defaults(policy);
        if (auto problem = policy_problem(policy)) {
            return problem;
        }
    }
    if (!attributes.cron_schedule().empty() && !valid_cron(attributes.cron_schedule())) {
        return "invalid CronSchedule.";
    }
    return std::nullopt;
}

// The timeouts as start_run() would take them.
void set_child_timeouts(StartChildWorkflowExecutionInitiatedEventAttributes& initiated,
                        const StartChildWorkflowExecutionCommandAttributes& attributes,
                        const Limits& limits) {
    Started timeouts;
    *timeouts.mutable_workflow_execution_timeout() = attributes.workflow_execution_timeout();
    *timeouts.mutable_workflow_run_timeout() = attributes.workflow_run_timeout();
    *timeouts.mutable_workflow_task_timeout() = attributes.workflow_task_timeout();
    normalise_timeouts(timeouts, limits);
    if (attributes.has_workflow_execution_timeout()) {
        *initiated.mutable_workflow_execution_timeout() = timeouts.workflow_execution_timeout();
    }
    *initiated.mutable_workflow_run_timeout() = timeouts.workflow_run_timeout();
    *initiated.mutable_workflow_task_timeout() = timeouts.workflow_task_timeout();
}

StartChildWorkflowExecutionInitiatedEventAttributes initiated_attributes(
    const Completing& completing, const StartChildWorkflowExecutionCommandAttributes& attributes) {
    const state::Run& run = completing.transition.run();
    StartChildWorkflowExecutionInitiatedEventAttributes initiated;
    initiated.set_namespace_(attributes.namespace_());
    initiated.set_namespace_id(run.namespace_id());
    initiated.set_workflow_id(attributes.workflow_id());
    *initiated.mutable_workflow_type() = attributes.workflow_type();
    initiated.mutable_task_queue()->set_name(attributes.task_queue().name().empty()
                                                 ? run.started().task_queue().name()
                                                 : attributes.task_queue().name());
    initiated.mutable_task_queue()->set_kind(TASK_QUEUE_KIND_NORMAL);
    if (attributes.has_input()) {
        *initiated.mutable_input() = attributes.input();
    }
    if (attributes.has_header()) {
        *initiated.mutable_header() = attributes.header();
    }
    set_child_timeouts(initiated, attributes, completing.transition.limits());
    initiated.set_parent_close_policy(attributes.parent_close_policy() ==
                                              PARENT_CLOSE_POLICY_UNSPECIFIED
                                          ? PARENT_CLOSE_POLICY_TERMINATE
                                          : attributes.parent_close_policy());
    initiated.set_control(attributes.control());
    initiated.set_workflow_task_completed_event_id(completing.completed_event_id);
    initiated.set_workflow_id_reuse_policy(attributes.workflow_id_reuse_policy() ==
                                                   WORKFLOW_ID_REUSE_POLICY_UNSPECIFIED
                                               ? WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE
                                               : attributes.workflow_id_reuse_policy());
    if (attributes.has_retry_policy()) {
        *initiated.mutable_retry_policy() = attributes.retry_policy();
        fill_defaults(*initiated.mutable_retry_policy());
    }
    initiated.set_cron_schedule(attributes.cron_schedule());
    if (!attributes.memo().fields().empty()) {
        *initiated.mutable_memo() = attributes.memo();
        drop_nulls(*initiated.mutable_memo()->mutable_fields());
    }
    if (attributes.has_priority()) {
        *initiated.mutable_priority() = attributes.priority();
    }
    initiated.set_inherit_build_id(attributes.inherit_build_id());
    return initiated;
}

}  // namespace

CommandResult start_child(Completing& completing, const Command& command) {
    constexpr auto cause = WORKFLOW_TASK_FAILED_CAUSE_BAD_START_CHILD_EXECUTION_ATTRIBUTES;
    const auto& attributes = command.start_child_workflow_execution_command_attributes();
    Transition& transition = completing.transition;
    if (const auto problem = child_problem(completing, attributes)) {
        return CommandFailure{cause, *problem};
    }
    if (attributes.input().ByteSizeLong() > transition.limits().blob_bytes_max) {
        return CommandFailure{
            cause, "StartChildWorkflowExecutionCommandAttributes.Input exceeds size limit.", true};
    }
    auto search_attributes = attributes.search_attributes();
    if (auto failure = check_properties(
            completing,
            {cause, "StartChildWorkflowExecutionCommandAttributes.Memo exceeds size limit.", true},
            attributes.memo(),
            search_attributes)) {
        return failure;
    }
    if (auto failure = too_many(transition.run().children().size(),
                                completing,
                                WORKFLOW_TASK_FAILED_CAUSE_PENDING_CHILD_WORKFLOWS_LIMIT_EXCEEDED,
                                "child workflow executions")) {
        return failure;
    }
    HistoryEvent event =
        command_event(completing, EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_INITIATED, command);
    auto& initiated = *event.mutable_start_child_workflow_execution_initiated_event_attributes();
    initiated = initiated_attributes(completing, attributes);
    if (attributes.has_search_attributes()) {
        drop_nulls(*search_attributes.mutable_indexed_fields());
        *initiated.mutable_search_attributes() = std::move(search_attributes);
    }
    transition.add_task({Task::Kind::start_child, transition.add(std::move(event)), 0});
    completing.children.insert(attributes.workflow_id());
    return std::nullopt;
}

CommandResult request_cancel_external(Completing& completing, const Command& command) {
    constexpr auto cause =
        WORKFLOW_TASK_FAILED_CAUSE_BAD_REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_ATTRIBUTES;
    const auto& attributes =
        command.request_cancel_external_workflow_execution_command_attributes();
    Transition& transition = completing.transition;
    if (const auto problem =
            id_problem(completing,
                       attributes.workflow_id(),
                       "WorkflowId is not set on RequestCancelExternalWorkflowExecutionCommand.")) {
        return CommandFailure{cause, *problem};
    }
    if (completing.children.contains(attributes.workflow_id())) {
        return CommandFailure{
            cause,
            "Start and RequestCancel for child workflow is not allowed in same workflow task."};
    }
    if (auto failure = too_many(transition.run().external_cancels().size(),
                                completing,
                                WORKFLOW_TASK_FAILED_CAUSE_PENDING_REQUEST_CANCEL_LIMIT_EXCEEDED,
                                "requests to cancel external workflows")) {
        return failure;
    }
    HistoryEvent event = command_event(
        completing, EVENT_TYPE_REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED, command);
    auto& initiated =
        *event.mutable_request_cancel_external_workflow_execution_initiated_event_attributes();
    initiated.set_workflow_task_completed_event_id(completing.completed_event_id);
    initiated.set_namespace_(attributes.namespace_());
    initiated.set_namespace_id(transition.run().namespace_id());
    initiated.mutable_workflow_execution()->set_workflow_id(attributes.workflow_id());
    initiated.mutable_workflow_execution()->set_run_id(attributes.run_id());
    initiated.set_control(attributes.control());
    initiated.set_child_workflow_only(attributes.child_workflow_only());
    initiated.set_reason(attributes.reason());
    add_request(transition, Task::Kind::cancel_external, transition.add(std::move(event)));
    return std::nullopt;
}

CommandResult signal_external(Completing& completing, const Command& command) {
    constexpr auto cause = WORKFLOW_TASK_FAILED_CAUSE_BAD_SIGNAL_WORKFLOW_EXECUTION_ATTRIBUTES;
    const auto& attributes = command.signal_external_workflow_execution_command_attributes();
    Transition& transition = completing.transition;
    if (const auto problem =
            id_problem(completing,
                       attributes.execution().workflow_id(),
                       "WorkflowId is not set on SignalExternalWorkflowExecutionCommand.")) {
        return CommandFailure{cause, *problem};
    }
    if (const auto problem =
            id_problem(completing,
                       attributes.signal_name(),
                       "SignalName is not set on SignalExternalWorkflowExecutionCommand.")) {
        return CommandFailure{cause, *problem};
    }
    if (attributes.input().ByteSizeLong() > transition.limits().blob_bytes_max) {
        return CommandFailure{
            cause,
            "SignalExternalWorkflowExecutionCommandAttributes.Input exceeds size limit.",
            true};
    }
    if (auto failure = too_many(transition.run().external_signals().size(),
                                completing,
                                WORKFLOW_TASK_FAILED_CAUSE_PENDING_SIGNALS_LIMIT_EXCEEDED,
                                "signals to external workflows")) {
        return failure;
    }
    HistoryEvent event =
        command_event(completing, EVENT_TYPE_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED, command);
    auto& initiated =
        *event.mutable_signal_external_workflow_execution_initiated_event_attributes();
    initiated.set_workflow_task_completed_event_id(completing.completed_event_id);
    initiated.set_namespace_(attributes.namespace_());
    initiated.set_namespace_id(transition.run().namespace_id());
    *initiated.mutable_workflow_execution() = attributes.execution();
    initiated.set_signal_name(attributes.signal_name());
    if (attributes.has_input()) {
        *initiated.mutable_input() = attributes.input();
    }
    if (attributes.has_header()) {
        *initiated.mutable_header() = attributes.header();
    }
    initiated.set_control(attributes.control());
    initiated.set_child_workflow_only(attributes.child_workflow_only());
    add_request(transition, Task::Kind::signal_external, transition.add(std::move(event)));
    return std::nullopt;
}

}  // namespace holdfast::server::history
