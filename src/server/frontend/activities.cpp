#include "frontend/activity_change.hpp"
#include "frontend/frontend.hpp"
#include "frontend/workflow_rpc.hpp"
#include <temporal/api/workflowservice/v1/request_response.pb.h>

namespace holdfast::server::frontend {

namespace {

namespace api = temporal::api::workflowservice::v1;

using engine::token::Activity;

template <class Request>
ActivityChange change_by_token(const Scene& scene,
                               engine::Turn& turn,
                               const Activity& token,
                               const Request& request) {
    history::Attempt attempt{.scheduled_event_id = token.scheduled_event_id(),
                             .number = token.attempt()};
    if constexpr (requires { request.worker_version(); }) {
        if (request.has_worker_version()) {
            attempt.worker_version = request.worker_version();
        }
    }
    return {.turn = turn,
            .run_id = token.run_id(),
            .identity = request.identity(),
            .limits = scene.parts.limits,
            .find = [attempt](history::Transition&) { return attempt; }};
}

template <class Request>
Problem identity_problem(const FrontendParts& parts, const Request& request) {
    return length_problem("Identity", request.identity(), parts.limits);
}

Problem activity_failed_problem(const FrontendParts& parts,
                                const api::RespondActivityTaskFailedRequest& request) {
    if (request.has_failure() && !request.failure().has_application_failure_info()) {
        return invalid("Failure must have ApplicationFailureInfo.");
    }
    if (auto problem = span_problem(
            "NextRetryDelay", request.failure().application_failure_info().next_retry_delay())) {
        return problem;
    }
    return identity_problem(parts, request);
}

Problem activity_completed(const Scene& scene,
                           engine::Turn& turn,
                           const Activity& token,
                           const api::RespondActivityTaskCompletedRequest& request,
                           api::RespondActivityTaskCompletedResponse&) {
    return complete_activity(change_by_token(scene, turn, token, request),
                             request.has_result() ? &request.result() : nullptr);
}

Problem activity_canceled(const Scene& scene,
                          engine::Turn& turn,
                          const Activity& token,
                          const api::RespondActivityTaskCanceledRequest& request,
                          api::RespondActivityTaskCanceledResponse&) {
    return cancel_activity(change_by_token(scene, turn, token, request),
                           request.has_details() ? &request.details() : nullptr);
}

Problem activity_failed(const Scene& scene,
                        engine::Turn& turn,
                        const Activity& token,
                        const api::RespondActivityTaskFailedRequest& request,
                        api::RespondActivityTaskFailedResponse& response) {
    const auto* details =
        request.has_last_heartbeat_details() ? &request.last_heartbeat_details() : nullptr;
    return fail_activity(change_by_token(scene, turn, token, request),
                         {.failure = request.failure(), .last_heartbeat_details = details},
                         *response.mutable_failures());
}

Problem activity_beats(const Scene& scene,
                       engine::Turn& turn,
                       const Activity& token,
                       const api::RecordActivityTaskHeartbeatRequest& request,
                       api::RecordActivityTaskHeartbeatResponse& response) {
    history::HeartbeatReply beat;
    auto problem =
        heartbeat_activity(change_by_token(scene, turn, token, request), request.details(), beat);
    fill_heartbeat(beat, response);
    return problem;
}

}  // namespace

void add_activities(rpc::Dispatch& dispatch, const Parts& parts) {
    add_task_rpc<Activity,
                 api::RespondActivityTaskCompletedRequest,
                 api::RespondActivityTaskCompletedResponse>(
        dispatch,
        parts,
        "RespondActivityTaskCompleted",
        identity_problem<api::RespondActivityTaskCompletedRequest>,
        activity_completed);
    add_task_rpc<Activity,
                 api::RespondActivityTaskCanceledRequest,
                 api::RespondActivityTaskCanceledResponse>(
        dispatch,
        parts,
        "RespondActivityTaskCanceled",
        identity_problem<api::RespondActivityTaskCanceledRequest>,
        activity_canceled);
    add_task_rpc<Activity,
                 api::RespondActivityTaskFailedRequest,
                 api::RespondActivityTaskFailedResponse>(
        dispatch, parts, "RespondActivityTaskFailed", activity_failed_problem, activity_failed);
    add_task_rpc<Activity,
                 api::RecordActivityTaskHeartbeatRequest,
                 api::RecordActivityTaskHeartbeatResponse>(
        dispatch,
        parts,
        "RecordActivityTaskHeartbeat",
        identity_problem<api::RecordActivityTaskHeartbeatRequest>,
        activity_beats);
}

}  // namespace holdfast::server::frontend
