#include <chrono>
#include <set>

#include "frontend/frontend.hpp"
#include "history/times.hpp"
#include <fmt/format.h>
#include <temporal/api/workflowservice/v1/request_response.pb.h>

namespace holdfast::server::frontend {

namespace {

namespace api = temporal::api::workflowservice::v1;
namespace enums = temporal::api::enums::v1;
namespace queues = temporal::api::taskqueue::v1;

using matching::QueueView;

// What the reference server says of a queue without limits of its own.
constexpr float rate_max = 4000;
constexpr double poller_rate_max = 100'000;
constexpr std::int64_t id_block = 100'000;
constexpr std::int64_t year_one_seconds = -62'135'596'800;  // 0001-01-01T00:00:00Z: never.

matching::QueueType queue_type(enums::TaskQueueType type) {
    switch (type) {
        case enums::TASK_QUEUE_TYPE_ACTIVITY:
            return matching::QueueType::activity;
        case enums::TASK_QUEUE_TYPE_NEXUS:
            return matching::QueueType::nexus;
        default:
            return matching::QueueType::workflow;
    }
}

template <class Pollers>
void fill_pollers(const QueueView& view, Pollers& pollers) {
    for (const auto& poller : view.pollers) {
        auto& info = *pollers.Add();
        info.set_identity(poller.identity);
        *info.mutable_last_access_time() = history::to_timestamp(poller.last_access);
        info.set_rate_per_second(poller.tasks_per_second.value_or(poller_rate_max));
        if (poller.worker_version) {
            auto& capabilities = *info.mutable_worker_version_capabilities();
            capabilities.set_build_id(poller.worker_version->build_id());
            capabilities.set_use_versioning(poller.worker_version->use_versioning());
        }
    }
}

queues::TaskQueueStats stats_of(const QueueView& view, std::size_t backlog) {
    queues::TaskQueueStats stats;
    stats.set_approximate_backlog_count(static_cast<std::int64_t>(backlog));
    *stats.mutable_approximate_backlog_age() = history::to_duration(view.backlog_age);
    stats.set_tasks_add_rate(static_cast<float>(view.add_rate));
    stats.set_tasks_dispatch_rate(static_cast<float>(view.dispatch_rate));
    stats.set_rate_limiting_active(view.rate_limited);
    return stats;
}

// What rules: an operator's limit before that of the worker that polled last.
void fill_rate(const QueueView& view, api::DescribeTaskQueueResponse& response) {
    auto& rate = *response.mutable_effective_rate_limit();
    const std::optional<double> limit =
        view.configured_rate ? view.configured_rate : view.worker_rate;
    rate.set_requests_per_second(static_cast<float>(limit.value_or(rate_max)));
    rate.set_rate_limit_source(view.configured_rate ? enums::RATE_LIMIT_SOURCE_API
                               : limit              ? enums::RATE_LIMIT_SOURCE_WORKER
                                                    : enums::RATE_LIMIT_SOURCE_SYSTEM);
    if (response.has_task_queue_status()) {
        response.mutable_task_queue_status()->set_rate_per_second(rate.requests_per_second());
    }
}

void fill_default_mode(const QueueView& view,
                       const api::DescribeTaskQueueRequest& request,
                       api::DescribeTaskQueueResponse& response) {
    fill_pollers(view, *response.mutable_pollers());
    if (request.include_task_queue_status()) {
        auto& status = *response.mutable_task_queue_status();
        status.set_backlog_count_hint(static_cast<std::int64_t>(view.backlog));
        status.mutable_task_id_block()->set_start_id(1);
        status.mutable_task_id_block()->set_end_id(id_block);
    }
    if (request.report_stats()) {
        *response.mutable_stats() = stats_of(view, view.backlog);
        auto& by_priority = *response.mutable_stats_by_priority_key();
        by_priority[matching::default_priority] = stats_of(view, 0);
        for (std::size_t i = 0; i < view.backlog_by_priority.size(); ++i) {
            if (view.backlog_by_priority[i] > 0) {
                by_priority[static_cast<int>(i) + 1] = stats_of(view, view.backlog_by_priority[i]);
            }
        }
    }
    if (request.task_queue().kind() != enums::TASK_QUEUE_KIND_STICKY) {
        auto& versioning = *response.mutable_versioning_info();
        versioning.set_current_version("__unversioned__");
        versioning.mutable_update_time()->set_seconds(year_one_seconds);
    }
    fill_rate(view, response);
}

Problem enhanced_problem(const api::DescribeTaskQueueRequest& request) {
    if (request.task_queue().kind() == enums::TASK_QUEUE_KIND_STICKY) {
        return invalid(fmt::format("Enhanced DescribeTaskQueue is not valid for a sticky queue, {}",
                                   request.task_queue().name()));
    }
    constexpr int build_ids_max = 5;
    if (request.report_task_reachability() && request.versions().build_ids_size() > build_ids_max) {
        return invalid(
            "Too many build ids queried at once with ReportTaskReachability==true, limit: 5");
    }
    return std::nullopt;
}

// Only the unversioned part has anything to tell.
void fill_enhanced_mode(const FrontendParts& parts,
                        const std::string& namespace_id,
                        const api::DescribeTaskQueueRequest& request,
                        api::DescribeTaskQueueResponse& response) {
    std::set<enums::TaskQueueType> types;
    for (const int type : request.task_queue_types()) {
        if (enums::TaskQueueType_IsValid(type) && type != enums::TASK_QUEUE_TYPE_UNSPECIFIED) {
            types.insert(static_cast<enums::TaskQueueType>(type));
        }
    }
    if (types.empty()) {
        types = {enums::TASK_QUEUE_TYPE_WORKFLOW, enums::TASK_QUEUE_TYPE_ACTIVITY};
    }
    auto& version = (*response.mutable_versions_info())[""];
    if (request.report_task_reachability()) {
        version.set_task_reachability(enums::BUILD_ID_TASK_REACHABILITY_REACHABLE);
    }
    for (const enums::TaskQueueType type : types) {
        const QueueView view = parts.matching.view({.namespace_id = namespace_id,
                                                    .name = request.task_queue().name(),
                                                    .type = queue_type(type)});
        auto& info = (*version.mutable_types_info())[type];
        if (request.report_pollers()) {
            fill_pollers(view, *info.mutable_pollers());
        }
        if (request.report_stats()) {
            *info.mutable_stats() = stats_of(view, view.backlog);
        }
    }
}

void describe_queue(const FrontendParts& parts,
                    const api::DescribeTaskQueueRequest& request,
                    rpc::Reply<api::DescribeTaskQueueResponse> reply) {
    const auto in = parts.namespaces.resolve(request.namespace_(), NamespaceUse::ordinary);
    if (const auto* refusal = std::get_if<rpc::Refusal>(&in)) {
        std::move(reply).refuse(*refusal);
        return;
    }
    const auto* queue = request.has_task_queue() ? &request.task_queue() : nullptr;
    if (auto problem = queue_problem(queue, parts.limits)) {
        std::move(reply).refuse(*std::move(problem));
        return;
    }
    const std::string& namespace_id = std::get<ResolvedNamespace>(in).id;
    if (request.api_mode() == enums::DESCRIBE_TASK_QUEUE_MODE_ENHANCED) {
        if (auto problem = enhanced_problem(request)) {
            std::move(reply).refuse(*std::move(problem));
            return;
        }
        fill_enhanced_mode(parts, namespace_id, request, reply.message());
    } else {
        const matching::QueueKey key{.namespace_id = namespace_id,
                                     .name = request.task_queue().name(),
                                     .type = queue_type(request.task_queue_type())};
        fill_default_mode(parts.matching.view(key), request, reply.message());
        if (request.report_config()) {
            *reply.message().mutable_config() =
                parts.queue_settings ? parts.queue_settings(key) : queues::TaskQueueConfig();
        }
    }
    std::move(reply).send();
}

}  // namespace

void add_task_queues(rpc::Dispatch& dispatch, const Parts& parts) {
    dispatch.add<api::DescribeTaskQueueRequest, api::DescribeTaskQueueResponse>(
        workflow_service("DescribeTaskQueue"),
        [parts](const auto& request, rpc::Reply<api::DescribeTaskQueueResponse> reply) {
            describe_queue(*parts, request, std::move(reply));
        });
}

}  // namespace holdfast::server::frontend
