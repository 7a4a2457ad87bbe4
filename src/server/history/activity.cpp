#include "history/activity.hpp"

#include <algorithm>
#include <utility>

#include "history/retry.hpp"

#include <holdfast/base/assert.hpp>

namespace holdfast::server::history {

namespace {

using namespace temporal::api::enums::v1;  // NOLINT(google-build-using-namespace): 50 names of it.
using temporal::api::common::v1::Payloads;
using temporal::api::common::v1::WorkerVersionStamp;
using temporal::api::failure::v1::Failure;
using temporal::api::history::v1::HistoryEvent;

Refusal activity_not_found() {
    return {Refused::not_found,
            "invalid activityID or activity already timed out or invoking workflow is completed"};
}

const state::Activity* pending(const state::Run& run, std::int64_t scheduled_event_id) {
    const auto found = run.activities().find(scheduled_event_id);
    return found == run.activities().end() ? nullptr : &found->second;
}

// The activity whose attempt is under way, or why it is not.
Or<state::Activity> under_way(const Transition& transition, const Attempt& attempt) {
    if (!transition.open()) {
        return already_completed();
    }
    const state::Activity* activity = pending(transition.run(), attempt.scheduled_event_id);
    if (activity == nullptr || !activity->started() ||
        (attempt.number && *attempt.number != activity->attempt())) {
        return activity_not_found();
    }
    return *activity;
}

// Event 11, at the time of the real start. Its id, or 0 if no attempt is under way.
std::int64_t write_started(Transition& transition,
                           const state::Activity& activity,
                           const std::optional<WorkerVersionStamp>& worker_version = {}) {
    if (!activity.started()) {
        return 0;
    }
    HistoryEvent event = transition.event(EVENT_TYPE_ACTIVITY_TASK_STARTED);
    *event.mutable_event_time() = activity.started_time();
    auto& attributes = *event.mutable_activity_task_started_event_attributes();
    attributes.set_scheduled_event_id(activity.scheduled_event_id());
    attributes.set_identity(activity.identity());
    attributes.set_request_id(activity.request_id());
    attributes.set_attempt(activity.attempt());
    if (activity.has_last_failure()) {
        *attributes.mutable_last_failure() = activity.last_failure();
    }
    if (worker_version) {
        *attributes.mutable_worker_version() = *worker_version;
    }
    return transition.add(std::move(event));
}

std::optional<Time> retry_deadline(const state::Activity& activity) {
    const Span timeout = span_of(activity.scheduled().schedule_to_close_timeout());
    if (timeout <= Span::zero()) {
        return std::nullopt;
    }
    return time_of(activity.first_scheduled_time()) + timeout;
}

// The failure as it is kept between attempts: a large one only by its message.
Failure kept(const Failure& failure, const Limits& limits) {
    if (failure.ByteSizeLong() <= limits.last_failure_bytes_max) {
        return failure;
    }
    Failure replacement;
    replacement.set_message("Failure exceeds size limit.");
    replacement.set_source("Server");
    replacement.mutable_server_failure_info();
    Failure& cause = *replacement.mutable_cause();
    cause.set_message(failure.message().substr(0, limits.last_failure_bytes_max / 2));
    cause.set_source(failure.source());
    return replacement;
}

// Plans the next attempt if there is to be one.
RetryState try_again(Transition& transition,
                     const state::Activity& activity,
                     const Failure& failure) {
    if (activity.cancel_requested_event_id() != 0) {
        return RETRY_STATE_CANCEL_REQUESTED;
    }
    auto policy = activity.scheduled().retry_policy();
    auto deadline = retry_deadline(activity);
    if (activity.has_pause()) {  // It waits for its operator, whatever its bounds are.
        policy.set_maximum_attempts(0);
        deadline.reset();
    }
    const RetryDecision decision =
        decide_retry(policy, failure, activity.attempt(), transition.now(), deadline);
    if (decision.state == RETRY_STATE_IN_PROGRESS) {
        transition.note(note::ActivityRetried{.scheduled_event_id = activity.scheduled_event_id(),
                                              .failure = kept(failure, transition.limits()),
                                              .at = transition.now(),
                                              .next = transition.now() + decision.delay});
    }
    return decision.state;
}

const char* name_of(TimeoutType type) {
    switch (type) {
        case TIMEOUT_TYPE_START_TO_CLOSE:
            return "StartToClose";
        case TIMEOUT_TYPE_SCHEDULE_TO_START:
            return "ScheduleToStart";
        case TIMEOUT_TYPE_SCHEDULE_TO_CLOSE:
            return "ScheduleToClose";
        default:
            return "Heartbeat";
    }
}

Failure timeout_failure(const state::Activity& activity, TimeoutType type) {
    Failure failure;
    failure.set_message(std::string{"activity "} + name_of(type) + " timeout");
    failure.set_source("Server");
    auto& info = *failure.mutable_timeout_failure_info();
    info.set_timeout_type(type);
    if (activity.has_last_heartbeat_details()) {
        *info.mutable_last_heartbeat_details() = activity.last_heartbeat_details();
    }
    if (activity.has_last_failure()) {
        *failure.mutable_cause() = activity.last_failure();
    }
    return failure;
}

// The timeout of the activity as a whole, because there is no time for another attempt.
Failure out_of_time(const state::Activity& activity, const Failure* cause) {
    Failure failure;
    failure.set_message(
        "Not enough time to schedule next retry before activity ScheduleToClose timeout, giving up "
        "retrying");
    failure.set_source("Server");
    auto& info = *failure.mutable_timeout_failure_info();
    info.set_timeout_type(TIMEOUT_TYPE_SCHEDULE_TO_CLOSE);
    if (activity.has_last_heartbeat_details()) {
        *info.mutable_last_heartbeat_details() = activity.last_heartbeat_details();
    }
    if (cause != nullptr) {
        *failure.mutable_cause() = *cause;
    }
    return failure;
}

void write_timed_out(Transition& transition,
                     const state::Activity& activity,
                     const Failure& failure,
                     RetryState retry_state) {
    const std::int64_t started = write_started(transition, activity);
    HistoryEvent event = transition.event(EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT);
    auto& attributes = *event.mutable_activity_task_timed_out_event_attributes();
    *attributes.mutable_failure() = failure;
    attributes.set_scheduled_event_id(activity.scheduled_event_id());
    attributes.set_started_event_id(started);
    attributes.set_retry_state(retry_state);
    transition.add(std::move(event));
}

void write_canceled(Transition& transition,
                    const state::Activity& activity,
                    const std::string& identity,
                    const Payloads* details) {
    const std::int64_t started = write_started(transition, activity);
    HistoryEvent event = transition.event(EVENT_TYPE_ACTIVITY_TASK_CANCELED);
    auto& attributes = *event.mutable_activity_task_canceled_event_attributes();
    if (details != nullptr) {
        *attributes.mutable_details() = *details;
    }
    attributes.set_latest_cancel_requested_event_id(activity.cancel_requested_event_id());
    attributes.set_scheduled_event_id(activity.scheduled_event_id());
    attributes.set_started_event_id(started);
    attributes.set_identity(identity);
    transition.add(std::move(event));
}

void add_deadline(std::vector<ActivityDeadline>& deadlines,
                  const state::Activity& activity,
                  Time base,
                  const google::protobuf::Duration& timeout,
                  TimeoutType type) {
    if (span_of(timeout) > Span::zero()) {
        deadlines.push_back({base + span_of(timeout), activity.scheduled_event_id(), type});
    }
}

void add_deadlines(std::vector<ActivityDeadline>& deadlines, const state::Activity& activity) {
    if (activity.has_pause()) {
        return;
    }
    const auto& scheduled = activity.scheduled();
    add_deadline(deadlines,
                 activity,
                 time_of(activity.first_scheduled_time()),
                 scheduled.schedule_to_close_timeout(),
                 TIMEOUT_TYPE_SCHEDULE_TO_CLOSE);
    if (!activity.started()) {
        return add_deadline(deadlines,
                            activity,
                            time_of(activity.scheduled_time()),
                            scheduled.schedule_to_start_timeout(),
                            TIMEOUT_TYPE_SCHEDULE_TO_START);
    }
    const Time started = time_of(activity.started_time());
    add_deadline(deadlines,
                 activity,
                 started,
                 scheduled.start_to_close_timeout(),
                 TIMEOUT_TYPE_START_TO_CLOSE);
    add_deadline(deadlines,
                 activity,
                 std::max(started, time_of(activity.last_heartbeat_time())),
                 scheduled.heartbeat_timeout(),
                 TIMEOUT_TYPE_HEARTBEAT);
}

}  // namespace

std::optional<Refusal> start_activity(Transition& transition,
                                      std::int64_t scheduled_event_id,
                                      std::int32_t stamp,
                                      const std::string& identity,
                                      const std::string& request_id) {
    if (!transition.open()) {
        return already_completed();
    }
    const state::Activity* activity = pending(transition.run(), scheduled_event_id);
    if (activity == nullptr || activity->stamp() != stamp || activity->in_backoff()) {
        return Refusal{Refused::not_found, "Activity task not found."};
    }
    if (activity->started()) {
        return activity->request_id() == request_id
                   ? std::nullopt
                   : std::optional{Refusal{Refused::not_found, "Activity task already started."}};
    }
    transition.note(note::ActivityStarted{.scheduled_event_id = scheduled_event_id,
                                          .identity = identity,
                                          .request_id = request_id,
                                          .at = transition.now()});
    return std::nullopt;
}

std::optional<Refusal> complete_activity(Transition& transition,
                                         const Attempt& attempt,
                                         const std::string& identity,
                                         const Payloads* result) {
    const Or<state::Activity> found = under_way(transition, attempt);
    if (const auto* refusal = std::get_if<Refusal>(&found)) {
        return *refusal;
    }
    const auto& activity = std::get<state::Activity>(found);
    const std::int64_t started = write_started(transition, activity, attempt.worker_version);
    HistoryEvent event = transition.event(EVENT_TYPE_ACTIVITY_TASK_COMPLETED);
    auto& attributes = *event.mutable_activity_task_completed_event_attributes();
    if (result != nullptr) {
        *attributes.mutable_result() = *result;
    }
    attributes.set_scheduled_event_id(activity.scheduled_event_id());
    attributes.set_started_event_id(started);
    attributes.set_identity(identity);
    transition.add(std::move(event));
    return std::nullopt;
}

std::optional<Refusal> fail_activity(Transition& transition,
                                     const Attempt& attempt,
                                     const std::string& identity,
                                     const Failure& failure) {
    const Or<state::Activity> found = under_way(transition, attempt);
    if (const auto* refusal = std::get_if<Refusal>(&found)) {
        return *refusal;
    }
    const auto& activity = std::get<state::Activity>(found);
    const RetryState retry_state = try_again(transition, activity, failure);
    if (retry_state == RETRY_STATE_IN_PROGRESS) {
        return std::nullopt;
    }
    const std::int64_t started = write_started(transition, activity, attempt.worker_version);
    HistoryEvent event = transition.event(EVENT_TYPE_ACTIVITY_TASK_FAILED);
    auto& attributes = *event.mutable_activity_task_failed_event_attributes();
    *attributes.mutable_failure() = failure;
    attributes.set_scheduled_event_id(activity.scheduled_event_id());
    attributes.set_started_event_id(started);
    attributes.set_identity(identity);
    attributes.set_retry_state(retry_state);
    transition.add(std::move(event));
    return std::nullopt;
}

std::optional<Refusal> cancel_activity(Transition& transition,
                                       const Attempt& attempt,
                                       const std::string& identity,
                                       const Payloads* details) {
    const Or<state::Activity> found = under_way(transition, attempt);
    if (const auto* refusal = std::get_if<Refusal>(&found)) {
        return *refusal;
    }
    const auto& activity = std::get<state::Activity>(found);
    if (activity.cancel_requested_event_id() == 0) {
        return Refusal{Refused::invalid_argument,
                       "unable to mark activity as canceled without activity being request "
                       "canceled first"};
    }
    write_canceled(transition, activity, identity, details);
    return std::nullopt;
}

Or<HeartbeatReply> heartbeat_activity(Transition& transition,
                                      const Attempt& attempt,
                                      const Payloads& details) {
    const Or<state::Activity> found = under_way(transition, attempt);
    if (const auto* refusal = std::get_if<Refusal>(&found)) {
        return *refusal;
    }
    const auto& activity = std::get<state::Activity>(found);
    transition.note(note::ActivityHeartbeat{.scheduled_event_id = activity.scheduled_event_id(),
                                            .details = details,
                                            .at = transition.now()});
    return HeartbeatReply{.cancel_requested = activity.cancel_requested_event_id() != 0,
                          .paused = activity.has_pause(),
                          .reset = activity.reset()};
}

void cancel_unstarted_activity(Transition& transition,
                               std::int64_t scheduled_event_id,
                               const std::string& identity) {
    const state::Activity* activity = pending(transition.run(), scheduled_event_id);
    HOLDFAST_ASSERT(activity != nullptr);
    HOLDFAST_ASSERT(!activity->started());
    Payloads details;
    auto& payload = *details.add_payloads();
    (*payload.mutable_metadata())["encoding"] = "json/plain";
    payload.set_data("\"ACTIVITY_ID_NOT_STARTED\"");
    const state::Activity copy = *activity;  // The event removes it.
    write_canceled(transition, copy, identity, &details);
}

const state::Activity* find_activity(const state::Run& run, const std::string& activity_id) {
    for (const auto& [id, activity] : run.activities()) {
        if (activity.scheduled().activity_id() == activity_id) {
            return &activity;
        }
    }
    return nullptr;
}

std::vector<ActivityDeadline> activity_deadlines(const state::Run& run) {
    std::vector<ActivityDeadline> deadlines;
    for (const auto& [id, activity] : run.activities()) {
        add_deadlines(deadlines, activity);
    }
    std::sort(deadlines.begin(), deadlines.end());
    return deadlines;
}

bool still_stands(const state::Run& run, const ActivityDeadline& deadline) {
    const state::Activity* activity = pending(run, deadline.scheduled_event_id);
    if (activity == nullptr) {
        return false;
    }
    std::vector<ActivityDeadline> deadlines;
    add_deadlines(deadlines, *activity);
    return std::find(deadlines.begin(), deadlines.end(), deadline) != deadlines.end();
}

void time_out_activity(Transition& transition, const ActivityDeadline& deadline) {
    const state::Activity* found = pending(transition.run(), deadline.scheduled_event_id);
    HOLDFAST_ASSERT(found != nullptr);
    const state::Activity activity = *found;  // The event removes it.
    if (deadline.timeout_type == TIMEOUT_TYPE_SCHEDULE_TO_CLOSE) {
        const Failure* cause = activity.has_last_failure() ? &activity.last_failure() : nullptr;
        return write_timed_out(
            transition, activity, out_of_time(activity, cause), RETRY_STATE_TIMEOUT);
    }
    const Failure failure = timeout_failure(activity, deadline.timeout_type);
    const RetryState retry_state = try_again(transition, activity, failure);
    if (retry_state == RETRY_STATE_IN_PROGRESS) {
        return;
    }
    const bool gave_up = retry_state == RETRY_STATE_TIMEOUT &&
                         deadline.timeout_type != TIMEOUT_TYPE_SCHEDULE_TO_START;
    write_timed_out(
        transition, activity, gave_up ? out_of_time(activity, &failure) : failure, retry_state);
}

}  // namespace holdfast::server::history
