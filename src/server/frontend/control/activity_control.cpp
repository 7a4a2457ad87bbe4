// Operators and the activities of a workflow: pause, unpause, reset, options.
//
// Each has two methods: an older one, which may name activities by their type or all of them, and a
// newer one for a single activity, which would be for activities without a workflow as well.
#include "frontend/frontend.hpp"
#include "frontend/refusals.hpp"
#include "frontend/workflow_rpc.hpp"
#include "history/control/control.hpp"
#include <google/protobuf/util/field_mask_util.h>
#include <temporal/api/workflowservice/v1/request_response.pb.h>

namespace holdfast::server::frontend {

namespace {

namespace api = temporal::api::workflowservice::v1;
using google::protobuf::util::FieldMaskUtil;
using history::ActivityOptions;
using history::ActivitySelection;

// The older methods.
template <class Request>
concept NamesExecution = requires(const Request& request) { request.execution(); };

template <class Request>
const std::string& run_of(const Request& request) {
    if constexpr (NamesExecution<Request>) {
        return request.execution().run_id();
    } else {
        return request.run_id();
    }
}

template <class Request>
bool selects_all(const Request& request) {
    if constexpr (requires { request.unpause_all(); }) {
        return request.unpause_all();
    } else if constexpr (requires { request.match_all(); }) {
        return request.match_all();
    } else {
        return false;
    }
}

template <class Request>
ActivitySelection selection(const Request& request) {
    if constexpr (NamesExecution<Request>) {
        return {.id = request.id(), .type = request.type()};
    } else {
        return {.id = request.activity_id()};
    }
}

template <NamesExecution Request>
Problem target_problem(const FrontendParts& parts, const Request& request) {
    if (auto problem = execution_problem(request.has_execution() ? &request.execution() : nullptr,
                                         parts.limits)) {
        return problem;
    }
    if (request.id().empty() && request.type().empty() && !selects_all(request)) {
        return invalid("Either Activity.Id or Activity.Type should be set on request.");
    }
    return std::nullopt;
}

template <class Request>
Problem target_problem(const FrontendParts& parts, const Request& request) {
    if (request.workflow_id().empty()) {
        return rpc::Refusal(rpc::StatusCode::unimplemented,
                            "an activity without a workflow is not supported yet");
    }
    if (auto problem = workflow_id_problem(request.workflow_id(), parts.limits)) {
        return problem;
    }
    if (auto problem = run_id_problem(request.run_id())) {
        return problem;
    }
    return name_problem("ActivityId", request.activity_id(), parts.limits);
}

// What is particular to one kind of request.
template <class Request>
Problem control_problem(const FrontendParts& parts, const Request& request) {
    if constexpr (requires { request.jitter(); }) {
        if (auto problem = span_problem("Jitter", request.jitter())) {
            return problem;
        }
    }
    if constexpr (requires { request.reason(); }) {
        if (auto problem = blob_problem(request.reason().size(), parts.limits)) {
            return problem;
        }
    }
    if constexpr (requires { request.request_id(); }) {
        return length_problem("RequestId", request.request_id(), parts.limits);
    } else {
        return std::nullopt;
    }
}

// A path of the options' fields: clients may write the names of JSON.
std::string mask_path(const std::string& path) {
    google::protobuf::FieldMask from_json;
    const bool camel = !FieldMaskUtil::IsValidPath<ActivityOptions>(path) &&
                       FieldMaskUtil::FromJsonString(path, &from_json) &&
                       from_json.paths_size() == 1;
    return camel ? from_json.paths(0) : path;
}

template <class Request>
Problem mask_problem(const Request& request) {
    if (request.restore_original()) {
        return request.has_activity_options() || request.has_update_mask()
                   ? Problem(invalid("RestoreOriginal cannot be combined with other options."))
                   : std::nullopt;
    }
    if (request.update_mask().paths().empty()) {
        return invalid("UpdateMask is not set on request.");
    }
    for (const std::string& path : request.update_mask().paths()) {
        if (!FieldMaskUtil::IsValidPath<ActivityOptions>(mask_path(path))) {
            return invalid("UpdateMask has an unknown path: " + path);
        }
    }
    return std::nullopt;
}

template <class Request>
std::variant<std::string, rpc::Refusal> controlled(const FrontendParts& parts,
                                                   const Request& request) {
    if (auto problem = target_problem(parts, request)) {
        return *std::move(problem);
    }
    if (auto problem = length_problem("Identity", request.identity(), parts.limits)) {
        return *std::move(problem);
    }
    if (auto problem = control_problem(parts, request)) {
        return *std::move(problem);
    }
    if constexpr (requires { request.update_mask(); }) {
        if (auto problem = mask_problem(request)) {
            return *std::move(problem);
        }
    }
    if constexpr (NamesExecution<Request>) {
        return request.execution().workflow_id();
    } else {
        return request.workflow_id();
    }
}

Problem outcome_of(const std::optional<history::Refusal>& refusal) {
    return refusal ? Problem(wire_refusal(*refusal)) : std::nullopt;
}

// The acts below take either kind of request.
struct PauseActivities {
    template <class Request, class Response>
    Problem operator()(const Scene&, engine::Turn& turn, const Request& request, Response&) const {
        return outcome_of(turn.change(run_of(request), [&](history::Transition& transition) {
            return history::pause_activities(transition,
                                             selection(request),
                                             {.identity = request.identity(),
                                              .reason = request.reason(),
                                              .request_id = request.request_id()});
        }));
    }
};

struct UnpauseActivities {
    template <class Request, class Response>
    Problem operator()(const Scene&, engine::Turn& turn, const Request& request, Response&) const {
        history::ActivityUnpausing unpausing{.jitter = history::span_of(request.jitter())};
        if constexpr (NamesExecution<Request>) {
            unpausing.reset_attempts = request.reset_attempts();
            unpausing.reset_heartbeat = request.reset_heartbeat();
        }
        return outcome_of(turn.change(run_of(request), [&](history::Transition& transition) {
            return history::unpause_activities(transition, selection(request), unpausing);
        }));
    }
};

struct ResetActivities {
    template <class Request, class Response>
    Problem operator()(const Scene&, engine::Turn& turn, const Request& request, Response&) const {
        return outcome_of(turn.change(run_of(request), [&](history::Transition& transition) {
            return history::reset_activities(transition,
                                             selection(request),
                                             {.reset_heartbeat = request.reset_heartbeat(),
                                              .keep_paused = request.keep_paused(),
                                              .restore_options = request.restore_original_options(),
                                              .jitter = history::span_of(request.jitter())});
        }));
    }
};

struct ChangeActivityOptions {
    template <class Request, class Response>
    Problem operator()(const Scene&,
                       engine::Turn& turn,
                       const Request& request,
                       Response& response) const {
        history::ActivityOptionsChange change{.restore = request.restore_original(),
                                              .options = request.activity_options()};
        for (const std::string& path : request.update_mask().paths()) {
            change.mask.add_paths(mask_path(path));
        }
        return outcome_of(turn.change(
            run_of(request),
            [&](history::Transition& transition) -> std::optional<history::Refusal> {
                auto changed =
                    history::change_activity_options(transition, selection(request), change);
                if (auto* refusal = std::get_if<history::Refusal>(&changed)) {
                    return std::move(*refusal);
                }
                *response.mutable_activity_options() =
                    std::get<ActivityOptions>(std::move(changed));
                return std::nullopt;
            }));
    }
};

template <class Request, class Response, class Act>
void add_control(rpc::Dispatch& dispatch, const Parts& parts, std::string_view method, Act act) {
    add_workflow_rpc<Request, Response>(
        dispatch, parts, method, NamespaceUse::ordinary, controlled<Request>, act);
}

}  // namespace

void add_activity_control(rpc::Dispatch& dispatch, const Parts& parts) {
    add_control<api::PauseActivityRequest, api::PauseActivityResponse>(
        dispatch, parts, "PauseActivity", PauseActivities());
    add_control<api::PauseActivityExecutionRequest, api::PauseActivityExecutionResponse>(
        dispatch, parts, "PauseActivityExecution", PauseActivities());
    add_control<api::UnpauseActivityRequest, api::UnpauseActivityResponse>(
        dispatch, parts, "UnpauseActivity", UnpauseActivities());
    add_control<api::UnpauseActivityExecutionRequest, api::UnpauseActivityExecutionResponse>(
        dispatch, parts, "UnpauseActivityExecution", UnpauseActivities());
    add_control<api::ResetActivityRequest, api::ResetActivityResponse>(
        dispatch, parts, "ResetActivity", ResetActivities());
    add_control<api::ResetActivityExecutionRequest, api::ResetActivityExecutionResponse>(
        dispatch, parts, "ResetActivityExecution", ResetActivities());
    add_control<api::UpdateActivityOptionsRequest, api::UpdateActivityOptionsResponse>(
        dispatch, parts, "UpdateActivityOptions", ChangeActivityOptions());
    add_control<api::UpdateActivityExecutionOptionsRequest,
                api::UpdateActivityExecutionOptionsResponse>(
        dispatch, parts, "UpdateActivityExecutionOptions", ChangeActivityOptions());
}

}  // namespace holdfast::server::frontend
