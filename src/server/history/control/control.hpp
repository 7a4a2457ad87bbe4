// What an operator does with the activities of a run: pauses them and lets them go on, begins them
// again, changes their options.
//
// None of it writes an event, and an attempt that is under way goes on. What waits on a queue under
// an older stamp is void, so a worker does not get it any more.
#pragma once

#include <optional>
#include <string>

#include "history/note.hpp"
#include "history/payloads.hpp"
#include "history/refusal.hpp"
#include "history/transition.hpp"
#include <google/protobuf/field_mask.pb.h>
#include <temporal/api/activity/v1/message.pb.h>

namespace holdfast::server::history {

// Pending activities: the one with this id, or those of this type, or all.
struct ActivitySelection {
    std::string id{};
    std::string type{};
};

struct ActivityPausing {
    std::string identity{};
    std::string reason{};
    std::string request_id{};
};

// A paused activity is not dispatched, and none of its timeouts fires. An attempt under way is told
// by its heartbeat; it may end the activity. One that is paused already is refused if it is named
// by its id, unless by the same request.
[[nodiscard]] std::optional<Refusal> pause_activities(Transition& transition,
                                                      const ActivitySelection& which,
                                                      const ActivityPausing& pausing);

struct ActivityUnpausing {
    bool reset_attempts = false;
    bool reset_heartbeat = false;
    Span jitter{};
};

// Those that are not paused are left as they are. The others are dispatched within the jitter, even
// from a backoff, and a timeout that is overdue fires.
[[nodiscard]] std::optional<Refusal> unpause_activities(Transition& transition,
                                                        const ActivitySelection& which,
                                                        const ActivityUnpausing& unpausing);

struct ActivityResetting {
    bool reset_heartbeat = false;
    bool keep_paused = false;
    bool restore_options = false;
    Span jitter{};
};

// Attempts are counted from 1 again, and what waits is dispatched within the jitter.
[[nodiscard]] std::optional<Refusal> reset_activities(Transition& transition,
                                                      const ActivitySelection& which,
                                                      const ActivityResetting& resetting);

using ActivityOptions = temporal::api::activity::v1::ActivityOptions;

struct ActivityOptionsChange {
    bool restore = false;  // Those of event 10; the rest is of no consequence.
    ActivityOptions options{};
    google::protobuf::FieldMask mask{};  // Requires: its paths are those of options.
};

// The options that the last of them has now. A next attempt that waits for its backoff is due as
// the new policy says.
[[nodiscard]] Or<ActivityOptions> change_activity_options(Transition& transition,
                                                          const ActivitySelection& which,
                                                          const ActivityOptionsChange& change);

// The search attributes of the run as clients see them: also which types of activities are paused.
[[nodiscard]] PayloadMap shown_attributes(const state::Run& run);
// Whether they say something else of that.
[[nodiscard]] bool pauses_differ(const state::Run& before, const state::Run& after);

// For apply() and projection().
void apply_control(state::Activity& activity, const note::ActivityPaused& note);
void apply_control(state::Activity& activity, const note::ActivityUnpaused& note);
void apply_control(state::Activity& activity, const note::ActivityReset& note);
void apply_control(state::Activity& activity, const note::ActivityRescheduled& note);
void apply_control(state::Activity& activity, const note::ActivityOptions& note);
// The attempt that was told of a reset has ended.
void end_reset(state::Activity& activity);
void restore_options(state::Activity& activity);

}  // namespace holdfast::server::history
