#include "frontend/frontend.hpp"
#include "frontend/refusals.hpp"
#include "frontend/run_link.hpp"
#include "frontend/start_request.hpp"
#include "frontend/workflow_rpc.hpp"
#include <temporal/api/workflowservice/v1/request_response.pb.h>

namespace holdfast::server::frontend {

namespace {

namespace api = temporal::api::workflowservice::v1;

// What a start came to, or why there is none.
std::variant<engine::StartAnswer, rpc::Refusal> start_in(
    engine::Turn& turn, std::variant<engine::StartRequest, rpc::Refusal> request) {
    if (auto* refusal = std::get_if<rpc::Refusal>(&request)) {
        return std::move(*refusal);
    }
    auto outcome = turn.start(std::get<engine::StartRequest>(std::move(request)));
    if (const auto* existing = std::get_if<engine::AlreadyStarted>(&outcome)) {
        return wire_refusal(*existing);
    }
    if (const auto* refusal = std::get_if<history::Refusal>(&outcome)) {
        return wire_refusal(*refusal);
    }
    return std::get<engine::StartAnswer>(std::move(outcome));
}

template <class Request>
std::variant<std::string, rpc::Refusal> starts(const FrontendParts& parts, const Request& request) {
    if (auto problem = start_problem(parts, request)) {
        return *std::move(problem);
    }
    return request.workflow_id();
}

Problem start(const Scene& scene,
              engine::Turn& turn,
              const StartCall& request,
              api::StartWorkflowExecutionResponse& response) {
    auto asked = start_request(scene, request);
    const auto* whole = std::get_if<engine::StartRequest>(&asked);
    const std::string request_id = whole != nullptr ? whole->request_id : "";
    auto outcome = start_in(turn, std::move(asked));
    if (auto* refusal = std::get_if<rpc::Refusal>(&outcome)) {
        return std::move(*refusal);
    }
    const auto& answer = std::get<engine::StartAnswer>(outcome);
    response.set_run_id(answer.run_id);
    response.set_first_execution_run_id(answer.first_execution_run_id);
    response.set_started(answer.started);
    response.set_status(answer.status);
    *response.mutable_link() =
        answer.attached
            ? link_to_attached(scene.in.name, request.workflow_id(), answer.run_id, request_id)
            : link_to_start(scene.in.name, request.workflow_id(), answer.run_id);
    if (answer.eager) {
        turn.task_of(answer.run_id, *response.mutable_eager_workflow_task());
    }
    return std::nullopt;
}

Problem signal_with_start(const Scene& scene,
                          engine::Turn& turn,
                          const SignalWithStartCall& request,
                          api::SignalWithStartWorkflowExecutionResponse& response) {
    auto asked = start_request(scene, request);
    const auto* whole = std::get_if<engine::StartRequest>(&asked);
    const std::string request_id = whole != nullptr ? whole->request_id : "";
    auto outcome = start_in(turn, std::move(asked));
    if (auto* refusal = std::get_if<rpc::Refusal>(&outcome)) {
        return std::move(*refusal);
    }
    const auto& answer = std::get<engine::StartAnswer>(outcome);
    response.set_run_id(answer.run_id);
    response.set_first_execution_run_id(answer.first_execution_run_id);
    response.set_started(answer.started);
    *response.mutable_signal_link() =
        link_to_signal(scene.in.name, request.workflow_id(), answer.run_id, request_id);
    return std::nullopt;
}

}  // namespace

void add_starts(rpc::Dispatch& dispatch, const Parts& parts) {
    add_workflow_rpc<StartCall, api::StartWorkflowExecutionResponse>(
        dispatch, parts, "StartWorkflowExecution", NamespaceUse::start, starts<StartCall>, start);
    add_workflow_rpc<SignalWithStartCall, api::SignalWithStartWorkflowExecutionResponse>(
        dispatch,
        parts,
        "SignalWithStartWorkflowExecution",
        NamespaceUse::start,
        starts<SignalWithStartCall>,
        signal_with_start);
}

}  // namespace holdfast::server::frontend
