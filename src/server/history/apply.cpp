#include "history/apply.hpp"

#include <algorithm>

#include "history/builds/builds.hpp"
#include "history/control/control.hpp"
#include "history/event_kind.hpp"
#include "history/limits.hpp"
#include "history/payloads.hpp"
#include "history/update/apply_update.hpp"

#include <holdfast/base/assert.hpp>

namespace holdfast::server::history {

namespace {

using namespace temporal::api::enums::v1;  // NOLINT(google-build-using-namespace): 50 names of it.
using temporal::api::history::v1::HistoryEvent;

// What is counted from the begin of the run. Requires: what it started with is known.
void begin_at(state::Run& run, Time begin) {
    const auto& started = run.started();
    const Time planned = begin + span_of(started.first_workflow_task_backoff());
    *run.mutable_start_time() = to_timestamp(begin);
    *run.mutable_execution_time() = to_timestamp(planned);
    const Span timeout = span_of(started.workflow_run_timeout());
    if (timeout > Span::zero()) {
        Time expiration = planned + timeout;
        if (started.has_workflow_execution_expiration_time()) {
            expiration =
                std::min(expiration, time_of(started.workflow_execution_expiration_time()));
        }
        *run.mutable_run_expiration() = to_timestamp(expiration);
    }
}

void started(state::Run& run, const HistoryEvent& event) {
    const auto& attributes = event.workflow_execution_started_event_attributes();
    *run.mutable_started() = attributes;
    if (event.has_user_metadata()) {
        *run.mutable_user_metadata() = event.user_metadata();
    }
    run.set_workflow_id(attributes.workflow_id());
    run.set_phase(state::PHASE_CREATED);
    run.set_status(WORKFLOW_EXECUTION_STATUS_RUNNING);
    run.set_workflow_task_attempt(1);
    *run.mutable_memo() = attributes.memo().fields();
    *run.mutable_search_attributes() = attributes.search_attributes().indexed_fields();
    *run.mutable_reset_points() = attributes.prev_auto_reset_points().points();

    if (attributes.has_priority()) {
        *run.mutable_priority() = attributes.priority();
    }
    *run.mutable_original_start_time() = event.event_time();
    begin_at(run, time_of(event.event_time()));
}

void workflow_task_scheduled(state::Run& run, const HistoryEvent& event) {
    const auto& attributes = event.workflow_task_scheduled_event_attributes();
    state::WorkflowTask task;
    task.set_scheduled_event_id(event.event_id());
    task.set_attempt(attributes.attempt());
    *task.mutable_start_to_close_timeout() = attributes.start_to_close_timeout();
    *task.mutable_task_queue() = attributes.task_queue();
    *task.mutable_scheduled_time() = event.event_time();
    *task.mutable_original_scheduled_time() = event.event_time();
    task.set_stamp(run.workflow_task_stamp());
    *run.mutable_workflow_task() = task;
    run.set_phase(state::PHASE_RUNNING);
}

void workflow_task_started(state::Run& run, const HistoryEvent& event) {
    const auto& attributes = event.workflow_task_started_event_attributes();
    state::WorkflowTask& task = *run.mutable_workflow_task();
    HOLDFAST_ASSERT(task.scheduled_event_id() == attributes.scheduled_event_id());
    task.set_started_event_id(event.event_id());
    *task.mutable_started_time() = event.event_time();
    task.set_request_id(attributes.request_id());
    task.set_identity(attributes.identity());
    task.set_suggest_continue_as_new(attributes.suggest_continue_as_new());
    *task.mutable_suggest_continue_as_new_reasons() = attributes.suggest_continue_as_new_reasons();
    task.set_history_size_bytes(attributes.history_size_bytes());
    if (attributes.has_worker_version()) {
        *task.mutable_worker_version() = attributes.worker_version();
    }
}

void workflow_task_completed(state::Run& run, const HistoryEvent& event) {
    const auto& attributes = event.workflow_task_completed_event_attributes();
    run.set_last_completed_started_event_id(attributes.started_event_id());
    run.clear_workflow_task();
    run.set_workflow_task_attempt(1);
    run.set_attempts_since_last_success(0);
    remember_build(run, event);
}

void activity_scheduled(state::Run& run, const HistoryEvent& event) {
    state::Activity activity;
    activity.set_scheduled_event_id(event.event_id());
    *activity.mutable_scheduled() = event.activity_task_scheduled_event_attributes();
    activity.mutable_scheduled()->clear_input();
    activity.mutable_scheduled()->clear_header();
    *activity.mutable_first_scheduled_time() = event.event_time();
    *activity.mutable_scheduled_time() = event.event_time();
    activity.set_attempt(1);
    activity.set_scheduled_batch_event_id(run.last_first_event_id());
    (*run.mutable_activities())[event.event_id()] = activity;
}

void activity_cancel_requested(state::Run& run, const HistoryEvent& event) {
    const auto found = run.mutable_activities()->find(
        event.activity_task_cancel_requested_event_attributes().scheduled_event_id());
    if (found != run.mutable_activities()->end()) {  // Else its end waits in the buffer.
        found->second.set_cancel_requested_event_id(event.event_id());
    }
}

void timer_started(state::Run& run, const HistoryEvent& event) {
    const auto& attributes = event.timer_started_event_attributes();
    state::Timer timer;
    timer.set_timer_id(attributes.timer_id());
    timer.set_started_event_id(event.event_id());
    *timer.mutable_expiry() =
        to_timestamp(time_of(event.event_time()) + span_of(attributes.start_to_fire_timeout()));
    (*run.mutable_timers())[attributes.timer_id()] = timer;
}

void signaled(state::Run& run, const HistoryEvent& event) {
    const auto& attributes = event.workflow_execution_signaled_event_attributes();
    run.set_signal_count(run.signal_count() + 1);
    if (!attributes.request_id().empty()) {
        (*run.mutable_signal_request_ids())[attributes.request_id()] = true;
    }
}

void options_updated(state::Run& run, const HistoryEvent& event) {
    const auto& attributes = event.workflow_execution_options_updated_event_attributes();
    if (attributes.has_priority()) {
        *run.mutable_priority() = attributes.priority();
    }
}

void child_initiated(state::Run& run, const HistoryEvent& event) {
    state::Child child;
    child.set_initiated_event_id(event.event_id());
    child.set_initiated_batch_event_id(run.last_first_event_id());
    auto& initiated = *child.mutable_initiated();
    initiated = event.start_child_workflow_execution_initiated_event_attributes();
    initiated.clear_input();
    initiated.clear_memo();
    initiated.clear_search_attributes();
    (*run.mutable_children())[event.event_id()] = child;
}

void child_started(state::Run& run, const HistoryEvent& event) {
    const auto& attributes = event.child_workflow_execution_started_event_attributes();
    const auto found = run.mutable_children()->find(attributes.initiated_event_id());
    HOLDFAST_ASSERT(found != run.mutable_children()->end());
    found->second.set_started_event_id(event.event_id());
    found->second.set_started_run_id(attributes.workflow_execution().run_id());
    found->second.mutable_initiated()->clear_header();
}

template <class Initiated>
state::External external(const state::Run& run,
                         const HistoryEvent& event,
                         const Initiated& initiated) {
    state::External pending;
    pending.set_initiated_event_id(event.event_id());
    pending.set_initiated_batch_event_id(run.last_first_event_id());
    pending.set_namespace_(initiated.namespace_());
    pending.set_namespace_id(initiated.namespace_id());
    *pending.mutable_workflow_execution() = initiated.workflow_execution();
    pending.set_control(initiated.control());
    return pending;
}

void closed(state::Run& run,
            const HistoryEvent& event,
            WorkflowExecutionStatus status,
            const std::string& next_run = "") {
    run.set_phase(state::PHASE_COMPLETED);
    run.set_status(status);
    run.set_new_execution_run_id(next_run);
    *run.mutable_close_time() = event.event_time();
    run.clear_workflow_task();
    run.clear_buffered();  // What the workflow did not see before it closed is lost.
    run.clear_pending_updates();
}

// Of activities: what ends them.
bool apply_activity(state::Run& run, const HistoryEvent& event) {
    auto& activities = *run.mutable_activities();
    switch (event.event_type()) {
        case EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
            activity_scheduled(run, event);
            return true;
        case EVENT_TYPE_ACTIVITY_TASK_CANCEL_REQUESTED:
            activity_cancel_requested(run, event);
            return true;
        case EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
            activities.erase(event.activity_task_completed_event_attributes().scheduled_event_id());
            return true;
        case EVENT_TYPE_ACTIVITY_TASK_FAILED:
            activities.erase(event.activity_task_failed_event_attributes().scheduled_event_id());
            return true;
        case EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT:
            activities.erase(event.activity_task_timed_out_event_attributes().scheduled_event_id());
            return true;
        case EVENT_TYPE_ACTIVITY_TASK_CANCELED:
            activities.erase(event.activity_task_canceled_event_attributes().scheduled_event_id());
            return true;
        default:
            return false;
    }
}

bool apply_child(state::Run& run, const HistoryEvent& event) {
    auto& children = *run.mutable_children();
    switch (event.event_type()) {
        case EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_INITIATED:
            child_initiated(run, event);
            return true;
        case EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_STARTED:
            child_started(run, event);
            return true;
        case EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_FAILED:
            children.erase(event.start_child_workflow_execution_failed_event_attributes()
                               .initiated_event_id());
            return true;
        case EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_COMPLETED:
            children.erase(
                event.child_workflow_execution_completed_event_attributes().initiated_event_id());
            return true;
        case EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_FAILED:
            children.erase(
                event.child_workflow_execution_failed_event_attributes().initiated_event_id());
            return true;
        case EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_CANCELED:
            children.erase(
                event.child_workflow_execution_canceled_event_attributes().initiated_event_id());
            return true;
        case EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_TIMED_OUT:
            children.erase(
                event.child_workflow_execution_timed_out_event_attributes().initiated_event_id());
            return true;
        case EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_TERMINATED:
            children.erase(
                event.child_workflow_execution_terminated_event_attributes().initiated_event_id());
            return true;
        default:
            return false;
    }
}

bool apply_external(state::Run& run, const HistoryEvent& event) {
    auto& cancels = *run.mutable_external_cancels();
    auto& signals = *run.mutable_external_signals();
    switch (event.event_type()) {
        case EVENT_TYPE_REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED:
            cancels[event.event_id()] = external(
                run,
                event,
                event.request_cancel_external_workflow_execution_initiated_event_attributes());
            return true;
        case EVENT_TYPE_REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_FAILED:
            cancels.erase(event.request_cancel_external_workflow_execution_failed_event_attributes()
                              .initiated_event_id());
            return true;
        case EVENT_TYPE_EXTERNAL_WORKFLOW_EXECUTION_CANCEL_REQUESTED:
            cancels.erase(event.external_workflow_execution_cancel_requested_event_attributes()
                              .initiated_event_id());
            return true;
        case EVENT_TYPE_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED:
            signals[event.event_id()] = external(
                run, event, event.signal_external_workflow_execution_initiated_event_attributes());
            return true;
        case EVENT_TYPE_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_FAILED:
            signals.erase(event.signal_external_workflow_execution_failed_event_attributes()
                              .initiated_event_id());
            return true;
        case EVENT_TYPE_EXTERNAL_WORKFLOW_EXECUTION_SIGNALED:
            signals.erase(
                event.external_workflow_execution_signaled_event_attributes().initiated_event_id());
            return true;
        default:
            return false;
    }
}

bool apply_end(state::Run& run, const HistoryEvent& event) {
    switch (event.event_type()) {
        case EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED:
            closed(run,
                   event,
                   WORKFLOW_EXECUTION_STATUS_COMPLETED,
                   event.workflow_execution_completed_event_attributes().new_execution_run_id());
            return true;
        case EVENT_TYPE_WORKFLOW_EXECUTION_FAILED:
            closed(run,
                   event,
                   WORKFLOW_EXECUTION_STATUS_FAILED,
                   event.workflow_execution_failed_event_attributes().new_execution_run_id());
            return true;
        case EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT:
            closed(run,
                   event,
                   WORKFLOW_EXECUTION_STATUS_TIMED_OUT,
                   event.workflow_execution_timed_out_event_attributes().new_execution_run_id());
            return true;
        case EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED:
            closed(run, event, WORKFLOW_EXECUTION_STATUS_CANCELED);
            return true;
        case EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED:
            closed(run, event, WORKFLOW_EXECUTION_STATUS_TERMINATED);
            return true;
        case EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW:
            closed(run,
                   event,
                   WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW,
                   event.workflow_execution_continued_as_new_event_attributes()
                       .new_execution_run_id());
            return true;
        default:
            return false;
    }
}

void apply_rest(state::Run& run, const HistoryEvent& event) {
    switch (event.event_type()) {
        case EVENT_TYPE_WORKFLOW_EXECUTION_STARTED:
            return started(run, event);
        case EVENT_TYPE_WORKFLOW_TASK_SCHEDULED:
            return workflow_task_scheduled(run, event);
        case EVENT_TYPE_WORKFLOW_TASK_STARTED:
            return workflow_task_started(run, event);
        case EVENT_TYPE_WORKFLOW_TASK_COMPLETED:
            return workflow_task_completed(run, event);
        case EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT:
        case EVENT_TYPE_WORKFLOW_TASK_FAILED:
            return run.clear_workflow_task();
        case EVENT_TYPE_TIMER_STARTED:
            return timer_started(run, event);
        case EVENT_TYPE_TIMER_FIRED:
            run.mutable_timers()->erase(event.timer_fired_event_attributes().timer_id());
            return;
        case EVENT_TYPE_TIMER_CANCELED:
            run.mutable_timers()->erase(event.timer_canceled_event_attributes().timer_id());
            return;
        case EVENT_TYPE_WORKFLOW_EXECUTION_CANCEL_REQUESTED:
            return run.set_cancel_requested(true);
        case EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED:
            return signaled(run, event);
        case EVENT_TYPE_WORKFLOW_EXECUTION_OPTIONS_UPDATED:
            return options_updated(run, event);
        case EVENT_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES:
            return merge(*run.mutable_search_attributes(),
                         event.upsert_workflow_search_attributes_event_attributes()
                             .search_attributes()
                             .indexed_fields());
        case EVENT_TYPE_WORKFLOW_PROPERTIES_MODIFIED:
            return merge(
                *run.mutable_memo(),
                event.workflow_properties_modified_event_attributes().upserted_memo().fields());
        default:  // Markers, and starts of activities, change nothing.
            return;
    }
}

state::Activity& activity_of(state::Run& run, std::int64_t scheduled_event_id) {
    const auto found = run.mutable_activities()->find(scheduled_event_id);
    HOLDFAST_ASSERT(found != run.mutable_activities()->end());
    return found->second;
}

struct Apply {
    state::Run& run;

