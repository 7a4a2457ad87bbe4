// The workers that report to the server, for tools that list them.
#include <string>
#include <string_view>
#include <utility>

#include "frontend/frontend.hpp"
#include "workers/registry.hpp"
#include "workers/worker_query.hpp"
#include <fmt/format.h>
#include <temporal/api/workflowservice/v1/request_response.pb.h>

#include <holdfast/base/error.hpp>

namespace holdfast::server::frontend {

namespace {

namespace worker_api = temporal::api::workflowservice::v1;
using workers::Heartbeat;
using workers::HeartbeatPtr;
using workers::WorkerQuery;

// Queues of workers that the server starts itself.
constexpr std::string_view system_queue_prefix = "temporal-sys-";
// Before the key in the token of a page.
constexpr std::string_view token_mark = "after:";

// Resolves the namespace, and answers with what `act(namespace id, response)` says.
template <class Request, class Response, class Act>
void add_worker_call(rpc::Dispatch& dispatch,
                     const Parts& parts,
                     std::string_view method,
                     Act act) {
    dispatch.add<Request, Response>(
        workflow_service(method), [parts, act](const Request& request, rpc::Reply<Response> reply) {
            const auto in = parts->namespaces.resolve(request.namespace_(), NamespaceUse::ordinary);
            if (const auto* refusal = std::get_if<rpc::Refusal>(&in)) {
                std::move(reply).refuse(*refusal);
                return;
            }
            Problem problem =
                act(*parts, std::get<ResolvedNamespace>(in).id, request, reply.message());
            if (problem) {
                std::move(reply).refuse(*std::move(problem));
            } else {
                std::move(reply).send();
            }
        });
}

bool is_shown(const Heartbeat& worker, const WorkerQuery& query, bool with_system_workers) {
    return (with_system_workers || !worker.task_queue().starts_with(system_queue_prefix)) &&
           query.matches(worker);
}

void show_worker(const Heartbeat& worker, worker_api::ListWorkersResponse& response) {
    *response.add_workers_info()->mutable_worker_heartbeat() = worker;
    auto& shown = *response.add_workers();
    shown.set_worker_instance_key(worker.worker_instance_key());
    shown.set_worker_identity(worker.worker_identity());
    shown.set_task_queue(worker.task_queue());
    if (worker.has_deployment_version()) {
        *shown.mutable_deployment_version() = worker.deployment_version();
    }
    shown.set_sdk_name(worker.sdk_name());
    shown.set_sdk_version(worker.sdk_version());
    shown.set_status(worker.status());
    if (worker.has_start_time()) {
        *shown.mutable_start_time() = worker.start_time();
    }
    shown.set_host_name(worker.host_info().host_name());
    shown.set_worker_grouping_key(worker.host_info().worker_grouping_key());
    shown.set_process_id(worker.host_info().process_id());
    *shown.mutable_plugins() = worker.plugins();
    *shown.mutable_drivers() = worker.drivers();
}

Problem list_workers(const FrontendParts& parts,
                     const std::string& namespace_id,
                     const worker_api::ListWorkersRequest& request,
                     worker_api::ListWorkersResponse& response) {
    std::string_view after = request.next_page_token();
    if (!after.empty()) {
        if (!after.starts_with(token_mark)) {
            return invalid("invalid next_page_token");
        }
        after.remove_prefix(token_mark.size());
    }
    const WorkerQuery query(request.query());
    for (const HeartbeatPtr& worker : parts.workers.list(namespace_id, std::string(after))) {
        if (!is_shown(*worker, query, request.include_system_workers())) {
            continue;
        }
        if (request.page_size() > 0 && response.workers_size() == request.page_size()) {
            const int last = response.workers_size() - 1;
            response.set_next_page_token(
                fmt::format("{}{}", token_mark, response.workers(last).worker_instance_key()));
            break;
        }
        show_worker(*worker, response);
    }
    return std::nullopt;
}

// What cannot be read in a query is said to its author.
template <class Body>
Problem reading_query(Body&& body) {
    try {
        return body();
    } catch (const InvalidArgument& error) {
        return invalid(error.what());
    }
}

void add_reads(rpc::Dispatch& dispatch, const Parts& parts) {
    add_worker_call<worker_api::ListWorkersRequest, worker_api::ListWorkersResponse>(
        dispatch,
        parts,
        "ListWorkers",
        [](const FrontendParts& in, const std::string& id, const auto& request, auto& response) {
            return reading_query([&] { return list_workers(in, id, request, response); });
        });
    add_worker_call<worker_api::CountWorkersRequest, worker_api::CountWorkersResponse>(
        dispatch,
        parts,
        "CountWorkers",
        [](const FrontendParts& in, const std::string& id, const auto& request, auto& response) {
            return reading_query([&]() -> Problem {
                const WorkerQuery query(request.query());
                std::int64_t count = 0;
                for (const HeartbeatPtr& worker : in.workers.list(id)) {
                    count += is_shown(*worker, query, request.include_system_workers()) ? 1 : 0;
                }
                response.set_count(count);
                return std::nullopt;
            });
        });
    add_worker_call<worker_api::DescribeWorkerRequest, worker_api::DescribeWorkerResponse>(
        dispatch,
        parts,
        "DescribeWorker",
        [](const FrontendParts& in, const std::string& id, const auto& request, auto& response)
            -> Problem {
            const std::string& key = request.worker_instance_key();
            if (auto problem = name_problem("WorkerInstanceKey", key, in.limits)) {
                return problem;
            }
            const HeartbeatPtr worker = in.workers.find(id, key);
            if (!worker) {
                return rpc::Refusal(rpc::StatusCode::not_found,
                                    fmt::format("Worker {} not found", key));
            }
            *response.mutable_worker_info()->mutable_worker_heartbeat() = *worker;
            return std::nullopt;
        });
}

// Nothing is sent to workers.
template <class Request, class Response>
void add_disabled_command(rpc::Dispatch& dispatch, std::string_view method) {
    dispatch.add<Request, Response>(
        workflow_service(method),
        [text = fmt::format("{} command is not enabled.", method)](const Request&,
                                                                   rpc::Reply<Response> reply) {
            std::move(reply).refuse({rpc::StatusCode::unimplemented, text});
        });
}

}  // namespace

void add_worker_registry(rpc::Dispatch& dispatch, const Parts& parts) {
    add_worker_call<worker_api::RecordWorkerHeartbeatRequest,
                    worker_api::RecordWorkerHeartbeatResponse>(
        dispatch,
        parts,
        "RecordWorkerHeartbeat",
        [](const FrontendParts& in, const std::string& id, const auto& request, auto&) -> Problem {
            for (const Heartbeat& heartbeat : request.worker_heartbeat()) {
                in.workers.record(id, heartbeat);
            }
            return std::nullopt;
        });
    add_reads(dispatch, parts);
    add_disabled_command<worker_api::FetchWorkerConfigRequest,
                         worker_api::FetchWorkerConfigResponse>(dispatch, "FetchWorkerConfig");
    add_disabled_command<worker_api::UpdateWorkerConfigRequest,
                         worker_api::UpdateWorkerConfigResponse>(dispatch, "UpdateWorkerConfig");
}

}  // namespace holdfast::server::frontend
