#include "history/outside.hpp"

#include <utility>

#include "history/workflow_task.hpp"

namespace holdfast::server::history {

namespace {

using namespace temporal::api::enums::v1;  // NOLINT(google-build-using-namespace): 50 names of it.
using temporal::api::history::v1::HistoryEvent;

}  // namespace

std::optional<Refusal> signal_run(
    Transition& transition,
    const temporal::api::history::v1::WorkflowExecutionSignaledEventAttributes& signal,
    bool at_once,
    const Links& links) {
    const state::Run& run = transition.run();
    if (!signal.request_id().empty() && run.signal_request_ids().contains(signal.request_id())) {
        return std::nullopt;
    }
    if (!transition.open()) {
        return already_completed();
    }
    const std::size_t bytes = signal.input().ByteSizeLong() + signal.header().ByteSizeLong();
    if (bytes > transition.limits().blob_bytes_max) {
        return Refusal{Refused::invalid_argument, "Blob data size exceeds limit."};
    }
    if (run.signal_count() >= transition.limits().signals_max) {
        return Refusal{Refused::invalid_argument,
                       "exceeded workflow execution limit for signal events"};
    }
    if (run.close_attempted() && transition.workflow_task_started()) {
        return Refusal{Refused::busy,
                       "workflow operation can not be applied because workflow is closing"};
    }
    HistoryEvent event = transition.event(EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED);
    *event.mutable_workflow_execution_signaled_event_attributes() = signal;
    *event.mutable_links() = links;
    transition.add(std::move(event));
    if (at_once) {
        transition.wake();
    }
    return std::nullopt;
}

void request_cancel(
    Transition& transition,
    const temporal::api::history::v1::WorkflowExecutionCancelRequestedEventAttributes& request) {
    if (!transition.open() || transition.run().cancel_requested()) {
        return;
    }
    HistoryEvent event = transition.event(EVENT_TYPE_WORKFLOW_EXECUTION_CANCEL_REQUESTED);
    *event.mutable_workflow_execution_cancel_requested_event_attributes() = request;
    transition.add(std::move(event));
}

std::optional<Refusal> terminate_run(
    Transition& transition,
    const temporal::api::history::v1::WorkflowExecutionTerminatedEventAttributes& request) {
    if (!transition.open()) {
        return already_completed();
    }
    abandon_workflow_task(transition);
    transition.flush_buffer();
    transition.begin_batch();
    HistoryEvent event = transition.event(EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED);
    *event.mutable_workflow_execution_terminated_event_attributes() = request;
    transition.add(std::move(event));
    return std::nullopt;
}

}  // namespace holdfast::server::history
