#include <chrono>
#include <set>
#include <vector>

#include "frontend/frontend.hpp"
#include "frontend/validate.hpp"
#include "workers/registry.hpp"
#include <temporal/api/workflowservice/v1/request_response.pb.h>

namespace holdfast::server::frontend {

namespace {

namespace api = temporal::api::workflowservice::v1;
namespace enums = temporal::api::enums::v1;

using matching::QueueKey;
using matching::QueueType;

constexpr std::chrono::seconds poll_min{2};

Problem deadline_problem(const rpc::CallInfo& info, const Clock& clock) {
    if (!info.deadline) {
        return invalid("Context timeout is not set.");
    }
    if (*info.deadline - clock.wall_now() < poll_min) {
        return rpc::Refusal(rpc::StatusCode::failed_precondition, "Context timeout is too short.");
    }
    return std::nullopt;
}

template <class Request>
Problem versioning_problem(const Request& request) {
    const auto& old = request.worker_version_capabilities();
    if (old.use_versioning() && old.build_id().empty()) {
        return invalid("build ID must be provided when use_versioning is set");
    }
    if (old.build_id().size() > build_id_bytes_max) {
        return invalid("WorkerVersionCapabilities.BuildId exceeds length limit.");
    }
    const auto& options = request.deployment_options();
    if (options.worker_versioning_mode() != enums::WORKER_VERSIONING_MODE_VERSIONED) {
        return std::nullopt;
    }
    if (options.deployment_name().empty() || options.build_id().empty()) {
        return invalid("deployment name and build ID must be set for a versioned worker");
    }
    return rpc::Refusal(rpc::StatusCode::permission_denied,
                        "worker deployment versions are disabled on this server");
}

template <class Request>
Problem poll_problem(const FrontendParts& parts,
                     const rpc::CallInfo& info,
                     const Request& request) {
    if (auto problem = deadline_problem(info, parts.clock)) {
        return problem;
    }
    if (auto problem = length_problem("Identity", request.identity(), parts.limits)) {
        return problem;
    }
    if (auto problem = versioning_problem(request)) {
        return problem;
    }
    return queue_problem(request.has_task_queue() ? &request.task_queue() : nullptr, parts.limits);
}

// What the start of a task says of its worker.
template <class Request>
std::optional<temporal::api::common::v1::WorkerVersionStamp> worker_version(
    const Request& request) {
    const auto& capabilities = request.worker_version_capabilities();
    if (capabilities.build_id().empty()) {
        return std::nullopt;
    }
    temporal::api::common::v1::WorkerVersionStamp version;
    version.set_build_id(capabilities.build_id());
    version.set_use_versioning(capabilities.use_versioning());
    return version;
}

template <class Request>
matching::PollInfo poll_info(const FrontendParts& parts, const Request& request) {
    return {.request_id = parts.new_id(),
            .identity = request.identity(),
            .worker_instance_key = request.worker_instance_key(),
            .tasks_per_second = std::nullopt,
            .normal_name = request.task_queue().normal_name(),
            .worker_version = worker_version(request)};
}

void poll_workflow(const FrontendParts& parts,
                   const api::PollWorkflowTaskQueueRequest& request,
                   matching::WorkflowReply reply) {
    const auto in = parts.namespaces.resolve(request.namespace_(), NamespaceUse::ordinary);
    if (const auto* refusal = std::get_if<rpc::Refusal>(&in)) {
        std::move(reply).refuse(*refusal);
        return;
    }
    if (auto problem = poll_problem(parts, reply.info(), request)) {
        std::move(reply).refuse(*std::move(problem));
        return;
    }
    parts.matching.poll({.queue = {.namespace_id = std::get<ResolvedNamespace>(in).id,
                                   .name = request.task_queue().name(),
                                   .type = QueueType::workflow},
                         .info = poll_info(parts, request),
                         .reply = std::move(reply)});
}

void poll_activity(const FrontendParts& parts,
                   const api::PollActivityTaskQueueRequest& request,
                   matching::ActivityReply reply) {
    const auto in = parts.namespaces.resolve(request.namespace_(), NamespaceUse::ordinary);
    if (const auto* refusal = std::get_if<rpc::Refusal>(&in)) {
        std::move(reply).refuse(*refusal);
        return;
    }
    if (auto problem = poll_problem(parts, reply.info(), request)) {
        std::move(reply).refuse(*std::move(problem));
        return;
    }
    matching::PollInfo info = poll_info(parts, request);
    const auto& metadata = request.task_queue_metadata();
    if (metadata.has_max_tasks_per_second()) {
        info.tasks_per_second = metadata.max_tasks_per_second().value();
        if (!(*info.tasks_per_second >= 0)) {
            std::move(reply).refuse(invalid("MaxTasksPerSecond cannot be negative."));
            return;
        }
    }
    parts.matching.poll({.queue = {.namespace_id = std::get<ResolvedNamespace>(in).id,
                                   .name = request.task_queue().name(),
                                   .type = QueueType::activity},
                         .info = std::move(info),
                         .reply = std::move(reply)});
}

std::vector<QueueKey> queues_of(const std::string& namespace_id,
                                const api::ShutdownWorkerRequest& request) {
    std::set<QueueType> types;
    for (const int type : request.task_queue_types()) {
        if (type >= enums::TASK_QUEUE_TYPE_WORKFLOW && type <= enums::TASK_QUEUE_TYPE_NEXUS) {
            types.insert(static_cast<QueueType>(type));
        }
    }
    if (request.task_queue_types().empty()) {
        types = {QueueType::workflow, QueueType::activity};
    }
    std::vector<QueueKey> queues;
    queues.reserve(types.size());
    for (const QueueType type : types) {
        queues.push_back(
            {.namespace_id = namespace_id, .name = request.task_queue(), .type = type});
    }
    return queues;
}

void shut_down_worker(const FrontendParts& parts,
                      const api::ShutdownWorkerRequest& request,
                      rpc::Reply<api::ShutdownWorkerResponse> reply) {
    const auto in = parts.namespaces.resolve(request.namespace_(), NamespaceUse::ordinary);
    if (const auto* refusal = std::get_if<rpc::Refusal>(&in)) {
        std::move(reply).refuse(*refusal);
        return;
    }
    const std::string& namespace_id = std::get<ResolvedNamespace>(in).id;
    if (!request.sticky_task_queue().empty()) {
        parts.matching.unload({.namespace_id = namespace_id,
                               .name = request.sticky_task_queue(),
                               .type = QueueType::workflow});
    }
    if (!request.worker_instance_key().empty() && !request.task_queue().empty()) {
        parts.matching.end_polls(request.worker_instance_key(), queues_of(namespace_id, request));
    }
    if (request.has_worker_heartbeat()) {  // The last one, as a rule: then it is forgotten.
        parts.workers.record(namespace_id, request.worker_heartbeat());
    }
    std::move(reply).send();
}

}  // namespace

void add_polls(rpc::Dispatch& dispatch, const Parts& parts) {
    dispatch.add<api::PollWorkflowTaskQueueRequest, api::PollWorkflowTaskQueueResponse>(
        workflow_service("PollWorkflowTaskQueue"),
        [parts](const auto& request, matching::WorkflowReply reply) {
            poll_workflow(*parts, request, std::move(reply));
        });
    dispatch.add<api::PollActivityTaskQueueRequest, api::PollActivityTaskQueueResponse>(
        workflow_service("PollActivityTaskQueue"),
        [parts](const auto& request, matching::ActivityReply reply) {
            poll_activity(*parts, request, std::move(reply));
        });
    dispatch.add<api::ShutdownWorkerRequest, api::ShutdownWorkerResponse>(
        workflow_service("ShutdownWorker"),
        [parts](const auto& request, rpc::Reply<api::ShutdownWorkerResponse> reply) {
            shut_down_worker(*parts, request, std::move(reply));
        });
}

}  // namespace holdfast::server::frontend