    void operator()(const note::TransientScheduled& note) const {
        HOLDFAST_ASSERT(!run.has_workflow_task());
        *run.mutable_workflow_task() = note.task;
        if (!note.task.speculative()) {  // A backoff before the first one goes on.
            run.set_phase(state::PHASE_RUNNING);
        }
    }

    void operator()(const note::TransientStarted& note) const {
        *run.mutable_workflow_task() = note.task;
    }

    void operator()(const note::TransientEnded& /*note*/) const { run.clear_workflow_task(); }

    void operator()(const note::HeartbeatSince& note) const {
        *run.mutable_workflow_task()->mutable_original_scheduled_time() =
            to_timestamp(note.original_scheduled_time);
    }

    void operator()(const note::Attempt& note) const {
        run.set_workflow_task_attempt(note.attempt);
        run.set_attempts_since_last_success(note.since_last_success);
    }

    void operator()(const note::Sticky& note) const {
        run.set_sticky_queue(note.queue);
        if (note.queue.empty()) {
            run.clear_sticky_schedule_to_start_timeout();
        } else {
            *run.mutable_sticky_schedule_to_start_timeout() =
                to_duration(note.schedule_to_start_timeout);
        }
    }

    void operator()(const note::ActivityStarted& note) const {
        state::Activity& activity = activity_of(run, note.scheduled_event_id);
        activity.set_started(true);
        activity.set_identity(note.identity);
        activity.set_request_id(note.request_id);
        *activity.mutable_started_time() = to_timestamp(note.at);
    }

