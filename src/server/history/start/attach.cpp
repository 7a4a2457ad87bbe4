#include "history/start/attach.hpp"

#include <utility>

#include <temporal/api/workflowservice/v1/request_response.pb.h>

namespace holdfast::server::history {

namespace {

using namespace temporal::api::enums::v1;  // NOLINT(google-build-using-namespace): 50 names of it.
using temporal::api::history::v1::HistoryEvent;
using temporal::api::workflowservice::v1::StartWorkflowExecutionRequest;

}  // namespace

Or<std::optional<Attachment>> attachment_of(const StartWorkflowExecutionRequest& request,
                                            const std::string& request_id) {
    const auto& options = request.on_conflict_options();
    if (options.attach_completion_callbacks() && !options.attach_request_id()) {
        return Refusal{Refused::invalid_argument,
                       "attaching request ID is required for attaching completion callbacks"};
    }
    Attachment attachment;
    if (options.attach_request_id()) {
        attachment.request_id = request_id;
    }
    if (options.attach_completion_callbacks()) {
        attachment.callbacks = request.completion_callbacks();
    }
    if (options.attach_links()) {
        attachment.links = request.links();
    }
    const bool nothing = attachment.request_id.empty() && attachment.links.empty();
    return nothing ? std::nullopt : std::optional{std::move(attachment)};
}

std::optional<Refusal> attach_to_run(Transition& transition, const Attachment& attachment) {
    if (!transition.open()) {
        return already_completed();
    }
    const std::string& request_id = attachment.request_id;
    if (!request_id.empty() && transition.run().request_ids().contains(request_id)) {
        return std::nullopt;
    }
    HistoryEvent event = transition.event(EVENT_TYPE_WORKFLOW_EXECUTION_OPTIONS_UPDATED);
    event.set_worker_may_ignore(true);
    *event.mutable_links() = attachment.links;
    auto& attributes = *event.mutable_workflow_execution_options_updated_event_attributes();
    attributes.set_attached_request_id(request_id);
    *attributes.mutable_attached_completion_callbacks() = attachment.callbacks;
    const std::int64_t id = transition.add(std::move(event));
    if (!request_id.empty()) {
        transition.note(note::RequestId{.request_id = request_id,
                                        .event_type = EVENT_TYPE_WORKFLOW_EXECUTION_OPTIONS_UPDATED,
                                        .event_id = id});
    }
    return std::nullopt;
}

}  // namespace holdfast::server::history
