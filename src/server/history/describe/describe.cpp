#include "history/describe/describe.hpp"

#include <algorithm>
#include <vector>

#include "history/control/control.hpp"
#include "history/limits.hpp"
#include "history/times.hpp"
#include <temporal/api/workflowservice/v1/request_response.pb.h>

namespace holdfast::server::history {

namespace {

using namespace temporal::api::enums::v1;  // NOLINT(google-build-using-namespace): 50 names of it.
using temporal::api::workflow::v1::PendingActivityInfo;
using temporal::api::workflow::v1::PendingChildExecutionInfo;
using temporal::api::workflow::v1::PendingWorkflowTaskInfo;
using temporal::api::workflow::v1::WorkflowExecutionConfig;
using temporal::api::workflow::v1::WorkflowExecutionExtendedInfo;
using temporal::api::workflow::v1::WorkflowExecutionInfo;

// The first moment of protobuf's calendar, which clients take for none.
constexpr std::int64_t no_moment_s = -62'135'596'800;

// The keys of a map of pending things, in the order in which they began.
template <class Map>
std::vector<std::int64_t> ordered_keys(const Map& map) {
    std::vector<std::int64_t> keys;
    keys.reserve(map.size());
    for (const auto& [key, value] : map) {
        keys.push_back(key);
    }
    std::sort(keys.begin(), keys.end());
    return keys;
}

void describe_config(const state::Run& run, WorkflowExecutionConfig& config) {
    const auto& started = run.started();
    *config.mutable_task_queue() = started.task_queue();
    if (started.has_workflow_execution_timeout()) {
        *config.mutable_workflow_execution_timeout() = started.workflow_execution_timeout();
    }
    if (started.has_workflow_run_timeout()) {
        *config.mutable_workflow_run_timeout() = started.workflow_run_timeout();
    }
    *config.mutable_default_workflow_task_timeout() = started.workflow_task_timeout();
    if (run.has_user_metadata()) {
        *config.mutable_user_metadata() = run.user_metadata();
    }
}

void describe_execution(const state::Run& run, WorkflowExecutionInfo& info) {
    const auto& started = run.started();
    info.mutable_execution()->set_workflow_id(run.workflow_id());
    info.mutable_execution()->set_run_id(run.run_id());
    *info.mutable_type() = started.workflow_type();
    *info.mutable_start_time() = run.start_time();
    *info.mutable_execution_time() = run.execution_time();
    info.set_status(run.status());
    if (run.phase() == state::PHASE_COMPLETED) {
        *info.mutable_close_time() = run.close_time();
        // A run that ends before its planned begin has lasted no time.
        *info.mutable_execution_duration() = to_duration(
            std::max(time_of(run.close_time()) - time_of(run.execution_time()), Span::zero()));
    }
    info.set_history_length(run.next_event_id() - 1);
    info.set_history_size_bytes(run.history_size_bytes());
    info.set_state_transition_count(run.state_transition_count());
    info.set_task_queue(started.task_queue().name());
    *info.mutable_memo()->mutable_fields() = run.memo();
    *info.mutable_search_attributes()->mutable_indexed_fields() = shown_attributes(run);
    *info.mutable_auto_reset_points()->mutable_points() = run.reset_points();
    if (run.has_worker_version()) {
        *info.mutable_most_recent_worker_version_stamp() = run.worker_version();
    }
    info.set_parent_namespace_id(started.parent_workflow_namespace_id());
    if (started.has_parent_workflow_execution()) {
        *info.mutable_parent_execution() = started.parent_workflow_execution();
    }
    *info.mutable_root_execution() = started.has_root_workflow_execution()
                                         ? started.root_workflow_execution()
                                         : info.execution();
    info.set_first_run_id(started.first_execution_run_id());
    if (run.has_priority()) {
        *info.mutable_priority() = run.priority();
    }
}

PendingActivityState activity_state(const state::Activity& activity) {
    if (activity.cancel_requested_event_id() != 0) {
        return PENDING_ACTIVITY_STATE_CANCEL_REQUESTED;
    }
    if (activity.has_pause()) {
        return activity.started() ? PENDING_ACTIVITY_STATE_PAUSE_REQUESTED
                                  : PENDING_ACTIVITY_STATE_PAUSED;
    }
    return activity.started() ? PENDING_ACTIVITY_STATE_STARTED : PENDING_ACTIVITY_STATE_SCHEDULED;
}

void describe_options(const state::Activity& activity, PendingActivityInfo& info) {
    const auto& scheduled = activity.scheduled();
    auto& options = *info.mutable_activity_options();
    options.mutable_task_queue()->set_name(scheduled.task_queue().name());
    options.mutable_task_queue()->set_normal_name(scheduled.task_queue().name());
    *options.mutable_schedule_to_close_timeout() = scheduled.schedule_to_close_timeout();
    *options.mutable_schedule_to_start_timeout() = scheduled.schedule_to_start_timeout();
    *options.mutable_start_to_close_timeout() = scheduled.start_to_close_timeout();
    *options.mutable_heartbeat_timeout() = scheduled.heartbeat_timeout();
    *options.mutable_retry_policy() = scheduled.retry_policy();
    if (scheduled.has_priority()) {
        *options.mutable_priority() = scheduled.priority();
        *info.mutable_priority() = scheduled.priority();
    }
}

void describe_attempts(const state::Activity& activity, PendingActivityInfo& info) {
    info.set_attempt(activity.attempt());
    info.set_maximum_attempts(activity.scheduled().retry_policy().maximum_attempts());
    *info.mutable_scheduled_time() = activity.scheduled_time();
    if (activity.started()) {
        *info.mutable_last_started_time() = activity.started_time();
    }
    info.set_last_worker_identity(activity.started() ? activity.identity()
                                                     : activity.last_worker_identity());
    if (activity.has_last_failure()) {
        *info.mutable_last_failure() = activity.last_failure();
    }
    if (activity.has_last_attempt_complete_time()) {
        *info.mutable_last_attempt_complete_time() = activity.last_attempt_complete_time();
    }
    if (activity.in_backoff() && !activity.has_pause()) {
        *info.mutable_next_attempt_schedule_time() = activity.scheduled_time();
        *info.mutable_current_retry_interval() = to_duration(
            time_of(activity.scheduled_time()) - time_of(activity.last_attempt_complete_time()));
    }
}

void describe_pause(const state::ActivityPause& pause, PendingActivityInfo& info) {
    info.set_paused(true);
    auto& told = *info.mutable_pause_info();
    *told.mutable_pause_time() = pause.time();
    told.mutable_manual()->set_identity(pause.identity());
    told.mutable_manual()->set_reason(pause.reason());
}

void describe_activity(const state::Activity& activity, PendingActivityInfo& info) {
    info.set_activity_id(activity.scheduled().activity_id());
    *info.mutable_activity_type() = activity.scheduled().activity_type();
    info.set_state(activity_state(activity));
    if (activity.has_last_heartbeat_details()) {
        *info.mutable_heartbeat_details() = activity.last_heartbeat_details();
    }
    if (activity.has_last_heartbeat_time()) {
        *info.mutable_last_heartbeat_time() = activity.last_heartbeat_time();
    }
    const Span to_close = span_of(activity.scheduled().schedule_to_close_timeout());
    if (to_close > Span::zero()) {
        *info.mutable_expiration_time() =
            to_timestamp(time_of(activity.first_scheduled_time()) + to_close);
    }
    if (activity.has_pause()) {
        describe_pause(activity.pause(), info);
    }
    describe_attempts(activity, info);
    describe_options(activity, info);
}

void describe_pending_child(const state::Child& child, PendingChildExecutionInfo& info) {
    info.set_workflow_id(child.initiated().workflow_id());
    info.set_run_id(child.started_run_id());
    info.set_workflow_type_name(child.initiated().workflow_type().name());
    info.set_initiated_id(child.initiated_event_id());
    info.set_parent_close_policy(child.initiated().parent_close_policy());
}

void describe_task(const state::WorkflowTask& task, PendingWorkflowTaskInfo& info) {
    info.set_state(task.started_event_id() == 0 ? PENDING_WORKFLOW_TASK_STATE_SCHEDULED
                                                : PENDING_WORKFLOW_TASK_STATE_STARTED);
    *info.mutable_scheduled_time() = task.scheduled_time();
    *info.mutable_original_scheduled_time() = task.original_scheduled_time();
    if (task.started_event_id() != 0) {
        *info.mutable_started_time() = task.started_time();
    }
    info.set_attempt(task.attempt());
}

void describe_extended(const state::Run& run, WorkflowExecutionExtendedInfo& info) {
    if (run.started().has_workflow_execution_expiration_time()) {
        *info.mutable_execution_expiration_time() =
            run.started().workflow_execution_expiration_time();
    }
    if (run.has_run_expiration()) {
        *info.mutable_run_expiration_time() = run.run_expiration();
    } else {
        info.mutable_run_expiration_time()->set_seconds(no_moment_s);
    }
    info.set_cancel_requested(run.cancel_requested());
    *info.mutable_original_start_time() = run.original_start_time();
    info.set_reset_run_id(run.reset_run_id());
    if (!run.bases().empty()) {
        *info.mutable_last_reset_time() = run.start_time();
    }
    for (const auto& [id, request] : run.request_ids()) {
        auto& told = (*info.mutable_request_id_infos())[id];
        told.set_event_type(request.event_type());
        told.set_event_id(request.event_id() == buffered_event_id ? 0 : request.event_id());
        told.set_buffered(request.event_id() == buffered_event_id);
    }
}

}  // namespace

void describe(const state::Run& run,
              temporal::api::workflowservice::v1::DescribeWorkflowExecutionResponse& response) {
    describe_config(run, *response.mutable_execution_config());
    describe_execution(run, *response.mutable_workflow_execution_info());
    for (const std::int64_t id : ordered_keys(run.activities())) {
        describe_activity(run.activities().at(id), *response.add_pending_activities());
    }
    for (const std::int64_t id : ordered_keys(run.children())) {
        describe_pending_child(run.children().at(id), *response.add_pending_children());
    }
    if (run.has_workflow_task()) {
        describe_task(run.workflow_task(), *response.mutable_pending_workflow_task());
    }
    describe_extended(run, *response.mutable_workflow_extended_info());
}

}  // namespace holdfast::server::history
