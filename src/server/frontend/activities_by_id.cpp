#include "frontend/activity_change.hpp"
#include "frontend/frontend.hpp"
#include "frontend/workflow_rpc.hpp"
#include <fmt/format.h>
#include <temporal/api/workflowservice/v1/request_response.pb.h>

namespace holdfast::server::frontend {

namespace {

namespace api = temporal::api::workflowservice::v1;

enum class Unstarted : std::uint8_t {
    refuse,
    start,  // The caller did the work in its own way.
};

// Activities without a workflow are not served, so a workflow id has to be there.
template <class Request>
std::variant<std::string, rpc::Refusal> names_activity(const FrontendParts& parts,
                                                       const Request& request) {
    if (auto problem = workflow_id_problem(request.workflow_id(), parts.limits)) {
        return *std::move(problem);
    }
    if (auto problem = run_id_problem(request.run_id())) {
        return *std::move(problem);
    }
    if (auto problem = name_problem("ActivityId", request.activity_id(), parts.limits)) {
        return *std::move(problem);
    }
    if (auto problem = length_problem("Identity", request.identity(), parts.limits)) {
        return *std::move(problem);
    }
    return request.workflow_id();
}

history::Or<history::Attempt> attempt_by_id(history::Transition& transition,
                                            const std::string& activity_id,
                                            const std::string& identity,
                                            Unstarted unstarted) {
    if (!transition.open()) {
        return history::already_completed();
    }
    const auto* activity = history::find_activity(transition.run(), activity_id);
    if (activity == nullptr) {
        return history::Refusal{history::Refused::not_found,
                                fmt::format("cannot find pending activity with ActivityID {}, "
                                            "check workflow execution history for more details",
                                            activity_id)};
    }
    const std::int64_t scheduled = activity->scheduled_event_id();
    if (!activity->started() && unstarted == Unstarted::start) {
        if (auto refusal = history::start_activity(
                transition, scheduled, activity->stamp(), identity, transition.source().uuid())) {
            return *std::move(refusal);
        }
    }
    return history::Attempt{.scheduled_event_id = scheduled, .number = std::nullopt};
}

// Requires: the request outlives what is returned.
template <class Request>
ActivityChange change_by_id(const Scene& scene,
                            engine::Turn& turn,
                            const Request& request,
                            Unstarted unstarted) {
    return {.turn = turn,
            .run_id = request.run_id(),
            .identity = request.identity(),
            .limits = scene.parts.limits,
            .find = [&request, unstarted](history::Transition& transition) {
                return attempt_by_id(
                    transition, request.activity_id(), request.identity(), unstarted);
            }};
}

Problem completed_by_id(const Scene& scene,
                        engine::Turn& turn,
                        const api::RespondActivityTaskCompletedByIdRequest& request,
                        api::RespondActivityTaskCompletedByIdResponse&) {
    return complete_activity(change_by_id(scene, turn, request, Unstarted::start),
                             request.has_result() ? &request.result() : nullptr);
}

Problem canceled_by_id(const Scene& scene,
                       engine::Turn& turn,
                       const api::RespondActivityTaskCanceledByIdRequest& request,
                       api::RespondActivityTaskCanceledByIdResponse&) {
    return cancel_activity(change_by_id(scene, turn, request, Unstarted::refuse),
                           request.has_details() ? &request.details() : nullptr);
}

Problem failed_by_id(const Scene& scene,
                     engine::Turn& turn,
                     const api::RespondActivityTaskFailedByIdRequest& request,
                     api::RespondActivityTaskFailedByIdResponse& response) {
    const auto* details =
        request.has_last_heartbeat_details() ? &request.last_heartbeat_details() : nullptr;
    return fail_activity(change_by_id(scene, turn, request, Unstarted::refuse),
                         {.failure = request.failure(), .last_heartbeat_details = details},
                         *response.mutable_failures());
}

Problem beats_by_id(const Scene& scene,
                    engine::Turn& turn,
                    const api::RecordActivityTaskHeartbeatByIdRequest& request,
                    api::RecordActivityTaskHeartbeatByIdResponse& response) {
    history::HeartbeatReply beat;
    auto problem = heartbeat_activity(
        change_by_id(scene, turn, request, Unstarted::refuse), request.details(), beat);
    fill_heartbeat(beat, response);
    return problem;
}

template <class Request, class Response, class Act>
void add_by_id(rpc::Dispatch& dispatch, const Parts& parts, std::string_view method, Act act) {
    add_workflow_rpc<Request, Response>(
        dispatch, parts, method, NamespaceUse::ordinary, names_activity<Request>, act);
}

}  // namespace

void add_activities_by_id(rpc::Dispatch& dispatch, const Parts& parts) {
    add_by_id<api::RespondActivityTaskCompletedByIdRequest,
              api::RespondActivityTaskCompletedByIdResponse>(
        dispatch, parts, "RespondActivityTaskCompletedById", completed_by_id);
    add_by_id<api::RespondActivityTaskCanceledByIdRequest,
              api::RespondActivityTaskCanceledByIdResponse>(
        dispatch, parts, "RespondActivityTaskCanceledById", canceled_by_id);
    add_by_id<api::RespondActivityTaskFailedByIdRequest,
              api::RespondActivityTaskFailedByIdResponse>(
        dispatch, parts, "RespondActivityTaskFailedById", failed_by_id);
    add_by_id<api::RecordActivityTaskHeartbeatByIdRequest,
              api::RecordActivityTaskHeartbeatByIdResponse>(
        dispatch, parts, "RecordActivityTaskHeartbeatById", beats_by_id);
}

}  // namespace holdfast::server::frontend
