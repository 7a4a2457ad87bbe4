#include "frontend/validate.hpp"

#include <utility>

#include "history/retry.hpp"
#include "history/times.hpp"
#include <fmt/format.h>
#include <temporal/api/sdk/v1/user_metadata.pb.h>
#include <temporal/api/taskqueue/v1/message.pb.h>

#include <holdfast/base/uuid.hpp>

namespace holdfast::server::frontend {

namespace {

namespace common = temporal::api::common::v1;

constexpr std::string_view partition_prefix = "/_sys/";
constexpr std::string_view own_workers_prefix = "temporal-sys-per-ns-";
constexpr std::size_t fairness_key_bytes_max = 64;
constexpr int links_max = 10;
constexpr std::size_t link_bytes_max = 4000;
constexpr int callbacks_max = 32;

Problem link_problem(const common::Link& link) {
    if (link.ByteSizeLong() > link_bytes_max) {
        return invalid(fmt::format(
            "link exceeds allowed size of {}, got {}", link_bytes_max, link.ByteSizeLong()));
    }
    switch (link.variant_case()) {
        case common::Link::kWorkflowEvent: {
            const auto& event = link.workflow_event();
            if (event.namespace_().empty()) {
                return invalid("workflow event link must not have an empty namespace field");
            }
            if (event.workflow_id().empty()) {
                return invalid("workflow event link must not have an empty workflow ID field");
            }
            if (event.run_id().empty()) {
                return invalid("workflow event link must not have an empty run ID field");
            }
            return std::nullopt;
        }
        case common::Link::kBatchJob:
            return link.batch_job().job_id().empty()
                       ? Problem(invalid("batch job link must not have an empty job ID field"))
                       : std::nullopt;
        case common::Link::VARIANT_NOT_SET:
            return invalid("unsupported link variant");
        default:
            return std::nullopt;
    }
}

Problem callback_problem(const common::Callback& callback) {
    switch (callback.variant_case()) {
        case common::Callback::kNexus:
            return invalid(
                fmt::format("invalid url: url does not match any configured callback address: {}",
                            callback.nexus().url()));
        default:
            return rpc::Refusal(rpc::StatusCode::unimplemented, "unknown callback variant");
    }
}

std::size_t payload_bytes(const common::Payload& payload) {
    return payload.data().size();
}

}  // namespace

rpc::Refusal invalid(std::string text) {
    return {rpc::StatusCode::invalid_argument, std::move(text)};
}

Problem length_problem(std::string_view name,
                       const std::string& value,
                       const history::Limits& limits) {
    if (value.size() > limits.id_bytes_max) {
        return invalid(fmt::format("{} length exceeds limit.", name));
    }
    return std::nullopt;
}

Problem name_problem(std::string_view name,
                     const std::string& value,
                     const history::Limits& limits) {
    if (value.empty()) {
        return invalid(fmt::format("{} is not set on request.", name));
    }
    return length_problem(name, value, limits);
}

Problem workflow_id_problem(const std::string& workflow_id, const history::Limits& limits) {
    if (workflow_id.empty()) {
        return invalid("WorkflowId is not set on request.");
    }
    if (workflow_id.size() > limits.id_bytes_max) {
        return invalid(fmt::format("WorkflowId exceeds maximum allowed length ({}/{})",
                                   workflow_id.size(),
                                   limits.id_bytes_max));
    }
    return std::nullopt;
}

Problem run_id_problem(const std::string& run_id) {
    if (!run_id.empty() && !Uuid::parse(run_id)) {
        return invalid("Invalid RunId.");
    }
    return std::nullopt;
}

Problem execution_problem(const common::WorkflowExecution* execution,
                          const history::Limits& limits) {
    if (execution == nullptr) {
        return invalid("Execution is not set on request.");
    }
    if (auto problem = workflow_id_problem(execution->workflow_id(), limits)) {
        return problem;
    }
    return run_id_problem(execution->run_id());
}

Problem queue_problem(const temporal::api::taskqueue::v1::TaskQueue* queue,
                      const history::Limits& limits) {
    namespace enums = temporal::api::enums::v1;
    if (queue == nullptr) {
        return invalid("taskQueue is not set");
    }
    if (queue->name().empty()) {
        return invalid("missing task queue name");
    }
    if (queue->name().size() > limits.id_bytes_max) {
        return invalid("taskQueue length exceeds limit");
    }
    if (queue->name().starts_with(partition_prefix)) {
        return invalid("task queue name cannot start with reserved prefix /_sys/");
    }
    if (queue->normal_name().empty()) {
        return std::nullopt;
    }
    if (queue->kind() != enums::TASK_QUEUE_KIND_STICKY) {
        return invalid(
            fmt::format("only sticky queues can have normal name. tq: {}, normal name: {}",
                        queue->name(),
                        queue->normal_name()));
    }
    if (queue->normal_name().size() > limits.id_bytes_max) {
        return invalid("taskQueue length exceeds limit");
    }
    return std::nullopt;
}

Problem start_queue_problem(const temporal::api::taskqueue::v1::TaskQueue* queue,
                            const history::Limits& limits) {
    if (auto problem = queue_problem(queue, limits)) {
        return problem;
    }
    if (queue->name().starts_with(own_workers_prefix)) {
        return invalid(
            fmt::format("cannot use internal per-namespace task queue:{}", queue->name()));
    }
    return std::nullopt;
}

Problem span_problem(std::string_view name, const google::protobuf::Duration& duration) {
    if (history::valid_span(duration)) {
        return std::nullopt;
    }
    const bool mixed = (duration.seconds() > 0 && duration.nanos() < 0) ||
                       (duration.seconds() < 0 && duration.nanos() > 0);
    const bool negative = duration.seconds() < 0 || duration.nanos() < 0;
    return invalid(fmt::format("An invalid {} is set on request. cause: {}",
                               name,
                               mixed      ? "mismatched sign"
                               : negative ? "negative duration"
                                          : "nanoseconds out of range"));
}

Problem fill_and_check(common::RetryPolicy& policy) {
    history::fill_defaults(policy);
    if (auto problem = history::policy_problem(policy)) {
        return invalid(*std::move(problem));
    }
    return std::nullopt;
}

Problem priority_problem(const common::Priority& priority) {
    if (priority.priority_key() < 0) {
        return invalid("priority key can't be negative");
    }
    if (priority.fairness_key().size() > fairness_key_bytes_max) {
        return invalid("fairness key length exceeds limit");
    }
    // A weight that is not a number is refused as well.
    if (!(priority.fairness_weight() >= 0)) {
        return invalid("fairness weight can't be negative");
    }
    return std::nullopt;
}

Problem links_problem(const Links& links) {
    if (links.size() > links_max) {
        return invalid(fmt::format(
            "cannot attach more than {} links per request, got {}", links_max, links.size()));
    }
    for (const auto& link : links) {
        if (auto problem = link_problem(link)) {
            return problem;
        }
    }
    return std::nullopt;
}

Problem callbacks_problem(const Callbacks& callbacks) {
    if (callbacks.size() > callbacks_max) {
        return invalid(
            fmt::format("cannot attach more than {} callbacks to a workflow", callbacks_max));
    }
    for (const auto& callback : callbacks) {
        if (auto problem = callback_problem(callback)) {
            return problem;
        }
    }
    return std::nullopt;
}

Problem user_metadata_problem(const temporal::api::sdk::v1::UserMetadata& user_metadata,
                              const history::Limits& limits) {
    if (payload_bytes(user_metadata.summary()) > limits.summary_bytes_max) {
        return invalid("UserMetadata.Summary exceeds size limit.");
    }
    if (payload_bytes(user_metadata.details()) > limits.details_bytes_max) {
        return invalid("UserMetadata.Details exceeds size limit.");
    }
    return std::nullopt;
}

Problem blob_problem(std::size_t bytes, const history::Limits& limits) {
    if (bytes > limits.blob_bytes_max) {
        return invalid("Blob data size exceeds limit.");
    }
    return std::nullopt;
}

Problem memo_problem(const common::Memo& memo, const history::Limits& limits) {
    if (memo.ByteSizeLong() > limits.blob_bytes_max) {
        return invalid("Memo size exceeds limit.");
    }
    return std::nullopt;
}

int history_page_size(std::int32_t asked) {
    return asked <= 0 || asked > history_page_max ? history_page_max : asked;
}

}  // namespace holdfast::server::frontend
