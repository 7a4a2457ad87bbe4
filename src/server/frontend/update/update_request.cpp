#include "frontend/update/update_request.hpp"

#include <chrono>
#include <utility>

#include "frontend/run_link.hpp"
#include <temporal/api/errordetails/v1/message.pb.h>
#include <temporal/api/workflowservice/v1/request_response.pb.h>

namespace holdfast::server::frontend {

namespace {

namespace enums = temporal::api::enums::v1;

using history::UpdateStage;

constexpr std::chrono::seconds update_wait_max{20};

Problem update_input_problem(const FrontendParts& parts,
                             const temporal::api::update::v1::Request& update) {
    if (!update.has_meta()) {
        return invalid("Update meta is not set on request.");
    }
    if (auto problem = length_problem("UpdateId", update.meta().update_id(), parts.limits)) {
        return problem;
    }
    if (auto problem = length_problem("Identity", update.meta().identity(), parts.limits)) {
        return problem;
    }
    if (!update.has_input()) {
        return invalid("Update input is not set on request.");
    }
    if (update.input().name().empty()) {
        return invalid("Update name is not set on request.");
    }
    if (auto problem = length_problem("UpdateName", update.input().name(), parts.limits)) {
        return problem;
    }
    return blob_problem(update.input().ByteSizeLong(), parts.limits);
}

}  // namespace

Problem stage_problem(const temporal::api::update::v1::WaitPolicy& policy) {
    if (!enums::UpdateWorkflowExecutionLifecycleStage_IsValid(policy.lifecycle_stage())) {
        return invalid("Invalid LifecycleStage.");
    }
    if (policy.lifecycle_stage() == enums::UPDATE_WORKFLOW_EXECUTION_LIFECYCLE_STAGE_ADMITTED) {
        return rpc::Refusal(rpc::StatusCode::permission_denied,
                            "UpdateWorkflowExecution issued asynchronously and waiting on update "
                            "admitted is not supported.",
                            temporal::api::errordetails::v1::PermissionDeniedFailure());
    }
    return std::nullopt;
}

Problem update_problem(const FrontendParts& parts, const UpdateRequestCall& request) {
    const auto* execution =
        request.has_workflow_execution() ? &request.workflow_execution() : nullptr;
    if (auto problem = execution_problem(execution, parts.limits)) {
        return problem;
    }
    if (auto problem = run_id_problem(request.first_execution_run_id())) {
        return problem;
    }
    const auto& update = request.request();
    if (auto problem = update_input_problem(parts, update)) {
        return problem;
    }
    if (auto problem = length_problem("RequestId", update.request_id(), parts.limits)) {
        return problem;
    }
    if (auto problem = callbacks_problem(update.completion_callbacks())) {
        return problem;
    }
    if (auto problem = links_problem(update.links())) {
        return problem;
    }
    return stage_problem(request.wait_policy());
}

temporal::api::update::v1::Request asked_update(const FrontendParts& parts,
                                                const UpdateRequestCall& request) {
    temporal::api::update::v1::Request update = request.request();
    if (update.meta().update_id().empty()) {
        update.mutable_meta()->set_update_id(parts.new_id());
    }
    return update;
}

UpdateStage awaited_stage(const temporal::api::update::v1::WaitPolicy& policy,
                          UpdateStage otherwise) {
    switch (policy.lifecycle_stage()) {
        case enums::UPDATE_WORKFLOW_EXECUTION_LIFECYCLE_STAGE_ACCEPTED:
            return UpdateStage::accepted;
        case enums::UPDATE_WORKFLOW_EXECUTION_LIFECYCLE_STAGE_COMPLETED:
            return UpdateStage::completed;
        default:
            return otherwise;
    }
}

enums::UpdateWorkflowExecutionLifecycleStage wire_stage(UpdateStage stage) {
    switch (stage) {
        case UpdateStage::unknown:
            break;
        case UpdateStage::admitted:
            return enums::UPDATE_WORKFLOW_EXECUTION_LIFECYCLE_STAGE_ADMITTED;
        case UpdateStage::accepted:
            return enums::UPDATE_WORKFLOW_EXECUTION_LIFECYCLE_STAGE_ACCEPTED;
        case UpdateStage::completed:
            return enums::UPDATE_WORKFLOW_EXECUTION_LIFECYCLE_STAGE_COMPLETED;
    }
    return enums::UPDATE_WORKFLOW_EXECUTION_LIFECYCLE_STAGE_UNSPECIFIED;
}

void fill_reference(const UpdatePlace& place, temporal::api::update::v1::UpdateRef& reference) {
    reference.mutable_workflow_execution()->set_workflow_id(place.workflow_id);
    reference.mutable_workflow_execution()->set_run_id(place.run_id);
    reference.set_update_id(place.update_id);
}

void fill_update(const UpdatePlace& place, engine::UpdateNews news, UpdateResponse& response) {
    fill_reference(place, *response.mutable_update_ref());
    response.set_stage(wire_stage(news.stage));
    const bool failed = news.outcome && news.outcome->has_failure();
    *response.mutable_link() =
        failed ? link_to_failed_update(place.namespace_name, place.workflow_id, place.run_id)
               : link_to_update(
                     place.namespace_name, place.workflow_id, place.run_id, place.request_id);
    if (news.outcome) {
        *response.mutable_outcome() = *std::move(news.outcome);
    }
}

Steady end_of_update_wait(const FrontendParts& parts) {
    return parts.clock.steady_now() + update_wait_max;
}

}  // namespace holdfast::server::frontend
