// Resets: a new run that has the first events of another one, its base, and goes on from there.
//
// The state of the new run is rebuilt from those events. Then the workflow task at the point fails,
// what reached the workflow after the point is applied again, and a new workflow task follows.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "history/refusal.hpp"
#include "history/start/options.hpp"
#include "history/transition.hpp"
#include <temporal/api/history/v1/message.pb.h>

namespace holdfast::server::history {

using ResetSignal = temporal::api::history::v1::WorkflowExecutionSignaledEventAttributes;

struct ResetOptions {
    std::int64_t finish_event_id = 0;  // The first event that is not kept.
    std::string reason;
    bool reapply_signals = true;
    bool reapply_updates = true;
    // Done to the new run after all that is applied again, in this order.
    std::vector<std::variant<ResetSignal, OptionsChange>> operations;
    std::string identity;  // Of the caller, for changes of options.
};

// Whether the history of the base has the point.
[[nodiscard]] std::optional<Refusal> refuse_reset_point(const state::Run& base,
                                                        std::int64_t finish_event_id);

// The state of the new run after `kept`, the batches of the base that begin before the point.
// Refused if the point lies inside of a batch, or no workflow task is pending there.
[[nodiscard]] Or<state::Run> rebuild_until(
    const state::Run& base,
    std::span<const temporal::api::history::v1::History> kept,
    const ResetOptions& options,
    std::string run_id);

// What a reset writes into the run that it ends.
[[nodiscard]] temporal::api::history::v1::WorkflowExecutionTerminatedEventAttributes
reset_termination(const std::string& reason);

// The end of the workflow task at the point, and what was pending there, which begins anew.
// Requires: the run is what rebuild_until() made.
void begin_reset(Transition& transition, const state::Run& base, const ResetOptions& options);

// Applies an event again that came after the point: of the base itself, or of a run that followed.
[[nodiscard]] std::optional<Refusal> reapply_event(
    Transition& transition,
    const temporal::api::history::v1::HistoryEvent& event,
    const ResetOptions& options,
    bool of_base);

// After all events: the operations of the reset itself, and the new workflow task.
[[nodiscard]] std::optional<Refusal> end_reset(Transition& transition, const ResetOptions& options);

}  // namespace holdfast::server::history
