#include "frontend/close_event.hpp"

#include <algorithm>
#include <cstddef>

namespace holdfast::server::frontend {

namespace {

using temporal::api::history::v1::HistoryEvent;

// The event with everything but its attributes.
HistoryEvent head_of(const HistoryEvent& event) {
    HistoryEvent head;
    head.set_event_id(event.event_id());
    *head.mutable_event_time() = event.event_time();
    head.set_event_type(temporal::api::enums::v1::EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW);
    head.set_version(event.version());
    head.set_task_id(event.task_id());
    return head;
}

}  // namespace

bool follows_next_run(std::string_view supported_features) {
    while (!supported_features.empty()) {
        const std::size_t comma = supported_features.find(',');
        std::string_view feature = supported_features.substr(0, comma);
        supported_features.remove_prefix(
            comma == supported_features.npos ? supported_features.size() : comma + 1);
        feature.remove_prefix(std::min(feature.find_first_not_of(' '), feature.size()));
        feature = feature.substr(0, feature.find_last_not_of(' ') + 1);
        if (feature == "follows-next-run-id") {
            return true;
        }
    }
    return false;
}

HistoryEvent as_continued(HistoryEvent event) {
    HistoryEvent continued = head_of(event);
    auto& attributes = *continued.mutable_workflow_execution_continued_as_new_event_attributes();
    if (event.has_workflow_execution_completed_event_attributes()) {
        const auto& end = event.workflow_execution_completed_event_attributes();
        attributes.set_new_execution_run_id(end.new_execution_run_id());
        if (end.has_result()) {
            *attributes.mutable_last_completion_result() = end.result();
        }
    } else if (event.has_workflow_execution_failed_event_attributes()) {
        const auto& end = event.workflow_execution_failed_event_attributes();
        attributes.set_new_execution_run_id(end.new_execution_run_id());
        *attributes.mutable_failure() = end.failure();
    } else if (event.has_workflow_execution_timed_out_event_attributes()) {
        const auto& end = event.workflow_execution_timed_out_event_attributes();
        attributes.set_new_execution_run_id(end.new_execution_run_id());
        auto& failure = *attributes.mutable_failure();
        failure.set_message("workflow timeout");
        failure.set_source("Server");
        failure.mutable_timeout_failure_info()->set_timeout_type(
            temporal::api::enums::v1::TIMEOUT_TYPE_START_TO_CLOSE);
    }
    return attributes.new_execution_run_id().empty() ? event : continued;
}

}  // namespace holdfast::server::frontend