    void operator()(const note::ActivityHeartbeat& note) const {
        state::Activity& activity = activity_of(run, note.scheduled_event_id);
        *activity.mutable_last_heartbeat_details() = note.details;
        *activity.mutable_last_heartbeat_time() = to_timestamp(note.at);
    }

    void operator()(const note::ActivityRetried& note) const {
        state::Activity& activity = activity_of(run, note.scheduled_event_id);
        activity.set_attempt(activity.attempt() + 1);
        activity.set_started(false);
        activity.clear_started_time();
        activity.set_last_worker_identity(activity.identity());
        activity.clear_identity();
        activity.clear_request_id();
        *activity.mutable_last_failure() = note.failure;
        *activity.mutable_last_attempt_complete_time() = to_timestamp(note.at);
        *activity.mutable_scheduled_time() = to_timestamp(note.next);
        activity.set_in_backoff(true);
        end_reset(activity);
    }

    void operator()(const note::ActivityDispatched& note) const {
        activity_of(run, note.scheduled_event_id).set_in_backoff(false);
    }

    void operator()(const note::ActivityPaused& note) const {
        apply_control(activity_of(run, note.scheduled_event_id), note);
    }

    void operator()(const note::ActivityUnpaused& note) const {
        apply_control(activity_of(run, note.scheduled_event_id), note);
    }

