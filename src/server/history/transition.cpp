#include "history/transition.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "history/apply.hpp"

#include <holdfast/base/assert.hpp>

namespace holdfast::server::history {

namespace {

using namespace temporal::api::enums::v1;  // NOLINT(google-build-using-namespace): 50 names of it.
using temporal::api::history::v1::HistoryEvent;
using StartedIds =
    std::map<std::int64_t, std::int64_t>;  // Scheduled or initiated id to started id.

// Events that end what another buffered event started have its id from the moment it has one.
template <class Attributes>
void set_started(Attributes& attributes, std::int64_t opened, const StartedIds& started) {
    if (attributes.started_event_id() == buffered_event_id) {
        const auto found = started.find(opened);
        HOLDFAST_ASSERT(found != started.end());
        attributes.set_started_event_id(found->second);
    }
}

template <class Attributes>
void set_activity_started(Attributes& attributes, const StartedIds& started) {
    set_started(attributes, attributes.scheduled_event_id(), started);
}

template <class Attributes>
void set_child_started(Attributes& attributes, const StartedIds& started) {
    set_started(attributes, attributes.initiated_event_id(), started);
}

void set_started_id(HistoryEvent& event, const StartedIds& started) {
    switch (event.event_type()) {
        case EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
            return set_activity_started(*event.mutable_activity_task_completed_event_attributes(),
                                        started);
        case EVENT_TYPE_ACTIVITY_TASK_FAILED:
            return set_activity_started(*event.mutable_activity_task_failed_event_attributes(),
                                        started);
        case EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT:
            return set_activity_started(*event.mutable_activity_task_timed_out_event_attributes(),
                                        started);
        case EVENT_TYPE_ACTIVITY_TASK_CANCELED:
            return set_activity_started(*event.mutable_activity_task_canceled_event_attributes(),
                                        started);
        case EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_COMPLETED:
            return set_child_started(
                *event.mutable_child_workflow_execution_completed_event_attributes(), started);
        case EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_FAILED:
            return set_child_started(
                *event.mutable_child_workflow_execution_failed_event_attributes(), started);
        case EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_CANCELED:
            return set_child_started(
                *event.mutable_child_workflow_execution_canceled_event_attributes(), started);
        case EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_TIMED_OUT:
            return set_child_started(
                *event.mutable_child_workflow_execution_timed_out_event_attributes(), started);
        case EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_TERMINATED:
            return set_child_started(
                *event.mutable_child_workflow_execution_terminated_event_attributes(), started);
        default:
            return;
    }
}

// A request that made a buffered event knows it by its id from now on.
void remember_request(state::Run& run, const HistoryEvent& event) {
    const auto& attributes = event.workflow_execution_options_updated_event_attributes();
    const auto request = run.mutable_request_ids()->find(attributes.attached_request_id());
    if (request != run.mutable_request_ids()->end()) {
        request->second.set_event_id(event.event_id());
    }
}

// So does an update that a reset admits.
void remember_update(state::Run& run, const HistoryEvent& event) {
    const std::string& id =
        event.workflow_execution_update_admitted_event_attributes().request().meta().update_id();
    (*run.mutable_updates())[id].set_admitted_event_id(event.event_id());
    const auto pending = run.mutable_pending_updates()->find(id);
    if (pending != run.mutable_pending_updates()->end()) {
        pending->second.set_admitted_event_id(event.event_id());
    }
}

// Remembers the id that a start has just got, and tells a child that still runs.
void remember_started(state::Run& run, const HistoryEvent& event, StartedIds& started) {
    if (event.event_type() == EVENT_TYPE_ACTIVITY_TASK_STARTED) {
        started[event.activity_task_started_event_attributes().scheduled_event_id()] =
            event.event_id();
    }
    if (event.event_type() == EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_STARTED) {
        const std::int64_t initiated =
            event.child_workflow_execution_started_event_attributes().initiated_event_id();
        started[initiated] = event.event_id();
        const auto child = run.mutable_children()->find(initiated);
        if (child != run.mutable_children()->end()) {
            child->second.set_started_event_id(event.event_id());
        }
    }
}

}  // namespace

Transition::Transition(const state::Run& before, Time now, Source& source, const Limits& limits)
    : before_{before}, now_{now}, source_{source}, limits_{limits}, run_{before} {}

bool Transition::open() const noexcept {
    return run_.phase() != state::PHASE_COMPLETED;
}

bool Transition::workflow_task_started() const noexcept {
    return run_.workflow_task().started_event_id() != 0;
}

bool Transition::first() const noexcept {
    return before_.next_event_id() == 1;
}

HistoryEvent Transition::event(EventType type) const {
    HistoryEvent event;
    event.set_event_type(type);
    *event.mutable_event_time() = to_timestamp(now_);
    return event;
}

std::int64_t Transition::add(HistoryEvent event) {
    changed_ = true;
    const EventType type = event.event_type();
    if (wakes_workflow(type) &&
        (!in_first_backoff(run_) || type == EVENT_TYPE_WORKFLOW_EXECUTION_CANCEL_REQUESTED)) {
        wake_ = true;
    }
    if (is_bufferable(type)) {
        event.set_event_id(buffered_event_id);
        apply(run_, event);
        *run_.add_buffered() = std::move(event);
        return buffered_event_id;
    }
    event.set_event_id(run_.next_event_id());
    const std::int64_t id = event.event_id();
    write(std::move(event), false);
    return id;
}

// A batch is what a reader gets at once. The start of a workflow task stands alone in one, as if it
// had been committed by itself; only that of an eager start is in the run's first one.
void Transition::write(HistoryEvent event, bool applied) {
    const bool alone = event.event_type() == EVENT_TYPE_WORKFLOW_TASK_STARTED && !first();
    event.set_task_id(source_.task_id());
    const bool begins = begin_batch_ || alone;
    if (begins) {
        batches_.emplace_back();
    }
    begin_batch_ = alone;
    append(run_, event, begins);
    if (!applied) {
        apply(run_, event);
    }
    *batches_.back().add_events() = std::move(event);
}

void Transition::note(const Note& note) {
    changed_ = true;
    apply(run_, note);
}

void Transition::touch(const Note& note) {
    touched_ = true;
    apply(run_, note);
}

void Transition::end_update(UpdateEnd end) {
    touch(note::UpdateForgotten{end.update_id});
    ended_updates_.push_back(std::move(end));
}

bool Transition::flush_buffer() {
    HOLDFAST_ASSERT(!workflow_task_started());
    if (run_.buffered().empty()) {
        return false;
    }
    std::vector<HistoryEvent> events{run_.buffered().begin(), run_.buffered().end()};
    run_.clear_buffered();
    std::stable_partition(events.begin(), events.end(), [](const HistoryEvent& event) {
        return !is_closing(event.event_type());
    });
    StartedIds started;
    for (HistoryEvent& event : events) {
        event.set_event_id(run_.next_event_id());
        set_started_id(event, started);
        remember_started(run_, event, started);
        if (event.event_type() == EVENT_TYPE_WORKFLOW_EXECUTION_OPTIONS_UPDATED) {
            remember_request(run_, event);
        }
        if (event.event_type() == EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ADMITTED) {
            remember_update(run_, event);
        }
        write(std::move(event), true);
    }
    changed_ = true;
    return true;
}

std::optional<std::int64_t> Transition::unbuffer_timer(const std::string& timer_id) {
    auto& buffered = *run_.mutable_buffered();
    const auto fired = std::find_if(buffered.begin(), buffered.end(), [&](const auto& event) {
        return event.event_type() == EVENT_TYPE_TIMER_FIRED &&
               event.timer_fired_event_attributes().timer_id() == timer_id;
    });
    if (fired == buffered.end()) {
        return std::nullopt;
    }
    const std::int64_t started = fired->timer_fired_event_attributes().started_event_id();
    buffered.erase(fired);
    changed_ = true;
    return started;
}

void Transition::withdraw_task(Task::Kind kind, std::int64_t event_id) {
    const auto found = std::find_if(tasks_.begin(), tasks_.end(), [&](const Task& task) {
        return task.kind == kind && task.event_id == event_id;
    });
    HOLDFAST_ASSERT(found != tasks_.end());
    tasks_.erase(found);
}

void Transition::restart() {
    run_ = before_;
    batches_.clear();
    tasks_.clear();
    next_.reset();
    ended_updates_.clear();
    begin_batch_ = true;
    wake_ = false;
    changed_ = false;
    touched_ = false;
}

Result Transition::take() {
    if (changed_) {
        run_.set_state_transition_count(run_.state_transition_count() + 1);
    }
    if (!open() && before_.phase() != state::PHASE_COMPLETED) {
        // Nothing that the run asked for is done any more; others are told that it is closed.
        tasks_ = {{Task::Kind::close, run_.next_event_id() - 1, 0}};
    }
    return {.run = std::move(run_),
            .batches = std::move(batches_),
            .tasks = std::move(tasks_),
            .next = std::move(next_),
            .ended_updates = std::move(ended_updates_),
            .changed = changed_,
            .touched = touched_};
}

bool in_first_backoff(const state::Run& run) {
    return run.phase() == state::PHASE_CREATED &&
           span_of(run.started().first_workflow_task_backoff()) > Span::zero();
}

}  // namespace holdfast::server::history
