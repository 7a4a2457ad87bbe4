// What a request for an update asks, and how its answer reads.
#pragma once

#include <string>

#include "engine/turn.hpp"
#include "frontend/workflow_rpc.hpp"
#include <temporal/api/enums/v1/update.pb.h>

namespace temporal::api::workflowservice::v1 {
class UpdateWorkflowExecutionRequest;
class UpdateWorkflowExecutionResponse;
}  // namespace temporal::api::workflowservice::v1

namespace holdfast::server::frontend {

using UpdateRequestCall = temporal::api::workflowservice::v1::UpdateWorkflowExecutionRequest;
using UpdateResponse = temporal::api::workflowservice::v1::UpdateWorkflowExecutionResponse;

// What is wrong with the request; nothing if all is well.
[[nodiscard]] Problem update_problem(const FrontendParts& parts, const UpdateRequestCall& request);
// Of its policy: no client waits for an admission alone.
[[nodiscard]] Problem stage_problem(const temporal::api::update::v1::WaitPolicy& policy);

// An update without an id gets one.
[[nodiscard]] temporal::api::update::v1::Request asked_update(const FrontendParts& parts,
                                                              const UpdateRequestCall& request);

// Without a stage, `otherwise`.
[[nodiscard]] history::UpdateStage awaited_stage(
    const temporal::api::update::v1::WaitPolicy& policy, history::UpdateStage otherwise);
[[nodiscard]] temporal::api::enums::v1::UpdateWorkflowExecutionLifecycleStage wire_stage(
    history::UpdateStage stage);

// Where an update is.
struct UpdatePlace {
    std::string namespace_name;
    std::string workflow_id;
    std::string run_id;
    std::string update_id;
    std::string request_id;  // May be empty.
};
void fill_reference(const UpdatePlace& place, temporal::api::update::v1::UpdateRef& reference);
void fill_update(const UpdatePlace& place, engine::UpdateNews news, UpdateResponse& response);

// When a call that waits for an update is answered with what is known by then.
[[nodiscard]] Steady end_of_update_wait(const FrontendParts& parts);

}  // namespace holdfast::server::frontend