    void operator()(const note::ActivityReset& note) const {
        apply_control(activity_of(run, note.scheduled_event_id), note);
    }

    void operator()(const note::ActivityRescheduled& note) const {
        apply_control(activity_of(run, note.scheduled_event_id), note);
    }

    void operator()(const note::ActivityOptions& note) const {
        apply_control(activity_of(run, note.scheduled_event_id), note);
    }

    void operator()(const note::RequestId& note) const {
        state::RequestIdInfo info;
        info.set_event_type(note.event_type);
        info.set_event_id(note.event_id);
        (*run.mutable_request_ids())[note.request_id] = info;
    }

    void operator()(const note::ExternalRequest& note) const {
        const auto cancel = run.mutable_external_cancels()->find(note.initiated_event_id);
        if (cancel != run.mutable_external_cancels()->end()) {
            return cancel->second.set_request_id(note.request_id);
        }
        const auto signal = run.mutable_external_signals()->find(note.initiated_event_id);
        HOLDFAST_ASSERT(signal != run.mutable_external_signals()->end());
        signal->second.set_request_id(note.request_id);
    }

    void operator()(const note::ResetPointsExpire& note) const {
        for (auto& point : *run.mutable_reset_points()) {
            if (point.run_id() == run.run_id()) {
                *point.mutable_expire_time() = to_timestamp(note.at);
            }
        }
    }

