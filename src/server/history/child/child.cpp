#include "history/child/child.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <holdfast/base/assert.hpp>

namespace holdfast::server::history {

namespace {

using namespace temporal::api::enums::v1;  // NOLINT(google-build-using-namespace): 50 names of it.
using temporal::api::history::v1::HistoryEvent;
using temporal::api::history::v1::WorkflowExecutionCancelRequestedEventAttributes;
using temporal::api::history::v1::WorkflowExecutionSignaledEventAttributes;
using temporal::api::history::v1::WorkflowExecutionStartedEventAttributes;
using temporal::api::history::v1::WorkflowExecutionTerminatedEventAttributes;

constexpr std::string_view server_identity = "history-service";

Refusal child_not_found() {
    return {Refused::not_found, "Pending child execution not found."};
}

// The pending child, or why there is none.
Or<state::Child> pending_child(const Transition& transition, std::int64_t initiated_event_id) {
    if (!transition.open()) {
        return already_completed();
    }
    const auto found = transition.run().children().find(initiated_event_id);
    if (found == transition.run().children().end()) {
        return child_not_found();
    }
    return found->second;
}

void write_child_started(Transition& transition,
                         const state::Child& child,
                         const std::string& run_id) {
    HistoryEvent event = transition.event(EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_STARTED);
    auto& attributes = *event.mutable_child_workflow_execution_started_event_attributes();
    const auto& initiated = child.initiated();
    attributes.set_namespace_(initiated.namespace_());
    attributes.set_namespace_id(initiated.namespace_id());
    attributes.set_initiated_event_id(child.initiated_event_id());
    attributes.mutable_workflow_execution()->set_workflow_id(initiated.workflow_id());
    attributes.mutable_workflow_execution()->set_run_id(run_id);
    *attributes.mutable_workflow_type() = initiated.workflow_type();
    if (initiated.has_header()) {
        *attributes.mutable_header() = initiated.header();
    }
    transition.add(std::move(event));
}

// What events 32 to 36 have in common.
template <class Attributes>
void fill_child_end(Attributes& attributes, const state::Child& child, const ChildReport& report) {
    const auto& initiated = child.initiated();
    attributes.set_namespace_(initiated.namespace_());
    attributes.set_namespace_id(initiated.namespace_id());
    attributes.mutable_workflow_execution()->set_workflow_id(report.workflow_id);
    attributes.mutable_workflow_execution()->set_run_id(report.run_id);
    *attributes.mutable_workflow_type() = initiated.workflow_type();
    attributes.set_initiated_event_id(child.initiated_event_id());
    attributes.set_started_event_id(child.started_event_id());
}

HistoryEvent child_end(const Transition& transition,
                       const state::Child& child,
                       const ChildReport& report) {
    switch (report.closing.event_type()) {
        case EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED: {
            const auto& closing = report.closing.workflow_execution_completed_event_attributes();
            HistoryEvent event = transition.event(EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_COMPLETED);
            auto& end = *event.mutable_child_workflow_execution_completed_event_attributes();
            fill_child_end(end, child, report);
            if (closing.has_result()) {
                *end.mutable_result() = closing.result();
            }
            return event;
        }
        case EVENT_TYPE_WORKFLOW_EXECUTION_FAILED: {
            const auto& closing = report.closing.workflow_execution_failed_event_attributes();
            HistoryEvent event = transition.event(EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_FAILED);
            auto& end = *event.mutable_child_workflow_execution_failed_event_attributes();
            fill_child_end(end, child, report);
            *end.mutable_failure() = closing.failure();
            end.set_retry_state(closing.retry_state());
            return event;
        }
        case EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED: {
            const auto& closing = report.closing.workflow_execution_canceled_event_attributes();
            HistoryEvent event = transition.event(EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_CANCELED);
            auto& end = *event.mutable_child_workflow_execution_canceled_event_attributes();
            fill_child_end(end, child, report);
            if (closing.has_details()) {
                *end.mutable_details() = closing.details();
            }
            return event;
        }
        case EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT: {
            const auto& closing = report.closing.workflow_execution_timed_out_event_attributes();
            HistoryEvent event = transition.event(EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_TIMED_OUT);
            auto& end = *event.mutable_child_workflow_execution_timed_out_event_attributes();
            fill_child_end(end, child, report);
            end.set_retry_state(closing.retry_state());
            return event;
        }
        default: {
            HistoryEvent event = transition.event(EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_TERMINATED);
            fill_child_end(*event.mutable_child_workflow_execution_terminated_event_attributes(),
                           child,
                           report);
            return event;
        }
    }
}

// The pending request of this run to another one, or why there is none.
Or<state::External> pending_external(const Transition& transition,
                                     const google::protobuf::Map<std::int64_t, state::External>& of,
                                     std::int64_t initiated_event_id) {
    if (!transition.open()) {
        return already_completed();
    }
    const auto found = of.find(initiated_event_id);
    if (found == of.end()) {
        return Refusal{Refused::not_found, "Pending external request not found."};
    }
    return found->second;
}

template <class Attributes>
void fill_external(Attributes& attributes, const state::External& external) {
    attributes.set_initiated_event_id(external.initiated_event_id());
    attributes.set_namespace_(external.namespace_());
    attributes.set_namespace_id(external.namespace_id());
    *attributes.mutable_workflow_execution() = external.workflow_execution();
}

temporal::api::common::v1::WorkflowExecution execution_of(const state::Run& run) {
    temporal::api::common::v1::WorkflowExecution execution;
    execution.set_workflow_id(run.workflow_id());
    execution.set_run_id(run.run_id());
    return execution;
}

}  // namespace

std::string child_request_id(const state::Run& parent, std::int64_t initiated_event_id) {
    return fmt::format("{}:{}:0", parent.run_id(), initiated_event_id);
}

// A parent that closes before its child is started drops it, whatever the policy says.
ChildStep child_step(const state::Run& parent, std::int64_t initiated_event_id) {
    const auto found = parent.children().find(initiated_event_id);
    if (found == parent.children().end()) {
        return ChildStep::nothing;
    }
    const state::Child& child = found->second;
    const bool started = child.started_event_id() != 0;
    if (parent.phase() != state::PHASE_COMPLETED) {
        return started ? ChildStep::schedule : ChildStep::start;
    }
    const bool abandoned = child.initiated().parent_close_policy() == PARENT_CLOSE_POLICY_ABANDON;
    return started && abandoned ? ChildStep::schedule : ChildStep::nothing;
}

std::optional<Refusal> child_started(Transition& transition,
                                     std::int64_t initiated_event_id,
                                     const std::string& run_id) {
    const Or<state::Child> found = pending_child(transition, initiated_event_id);
    if (const auto* refusal = std::get_if<Refusal>(&found)) {
        return *refusal;
    }
    const auto& child = std::get<state::Child>(found);
    if (child.started_event_id() != 0) {
        return child.started_run_id() == run_id ? std::nullopt : std::optional{child_not_found()};
    }
    write_child_started(transition, child, run_id);
    return std::nullopt;
}

std::optional<Refusal> child_start_failed(Transition& transition,
                                          std::int64_t initiated_event_id,
                                          StartChildWorkflowExecutionFailedCause cause) {
    const Or<state::Child> found = pending_child(transition, initiated_event_id);
    if (const auto* refusal = std::get_if<Refusal>(&found)) {
        return *refusal;
    }
    const auto& child = std::get<state::Child>(found);
    if (child.started_event_id() != 0) {
        return child_not_found();
    }
    HistoryEvent event = transition.event(EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_FAILED);
    auto& attributes = *event.mutable_start_child_workflow_execution_failed_event_attributes();
    attributes.set_namespace_(child.initiated().namespace_());
    attributes.set_namespace_id(child.initiated().namespace_id());
    attributes.set_workflow_id(child.initiated().workflow_id());
    *attributes.mutable_workflow_type() = child.initiated().workflow_type();
    attributes.set_cause(cause);
    attributes.set_control(child.initiated().control());
    attributes.set_initiated_event_id(initiated_event_id);
    transition.add(std::move(event));
    return std::nullopt;
}

bool shares_event(const state::Run& run, const std::string& run_id, std::int64_t event_id) {
    return run.run_id() == run_id || std::ranges::any_of(run.bases(), [&](const auto& base) {
               return base.run_id() == run_id && event_id <= base.last_event_id();
           });
}

bool adopts(const state::Run& parent, std::int64_t initiated_event_id, const state::Run& child) {
    const WorkflowExecutionStartedEventAttributes& started = child.started();
    return child.phase() != state::PHASE_COMPLETED &&
           started.parent_workflow_namespace_id() == parent.namespace_id() &&
           started.parent_workflow_execution().workflow_id() == parent.workflow_id() &&
           started.parent_initiated_event_id() == initiated_event_id &&
           shares_event(parent, started.parent_workflow_execution().run_id(), initiated_event_id);
}

std::optional<ChildReport> report_to_parent(const state::Run& closed, const HistoryEvent& closing) {
    const WorkflowExecutionStartedEventAttributes& started = closed.started();
    if (closed.phase() != state::PHASE_COMPLETED || closed.closed_by_reset() ||
        !closed.new_execution_run_id().empty() ||
        started.parent_workflow_execution().workflow_id().empty()) {
        return std::nullopt;
    }
    return ChildReport{.parent_namespace_id = started.parent_workflow_namespace_id(),
                       .parent_workflow_id = started.parent_workflow_execution().workflow_id(),
                       .parent_run_id = started.parent_workflow_execution().run_id(),
                       .initiated_event_id = started.parent_initiated_event_id(),
                       .workflow_id = closed.workflow_id(),
                       .run_id = closed.run_id(),
                       .first_run_id = started.first_execution_run_id(),
                       .closing = closing};
}

std::optional<Refusal> child_closed(Transition& transition, const ChildReport& report) {
    Or<state::Child> found = pending_child(transition, report.initiated_event_id);
    if (const auto* refusal = std::get_if<Refusal>(&found)) {
        return *refusal;
    }
    state::Child child = std::get<state::Child>(std::move(found));
    if (child.initiated().workflow_id() != report.workflow_id ||
        !shares_event(transition.run(), report.parent_run_id, report.initiated_event_id)) {
        return child_not_found();
    }
    if (child.started_event_id() == 0) {
        write_child_started(transition, child, report.first_run_id);
        child = transition.run().children().at(report.initiated_event_id);
    } else if (child.started_run_id() != report.first_run_id) {
        return child_not_found();
    }
    transition.add(child_end(transition, child, report));
    return std::nullopt;
}

std::vector<ChildEnd> children_to_end(const state::Run& closed) {
    if (closed.closed_by_reset()) {
        return {};
    }
    std::vector<std::pair<std::int64_t, ChildEnd>> ends;
    for (const auto& [id, child] : closed.children()) {
        const ParentClosePolicy policy = child.initiated().parent_close_policy();
        if (child.started_event_id() != 0 && policy != PARENT_CLOSE_POLICY_ABANDON) {
            ends.emplace_back(id,
                              ChildEnd{.workflow_id = child.initiated().workflow_id(),
                                       .first_run_id = child.started_run_id(),
                                       .policy = policy});
        }
    }
    std::sort(ends.begin(), ends.end(), [](const auto& one, const auto& other) {
        return one.first < other.first;
    });
    std::vector<ChildEnd> ordered;
    ordered.reserve(ends.size());
    for (auto& [id, end] : ends) {
        ordered.push_back(std::move(end));
    }
    return ordered;
}

WorkflowExecutionTerminatedEventAttributes parent_close_termination() {
    WorkflowExecutionTerminatedEventAttributes attributes;
    attributes.set_reason("by parent close policy");
    attributes.set_identity(std::string{server_identity});
    return attributes;
}

WorkflowExecutionCancelRequestedEventAttributes parent_close_cancel(const state::Run& parent) {
    WorkflowExecutionCancelRequestedEventAttributes attributes;
    *attributes.mutable_external_workflow_execution() = execution_of(parent);
    attributes.set_identity(std::string{server_identity});
    return attributes;
}

std::optional<Refusal> refuse_other_parent(const state::Run& run, const state::Run& parent) {
    const auto& named = run.started().parent_workflow_execution();
    if (named.workflow_id() == parent.workflow_id() &&
        shares_event(parent, named.run_id(), run.started().parent_initiated_event_id())) {
        return std::nullopt;
    }
    return Refusal{Refused::not_found, "workflow parent does not match"};
}

WorkflowExecutionSignaledEventAttributes external_signal(const state::Run& sender,
                                                         const HistoryEvent& initiated) {
    const auto& request = initiated.signal_external_workflow_execution_initiated_event_attributes();
    WorkflowExecutionSignaledEventAttributes attributes;
    attributes.set_signal_name(request.signal_name());
    if (request.has_input()) {
        *attributes.mutable_input() = request.input();
    }
    if (request.has_header()) {
        *attributes.mutable_header() = request.header();
    }
    attributes.set_identity(std::string{server_identity});
    *attributes.mutable_external_workflow_execution() = execution_of(sender);
    attributes.set_request_id(sender.external_signals().at(initiated.event_id()).request_id());
    return attributes;
}

WorkflowExecutionCancelRequestedEventAttributes external_cancel(const state::Run& sender,
                                                                const HistoryEvent& initiated) {
    const auto& request =
        initiated.request_cancel_external_workflow_execution_initiated_event_attributes();
    HOLDFAST_ASSERT(sender.external_cancels().contains(initiated.event_id()));
    WorkflowExecutionCancelRequestedEventAttributes attributes;
    attributes.set_cause(request.reason());
    attributes.set_external_initiated_event_id(initiated.event_id());
    *attributes.mutable_external_workflow_execution() = execution_of(sender);
    attributes.set_identity(std::string{server_identity});
    return attributes;
}

std::optional<Refusal> external_signaled(Transition& transition, std::int64_t initiated_event_id) {
    const Or<state::External> found =
        pending_external(transition, transition.run().external_signals(), initiated_event_id);
    if (const auto* refusal = std::get_if<Refusal>(&found)) {
        return *refusal;
    }
    const auto& external = std::get<state::External>(found);
    HistoryEvent event = transition.event(EVENT_TYPE_EXTERNAL_WORKFLOW_EXECUTION_SIGNALED);
    auto& attributes = *event.mutable_external_workflow_execution_signaled_event_attributes();
    fill_external(attributes, external);
    attributes.set_control(external.control());
    transition.add(std::move(event));
    return std::nullopt;
}

std::optional<Refusal> external_signal_failed(Transition& transition,
                                              std::int64_t initiated_event_id,
                                              SignalExternalWorkflowExecutionFailedCause cause) {
    const Or<state::External> found =
        pending_external(transition, transition.run().external_signals(), initiated_event_id);
    if (const auto* refusal = std::get_if<Refusal>(&found)) {
        return *refusal;
    }
    const auto& external = std::get<state::External>(found);
    HistoryEvent event = transition.event(EVENT_TYPE_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_FAILED);
    auto& attributes = *event.mutable_signal_external_workflow_execution_failed_event_attributes();
    fill_external(attributes, external);
    attributes.set_control(external.control());
    attributes.set_cause(cause);
    transition.add(std::move(event));
    return std::nullopt;
}

std::optional<Refusal> external_cancel_requested(Transition& transition,
                                                 std::int64_t initiated_event_id) {
    const Or<state::External> found =
        pending_external(transition, transition.run().external_cancels(), initiated_event_id);
    if (const auto* refusal = std::get_if<Refusal>(&found)) {
        return *refusal;
    }
    HistoryEvent event = transition.event(EVENT_TYPE_EXTERNAL_WORKFLOW_EXECUTION_CANCEL_REQUESTED);
    fill_external(*event.mutable_external_workflow_execution_cancel_requested_event_attributes(),
                  std::get<state::External>(found));
    transition.add(std::move(event));
    return std::nullopt;
}

std::optional<Refusal> external_cancel_failed(Transition& transition,
                                              std::int64_t initiated_event_id,
                                              CancelExternalWorkflowExecutionFailedCause cause) {
    const Or<state::External> found =
        pending_external(transition, transition.run().external_cancels(), initiated_event_id);
    if (const auto* refusal = std::get_if<Refusal>(&found)) {
        return *refusal;
    }
    const auto& external = std::get<state::External>(found);
    HistoryEvent event =
        transition.event(EVENT_TYPE_REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_FAILED);
    auto& attributes =
        *event.mutable_request_cancel_external_workflow_execution_failed_event_attributes();
    fill_external(attributes, external);
    attributes.set_control(external.control());
    attributes.set_cause(cause);
    transition.add(std::move(event));
    return std::nullopt;
}

}  // namespace holdfast::server::history
