#include "frontend/run_link.hpp"

#include <set>

namespace holdfast::server::frontend {

namespace {

namespace enums = temporal::api::enums::v1;

temporal::api::common::v1::Link link_to_run(const std::string& namespace_name,
                                            const std::string& workflow_id,
                                            const std::string& run_id) {
    temporal::api::common::v1::Link link;
    auto& event = *link.mutable_workflow_event();
    event.set_namespace_(namespace_name);
    event.set_workflow_id(workflow_id);
    event.set_run_id(run_id);
    return link;
}

temporal::api::common::v1::Link link_to_request(const std::string& namespace_name,
                                                const std::string& workflow_id,
                                                const std::string& run_id,
                                                const std::string& request_id,
                                                enums::EventType type) {
    auto link = link_to_run(namespace_name, workflow_id, run_id);
    auto& reference = *link.mutable_workflow_event()->mutable_request_id_ref();
    reference.set_request_id(request_id);
    reference.set_event_type(type);
    return link;
}

}  // namespace

temporal::api::common::v1::Link link_to_start(const std::string& namespace_name,
                                              const std::string& workflow_id,
                                              const std::string& run_id) {
    auto link = link_to_run(namespace_name, workflow_id, run_id);
    auto& reference = *link.mutable_workflow_event()->mutable_event_ref();
    reference.set_event_id(1);
    reference.set_event_type(temporal::api::enums::v1::EVENT_TYPE_WORKFLOW_EXECUTION_STARTED);
    return link;
}

temporal::api::common::v1::Link link_to_attached(const std::string& namespace_name,
                                                 const std::string& workflow_id,
                                                 const std::string& run_id,
                                                 const std::string& request_id) {
    return link_to_request(namespace_name,
                           workflow_id,
                           run_id,
                           request_id,
                           enums::EVENT_TYPE_WORKFLOW_EXECUTION_OPTIONS_UPDATED);
}

temporal::api::common::v1::Link link_to_signal(const std::string& namespace_name,
                                               const std::string& workflow_id,
                                               const std::string& run_id,
                                               const std::string& request_id) {
    return link_to_request(namespace_name,
                           workflow_id,
                           run_id,
                           request_id,
                           enums::EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED);
}

Links distinct(const Links& links) {
    Links kept;
    std::set<std::string> seen;
    for (const auto& link : links) {
        if (seen.insert(link.SerializeAsString()).second) {
            *kept.Add() = link;
        }
    }
    return kept;
}

temporal::api::common::v1::Link link_to_update(const std::string& namespace_name,
                                               const std::string& workflow_id,
                                               const std::string& run_id,
                                               const std::string& request_id) {
    auto link = link_to_run(namespace_name, workflow_id, run_id);
    auto& reference = *link.mutable_workflow_event()->mutable_request_id_ref();
    reference.set_request_id(request_id);
    reference.set_event_type(
        temporal::api::enums::v1::EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED);
    return link;
}

temporal::api::common::v1::Link link_to_failed_update(const std::string& namespace_name,
                                                      const std::string& workflow_id,
                                                      const std::string& run_id) {
    temporal::api::common::v1::Link link;
    auto& workflow = *link.mutable_workflow();
    workflow.set_namespace_(namespace_name);
    workflow.set_workflow_id(workflow_id);
    workflow.set_run_id(run_id);
    workflow.set_reason("Update rejected");
    return link;
}

}  // namespace holdfast::server::frontend
