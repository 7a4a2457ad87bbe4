#include "frontend/frontend.hpp"
#include "frontend/refusals.hpp"
#include "frontend/workflow_rpc.hpp"
#include "history/describe/describe.hpp"
#include <temporal/api/workflowservice/v1/request_response.pb.h>

namespace holdfast::server::frontend {

namespace {

namespace api = temporal::api::workflowservice::v1;

std::variant<std::string, rpc::Refusal> described(
    const FrontendParts& parts, const api::DescribeWorkflowExecutionRequest& request) {
    const auto* execution = request.has_execution() ? &request.execution() : nullptr;
    if (auto problem = execution_problem(execution, parts.limits)) {
        return *std::move(problem);
    }
    return request.execution().workflow_id();
}

Problem describe_workflow(const Scene&,
                          engine::Turn& turn,
                          const api::DescribeWorkflowExecutionRequest& request,
                          api::DescribeWorkflowExecutionResponse& response) {
    const auto found = turn.find(request.execution().run_id());
    if (const auto* refusal = std::get_if<history::Refusal>(&found)) {
        return wire_refusal(*refusal);
    }
    history::describe(*std::get<const history::state::Run*>(found), response);
    return std::nullopt;
}

}  // namespace

void add_workflow_reads(rpc::Dispatch& dispatch, const Parts& parts) {
    add_workflow_rpc<api::DescribeWorkflowExecutionRequest, api::DescribeWorkflowExecutionResponse>(
        dispatch,
        parts,
        "DescribeWorkflowExecution",
        NamespaceUse::ordinary,
        described,
        describe_workflow);
}

}  // namespace holdfast::server::frontend
