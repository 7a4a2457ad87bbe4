#include "frontend/start_request.hpp"

#include <utility>

#include "frontend/refusals.hpp"
#include "frontend/run_link.hpp"
#include "history/start.hpp"
#include "history/start/attach.hpp"
#include "history/start/cron.hpp"
#include "history/times.hpp"
#include <temporal/api/workflowservice/v1/request_response.pb.h>

namespace holdfast::server::frontend {

namespace {

namespace enums = temporal::api::enums::v1;

struct IdPolicies {
    enums::WorkflowIdReusePolicy reuse{};
    enums::WorkflowIdConflictPolicy conflict{};
};

rpc::Refusal not_built(const char* what) {
    return {rpc::StatusCode::unimplemented, std::string(what) + " is not supported yet"};
}

template <class Request>
Problem when_problem(const Request& request) {
    if (auto problem = span_problem("WorkflowStartDelay", request.workflow_start_delay())) {
        return problem;
    }
    if (request.cron_schedule().empty()) {
        return std::nullopt;
    }
    if (request.has_workflow_start_delay()) {
        return invalid("CronSchedule and WorkflowStartDelay may not be used together.");
    }
    if (!history::valid_cron(request.cron_schedule())) {
        return invalid("invalid CronSchedule.");
    }
    return std::nullopt;
}

template <class Request>
Problem timeouts_problem(const Request& request) {
    if (auto problem =
            span_problem("WorkflowExecutionTimeoutSeconds", request.workflow_execution_timeout())) {
        return problem;
    }
    if (auto problem = span_problem("WorkflowRunTimeoutSeconds", request.workflow_run_timeout())) {
        return problem;
    }
    return span_problem("WorkflowTaskTimeoutSeconds", request.workflow_task_timeout());
}

Problem policies_problem(enums::WorkflowIdReusePolicy reuse,
                         enums::WorkflowIdConflictPolicy conflict) {
    if (!enums::WorkflowIdReusePolicy_IsValid(reuse)) {
        return invalid("Invalid WorkflowIDReusePolicy.");
    }
    if (!enums::WorkflowIdConflictPolicy_IsValid(conflict)) {
        return invalid("Invalid WorkflowIDConflictPolicy.");
    }
    if (reuse == enums::WORKFLOW_ID_REUSE_POLICY_TERMINATE_IF_RUNNING &&
        conflict != enums::WORKFLOW_ID_CONFLICT_POLICY_UNSPECIFIED) {
        return invalid(
            "Invalid WorkflowIDReusePolicy: WORKFLOW_ID_REUSE_POLICY_TERMINATE_IF_RUNNING cannot "
            "be used together with a WorkflowIDConflictPolicy");
    }
    if (reuse == enums::WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE &&
        conflict == enums::WORKFLOW_ID_CONFLICT_POLICY_TERMINATE_EXISTING) {
        return invalid(
            "Invalid WorkflowIDReusePolicy: WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE cannot be "
            "used together with WorkflowIdConflictPolicy "
            "WORKFLOW_ID_CONFLICT_POLICY_TERMINATE_EXISTING");
    }
    return std::nullopt;
}

// What neither kind of start has more of than the other.
template <class Request>
Problem beginning_problem(const FrontendParts& parts, const Request& request) {
    const history::Limits& limits = parts.limits;
    if (auto problem = workflow_id_problem(request.workflow_id(), limits)) {
        return problem;
    }
    if (request.has_retry_policy()) {
        auto policy = request.retry_policy();
        if (auto problem = fill_and_check(policy)) {
            return problem;
        }
    }
    if (auto problem = when_problem(request)) {
        return problem;
    }
    if (auto problem = name_problem("WorkflowType", request.workflow_type().name(), limits)) {
        return problem;
    }
    if (auto problem = start_queue_problem(
            request.has_task_queue() ? &request.task_queue() : nullptr, limits)) {
        return problem;
    }
    if (auto problem = timeouts_problem(request)) {
        return problem;
    }
    if (auto problem = length_problem("RequestId", request.request_id(), limits)) {
        return problem;
    }
    if (auto problem = length_problem("Identity", request.identity(), limits)) {
        return problem;
    }
    return policies_problem(request.workflow_id_reuse_policy(),
                            request.workflow_id_conflict_policy());
}

template <class Request>
Problem rest_problem(const FrontendParts& parts, const Request& request) {
    if (auto problem = priority_problem(request.priority())) {
        return problem;
    }
    if (request.has_versioning_override()) {
        return not_built("VersioningOverride");
    }
    if (auto problem = links_problem(request.links())) {
        return problem;
    }
    if (request.time_skipping_config().enabled()) {
        return not_built("TimeSkippingConfig");
    }
    if (auto problem = memo_problem(request.memo(), parts.limits)) {
        return problem;
    }
    if (auto problem = blob_problem(
            request.input().ByteSizeLong() + request.header().ByteSizeLong(), parts.limits)) {
        return problem;
    }
    return user_metadata_problem(request.user_metadata(), parts.limits);
}

// Requires: the pair has no problem.
IdPolicies filled(enums::WorkflowIdReusePolicy reuse,
                  enums::WorkflowIdConflictPolicy conflict,
                  enums::WorkflowIdConflictPolicy otherwise) {
    if (reuse == enums::WORKFLOW_ID_REUSE_POLICY_TERMINATE_IF_RUNNING) {
        return {enums::WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
                enums::WORKFLOW_ID_CONFLICT_POLICY_TERMINATE_EXISTING};
    }
    if (reuse == enums::WORKFLOW_ID_REUSE_POLICY_UNSPECIFIED) {
        reuse = enums::WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE;
    }
    if (conflict == enums::WORKFLOW_ID_CONFLICT_POLICY_UNSPECIFIED) {
        conflict = otherwise;
    }
    return {reuse, conflict};
}

google::protobuf::Duration capped(const google::protobuf::Duration& duration) {
    return history::to_duration(history::span_of(duration));
}

template <class Request>
void set_timeouts(history::Started& started,
                  const Request& request,
                  const history::Limits& limits) {
    if (request.has_workflow_execution_timeout()) {
        *started.mutable_workflow_execution_timeout() =
            capped(request.workflow_execution_timeout());
    }
    if (request.has_workflow_run_timeout()) {
        *started.mutable_workflow_run_timeout() = capped(request.workflow_run_timeout());
    }
    if (request.has_workflow_task_timeout()) {
        *started.mutable_workflow_task_timeout() = capped(request.workflow_task_timeout());
    }
    *started.mutable_first_workflow_task_backoff() = capped(request.workflow_start_delay());
    history::normalise_timeouts(started, limits);
}

template <class Request>
history::Started started_of(const Request& request, const history::Limits& limits) {
    history::Started started;
    started.set_workflow_id(request.workflow_id());
    *started.mutable_workflow_type() = request.workflow_type();
    started.mutable_task_queue()->set_name(request.task_queue().name());
    started.mutable_task_queue()->set_kind(enums::TASK_QUEUE_KIND_NORMAL);
    started.set_identity(request.identity());
    started.set_attempt(1);
    set_timeouts(started, request, limits);
    if (request.has_input()) {
        *started.mutable_input() = request.input();
    }
    if (request.has_header()) {
        *started.mutable_header() = request.header();
    }
    if (request.has_memo()) {
        *started.mutable_memo() = request.memo();
    }
    if (request.has_search_attributes()) {
        *started.mutable_search_attributes() = request.search_attributes();
    }
    if (request.has_priority()) {
        *started.mutable_priority() = request.priority();
    }
    if (request.has_retry_policy()) {
        *started.mutable_retry_policy() = request.retry_policy();
        // It was found valid before.
        static_cast<void>(fill_and_check(*started.mutable_retry_policy()));
    }
    return started;
}

template <class Request>
std::variant<engine::StartRequest, rpc::Refusal> asked(const Scene& scene,
                                                       const Request& request,
                                                       enums::WorkflowIdConflictPolicy otherwise) {
    engine::StartRequest start;
    start.started = started_of(request, scene.parts.limits);
    start.started.set_cron_schedule(request.cron_schedule());
    if (request.has_search_attributes() && scene.parts.check_attributes) {
        if (auto problem = scene.parts.check_attributes(
                scene.in, *start.started.mutable_search_attributes())) {
            return *std::move(problem);
        }
    }
    start.request_id = request.request_id().empty() ? scene.parts.new_id() : request.request_id();
    const IdPolicies policies = filled(
        request.workflow_id_reuse_policy(), request.workflow_id_conflict_policy(), otherwise);
    start.reuse = policies.reuse;
    start.conflict = policies.conflict;
    start.identity = request.identity();
    if (request.has_user_metadata()) {
        start.extras.user_metadata = request.user_metadata();
    }
    start.extras.links = distinct(request.links());
    return start;
}

}  // namespace

Problem start_problem(const FrontendParts& parts, const StartCall& request) {
    if (auto problem = beginning_problem(parts, request)) {
        return problem;
    }
    const auto& on_conflict = request.on_conflict_options();
    if (on_conflict.attach_completion_callbacks() && !on_conflict.attach_request_id()) {
        return invalid("attaching request ID is required for attaching completion callbacks");
    }
    if (auto problem = callbacks_problem(request.completion_callbacks())) {
        return problem;
    }
    return rest_problem(parts, request);
}

Problem start_problem(const FrontendParts& parts, const SignalWithStartCall& request) {
    if (auto problem = beginning_problem(parts, request)) {
        return problem;
    }
    if (request.workflow_id_conflict_policy() == enums::WORKFLOW_ID_CONFLICT_POLICY_FAIL) {
        return invalid(
            "Invalid WorkflowIDConflictPolicy: WORKFLOW_ID_CONFLICT_POLICY_FAIL is not supported "
            "for this operation.");
    }
    if (auto problem = name_problem("SignalName", request.signal_name(), parts.limits)) {
        return problem;
    }
    if (auto problem = blob_problem(request.signal_input().ByteSizeLong(), parts.limits)) {
        return problem;
    }
    return rest_problem(parts, request);
}

std::variant<engine::StartRequest, rpc::Refusal> start_request(const Scene& scene,
                                                               const StartCall& request) {
    auto answer = asked(scene, request, enums::WORKFLOW_ID_CONFLICT_POLICY_FAIL);
    if (auto* start = std::get_if<engine::StartRequest>(&answer)) {
        start->eager = request.request_eager_execution();
        auto attachment = history::attachment_of(request, start->request_id);
        if (const auto* refusal = std::get_if<history::Refusal>(&attachment)) {
            return wire_refusal(*refusal);
        }
        start->attachment = std::get<std::optional<history::Attachment>>(std::move(attachment));
        if (start->attachment) {
            start->attachment->links = distinct(start->attachment->links);
        }
        if (request.has_continued_failure()) {
            *start->started.mutable_continued_failure() = request.continued_failure();
        }
        if (request.has_last_completion_result()) {
            *start->started.mutable_last_completion_result() = request.last_completion_result();
        }
    }
    return answer;
}

std::variant<engine::StartRequest, rpc::Refusal> start_request(const Scene& scene,
                                                               const SignalWithStartCall& request) {
    auto answer = asked(scene, request, enums::WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING);
    if (auto* start = std::get_if<engine::StartRequest>(&answer)) {
        auto& signal = start->signal.emplace();
        signal.set_signal_name(request.signal_name());
        signal.set_identity(request.identity());
        signal.set_request_id(start->request_id);
        if (request.has_signal_input()) {
            *signal.mutable_input() = request.signal_input();
        }
        if (request.has_header()) {
            *signal.mutable_header() = request.header();
        }
    }
    return answer;
}

}  // namespace holdfast::server::frontend
