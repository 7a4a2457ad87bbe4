#include "history/reset/reset.hpp"

#include <algorithm>
#include <utility>

#include "history/outside.hpp"
#include "history/projection.hpp"
#include "history/update/update.hpp"
#include "history/workflow_task.hpp"
#include <fmt/format.h>

#include <holdfast/base/assert.hpp>

namespace holdfast::server::history {

namespace {

using namespace temporal::api::enums::v1;  // NOLINT(google-build-using-namespace): 50 names of it.
using temporal::api::history::v1::History;
using temporal::api::history::v1::HistoryEvent;

constexpr const char* reset_identity = "history-service";

template <class Map>
std::vector<std::int64_t> ids_in_order(const Map& map) {
    std::vector<std::int64_t> keys;
    keys.reserve(map.size());
    for (const auto& [key, value] : map) {
        keys.push_back(key);
    }
    std::sort(keys.begin(), keys.end());
    return keys;
}

// The new run shares a part of what its base shares with earlier ones.
void share_bases(state::Run& made, const state::Run& base, std::int64_t last_event_id) {
    *made.mutable_bases() = base.bases();
    for (state::ResetBase& earlier : *made.mutable_bases()) {
        earlier.set_last_event_id(std::min(earlier.last_event_id(), last_event_id));
    }
}

void keep_request_ids(Transition& transition, const state::Run& base, std::int64_t last_event_id) {
    for (const auto& [id, request] : base.request_ids()) {
        if (request.event_id() > 0 && request.event_id() <= last_event_id) {
            transition.note(note::RequestId{.request_id = id,
                                            .event_type = request.event_type(),
                                            .event_id = request.event_id()});
        }
    }
}

// The workflow task at the point fails. One that no worker had is started first.
void fail_task_at_point(Transition& transition,
                        const state::Run& base,
                        const ResetOptions& options) {
    const state::Run& run = transition.run();
    if (!transition.workflow_task_started()) {
        const auto refusal =
            start_workflow_task(transition,
                                {.scheduled_event_id = run.workflow_task().scheduled_event_id(),
                                 .stamp = run.workflow_task().stamp(),
                                 .request_id = transition.source().uuid(),
                                 .identity = reset_identity,
                                 .queue = run.started().task_queue().name()});
        HOLDFAST_ASSERT(!refusal);
    }
    HistoryEvent event = transition.event(EVENT_TYPE_WORKFLOW_TASK_FAILED);
    auto& attributes = *event.mutable_workflow_task_failed_event_attributes();
    attributes.set_scheduled_event_id(run.workflow_task().scheduled_event_id());
    attributes.set_started_event_id(run.workflow_task().started_event_id());
    attributes.set_cause(WORKFLOW_TASK_FAILED_CAUSE_RESET_WORKFLOW);
    attributes.mutable_failure()->set_message(options.reason);
    attributes.mutable_failure()->mutable_reset_workflow_failure_info();
    attributes.set_identity(reset_identity);
    attributes.set_base_run_id(base.run_id());
    attributes.set_new_run_id(run.run_id());
    transition.add(std::move(event));
}

// Whatever the base has done about them by now, the new run begins with it again. Timers need
// nothing: they are due when they were.
void begin_pending(Transition& transition) {
    const state::Run& run = transition.run();
    for (const std::int64_t id : ids_in_order(run.activities())) {
        transition.note(note::ActivityBegunAnew{.scheduled_event_id = id, .at = transition.now()});
        transition.add_task({Task::Kind::activity, id, run.activities().at(id).stamp()});
    }
    for (const std::int64_t id : ids_in_order(run.children())) {
        transition.add_task({Task::Kind::start_child, id, 0});
    }
    for (const std::int64_t id : ids_in_order(run.external_cancels())) {
        transition.note(note::ExternalRequest{id, transition.source().uuid()});
        transition.add_task({Task::Kind::cancel_external, id, 0});
    }
    for (const std::int64_t id : ids_in_order(run.external_signals())) {
        transition.note(note::ExternalRequest{id, transition.source().uuid()});
        transition.add_task({Task::Kind::signal_external, id, 0});
    }
}

void admit_again(Transition& transition, const temporal::api::update::v1::Request& request) {
    if (!transition.run().updates().contains(request.meta().update_id())) {
        admit_update(transition, request);
    }
}

// The same event at this moment.
HistoryEvent again(const Transition& transition, const HistoryEvent& event) {
    HistoryEvent copy = event;
    copy.clear_event_id();
    copy.clear_task_id();
    *copy.mutable_event_time() = transition.event(event.event_type()).event_time();
    return copy;
}

void update_options_again(Transition& transition, const HistoryEvent& event) {
    const std::string& request_id =
        event.workflow_execution_options_updated_event_attributes().attached_request_id();
    if (!request_id.empty() && transition.run().request_ids().contains(request_id)) {
        return;
    }
    const std::int64_t id = transition.add(again(transition, event));
    if (!request_id.empty()) {
        transition.note(note::RequestId{
            .request_id = request_id, .event_type = event.event_type(), .event_id = id});
    }
}

// Of children that were asked for before the point, and are not known to have ended there.
// `attributes` are those of `event`.
template <class Attributes>
void end_child_again(Transition& transition, const HistoryEvent& event, Attributes& attributes) {
    const auto child = transition.run().children().find(attributes.initiated_event_id());
    if (child == transition.run().children().end() || child->second.started_event_id() == 0) {
        return;
    }
    attributes.set_started_event_id(child->second.started_event_id());
    transition.add(event);
}

void begin_child_again(Transition& transition,
                       const HistoryEvent& event,
                       std::int64_t initiated_event_id) {
    const auto child = transition.run().children().find(initiated_event_id);
    if (child != transition.run().children().end() && child->second.started_event_id() == 0) {
        transition.add(event);
    }
}

void tell_of_child_again(Transition& transition, const HistoryEvent& event) {
    HistoryEvent copy = again(transition, event);
    switch (event.event_type()) {
        case EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_FAILED:
            return begin_child_again(
                transition,
                copy,
                copy.start_child_workflow_execution_failed_event_attributes().initiated_event_id());
        case EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_STARTED:
            return begin_child_again(
                transition,
                copy,
                copy.child_workflow_execution_started_event_attributes().initiated_event_id());
        case EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_COMPLETED:
            return end_child_again(
                transition,
                copy,
                *copy.mutable_child_workflow_execution_completed_event_attributes());
        case EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_FAILED:
            return end_child_again(
                transition, copy, *copy.mutable_child_workflow_execution_failed_event_attributes());
        case EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_CANCELED:
            return end_child_again(
                transition,
                copy,
                *copy.mutable_child_workflow_execution_canceled_event_attributes());
        case EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_TIMED_OUT:
            return end_child_again(
                transition,
                copy,
                *copy.mutable_child_workflow_execution_timed_out_event_attributes());
        case EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_TERMINATED:
            return end_child_again(
                transition,
                copy,
                *copy.mutable_child_workflow_execution_terminated_event_attributes());
        default:
            return;
    }
}

}  // namespace

std::optional<Refusal> refuse_reset_point(const state::Run& base, std::int64_t finish_event_id) {
    if (finish_event_id > 1 && finish_event_id < base.next_event_id()) {
        return std::nullopt;
    }
    return Refusal{Refused::invalid_argument,
                   "Workflow task finish ID must be > 1 && <= workflow last event ID."};
}

Or<state::Run> rebuild_until(const state::Run& base,
                             std::span<const History> kept,
                             const ResetOptions& options,
                             std::string run_id) {
    const std::int64_t last_event_id = options.finish_event_id - 1;
    if (kept.empty() || kept.back().events().rbegin()->event_id() != last_event_id) {
        return Refusal{
            Refused::invalid_argument,
            fmt::format("StateRebuilder unable to Rebuild mutable state to event ID: {}, version: "
                        "0, this event must be at the boundary",
                        last_event_id)};
    }
    state::Run made = rebuild(new_run(base.namespace_id(), std::move(run_id)), kept);
    if (!made.has_workflow_task()) {
        return Refusal{Refused::invalid_argument,
                       fmt::format("Can only reset workflow to event ID in range "
                                   "[WorkflowTaskScheduled +1, WorkflowTaskStarted + 1]: {}",
                                   options.finish_event_id)};
    }
    // Its events are in the history: whatever its attempt was, it is not a transient one.
    made.mutable_workflow_task()->set_attempt(1);
    made.set_state_transition_count(1);  // What led to the point counts as one.
    share_bases(made, base, last_event_id);
    return made;
}

temporal::api::history::v1::WorkflowExecutionTerminatedEventAttributes reset_termination(
    const std::string& reason) {
    temporal::api::history::v1::WorkflowExecutionTerminatedEventAttributes attributes;
    attributes.set_reason(reason);
    attributes.set_identity("history-resetter");
    return attributes;
}

void begin_reset(Transition& transition, const state::Run& base, const ResetOptions& options) {
    const std::int64_t last_event_id = transition.run().next_event_id() - 1;
    transition.note(note::Restarted{
        .base_run_id = base.run_id(), .last_event_id = last_event_id, .at = transition.now()});
    keep_request_ids(transition, base, last_event_id);
    fail_task_at_point(transition, base, options);
    begin_pending(transition);
}

std::optional<Refusal> reapply_event(Transition& transition,
                                     const HistoryEvent& event,
                                     const ResetOptions& options,
                                     bool of_base) {
    switch (event.event_type()) {
        case EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED:
            if (options.reapply_signals) {
                return signal_run(transition,
                                  event.workflow_execution_signaled_event_attributes(),
                                  false,
                                  event.links());
            }
            return std::nullopt;
        case EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ADMITTED:
            if (options.reapply_updates) {
                admit_again(transition,
                            event.workflow_execution_update_admitted_event_attributes().request());
            }
            return std::nullopt;
        case EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED: {
            const auto& accepted = event.workflow_execution_update_accepted_event_attributes();
            if (options.reapply_updates && accepted.has_accepted_request()) {
                admit_again(transition, accepted.accepted_request());
            }
            return std::nullopt;
        }
        case EVENT_TYPE_WORKFLOW_EXECUTION_OPTIONS_UPDATED:
            update_options_again(transition, event);
            return std::nullopt;
        default:
            if (of_base) {  // Those of later runs are about children of their own.
                tell_of_child_again(transition, event);
            }
            return std::nullopt;
    }
}

std::optional<Refusal> end_reset(Transition& transition, const ResetOptions& options) {
    for (const auto& operation : options.operations) {
        const auto* signal = std::get_if<ResetSignal>(&operation);
        auto refusal =
            signal != nullptr
                ? signal_run(transition, *signal)
                : change_options(transition, std::get<OptionsChange>(operation), options.identity);
        if (refusal) {
            return refusal;
        }
    }
    transition.wake();
    return std::nullopt;
}

}  // namespace holdfast::server::history