    void operator()(const note::CloseAttempted& note) const { run.set_close_attempted(note.value); }

    void operator()(const note::UpdatePending& note) const { apply_update(run, note); }
    void operator()(const note::UpdatesSent& note) const { apply_update(run, note); }
    void operator()(const note::UpdateForgotten& note) const { apply_update(run, note); }

    void operator()(const note::Restarted& note) const {
        state::ResetBase base;
        base.set_run_id(note.base_run_id);
        base.set_last_event_id(note.last_event_id);
        *run.add_bases() = base;
        const Span execution = span_of(run.started().workflow_execution_timeout());
        if (execution > Span::zero()) {
            *run.mutable_started()->mutable_workflow_execution_expiration_time() =
                to_timestamp(std::chrono::floor<std::chrono::milliseconds>(note.at + execution));
        }
        begin_at(run, note.at);
    }

    void operator()(const note::ActivityBegunAnew& note) const {
        state::Activity& activity = activity_of(run, note.scheduled_event_id);
        *activity.mutable_first_scheduled_time() = to_timestamp(note.at);
        *activity.mutable_scheduled_time() = to_timestamp(note.at);
    }

    void operator()(const note::WasReset& note) const { run.set_reset_run_id(note.run_id); }

    void operator()(const note::ClosedByReset& /*note*/) const { run.set_closed_by_reset(true); }
};

}  // namespace

void apply(state::Run& run, const HistoryEvent& event) {
    if (!apply_activity(run, event) && !apply_child(run, event) && !apply_external(run, event) &&
        !apply_update(run, event) && !apply_end(run, event)) {
        apply_rest(run, event);
    }
}

void append(state::Run& run, const HistoryEvent& event, bool first) {
    HOLDFAST_ASSERT(event.event_id() == run.next_event_id());
    HOLDFAST_ASSERT(run.phase() != state::PHASE_COMPLETED);
    run.set_next_event_id(event.event_id() + 1);
    run.set_history_size_bytes(run.history_size_bytes() +
                               static_cast<std::int64_t>(event.ByteSizeLong()));
    if (first) {
        run.set_last_first_event_id(event.event_id());
    }
    if (ends_run(event.event_type())) {
        run.set_completion_event_batch_id(run.last_first_event_id());
    }
}

void apply(state::Run& run, const Note& note) {
    std::visit(Apply{run}, note);
}

}  // namespace holdfast::server::history
