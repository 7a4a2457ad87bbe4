#include <utility>

#include "history/command/command.hpp"
#include "history/retry.hpp"
#include "history/start/cron.hpp"

namespace holdfast::server::history {

namespace {

using namespace temporal::api::enums::v1;  // NOLINT(google-build-using-namespace): 50 names of it.
using temporal::api::command::v1::Command;
using temporal::api::history::v1::HistoryEvent;

CommandResult complete_run(Completing& completing, const Command& command) {
    const auto& attributes = command.complete_workflow_execution_command_attributes();
    if (attributes.result().ByteSizeLong() > completing.transition.limits().blob_bytes_max) {
        return CommandFailure{
            WORKFLOW_TASK_FAILED_CAUSE_BAD_COMPLETE_WORKFLOW_EXECUTION_ATTRIBUTES,
            "CompleteWorkflowExecutionCommandAttributes.Result exceeds size limit.",
            true};
    }
    HistoryEvent event =
        command_event(completing, EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED, command);
    auto& completed = *event.mutable_workflow_execution_completed_event_attributes();
    if (attributes.has_result()) {
        *completed.mutable_result() = attributes.result();
    }
    completed.set_workflow_task_completed_event_id(completing.completed_event_id);
    if (auto next = cron_run(completing.transition, {.result = &attributes.result()})) {
        completed.set_new_execution_run_id(next->run_id);
        completing.transition.continue_with(*std::move(next));
    }
    completing.transition.add(std::move(event));
    return std::nullopt;
}

CommandResult fail_run(Completing& completing, const Command& command) {
    constexpr auto cause = WORKFLOW_TASK_FAILED_CAUSE_BAD_FAIL_WORKFLOW_EXECUTION_ATTRIBUTES;
    const auto& attributes = command.fail_workflow_execution_command_attributes();
    Transition& transition = completing.transition;
    if (!attributes.has_failure()) {
        return CommandFailure{cause, "Failure is not set on FailWorkflowExecutionCommand."};
    }
    if (attributes.failure().ByteSizeLong() > transition.limits().blob_bytes_max) {
        return CommandFailure{
            cause, "FailWorkflowExecutionCommandAttributes.Failure exceeds size limit.", true};
    }
    RunRetry retry = retry_run(transition, attributes.failure());
    if (!retry.next) {
        retry.next = cron_run(transition, {.failure = &attributes.failure()});
    }
    HistoryEvent event = command_event(completing, EVENT_TYPE_WORKFLOW_EXECUTION_FAILED, command);
    auto& failed = *event.mutable_workflow_execution_failed_event_attributes();
    *failed.mutable_failure() = attributes.failure();
    failed.set_retry_state(retry.state);
    failed.set_workflow_task_completed_event_id(completing.completed_event_id);
    if (retry.next) {
        failed.set_new_execution_run_id(retry.next->run_id);
        transition.continue_with(*std::move(retry.next));
    }
    transition.add(std::move(event));
    return std::nullopt;
}

CommandResult cancel_run(Completing& completing, const Command& command) {
    const auto& attributes = command.cancel_workflow_execution_command_attributes();
    HistoryEvent event = command_event(completing, EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED, command);
    auto& canceled = *event.mutable_workflow_execution_canceled_event_attributes();
    if (attributes.has_details()) {
        *canceled.mutable_details() = attributes.details();
    }
    canceled.set_workflow_task_completed_event_id(completing.completed_event_id);
    completing.transition.add(std::move(event));
    return std::nullopt;
}

std::optional<std::string> continue_problem(
    const temporal::api::command::v1::ContinueAsNewWorkflowExecutionCommandAttributes& attributes) {
    if (!valid_span(attributes.workflow_run_timeout()) ||
        !valid_span(attributes.workflow_task_timeout()) ||
        !valid_span(attributes.backoff_start_interval())) {
        return "An invalid timeout is set on ContinueAsNewWorkflowExecutionCommand.";
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

// The event tells what the command said, with the defaults of the old run.
CommandResult continue_run(Completing& completing, const Command& command) {
    constexpr auto cause = WORKFLOW_TASK_FAILED_CAUSE_BAD_CONTINUE_AS_NEW_ATTRIBUTES;
    const auto& attributes = command.continue_as_new_workflow_execution_command_attributes();
    Transition& transition = completing.transition;
    if (const auto problem = continue_problem(attributes)) {
        return CommandFailure{cause, *problem};
    }
    if (attributes.input().ByteSizeLong() > transition.limits().blob_bytes_max) {
        return CommandFailure{
            cause,
            "ContinueAsNewWorkflowExecutionCommandAttributes. Input exceeds size limit.",
            true};
    }
    auto search_attributes = attributes.search_attributes();
    if (auto failure = check_properties(
            completing,
            {cause,
             "ContinueAsNewWorkflowExecutionCommandAttributes.Memo exceeds size limit.",
             true},
            attributes.memo(),
            search_attributes)) {
        return failure;
    }
    Continuation next = continue_as_new(transition, attributes);
    *next.started.mutable_search_attributes() = search_attributes;
    HistoryEvent event =
        command_event(completing, EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW, command);
    auto& continued = *event.mutable_workflow_execution_continued_as_new_event_attributes();
    continued.set_new_execution_run_id(next.run_id);
    *continued.mutable_workflow_type() = next.started.workflow_type();
    *continued.mutable_task_queue() = next.started.task_queue();
    *continued.mutable_workflow_run_timeout() = next.started.workflow_run_timeout();
    *continued.mutable_workflow_task_timeout() = next.started.workflow_task_timeout();
    if (attributes.has_input()) {
        *continued.mutable_input() = attributes.input();
    }
    if (attributes.has_header()) {
        *continued.mutable_header() = attributes.header();
    }
    if (attributes.has_memo()) {
        *continued.mutable_memo() = attributes.memo();
    }
    if (attributes.has_search_attributes()) {
        *continued.mutable_search_attributes() = std::move(search_attributes);
    }
    if (attributes.has_last_completion_result()) {
        *continued.mutable_last_completion_result() = attributes.last_completion_result();
    }
    if (attributes.has_backoff_start_interval()) {
        *continued.mutable_backoff_start_interval() = attributes.backoff_start_interval();
    }
    continued.set_initiator(attributes.initiator());
    continued.set_inherit_build_id(attributes.inherit_build_id());
    continued.set_workflow_task_completed_event_id(completing.completed_event_id);
    transition.continue_with(std::move(next));
    transition.add(std::move(event));
    return std::nullopt;
}

}  // namespace

// What the worker has not seen may change its mind: it has to look again before it closes the run.
CommandResult close_run(Completing& completing, const Command& command) {
    if (completing.unseen_events) {
        return CommandFailure{WORKFLOW_TASK_FAILED_CAUSE_UNHANDLED_COMMAND, ""};
    }
    switch (command.command_type()) {
        case COMMAND_TYPE_COMPLETE_WORKFLOW_EXECUTION:
            return complete_run(completing, command);
        case COMMAND_TYPE_FAIL_WORKFLOW_EXECUTION:
            return fail_run(completing, command);
        case COMMAND_TYPE_CANCEL_WORKFLOW_EXECUTION:
            return cancel_run(completing, command);
        default:
            return continue_run(completing, command);
    }
}

}  // namespace holdfast::server::history
