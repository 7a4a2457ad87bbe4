#include "frontend/command_namespaces.hpp"
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

// The check of a start, as commands ask for it: a refusal's text is what fails the workflow task.
history::AttributeCheck command_check(const Scene& scene) {
    if (!scene.parts.check_attributes) {
        return {};
    }
    return [&scene](auto& fields) -> std::optional<std::string> {
        temporal::api::common::v1::SearchAttributes given;
        given.mutable_indexed_fields()->swap(fields);
        Problem problem = scene.parts.check_attributes(scene.in, given);
        given.mutable_indexed_fields()->swap(fields);
        return problem ? std::optional(std::move(problem->message)) : std::nullopt;
    };
}

Problem complete(const Scene& scene,
                 engine::Turn& turn,
                 const WorkflowTask& token,
                 const api::RespondWorkflowTaskCompletedRequest& request,
                 api::RespondWorkflowTaskCompletedResponse& response) {
    if (auto problem = command_namespace_problem(scene.parts.namespaces, scene.in, request)) {
        return problem;
    }
    const auto whole = with_namespaces(scene.in, request);
    const history::TaskRef task = task_ref(token);
    history::CompletionNews news;
    const history::CompletionScene around{.check_attributes = command_check(scene), .news = &news};
    const engine::Change change = [&](history::Transition& transition) {
        auto refusal =
            history::complete_workflow_task(transition, task, whole ? *whole : request, around);
        if (!refusal) {
            turn.bring_query_results(request.query_results());
        }
        return refusal;
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
    if (refusal) {
        return wire_refusal(*refusal);
    }
    response.set_reset_history_event_id(news.reset_history_event_id);
    for (const std::int64_t scheduled_event_id : news.eager) {
        turn.activity_of(token.run_id(), scheduled_event_id, *response.add_activity_tasks());
    }
    return std::nullopt;
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
