// What a run asked of other runs, and what they answer: children, signals and cancels.
//
// Each answer is written once. A second one finds nothing that is pending and is refused as not
// found, which ends the work of the sender as well as a success does.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "history/refusal.hpp"
#include "history/transition.hpp"
#include <temporal/api/enums/v1/failed_cause.pb.h>
#include <temporal/api/enums/v1/workflow.pb.h>

namespace holdfast::server::history {

// What the start of a child is known by, however often it is tried.
[[nodiscard]] std::string child_request_id(const state::Run& parent,
                                           std::int64_t initiated_event_id);

// What is left to do for a child that a completion asked for.
enum class ChildStep : std::uint8_t {
    nothing,
    start,     // Start it, without a workflow task, and report child_started().
    schedule,  // It is started: schedule its first workflow task unless it has had one.
};
[[nodiscard]] ChildStep child_step(const state::Run& parent, std::int64_t initiated_event_id);

// Event 31. The same run again changes nothing.
[[nodiscard]] std::optional<Refusal> child_started(Transition& transition,
                                                   std::int64_t initiated_event_id,
                                                   const std::string& run_id);

// Event 30.
[[nodiscard]] std::optional<Refusal> child_start_failed(
    Transition& transition,
    std::int64_t initiated_event_id,
    temporal::api::enums::v1::StartChildWorkflowExecutionFailedCause cause);

// Whether an event of this run that has a child, a signal or a cancel in it is also one of the run
// `run_id`: it is this one, or a reset made this one of it.
[[nodiscard]] bool shares_event(const state::Run& run,
                                const std::string& run_id,
                                std::int64_t event_id);

// Whether `child` is what the pending child of `parent` asked for, started by a run that a reset
// made `parent` of before that run knew of it.
[[nodiscard]] bool adopts(const state::Run& parent,
                          std::int64_t initiated_event_id,
                          const state::Run& child);

// What a closed run tells its parent.
struct ChildReport {
    std::string parent_namespace_id;
    std::string parent_workflow_id;
    std::string parent_run_id;
    std::int64_t initiated_event_id = 0;
    std::string workflow_id;
    std::string run_id;        // That closed, the last of its chain.
    std::string first_run_id;  // That was started.
    temporal::api::history::v1::HistoryEvent closing;
};

// Nothing if the run has no parent, or goes on in another run, also by a reset. `closing` is its
// last event.
[[nodiscard]] std::optional<ChildReport> report_to_parent(
    const state::Run& closed, const temporal::api::history::v1::HistoryEvent& closing);

// Events 32 to 36, after event 31 if the parent has not seen it. Refused if it is another child
// than the pending one.
[[nodiscard]] std::optional<Refusal> child_closed(Transition& transition,
                                                  const ChildReport& report);

// A child that its parent's end ends.
struct ChildEnd {
    std::string workflow_id;
    std::string first_run_id;
    temporal::api::enums::v1::ParentClosePolicy policy{};  // Terminate or request cancel.

    friend bool operator==(const ChildEnd&, const ChildEnd&) = default;
};

// In the order in which they were asked for. None if a reset closed the run: they stay.
[[nodiscard]] std::vector<ChildEnd> children_to_end(const state::Run& closed);

// Event 27 and event 20 of such a child.
[[nodiscard]] temporal::api::history::v1::WorkflowExecutionTerminatedEventAttributes
parent_close_termination();
[[nodiscard]] temporal::api::history::v1::WorkflowExecutionCancelRequestedEventAttributes
parent_close_cancel(const state::Run& parent);

// Refuses a request that is for a child only, if the run is not a child of this parent.
[[nodiscard]] std::optional<Refusal> refuse_other_parent(const state::Run& run,
                                                         const state::Run& parent);

// Event 26 of the run that `initiated`, event 37 of `sender`, wants to signal; event 20 of the one
// that event 22 wants to cancel. Requires: the request is pending.
[[nodiscard]] temporal::api::history::v1::WorkflowExecutionSignaledEventAttributes external_signal(
    const state::Run& sender, const temporal::api::history::v1::HistoryEvent& initiated);
[[nodiscard]] temporal::api::history::v1::WorkflowExecutionCancelRequestedEventAttributes
external_cancel(const state::Run& sender,
                const temporal::api::history::v1::HistoryEvent& initiated);

// Events 39 and 38.
[[nodiscard]] std::optional<Refusal> external_signaled(Transition& transition,
                                                       std::int64_t initiated_event_id);
[[nodiscard]] std::optional<Refusal> external_signal_failed(
    Transition& transition,
    std::int64_t initiated_event_id,
    temporal::api::enums::v1::SignalExternalWorkflowExecutionFailedCause cause);

// Events 24 and 23.
[[nodiscard]] std::optional<Refusal> external_cancel_requested(Transition& transition,
                                                               std::int64_t initiated_event_id);
[[nodiscard]] std::optional<Refusal> external_cancel_failed(
    Transition& transition,
    std::int64_t initiated_event_id,
    temporal::api::enums::v1::CancelExternalWorkflowExecutionFailedCause cause);

}  // namespace holdfast::server::history
