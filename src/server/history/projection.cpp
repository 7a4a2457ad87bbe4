#include "history/projection.hpp"

#include <string>
#include <utility>

#include "history/apply.hpp"
#include "history/control/control.hpp"

namespace holdfast::server::history {

state::Run new_run(std::string namespace_id, std::string run_id) {
    state::Run run;
    run.set_namespace_id(std::move(namespace_id));
    run.set_run_id(std::move(run_id));
    run.set_next_event_id(1);
    return run;
}

state::Run rebuild(state::Run fresh, std::span<const temporal::api::history::v1::History> batches) {
    for (const auto& batch : batches) {
        bool first = true;
        for (const auto& event : batch.events()) {
            append(fresh, event, std::exchange(first, false));
            apply(fresh, event);
        }
    }
    return fresh;
}

state::Run projection(state::Run run) {
    if (run.workflow_task().attempt() > 1 || run.workflow_task().speculative()) {
        run.clear_workflow_task();  // Its events come with its completion, if at all.
    }
    if (run.phase() == state::PHASE_COMPLETED) {  // What was pending is of no consequence any more.
        run.clear_activities();
        run.clear_timers();
        run.clear_children();
        run.clear_external_cancels();
        run.clear_external_signals();
    }
    if (run.has_workflow_task()) {
        run.mutable_workflow_task()->clear_original_scheduled_time();
        run.mutable_workflow_task()->clear_stamp();
    }
    run.clear_workflow_task_attempt();
    run.clear_attempts_since_last_success();
    run.clear_workflow_task_stamp();
    run.clear_sticky_queue();
    run.clear_sticky_schedule_to_start_timeout();
    for (auto& [id, activity] : *run.mutable_activities()) {
        activity.clear_scheduled_time();
        activity.clear_attempt();
        activity.clear_started();
        activity.clear_started_time();
        activity.clear_identity();
        activity.clear_request_id();
        activity.clear_last_heartbeat_details();
        activity.clear_last_heartbeat_time();
        activity.clear_last_failure();
        activity.clear_last_worker_identity();
        activity.clear_last_attempt_complete_time();
        activity.clear_stamp();
        activity.clear_in_backoff();
        activity.clear_pause();
        activity.clear_reset();
        activity.clear_reset_heartbeat();
        restore_options(activity);
    }
    for (auto& [id, cancel] : *run.mutable_external_cancels()) {
        cancel.clear_request_id();
    }
    for (auto& [id, signal] : *run.mutable_external_signals()) {
        signal.clear_request_id();
    }
    if (run.started().original_execution_run_id() != run.run_id()) {  // Its time began by a reset.
        run.clear_bases();
        run.clear_start_time();
        run.clear_execution_time();
        run.clear_run_expiration();
        run.mutable_started()->clear_workflow_execution_expiration_time();
        for (auto& [id, activity] : *run.mutable_activities()) {
            activity.clear_first_scheduled_time();
        }
    }
    run.clear_reset_run_id();
    run.clear_closed_by_reset();
    for (auto& point : *run.mutable_reset_points()) {
        if (point.run_id() == run.run_id()) {
            point.clear_expire_time();
        }
    }
    run.clear_request_ids();
    run.clear_state_transition_count();
    run.clear_buffered();
    run.clear_close_attempted();
    run.clear_pending_updates();
    return run;
}

}  // namespace holdfast::server::history
