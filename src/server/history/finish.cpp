#include "history/finish.hpp"

#include <utility>

#include "history/outside.hpp"
#include "history/workflow_task.hpp"

namespace holdfast::server::history {

namespace {

bool buffer_overflows(const Transition& transition) {
    const auto& buffered = transition.run().buffered();
    if (static_cast<std::size_t>(buffered.size()) > transition.limits().buffered_events_max) {
        return true;
    }
    std::size_t bytes = 0;
    for (const auto& event : buffered) {
        bytes += event.ByteSizeLong();
    }
    return bytes > transition.limits().buffered_bytes_max;
}

std::optional<std::string> outgrown(const Transition& transition) {
    const state::Run& run = transition.run();
    if (run.history_size_bytes() > transition.limits().history_bytes_max) {
        return "Workflow history size exceeds limit.";
    }
    if (run.next_event_id() - 1 > transition.limits().history_events_max) {
        return "Workflow history count exceeds limit.";
    }
    return std::nullopt;
}

void terminate_outgrown(Transition& transition, const std::string& reason) {
    transition.restart();
    temporal::api::history::v1::WorkflowExecutionTerminatedEventAttributes attributes;
    attributes.set_reason(reason);
    attributes.set_identity("history-service");
    // Refused only if it is closed, and an open run has outgrown its limit.
    static_cast<void>(terminate_run(transition, attributes));
}

}  // namespace

Finished finish(Transition& transition) {
    if (transition.open() && transition.workflow_task_started() && buffer_overflows(transition)) {
        TaskFailure failure;
        failure.cause = temporal::api::enums::v1::WORKFLOW_TASK_FAILED_CAUSE_FORCE_CLOSE_COMMAND;
        failure.identity = "history-service";
        fail_workflow_task(transition, failure);
    }
    if (transition.open() && (transition.changed() || transition.woken())) {
        make_speculative_normal(transition);
    }
    if (transition.open() && transition.woken() && !transition.run().has_workflow_task()) {
        schedule_workflow_task(transition);
    }
    if (transition.open() && !transition.workflow_task_started()) {
        transition.flush_buffer();
    }
    std::optional<Refusal> refusal;
    if (transition.open()) {
        if (const auto reason = outgrown(transition)) {
            terminate_outgrown(transition, *reason);
            refusal = Refusal{Refused::invalid_argument, *reason};
        }
    }
    return {.result = transition.take(), .refusal = std::move(refusal)};
}

}  // namespace holdfast::server::history
