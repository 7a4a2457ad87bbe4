#include "rpc/call_meter.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <mutex>
#include <optional>
#include <set>
#include <utility>
#include <variant>

#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/timestamp.pb.h>
#include <google/protobuf/wire_format_lite.h>

#include <holdfast/api/services.hpp>

namespace holdfast::server::rpc {

namespace {

namespace pb = google::protobuf;

constexpr std::string_view service_name = "frontend";
constexpr std::string_view unknown_namespace = "_unknown_";
constexpr std::string_view other_namespaces = "_other_";

// Calls `each(number, value)` with the fields of a message that are texts, messages or varints, as
// far as it can be read.
template <class OnBytes, class OnNumber>
void for_fields(std::string_view message, const OnBytes& on_bytes, const OnNumber& on_number) {
    using Wire = pb::internal::WireFormatLite;
    pb::io::CodedInputStream stream(reinterpret_cast<const std::uint8_t*>(message.data()),
                                    static_cast<int>(message.size()));
    while (const std::uint32_t tag = stream.ReadTag()) {
        const int number = Wire::GetTagFieldNumber(tag);
        if (Wire::GetTagWireType(tag) == Wire::WIRETYPE_LENGTH_DELIMITED) {
            std::uint32_t size = 0;
            if (!stream.ReadVarint32(&size)) {
                return;
            }
            const auto at = static_cast<std::size_t>(stream.CurrentPosition());
            if (size > message.size() - at || !stream.Skip(static_cast<int>(size))) {
                return;
            }
            on_bytes(number, message.substr(at, size));
        } else if (Wire::GetTagWireType(tag) == Wire::WIRETYPE_VARINT) {
            std::uint64_t value = 0;
            if (!stream.ReadVarint64(&value)) {
                return;
            }
            on_number(number, value);
        } else if (!Wire::SkipField(&stream, tag)) {
            return;
        }
    }
}

int number_of(const pb::Descriptor& type, const char* field) {
    const auto* found = type.FindFieldByName(field);
    return found == nullptr ? 0 : found->number();
}

std::optional<std::chrono::nanoseconds> time_in(std::string_view bytes) {
    pb::Timestamp time;
    if (!time.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
        return std::nullopt;
    }
    return std::chrono::seconds(time.seconds()) + std::chrono::nanoseconds(time.nanos());
}

std::string_view name_of(StatusCode code) {
    constexpr std::array<std::string_view, 17> names{"OK",
                                                     "Canceled",
                                                     "Unknown",
                                                     "InvalidArgument",
                                                     "DeadlineExceeded",
                                                     "NotFound",
                                                     "AlreadyExists",
                                                     "PermissionDenied",
                                                     "ResourceExhausted",
                                                     "FailedPrecondition",
                                                     "Aborted",
                                                     "OutOfRange",
                                                     "Unimplemented",
                                                     "Internal",
                                                     "Unavailable",
                                                     "DataLoss",
                                                     "Unauthenticated"};
    return names.at(static_cast<std::size_t>(code));
}

// "serviceerror_NamespaceNotFound" by the detail, if there is one, else by the code.
std::string error_type(const Refusal& refusal) {
    constexpr std::string_view suffix = "Failure";
    std::string_view name = refusal.detail_type;
    name.remove_prefix(std::min(name.rfind('.') + 1, name.size()));
    if (name.ends_with(suffix)) {
        name.remove_suffix(suffix.size());
    }
    return "serviceerror_" + std::string(name.empty() ? name_of(refusal.code) : name);
}

// The server's fault, and not the caller's.
bool is_failure(StatusCode code) {
    return code == StatusCode::unknown || code == StatusCode::internal ||
           code == StatusCode::unavailable || code == StatusCode::data_loss;
}

bool is_poll(std::string_view operation) {
    return operation.starts_with("Poll") && operation.ends_with("TaskQueue");
}

}  // namespace

// Series are made when they are first needed: most methods are never called.
struct CallMeter::Method {
    Method(Metrics& registry, const pb::MethodDescriptor& described, std::string name)
        : metrics(registry),
          operation(std::move(name)),
          namespace_field(number_of(*described.input_type(), "namespace")),
          wait_field(number_of(*described.input_type(), "wait_new_event")),
          polls(is_poll(operation)),
          started_field(number_of(*described.output_type(), "started_time")),
          scheduled_field(number_of(*described.output_type(), "current_attempt_scheduled_time")) {
        if (scheduled_field == 0) {
            scheduled_field = number_of(*described.output_type(), "scheduled_time");
        }
    }

    struct Series {
        Counter requests;
        Counter poll_success;
        Counter poll_timeouts;
    };

    Series& series_of(const std::string& label) {
        const std::lock_guard lock(mutex);
        const auto [place, made] = by_namespace.try_emplace(label);
        Series& series = place->second;
        if (made) {
            series.requests = metrics.counter(
                "service_requests",
                "Calls by method and namespace.",
                {{"service_name", service_name}, {"operation", operation}, {"namespace", label}});
            if (polls) {
                series.poll_success =
                    metrics.counter("poll_success",
                                    "Polls that were answered with a task.",
                                    {{"operation", operation}, {"namespace", label}});
                series.poll_timeouts =
                    metrics.counter("poll_timeouts",
                                    "Polls that were answered empty.",
                                    {{"operation", operation}, {"namespace", label}});
            }
        }
        return series;
    }

    void prepare() {
        std::call_once(prepared, [this] {
            latency = metrics.histogram("service_latency",
                                        "Seconds from a call's request to its answer.",
                                        latency_bounds(),
                                        {{"service_name", service_name}, {"operation", operation}});
            pending = metrics.gauge("service_pending_requests",
                                    "Calls that are not answered yet.",
                                    {{"service_name", service_name}, {"operation", operation}});
            if (polls) {
                task_wait = metrics.histogram(
                    "task_schedule_to_start_latency",
                    "Seconds from when a task was scheduled to when a worker got it.",
                    latency_bounds(),
                    {{"operation", operation}});
            }
        });
    }

