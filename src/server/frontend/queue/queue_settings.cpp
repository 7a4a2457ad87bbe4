#include "frontend/queue/queue_settings.hpp"

#include <cmath>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "frontend/namespace/blocking_call.hpp"
#include "frontend/parts.hpp"
#include "frontend/validate.hpp"
#include "history/times.hpp"
#include <fmt/format.h>
#include <temporal/api/taskqueue/v1/message.pb.h>
#include <temporal/api/workflowservice/v1/request_response.pb.h>

namespace holdfast::server::frontend {

namespace {

namespace queue_api = temporal::api::workflowservice::v1;
namespace queue_enums = temporal::api::enums::v1;
using task_queues::Config;
using Update = queue_api::UpdateTaskQueueConfigRequest;
using RateUpdate = Update::RateLimitUpdate;
using RateConfig = temporal::api::taskqueue::v1::RateLimitConfig;

constexpr std::size_t characters_max = 1000;
constexpr std::size_t fairness_key_bytes_max = 64;
constexpr int weights_max = 1000;

Problem characters_problem(std::string_view field, const std::string& text) {
    if (text.size() > characters_max) {
        return invalid(
            fmt::format("{} field too long (max {} characters).", field, characters_max));
    }
    return std::nullopt;
}

Problem rate_problem(std::string_view field, bool given, const RateUpdate& update) {
    if (!given) {
        return std::nullopt;
    }
    if (!(update.rate_limit().requests_per_second() >= 0)) {
        return invalid(
            fmt::format("RequestsPerSecond for {} rate limit must be non-negative.", field));
    }
    return characters_problem("Reason", update.reason());
}

Problem workflow_queue_problem(const Update& request) {
    if (request.task_queue_type() != queue_enums::TASK_QUEUE_TYPE_WORKFLOW) {
        return std::nullopt;
    }
    if (request.has_update_queue_rate_limit()) {
        return invalid("Setting rate limit on workflow task queues is not allowed.");
    }
    if (request.has_update_fairness_key_rate_limit_default()) {
        return invalid("Setting fairness key rate limit on workflow task queues is not allowed.");
    }
    return std::nullopt;
}

Problem fairness_key_problem(const std::string& key) {
    if (key.empty()) {
        return invalid("A fairness key of a weight override is empty.");
    }
    if (key.size() > fairness_key_bytes_max) {
        return invalid("fairness key length exceeds limit");
    }
    return std::nullopt;
}

Problem weights_problem(const Update& request) {
    const auto& set = request.set_fairness_weight_overrides();
    if (std::ssize(set) > weights_max ||
        request.unset_fairness_weight_overrides_size() > weights_max) {
        return invalid(fmt::format("More than {} fairness weight overrides.", weights_max));
    }
    for (const auto& [key, weight] : set) {
        if (auto problem = fairness_key_problem(key)) {
            return problem;
        }
        if (!(weight > 0) || !std::isfinite(weight)) {
            return invalid(
                fmt::format("The weight of fairness key {} must be greater than zero.", key));
        }
    }
    for (const std::string& key : request.unset_fairness_weight_overrides()) {
        if (auto problem = fairness_key_problem(key)) {
            return problem;
        }
        if (set.contains(key)) {
            return invalid(
                fmt::format("The weight of fairness key {} is both set and unset.", key));
        }
    }
    return std::nullopt;
}

Problem update_problem(const Update& request, const history::Limits& limits) {
    temporal::api::taskqueue::v1::TaskQueue queue;
    queue.set_name(request.task_queue());
    if (auto problem = queue_problem(&queue, limits)) {
        return problem;
    }
    if (request.task_queue_type() < queue_enums::TASK_QUEUE_TYPE_WORKFLOW ||
        request.task_queue_type() > queue_enums::TASK_QUEUE_TYPE_NEXUS) {
        return invalid("TaskQueueType is not set on request.");
    }
    for (auto problem : {workflow_queue_problem(request),
                         rate_problem("UpdateQueueRateLimit",
                                      request.has_update_queue_rate_limit(),
                                      request.update_queue_rate_limit()),
                         rate_problem("UpdateFairnessKeyRateLimitDefault",
                                      request.has_update_fairness_key_rate_limit_default(),
                                      request.update_fairness_key_rate_limit_default()),
                         characters_problem("Identity", request.identity()),
                         weights_problem(request)}) {
        if (problem) {
            return problem;
        }
    }
    if (request.update_fairness_key_rate_limit_default().has_rate_limit()) {
        return rpc::Refusal(rpc::StatusCode::unimplemented,
                            "A rate limit of fairness keys is not built in this server yet");
    }
    return std::nullopt;
}

void update_rate(const RateUpdate& update,
                 const std::string& identity,
                 history::Time now,
                 RateConfig& config) {
    if (update.has_rate_limit()) {
        *config.mutable_rate_limit() = update.rate_limit();
    } else {
        config.clear_rate_limit();
    }
    config.mutable_metadata()->set_reason(update.reason());
    config.mutable_metadata()->set_update_identity(identity);
    *config.mutable_metadata()->mutable_update_time() = history::to_timestamp(now);
}

Problem update_config(const Update& request, history::Time now, Config& config) {
    if (request.has_update_queue_rate_limit()) {
        update_rate(request.update_queue_rate_limit(),
                    request.identity(),
                    now,
                    *config.mutable_queue_rate_limit());
    }
    if (request.has_update_fairness_key_rate_limit_default()) {
        update_rate(request.update_fairness_key_rate_limit_default(),
                    request.identity(),
                    now,
                    *config.mutable_fairness_keys_rate_limit_default());
    }
    auto& weights = *config.mutable_fairness_weight_overrides();
    for (const auto& [key, weight] : request.set_fairness_weight_overrides()) {
        weights[key] = weight;
    }
    for (const std::string& key : request.unset_fairness_weight_overrides()) {
        weights.erase(key);
    }
    if (std::ssize(weights) > weights_max) {
        return invalid(fmt::format("More than {} fairness weight overrides.", weights_max));
    }
    return std::nullopt;
}

Problem update_queue(const QueueSettingsParts& parts,
                     const Update& request,
                     queue_api::UpdateTaskQueueConfigResponse& response) {
    const auto in = parts.namespaces.resolve(request.namespace_(), NamespaceUse::ordinary);
    if (const auto* refusal = std::get_if<rpc::Refusal>(&in)) {
        return *refusal;
    }
    if (auto problem = update_problem(request, parts.limits)) {
        return problem;
    }
    Problem refused;
    *response.mutable_config() =
        parts.settings.change({.namespace_id = std::get<ResolvedNamespace>(in).id,
                               .name = request.task_queue(),
                               .type = static_cast<matching::QueueType>(request.task_queue_type())},
                              [&](Config& config) {
                                  refused = update_config(request, parts.clock.wall_now(), config);
                                  return !refused;
                              });
    return refused;
}

void list_partitions(const QueueSettingsParts& parts,
                     const queue_api::ListTaskQueuePartitionsRequest& request,
                     rpc::Reply<queue_api::ListTaskQueuePartitionsResponse> reply) {
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
    for (auto* list : {reply.message().mutable_activity_task_queue_partitions(),
                       reply.message().mutable_workflow_task_queue_partitions()}) {
        auto& only = *list->Add();
        only.set_key(queue->name());
        only.set_owner_host_name(parts.address);
    }
    std::move(reply).send();
}

}  // namespace

void add_queue_settings(rpc::Dispatch& dispatch, const QueueSettingsParts& parts) {
    add_blocking<Update, queue_api::UpdateTaskQueueConfigResponse>(
        dispatch,
        parts.executor,
        workflow_service("UpdateTaskQueueConfig"),
        [parts](const auto& request, auto& response) {
            return update_queue(parts, request, response);
        });
    dispatch
        .add<queue_api::ListTaskQueuePartitionsRequest, queue_api::ListTaskQueuePartitionsResponse>(
            workflow_service("ListTaskQueuePartitions"),
            [parts](const auto& request,
                    rpc::Reply<queue_api::ListTaskQueuePartitionsResponse> reply) {
                list_partitions(parts, request, std::move(reply));
            });
}

}  // namespace holdfast::server::frontend
