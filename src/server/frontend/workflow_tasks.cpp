#include "frontend/frontend.hpp"
#include "frontend/refusals.hpp"
#include "frontend/workflow_rpc.hpp"
#include "history/completion.hpp"
#include "history/times.hpp"
#include <temporal/api/workflowservice/v1/request_response.pb.h>

namespace holdfast::server::frontend {

namespace {

namespace api = temporal::api::workflowservice::v1;

using engine::token::WorkflowTask;

history::TaskRef task_ref(const WorkflowTask& token) {
    history::TaskRef ref{.scheduled_event_id = token.scheduled_event_id(),
                         .started_event_id = token.started_event_id(),
                         .attempt = token.attempt(),
                         .started_time = std::nullopt};
    if (token.has_started_time()) {
        ref.started_time = history::time_of(token.started_time());
    }
    return ref;
}

Problem build_id_problem(const temporal::api::common::v1::WorkerVersionStamp& stamp) {
    if (stamp.build_id().size() > build_id_bytes_max) {
        return invalid("WorkerVersionStamp.BuildId exceeds length limit.");
    }
    return std::nullopt;
}

Problem completed_problem(const FrontendParts& parts,
                          const api::RespondWorkflowTaskCompletedRequest& request) {
    if (auto problem = length_problem("Identity", request.identity(), parts.limits)) {
        return problem;
    }
    if (request.intermediate_page() || request.page_number() > 0) {
        return rpc::Refusal(rpc::StatusCode::unimplemented,
                            "a completion in several pages is not supported yet");
    }
    if (auto problem = build_id_problem(request.worker_version_stamp())) {
        return problem;
    }
    const auto& sticky = request.sticky_attributes();
    if (!request.has_sticky_attributes() || sticky.worker_task_queue().name().empty()) {
        return std::nullopt;
    }
    if (auto problem = queue_problem(&sticky.worker_task_queue(), parts.limits)) {
        return problem;
    }
    return span_problem("ScheduleToStartTimeoutSeconds", sticky.schedule_to_start_timeout());
}

Problem complete(const Scene&,
                 engine::Turn& turn,
                 const WorkflowTask& token,
                 const api::RespondWorkflowTaskCompletedRequest& request,
                 api::RespondWorkflowTaskCompletedResponse& response) {
    const history::TaskRef task = task_ref(token);
    const engine::Change change = [&](history::Transition& transition) {
        return history::complete_workflow_task(transition, task, request);
    };
    std::optional<history::Refusal> refusal;
    if (request.return_new_workflow_task()) {
        auto& next = *response.mutable_workflow_task();
        refusal = turn.change_and_take(token.run_id(), request.identity(), change, next);
        if (next.task_token().empty()) {
            response.clear_workflow_task();
        }
    } else {
        refusal = turn.change(token.run_id(), change);
    }
    return refusal ? Problem(wire_refusal(*refusal)) : std::nullopt;
}

Problem failed_problem(const FrontendParts& parts,
                       const api::RespondWorkflowTaskFailedRequest& request) {
    if (auto problem = length_problem("Identity", request.identity(), parts.limits)) {
        return problem;
    }
    return build_id_problem(request.worker_version());
}

Problem fail(const Scene&,
             engine::Turn& turn,
             const WorkflowTask& token,
             const api::RespondWorkflowTaskFailedRequest& request,
             api::RespondWorkflowTaskFailedResponse&) {
    const history::TaskRef task = task_ref(token);
    const auto refusal = turn.change(token.run_id(), [&](history::Transition& transition) {
        return history::report_workflow_task_failed(
            transition,
            task,
            history::TaskFailure{.cause = request.cause(),
                                 .failure = request.failure(),
                                 .identity = request.identity(),
                                 .binary_checksum = request.binary_checksum()});
    });
    return refusal ? Problem(wire_refusal(*refusal)) : std::nullopt;
}

}  // namespace

void add_workflow_tasks(rpc::Dispatch& dispatch, const Parts& parts) {
    add_task_rpc<WorkflowTask,
                 api::RespondWorkflowTaskCompletedRequest,
                 api::RespondWorkflowTaskCompletedResponse>(
        dispatch, parts, "RespondWorkflowTaskCompleted", completed_problem, complete);
    add_task_rpc<WorkflowTask,
                 api::RespondWorkflowTaskFailedRequest,
                 api::RespondWorkflowTaskFailedResponse>(
        dispatch, parts, "RespondWorkflowTaskFailed", failed_problem, fail);
}

}  // namespace holdfast::server::frontend
