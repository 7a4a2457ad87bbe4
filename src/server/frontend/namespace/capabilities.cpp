#include "frontend/namespace/capabilities.hpp"

#include <string>

#include <google/protobuf/message.h>

#include <holdfast/base/assert.hpp>

namespace holdfast::server::frontend {

std::vector<Capability> system_capabilities(const Switches& switches) {
    return {
        {"signal_and_query_header", true, "headers are stored with the event and handed on"},
        {"internal_error_differentiation", true, "a failure that can pass is UNAVAILABLE"},
        {"activity_failure_include_heartbeat", true, "the last details are stored"},
        {"supports_schedules", false, "there are no schedules"},
        {"encoded_failure_attributes", true, "failures are opaque to the server"},
        {"build_id_based_versioning", true, "stamps are stored and returned"},
        {"upsert_memo", true, "the command is there"},
        {"eager_workflow_start", switches.eager_workflow_start, "by switch"},
        {"sdk_metadata", true, "stored in the completion of a workflow task"},
        {"count_group_by_execution_status", true, "counts have groups"},
        {"nexus", false, "there are no endpoints"},
        {"server_scaled_deployments", false, "no worker is started by the server"},
        {"server_scaled_provider_cloud_run", false, "no worker is started by the server"},
    };
}

std::vector<Capability> namespace_capabilities(const Switches& switches) {
    return {
        {"eager_workflow_start", switches.eager_workflow_start, "by switch"},
        {"sync_update", true, "clients may wait for outcomes"},
        {"async_update", true, "clients may poll for outcomes"},
        {"worker_heartbeats", true, "there is a registry of workers"},
        {"reported_problems_search_attribute", false, "it is not written"},
        {"workflow_pause", false, "runs cannot be paused"},
        {"standalone_activities", false, "there are none"},
        {"worker_poll_complete_on_shutdown", false, "not tried with the workers of SDKs"},
        {"poller_autoscaling", true, "replies with tasks have scaling decisions"},
        {"worker_commands", false, "there is no queue of commands"},
        {"standalone_nexus_operation", false, "there are none"},
        {"workflow_update_callbacks", false, "callbacks are refused"},
        {"poller_autoscaling_auto_enroll", false, "workers are not switched over unasked"},
        {"workflow_task_completion_pagination", false, "a completion is one message"},
        {"standalone_activity_start_delay", false, "there are no standalone activities"},
        {"standalone_activity_batch_operations", false, "there are no standalone activities"},
        {"standalone_activity_operator_commands", false, "there are no standalone activities"},
    };
}

void claim(std::span<const Capability> capabilities, google::protobuf::Message& message) {
    for (const Capability& capability : capabilities) {
        const auto* const field =
            message.GetDescriptor()->FindFieldByName(std::string(capability.name));
        HOLDFAST_ASSERT(field != nullptr);
        if (capability.claimed) {
            message.GetReflection()->SetBool(&message, field, true);
        }
    }
}

}  // namespace holdfast::server::frontend
