#include "history/workflow_task.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "history/update/update.hpp"

#include <holdfast/base/assert.hpp>

namespace holdfast::server::history {

namespace {

using namespace temporal::api::enums::v1;  // NOLINT(google-build-using-namespace): 50 names of it.
using temporal::api::history::v1::HistoryEvent;

constexpr int first_attempt_with_more_time = 4;
constexpr Span more_time = std::chrono::seconds{5};
constexpr Span more_time_max = std::chrono::minutes{10};

// A worker that fails again and again gets more and more time: it is expected to hold the task.
Span timeout_of(Transition& transition, std::int32_t attempt) {
    const Span timeout = span_of(transition.run().started().workflow_task_timeout());
    if (attempt < first_attempt_with_more_time) {
        return timeout;
    }
    const int doublings = std::min(attempt - first_attempt_with_more_time, 20);
    const double extra = std::min(std::ldexp(static_cast<double>(more_time.count()), doublings),
                                  static_cast<double>(more_time_max.count()));
    const double share = 0.8 + 0.2 * transition.source().fraction();
    return timeout + Span{static_cast<std::int64_t>(extra * share)};
}

// The end of a speculative task is in the history, and so are then its beginnings.
void write_speculative(Transition& transition) {
    if (transition.run().workflow_task().speculative()) {
        write_transient(transition);
    }
}

temporal::api::taskqueue::v1::TaskQueue queue_of(const state::Run& run) {
    temporal::api::taskqueue::v1::TaskQueue queue;
    const std::string& normal = run.started().task_queue().name();
    if (run.sticky_queue().empty()) {
        queue.set_name(normal);
        queue.set_kind(TASK_QUEUE_KIND_NORMAL);
    } else {
        queue.set_name(run.sticky_queue());
        queue.set_kind(TASK_QUEUE_KIND_STICKY);
        queue.set_normal_name(normal);
    }
    return queue;
}

// How long a speculative task waits on a queue that has no limit of its own.
constexpr Span speculative_wait = std::chrono::seconds{5};

bool transient(const state::Run& run) {
    return run.has_workflow_task() && run.workflow_task().attempt() > 1;
}

// Pending, and the history does not have its events.
bool unwritten(const state::Run& run) {
    return transient(run) || run.workflow_task().speculative();
}

// A speculative task is in memory only, and so is what happens to it.
void note_of_task(Transition& transition, const Note& note) {
    if (transition.run().workflow_task().speculative()) {
        transition.touch(note);
    } else {
        transition.note(note);
    }
}

HistoryEvent scheduled_event(const state::WorkflowTask& task) {
    HistoryEvent event;
    event.set_event_type(EVENT_TYPE_WORKFLOW_TASK_SCHEDULED);
    *event.mutable_event_time() = task.scheduled_time();
    auto& attributes = *event.mutable_workflow_task_scheduled_event_attributes();
    *attributes.mutable_task_queue() = task.task_queue();
    *attributes.mutable_start_to_close_timeout() = task.start_to_close_timeout();
    attributes.set_attempt(task.attempt());
    return event;
}

HistoryEvent started_event(const state::WorkflowTask& task) {
    HistoryEvent event;
    event.set_event_type(EVENT_TYPE_WORKFLOW_TASK_STARTED);
    *event.mutable_event_time() = task.started_time();
    auto& attributes = *event.mutable_workflow_task_started_event_attributes();
    attributes.set_scheduled_event_id(task.scheduled_event_id());
    attributes.set_identity(task.identity());
    attributes.set_request_id(task.request_id());
    attributes.set_suggest_continue_as_new(task.suggest_continue_as_new());
    *attributes.mutable_suggest_continue_as_new_reasons() = task.suggest_continue_as_new_reasons();
    attributes.set_history_size_bytes(task.history_size_bytes());
    if (task.has_worker_version()) {
        *attributes.mutable_worker_version() = task.worker_version();
    }
    return event;
}

// What the worker is told about the size of the history.
void advise(state::WorkflowTask& task, const Transition& transition) {
    const state::Run& run = transition.run();
    task.clear_suggest_continue_as_new_reasons();
    if (run.history_size_bytes() >= transition.limits().history_bytes_suggest) {
        task.add_suggest_continue_as_new_reasons(
            SUGGEST_CONTINUE_AS_NEW_REASON_HISTORY_SIZE_TOO_LARGE);
    }
    if (run.next_event_id() >= transition.limits().history_events_suggest) {
        task.add_suggest_continue_as_new_reasons(
            SUGGEST_CONTINUE_AS_NEW_REASON_TOO_MANY_HISTORY_EVENTS);
    }
    if (updates_of(run) >= transition.limits().updates_suggest) {
        task.add_suggest_continue_as_new_reasons(SUGGEST_CONTINUE_AS_NEW_REASON_TOO_MANY_UPDATES);
    }
    task.set_suggest_continue_as_new(!task.suggest_continue_as_new_reasons().empty());
    task.set_history_size_bytes(transition.first() ? 0 : run.history_size_bytes());  // Stored ones.
}

state::WorkflowTask started_task(const Transition& transition, const Poll& poll) {
    state::WorkflowTask task = transition.run().workflow_task();
    *task.mutable_started_time() = to_timestamp(transition.now());
    task.set_request_id(poll.request_id);
    task.set_identity(poll.identity);
    if (poll.worker_version) {
        *task.mutable_worker_version() = *poll.worker_version;
    }
    advise(task, transition);
    return task;
}

// A failure of a sticky worker says nothing about others: it is tried elsewhere as if for the first
// time.
void count_failure(Transition& transition, bool first_again) {
    const state::Run& run = transition.run();
    const bool sticky = !run.sticky_queue().empty();
    if (sticky) {
        transition.note(note::Sticky{});
    }
    const bool first = sticky || first_again;
    transition.note(
        note::Attempt{.attempt = first ? 1 : run.workflow_task_attempt() + 1,
                      .since_last_success = run.attempts_since_last_success() + (first ? 0 : 1)});
}

void close_attempt_is_over(Transition& transition) {
    if (transition.run().close_attempted()) {
        transition.note(note::CloseAttempted{false});
    }
}

void write_failed(Transition& transition, const TaskFailure& failure) {
    HistoryEvent event = transition.event(EVENT_TYPE_WORKFLOW_TASK_FAILED);
    auto& attributes = *event.mutable_workflow_task_failed_event_attributes();
    attributes.set_scheduled_event_id(transition.run().workflow_task().scheduled_event_id());
    attributes.set_started_event_id(transition.run().workflow_task().started_event_id());
    attributes.set_cause(failure.cause);
    if (failure.failure.ByteSizeLong() > 0) {
        *attributes.mutable_failure() = failure.failure;
    }
    attributes.set_identity(failure.identity);
    attributes.set_binary_checksum(failure.binary_checksum);
    transition.add(std::move(event));
}

state::WorkflowTask next_task(Transition& transition) {
    const state::Run& run = transition.run();
    state::WorkflowTask task;
    task.set_scheduled_event_id(run.next_event_id());
    task.set_attempt(run.workflow_task_attempt());
    task.set_stamp(run.workflow_task_stamp());
    *task.mutable_start_to_close_timeout() = to_duration(timeout_of(transition, task.attempt()));
    *task.mutable_task_queue() = queue_of(run);
    *task.mutable_scheduled_time() = to_timestamp(transition.now());
    *task.mutable_original_scheduled_time() = task.scheduled_time();
    return task;
}

void schedule(Transition& transition, std::optional<Time> heartbeat_since) {
    HOLDFAST_ASSERT(transition.open());
    HOLDFAST_ASSERT(!transition.run().has_workflow_task());
    if (transition.flush_buffer() && transition.run().workflow_task_attempt() > 1) {
        transition.note(note::Attempt{
            .attempt = 1, .since_last_success = transition.run().attempts_since_last_success()});
    }
    const state::WorkflowTask task = next_task(transition);
    if (task.attempt() > 1) {
        transition.note(note::TransientScheduled{task});
    } else {
        transition.add(scheduled_event(task));
    }
    if (heartbeat_since) {
        transition.note(note::HeartbeatSince{*heartbeat_since});
    }
    transition.add_task({Task::Kind::workflow_task, task.scheduled_event_id(), task.stamp()});
}

// Why the poll does not get the task, if so.
std::optional<Refusal> refuse_start(const Transition& transition, const Poll& poll) {
    const state::Run& run = transition.run();
    if (!transition.open()) {
        return already_completed();
    }
    const state::WorkflowTask& task = run.workflow_task();
    if (!run.has_workflow_task() || task.scheduled_event_id() != poll.scheduled_event_id ||
        task.stamp() != poll.stamp) {
        return Refusal{Refused::not_found, "Workflow task not found."};
    }
    if (task.started_event_id() != 0 && task.request_id() != poll.request_id) {
        return Refusal{Refused::not_found, "Workflow task already started."};
    }
    if (run.sticky_queue().empty() && poll.queue != run.started().task_queue().name()) {
        return Refusal{Refused::not_found, "Workflow task not found."};
    }
    return std::nullopt;
}

}  // namespace

void schedule_workflow_task(Transition& transition) {
    schedule(transition, std::nullopt);
}

void schedule_heartbeat(Transition& transition, Time since) {
    schedule(transition, since);
}

void schedule_speculative_task(Transition& transition) {
    HOLDFAST_ASSERT(transition.open());
    HOLDFAST_ASSERT(!transition.run().has_workflow_task());
    HOLDFAST_ASSERT(transition.run().buffered().empty());
    state::WorkflowTask task = next_task(transition);
    task.set_speculative(true);
    transition.touch(note::TransientScheduled{task});
    transition.add_task({Task::Kind::workflow_task, task.scheduled_event_id(), task.stamp()});
}

void make_speculative_normal(Transition& transition) {
    state::WorkflowTask task = transition.run().workflow_task();
    if (!task.speculative()) {
        return;
    }
    task.clear_identity();
    transition.touch(note::TransientStarted{task});
    write_transient(transition);
    if (task.started_event_id() == 0) {  // From now on it is stored, and so must be its place.
        transition.add_task({Task::Kind::workflow_task, task.scheduled_event_id(), task.stamp()});
    }
}

std::optional<Refusal> start_workflow_task(Transition& transition, const Poll& poll) {
    if (auto refusal = refuse_start(transition, poll)) {
        return refusal;
    }
    const state::Run& run = transition.run();
    if (transition.workflow_task_started()) {
        return std::nullopt;  // The same poll again.
    }
    if (!run.sticky_queue().empty() && poll.queue != run.sticky_queue()) {
        note_of_task(transition, note::Sticky{});
    }
    if (!run.pending_updates().empty()) {
        transition.touch(note::UpdatesSent{});
    }
    if (!unwritten(run)) {
        transition.add(started_event(started_task(transition, poll)));
        return std::nullopt;
    }
    if (run.workflow_task().scheduled_event_id() == run.next_event_id()) {
        state::WorkflowTask task = started_task(transition, poll);
        task.set_started_event_id(task.scheduled_event_id() + 1);
        note_of_task(transition, note::TransientStarted{task});
        return std::nullopt;
    }
    // Something has happened since: it is a first attempt at more than what failed.
    transition.note(note::TransientEnded{});
    transition.note(
        note::Attempt{.attempt = 1, .since_last_success = run.attempts_since_last_success()});
    state::WorkflowTask task;
    task.set_attempt(1);
    *task.mutable_start_to_close_timeout() = run.started().workflow_task_timeout();
    *task.mutable_task_queue() = queue_of(run);
    *task.mutable_scheduled_time() = to_timestamp(transition.now());
    transition.add(scheduled_event(task));
    transition.add(started_event(started_task(transition, poll)));
    return std::nullopt;
}

void write_transient(Transition& transition) {
    if (!unwritten(transition.run())) {
        return;
    }
    const state::WorkflowTask task = transition.run().workflow_task();
    HOLDFAST_ASSERT(task.scheduled_event_id() == transition.run().next_event_id());
    transition.note(note::TransientEnded{});
    transition.add(scheduled_event(task));
    if (task.started_event_id() != 0) {
        transition.add(started_event(task));
    }
}

void fail_workflow_task_for_good(Transition& transition, const TaskFailure& failure) {
    write_speculative(transition);
    if (transient(transition.run())) {
        transition.note(note::TransientEnded{});
    } else {
        write_failed(transition, failure);
    }
}

void fail_workflow_task(Transition& transition, const TaskFailure& failure) {
    fail_workflow_task_for_good(transition, failure);
    if (failure.cause != WORKFLOW_TASK_FAILED_CAUSE_UNHANDLED_COMMAND) {
        close_attempt_is_over(transition);
    }
    count_failure(transition, failure.cause == WORKFLOW_TASK_FAILED_CAUSE_RESET_WORKFLOW);
    schedule_workflow_task(transition);
}

void abandon_workflow_task(Transition& transition) {
    if (!transition.workflow_task_started()) {
        return;
    }
    TaskFailure failure;
    failure.cause = WORKFLOW_TASK_FAILED_CAUSE_FORCE_CLOSE_COMMAND;
    failure.identity = "history-service";
    fail_workflow_task_for_good(transition, failure);
}

void time_out_workflow_task(Transition& transition, TimeoutType timeout_type) {
    write_speculative(transition);
    if (transient(transition.run())) {
        transition.note(note::TransientEnded{});
    } else {
        HistoryEvent event = transition.event(EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT);
        auto& attributes = *event.mutable_workflow_task_timed_out_event_attributes();
        attributes.set_scheduled_event_id(transition.run().workflow_task().scheduled_event_id());
        attributes.set_started_event_id(transition.run().workflow_task().started_event_id());
        attributes.set_timeout_type(timeout_type);
        transition.add(std::move(event));
    }
    close_attempt_is_over(transition);
    count_failure(transition, timeout_type == TIMEOUT_TYPE_SCHEDULE_TO_START);
    schedule_workflow_task(transition);
}

temporal::api::history::v1::History transient_events(const state::Run& run) {
    temporal::api::history::v1::History history;
    const state::WorkflowTask& task = run.workflow_task();
    if (!unwritten(run) || task.scheduled_event_id() != run.next_event_id()) {
        return history;
    }
    HistoryEvent scheduled = scheduled_event(task);
    scheduled.set_event_id(task.scheduled_event_id());
    *history.add_events() = std::move(scheduled);
    if (task.started_event_id() != 0) {
        HistoryEvent started = started_event(task);
        started.set_event_id(task.started_event_id());
        started.mutable_workflow_task_started_event_attributes()->clear_identity();
        started.mutable_workflow_task_started_event_attributes()->clear_worker_version();
        *history.add_events() = std::move(started);
    }
    return history;
}

std::optional<TaskDeadline> workflow_task_deadline(const state::Run& run) {
    if (!run.has_workflow_task()) {
        return std::nullopt;
    }
    const state::WorkflowTask& task = run.workflow_task();
    if (task.started_event_id() != 0) {
        return TaskDeadline{time_of(task.started_time()) + span_of(task.start_to_close_timeout()),
                            TIMEOUT_TYPE_START_TO_CLOSE};
    }
    if (task.task_queue().kind() == TASK_QUEUE_KIND_STICKY) {
        return TaskDeadline{
            time_of(task.scheduled_time()) + span_of(run.sticky_schedule_to_start_timeout()),
            TIMEOUT_TYPE_SCHEDULE_TO_START};
    }
    if (task.speculative()) {
        return TaskDeadline{time_of(task.scheduled_time()) + speculative_wait,
                            TIMEOUT_TYPE_SCHEDULE_TO_START};
    }
    return std::nullopt;  // It waits for a worker as long as it takes.
}

}  // namespace holdfast::server::history
