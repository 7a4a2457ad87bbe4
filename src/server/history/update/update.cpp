#include "history/update/update.hpp"

#include <utility>

#include <fmt/format.h>

namespace holdfast::server::history {

namespace {

using namespace temporal::api::enums::v1;  // NOLINT(google-build-using-namespace): 50 names of it.
using temporal::api::history::v1::HistoryEvent;
using UpdateAcceptance = temporal::api::update::v1::Acceptance;
using UpdateRequest = temporal::api::update::v1::Request;
using UpdateResponse = temporal::api::update::v1::Response;

std::string wrong_stage(const std::string& update_id, std::string_view message) {
    return fmt::format("invalid state transition attempted: {} of update '{}'", message, update_id);
}

}  // namespace

UpdateStage update_stage(const state::Run& run, const std::string& update_id) {
    const auto found = run.updates().find(update_id);
    if (found == run.updates().end()) {
        return run.pending_updates().contains(update_id) ? UpdateStage::admitted
                                                         : UpdateStage::unknown;
    }
    if (found->second.completed_event_id() != 0) {
        return UpdateStage::completed;
    }
    return found->second.accepted_event_id() != 0 ? UpdateStage::accepted : UpdateStage::admitted;
}

std::optional<std::string> accept_update(Transition& transition,
                                         const std::string& update_id,
                                         const UpdateAcceptance& message,
                                         const UpdateRequest* request) {
    const UpdateStage stage = update_stage(transition.run(), update_id);
    if (stage == UpdateStage::accepted || stage == UpdateStage::completed) {
        return wrong_stage(update_id, "acceptance");
    }
    if (request == nullptr && message.has_accepted_request()) {
        request = &message.accepted_request();
    }
    if (stage == UpdateStage::unknown && request == nullptr) {
        return fmt::format("update '{}' wasn't found", update_id);
    }
    HistoryEvent event = transition.event(EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED);
    auto& attributes = *event.mutable_workflow_execution_update_accepted_event_attributes();
    attributes.set_protocol_instance_id(update_id);
    attributes.set_accepted_request_message_id(message.accepted_request_message_id());
    attributes.set_accepted_request_sequencing_event_id(
        message.accepted_request_sequencing_event_id());
    std::string request_id;
    if (!transition.run().updates().contains(update_id)) {  // Else event 47 has the request.
        *attributes.mutable_accepted_request() = *request;
        request_id = request->request_id();
    }
    const std::int64_t event_id = transition.add(std::move(event));
    if (!request_id.empty()) {
        transition.note(note::RequestId{.request_id = std::move(request_id),
                                        .event_type = EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED,
                                        .event_id = event_id});
    }
    return std::nullopt;
}

std::optional<std::string> complete_update(Transition& transition,
                                           const std::string& update_id,
                                           const UpdateResponse& message) {
    const UpdateStage stage = update_stage(transition.run(), update_id);
    if (stage == UpdateStage::unknown) {
        return fmt::format("update '{}' wasn't found", update_id);
    }
    if (stage != UpdateStage::accepted) {
        return wrong_stage(update_id, "response");
    }
    HistoryEvent event = transition.event(EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_COMPLETED);
    auto& attributes = *event.mutable_workflow_execution_update_completed_event_attributes();
    *attributes.mutable_meta() = message.meta();
    attributes.mutable_meta()->set_update_id(update_id);
    attributes.set_accepted_event_id(transition.run().updates().at(update_id).accepted_event_id());
    *attributes.mutable_outcome() = message.outcome();
    transition.add(std::move(event));
    return std::nullopt;
}

void admit_update(Transition& transition, const UpdateRequest& request) {
    HistoryEvent event = transition.event(EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ADMITTED);
    auto& attributes = *event.mutable_workflow_execution_update_admitted_event_attributes();
    *attributes.mutable_request() = request;
    attributes.set_origin(UPDATE_ADMITTED_EVENT_ORIGIN_REAPPLY);
    transition.add(std::move(event));
}

temporal::api::failure::v1::Failure closed_before_update() {
    temporal::api::failure::v1::Failure failure;
    failure.set_message(
        "Workflow Update failed because the Workflow completed before the Update completed.");
    failure.set_source("Server");
    failure.mutable_application_failure_info()->set_type("AcceptedUpdateCompletedWorkflow");
    failure.mutable_application_failure_info()->set_non_retryable(true);
    return failure;
}

}  // namespace holdfast::server::history
