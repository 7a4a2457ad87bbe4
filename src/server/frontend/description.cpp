#include "frontend/description.hpp"

#include <temporal/api/workflowservice/v1/request_response.pb.h>

namespace holdfast::server::frontend {

namespace {

namespace api = temporal::api::workflowservice::v1;
namespace enums = temporal::api::enums::v1;

void fill_config(const history::state::Run& run,
                 temporal::api::workflow::v1::WorkflowExecutionConfig& config) {
    const auto& started = run.started();
    *config.mutable_task_queue() = started.task_queue();
    if (started.has_workflow_execution_timeout()) {
        *config.mutable_workflow_execution_timeout() = started.workflow_execution_timeout();
    }
    if (started.has_workflow_run_timeout()) {
        *config.mutable_workflow_run_timeout() = started.workflow_run_timeout();
    }
    *config.mutable_default_workflow_task_timeout() = started.workflow_task_timeout();
}

void fill_info(const history::state::Run& run,
               temporal::api::workflow::v1::WorkflowExecutionInfo& info) {
    const auto& started = run.started();
    info.mutable_execution()->set_workflow_id(run.workflow_id());
    info.mutable_execution()->set_run_id(run.run_id());
    *info.mutable_type() = started.workflow_type();
    *info.mutable_start_time() = run.start_time();
    *info.mutable_execution_time() = run.execution_time();
    info.set_status(run.status());
    if (run.phase() == history::state::PHASE_COMPLETED) {
        *info.mutable_close_time() = run.close_time();
    }
    info.set_history_length(run.next_event_id() - 1);
    info.set_history_size_bytes(run.history_size_bytes());
    info.set_state_transition_count(run.state_transition_count());
    info.set_task_queue(started.task_queue().name());
    info.set_first_run_id(started.first_execution_run_id());
    *info.mutable_memo()->mutable_fields() = run.memo();
    *info.mutable_search_attributes()->mutable_indexed_fields() = run.search_attributes();
    if (started.has_priority()) {
        *info.mutable_priority() = started.priority();
    }
    if (started.has_parent_workflow_execution()) {
        info.set_parent_namespace_id(started.parent_workflow_namespace_id());
        *info.mutable_parent_execution() = started.parent_workflow_execution();
    }
    *info.mutable_root_execution() = started.has_root_workflow_execution()
                                         ? started.root_workflow_execution()
                                         : info.execution();
}

void fill_activity(const history::state::Activity& activity,
                   temporal::api::workflow::v1::PendingActivityInfo& info) {
    info.set_activity_id(activity.scheduled().activity_id());
    *info.mutable_activity_type() = activity.scheduled().activity_type();
    info.set_attempt(activity.attempt());
    info.set_maximum_attempts(activity.scheduled().retry_policy().maximum_attempts());
    info.set_state(activity.cancel_requested_event_id() != 0
                       ? enums::PENDING_ACTIVITY_STATE_CANCEL_REQUESTED
                   : activity.started() ? enums::PENDING_ACTIVITY_STATE_STARTED
                                        : enums::PENDING_ACTIVITY_STATE_SCHEDULED);
    *info.mutable_scheduled_time() = activity.scheduled_time();
    if (activity.started()) {
        *info.mutable_last_started_time() = activity.started_time();
    }
    info.set_last_worker_identity(activity.started() ? activity.identity()
                                                     : activity.last_worker_identity());
    if (activity.has_last_heartbeat_details()) {
        *info.mutable_heartbeat_details() = activity.last_heartbeat_details();
        *info.mutable_last_heartbeat_time() = activity.last_heartbeat_time();
    }
    if (activity.has_last_failure()) {
        *info.mutable_last_failure() = activity.last_failure();
    }
}

void fill_task(const history::state::WorkflowTask& task,
               temporal::api::workflow::v1::PendingWorkflowTaskInfo& info) {
    const bool started = task.started_event_id() != 0;
    info.set_state(started ? enums::PENDING_WORKFLOW_TASK_STATE_STARTED
                           : enums::PENDING_WORKFLOW_TASK_STATE_SCHEDULED);
    info.set_attempt(task.attempt());
    *info.mutable_scheduled_time() = task.scheduled_time();
    *info.mutable_original_scheduled_time() = task.original_scheduled_time();
    if (started) {
        *info.mutable_started_time() = task.started_time();
    }
}

}  // namespace

void fill_description(const history::state::Run& run,
                      api::DescribeWorkflowExecutionResponse& reply) {
    fill_config(run, *reply.mutable_execution_config());
    fill_info(run, *reply.mutable_workflow_execution_info());
    for (const auto& [id, activity] : run.activities()) {
        fill_activity(activity, *reply.add_pending_activities());
    }
    for (const auto& [id, child] : run.children()) {
        auto& info = *reply.add_pending_children();
        info.set_workflow_id(child.initiated().workflow_id());
        info.set_run_id(child.started_run_id());
        info.set_workflow_type_name(child.initiated().workflow_type().name());
        info.set_initiated_id(id);
        info.set_parent_close_policy(child.initiated().parent_close_policy());
    }
    if (run.has_workflow_task()) {
        fill_task(run.workflow_task(), *reply.mutable_pending_workflow_task());
    }
    auto& extended = *reply.mutable_workflow_extended_info();
    // A zero time if there is none.
    *extended.mutable_run_expiration_time() = run.run_expiration();
    *extended.mutable_original_start_time() = run.start_time();
    extended.set_cancel_requested(run.cancel_requested());
    if (run.started().has_workflow_execution_expiration_time()) {
        *extended.mutable_execution_expiration_time() =
            run.started().workflow_execution_expiration_time();
    }
    for (const auto& [request_id, made] : run.request_ids()) {
        auto& info = (*extended.mutable_request_id_infos())[request_id];
        info.set_event_type(made.event_type());
        info.set_event_id(made.event_id());
    }
}

}  // namespace holdfast::server::frontend
