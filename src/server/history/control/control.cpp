#include "history/control/control.hpp"

#include <algorithm>
#include <functional>
#include <set>
#include <utility>
#include <vector>

#include "history/command/activity_options.hpp"
#include "history/retry.hpp"
#include <google/protobuf/util/field_mask_util.h>

#include <holdfast/base/json_text.hpp>

namespace holdfast::server::history {

namespace {

using temporal::api::history::v1::ActivityTaskScheduledEventAttributes;

constexpr const char* pause_attribute = "TemporalPauseInfo";

bool is_selected(const state::Activity& activity, const ActivitySelection& which) {
    if (!which.id.empty()) {
        return activity.scheduled().activity_id() == which.id;
    }
    return which.type.empty() || activity.scheduled().activity_type().name() == which.type;
}

// In the order in which they were scheduled.
Or<std::vector<std::int64_t>> selected(const Transition& transition,
                                       const ActivitySelection& which) {
    if (!transition.open()) {
        return already_completed();
    }
    std::vector<std::int64_t> ids;
    for (const auto& [id, activity] : transition.run().activities()) {
        if (is_selected(activity, which)) {
            ids.push_back(id);
        }
    }
    if (ids.empty() && !which.id.empty()) {
        return Refusal{Refused::not_found,
                       "Can't find pending activity with such ID. Invalid activityID or activity "
                       "already completed"};
    }
    std::sort(ids.begin(), ids.end());
    return ids;
}

// `act(id, activity)` for each of them, until it refuses. The activity is as it was before.
using Act = std::function<std::optional<Refusal>(std::int64_t, const state::Activity&)>;
std::optional<Refusal> for_each_selected(Transition& transition,
                                         const ActivitySelection& which,
                                         const Act& act) {
    const Or<std::vector<std::int64_t>> found = selected(transition, which);
    if (const auto* refusal = std::get_if<Refusal>(&found)) {
        return *refusal;
    }
    for (const std::int64_t id : std::get<std::vector<std::int64_t>>(found)) {
        const state::Activity activity = transition.run().activities().at(id);
        if (auto refusal = act(id, activity)) {
            return refusal;
        }
    }
    return std::nullopt;
}

void reschedule(Transition& transition, std::int64_t id, Time next, bool waits) {
    transition.note(
        note::ActivityRescheduled{.scheduled_event_id = id, .next = next, .waits = waits});
    if (!waits) {
        transition.add_task(
            {Task::Kind::activity, id, transition.run().activities().at(id).stamp()});
    }
}

void dispatch_within(Transition& transition, std::int64_t id, Span jitter) {
    const double part = static_cast<double>(jitter.count()) * transition.source().fraction();
    const Span wait{static_cast<Span::rep>(part)};
    reschedule(transition, id, transition.now() + wait, wait > Span::zero());
}

// The next attempt as the policy that is new would have planned it.
void plan_again(Transition& transition, std::int64_t id) {
    const state::Activity activity = transition.run().activities().at(id);
    if (activity.started() || activity.has_pause()) {
        return;
    }
    if (!activity.in_backoff()) {
        return reschedule(transition, id, time_of(activity.scheduled_time()), false);
    }
    const auto interval =
        retry_interval(activity.scheduled().retry_policy(), activity.attempt() - 1);
    if (activity.attempt() <= 1 || !interval) {  // A jitter, or a policy without an end.
        return reschedule(transition, id, time_of(activity.scheduled_time()), true);
    }
    const Time next = time_of(activity.last_attempt_complete_time()) + *interval;
    reschedule(transition, id, next, next > transition.now());
}

ActivityOptions options_of(const state::Activity& activity) {
    const auto& scheduled = activity.scheduled();
    ActivityOptions options;
    *options.mutable_task_queue() = scheduled.task_queue();
    *options.mutable_schedule_to_close_timeout() = scheduled.schedule_to_close_timeout();
    *options.mutable_schedule_to_start_timeout() = scheduled.schedule_to_start_timeout();
    *options.mutable_start_to_close_timeout() = scheduled.start_to_close_timeout();
    *options.mutable_heartbeat_timeout() = scheduled.heartbeat_timeout();
    *options.mutable_retry_policy() = scheduled.retry_policy();
    if (scheduled.has_priority()) {
        *options.mutable_priority() = scheduled.priority();
    }
    return options;
}

void set_options(ActivityTaskScheduledEventAttributes& scheduled, const ActivityOptions& options) {
    scheduled.mutable_task_queue()->set_name(options.task_queue().name());
    *scheduled.mutable_schedule_to_close_timeout() = options.schedule_to_close_timeout();
    *scheduled.mutable_schedule_to_start_timeout() = options.schedule_to_start_timeout();
    *scheduled.mutable_start_to_close_timeout() = options.start_to_close_timeout();
    *scheduled.mutable_heartbeat_timeout() = options.heartbeat_timeout();
    *scheduled.mutable_retry_policy() = options.retry_policy();
    scheduled.clear_priority();
    if (options.has_priority()) {
        *scheduled.mutable_priority() = options.priority();
    }
}

// The schedule of an activity with these options in it, or what is wrong with them.
Or<ActivityTaskScheduledEventAttributes> with_options(const state::Activity& activity,
                                                      const ActivityOptionsChange& change,
                                                      Span run_timeout) {
    ActivityOptions options = options_of(activity);
    google::protobuf::util::FieldMaskUtil::MergeOptions whole;
    whole.set_replace_message_fields(true);
    whole.set_replace_repeated_fields(true);
    google::protobuf::util::FieldMaskUtil::MergeMessageTo(
        change.options, change.mask, whole, &options);
    auto scheduled = activity.scheduled();
    set_options(scheduled, options);
    if (scheduled.task_queue().name().empty()) {
        return Refusal{Refused::invalid_argument, "missing task queue name"};
    }
    if (auto problem = activity_options_problem(scheduled)) {
        return Refusal{Refused::invalid_argument, *std::move(problem)};
    }
    fill_defaults(*scheduled.mutable_retry_policy());
    if (auto problem = policy_problem(scheduled.retry_policy())) {
        return Refusal{Refused::invalid_argument, *std::move(problem)};
    }
    normalise_activity_timeouts(scheduled, run_timeout);
    return scheduled;
}

std::set<std::string> paused_types(const state::Run& run) {
    std::set<std::string> types;
    if (run.phase() != state::PHASE_COMPLETED) {
        for (const auto& [id, activity] : run.activities()) {
            if (activity.has_pause()) {
                types.insert(activity.scheduled().activity_type().name());
            }
        }
    }
    return types;
}

}  // namespace

std::optional<Refusal> pause_activities(Transition& transition,
                                        const ActivitySelection& which,
                                        const ActivityPausing& pausing) {
    return for_each_selected(
        transition,
        which,
        [&](std::int64_t id, const state::Activity& activity) -> std::optional<Refusal> {
            if (activity.has_pause()) {
                const bool repeated = !pausing.request_id.empty() &&
                                      activity.pause().request_id() == pausing.request_id;
                return which.id.empty() || repeated
                           ? std::nullopt
                           : std::optional{Refusal{Refused::failed_precondition,
                                                   "activity is already paused"}};
            }
            note::ActivityPaused note{.scheduled_event_id = id, .pause = {}};
            *note.pause.mutable_time() = to_timestamp(transition.now());
            note.pause.set_identity(pausing.identity);
            note.pause.set_reason(pausing.reason);
            note.pause.set_request_id(pausing.request_id);
            transition.note(note);
            return std::nullopt;
        });
}

std::optional<Refusal> unpause_activities(Transition& transition,
                                          const ActivitySelection& which,
                                          const ActivityUnpausing& unpausing) {
    return for_each_selected(
        transition,
        which,
        [&](std::int64_t id, const state::Activity& activity) -> std::optional<Refusal> {
            if (!activity.has_pause()) {
                return std::nullopt;
            }
            transition.note(note::ActivityUnpaused{id});
            if (unpausing.reset_attempts || unpausing.reset_heartbeat) {
                transition.note(note::ActivityReset{.scheduled_event_id = id,
                                                    .attempts = unpausing.reset_attempts,
                                                    .heartbeat = unpausing.reset_heartbeat});
            }
            if (!activity.started()) {
                dispatch_within(transition, id, unpausing.jitter);
            }
            return std::nullopt;
        });
}

std::optional<Refusal> reset_activities(Transition& transition,
                                        const ActivitySelection& which,
                                        const ActivityResetting& resetting) {
    return for_each_selected(
        transition,
        which,
        [&](std::int64_t id, const state::Activity& activity) -> std::optional<Refusal> {
            transition.note(note::ActivityReset{.scheduled_event_id = id,
                                                .attempts = true,
                                                .failure = true,
                                                .heartbeat = resetting.reset_heartbeat,
                                                .told = activity.started()});
            if (resetting.restore_options) {
                transition.note(note::ActivityOptions{.scheduled_event_id = id, .scheduled = {}});
            }
            const bool stays = activity.has_pause() && resetting.keep_paused;
            if (activity.has_pause() && !stays) {
                transition.note(note::ActivityUnpaused{id});
            }
            if (!activity.started() && !stays) {
                dispatch_within(transition, id, resetting.jitter);
            }
            return std::nullopt;
        });
}

Or<ActivityOptions> change_activity_options(Transition& transition,
                                            const ActivitySelection& which,
                                            const ActivityOptionsChange& change) {
    const Span run_timeout = span_of(transition.run().started().workflow_run_timeout());
    ActivityOptions options;
    auto refusal = for_each_selected(
        transition,
        which,
        [&](std::int64_t id, const state::Activity& activity) -> std::optional<Refusal> {
            note::ActivityOptions note{.scheduled_event_id = id, .scheduled = {}};
            if (!change.restore) {
                Or<ActivityTaskScheduledEventAttributes> made =
                    with_options(activity, change, run_timeout);
                if (auto* refused = std::get_if<Refusal>(&made)) {
                    return std::move(*refused);
                }
                note.scheduled = std::get<ActivityTaskScheduledEventAttributes>(std::move(made));
            }
            transition.note(note);
            plan_again(transition, id);
            options = options_of(transition.run().activities().at(id));
            return std::nullopt;
        });
    if (refusal) {
        transition.restart();  // All of them are changed, or none.
        return *std::move(refusal);
    }
    return options;
}

PayloadMap shown_attributes(const state::Run& run) {
    PayloadMap shown = run.search_attributes();
    const std::set<std::string> types = paused_types(run);
    if (types.empty()) {
        return shown;
    }
    std::string list;
    for (const std::string& type : types) {
        list += list.empty() ? "[" : ",";
        json::append_string(list, "property:activityType=" + type);
    }
    auto& payload = shown[pause_attribute];
    payload.Clear();
    (*payload.mutable_metadata())["encoding"] = "json/plain";
    (*payload.mutable_metadata())["type"] = "KeywordList";
    payload.set_data(list + "]");
    return shown;
}

bool pauses_differ(const state::Run& before, const state::Run& after) {
    return paused_types(before) != paused_types(after);
}

void apply_control(state::Activity& activity, const note::ActivityPaused& note) {
    *activity.mutable_pause() = note.pause;
    activity.set_stamp(activity.stamp() + 1);
}

void apply_control(state::Activity& activity, const note::ActivityUnpaused& /*note*/) {
    activity.clear_pause();
    activity.set_stamp(activity.stamp() + 1);
}

void apply_control(state::Activity& activity, const note::ActivityReset& note) {
    if (note.attempts) {
        activity.set_attempt(1);
    }
    if (note.failure) {
        activity.clear_last_failure();
    }
    if (note.told) {
        activity.set_reset(true);
        activity.set_reset_heartbeat(note.heartbeat);
    } else if (note.heartbeat) {
        activity.clear_last_heartbeat_details();
        activity.clear_last_heartbeat_time();
    }
}

void apply_control(state::Activity& activity, const note::ActivityRescheduled& note) {
    *activity.mutable_scheduled_time() = to_timestamp(note.next);
    activity.set_in_backoff(note.waits);
    activity.set_stamp(activity.stamp() + 1);
}

void apply_control(state::Activity& activity, const note::ActivityOptions& note) {
    activity.set_stamp(activity.stamp() + 1);
    if (!note.scheduled) {
        return restore_options(activity);
    }
    if (!activity.has_original()) {
        *activity.mutable_original() = activity.scheduled();
    }
    *activity.mutable_scheduled() = *note.scheduled;
}

void end_reset(state::Activity& activity) {
    if (activity.reset_heartbeat()) {
        activity.clear_last_heartbeat_details();
        activity.clear_last_heartbeat_time();
    }
    activity.clear_reset();
    activity.clear_reset_heartbeat();
}

void restore_options(state::Activity& activity) {
    if (activity.has_original()) {
        activity.mutable_scheduled()->Swap(activity.mutable_original());
        activity.clear_original();
    }
}

}  // namespace holdfast::server::history