    void count_refusal(const Refusal& refusal, const std::string& label) const {
        metrics
            .counter("service_error_with_type",
                     "Calls that were refused, by the kind of refusal.",
                     {{"service_name", service_name},
                      {"operation", operation},
                      {"namespace", label},
                      {"error_type", error_type(refusal)}})
            .add();
        if (is_failure(refusal.code)) {
            metrics
                .counter("service_errors",
                         "Calls that failed by the server's fault: UNKNOWN, INTERNAL, UNAVAILABLE "
                         "and DATA_LOSS.",
                         {{"service_name", service_name},
                          {"operation", operation},
                          {"namespace", label}})
                .add();
        }
        if (const auto why = exhaustion(refusal)) {
            metrics
                .counter("service_errors_resource_exhausted",
                         "Calls that were refused by a limit.",
                         {{"service_name", service_name},
                          {"operation", operation},
                          {"resource_exhausted_cause", why->cause},
                          {"resource_exhausted_scope", why->scope}})
                .add();
        }
    }

    void count_poll(const std::string& reply, const std::string& label) {
        const Series& series = series_of(label);
        if (reply.empty()) {
            series.poll_timeouts.add();
            return;
        }
        series.poll_success.add();
        std::optional<std::chrono::nanoseconds> scheduled;
        std::optional<std::chrono::nanoseconds> started;
        for_fields(
            reply,
            [&](int number, std::string_view bytes) {
                if (number == scheduled_field) {
                    scheduled = time_in(bytes);
                } else if (number == started_field) {
                    started = time_in(bytes);
                }
            },
            [](int, std::uint64_t) {});
        if (scheduled && started) {
            const std::chrono::duration<double> waited = *started - *scheduled;
            task_wait.observe(std::max(waited.count(), 0.0));
        }
    }

    Metrics& metrics;
    const std::string operation;
    const int namespace_field;
    const int wait_field;
    const bool polls;
    const int started_field;
    int scheduled_field;
    Method* waiting = nullptr;  // Calls that wait for news are counted apart.

    std::once_flag prepared;
    Histogram latency;
    Histogram task_wait;
    Gauge pending;

    std::mutex mutex;
    std::unordered_map<std::string, Series> by_namespace;
};

struct CallMeter::Labels {
    std::mutex mutex;
    std::set<std::string> namespaces;  // That have a label.
};

CallMeter::CallMeter(Metrics& metrics, std::function<bool(const std::string&)> exists)
    : metrics_(metrics),
      exists_(std::move(exists)),
      labels_(std::make_unique<Labels>()),
      http_(metrics.counter("http_service_requests", "Requests that came by HTTP.")) {
    for (const auto* service : api::services()) {
        const bool counted = service->full_name().starts_with("temporal.api.workflowservice") ||
                             service->full_name().starts_with("temporal.api.operatorservice");
        for (int i = 0; counted && i < service->method_count(); ++i) {
            const auto& method = *service->method(i);
            const bool of_operators = service->name() == "OperatorService";
            methods_.emplace(
                "/" + service->full_name() + "/" + method.name(),
                std::make_unique<Method>(
                    metrics, method, (of_operators ? "Operator" : "") + method.name()));
            if (method.name() == "GetWorkflowExecutionHistory") {
                auto waiting =
                    std::make_unique<Method>(metrics, method, "PollWorkflowExecutionHistory");
                methods_.at("/" + service->full_name() + "/" + method.name())->waiting =
                    waiting.get();
                methods_.emplace("PollWorkflowExecutionHistory", std::move(waiting));
            }
        }
    }
}

CallMeter::~CallMeter() = default;

std::string CallMeter::label_of(std::string name) {
    if (name.empty() || !exists_(name)) {
        return std::string(unknown_namespace);
    }
    const std::lock_guard lock(labels_->mutex);
    if (labels_->namespaces.contains(name)) {
        return name;
    }
    if (labels_->namespaces.size() == namespaces_max) {
        return std::string(other_namespaces);
    }
    labels_->namespaces.insert(name);
    return name;
}

CallMeter::Measured CallMeter::begin(const std::string& method, std::string_view request) {
    Measured measured;
    const auto found = methods_.find(method);
    if (found == methods_.end()) {
        return measured;
    }
    measured.method_ = found->second.get();
    std::string name;
    bool waits = false;
    for_fields(
        request,
        [&](int number, std::string_view bytes) {
            if (number == measured.method_->namespace_field) {
                name = bytes;
            }
        },
        [&](int number, std::uint64_t value) {
            waits = waits || (number == measured.method_->wait_field && value != 0);
        });
    if (waits && measured.method_->waiting != nullptr) {
        measured.method_ = measured.method_->waiting;
    }
    measured.namespace_ = label_of(std::move(name));
    measured.begun_ = std::chrono::steady_clock::now();
    measured.method_->prepare();
    measured.method_->series_of(measured.namespace_).requests.add();
    measured.method_->pending.add(1);
    return measured;
}

void CallMeter::Measured::end(const Answer& answer) const {
    if (method_ == nullptr) {
        return;
    }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun_;
    method_->latency.observe(took.count());
    method_->pending.add(-1);
    if (const auto* refusal = std::get_if<Refusal>(&answer)) {
        method_->count_refusal(*refusal, namespace_);
    } else if (method_->polls) {
        method_->count_poll(std::get<std::string>(answer), namespace_);
    }
}

}  // namespace holdfast::server::rpc
