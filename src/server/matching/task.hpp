// What queues hold: tasks that wait for a worker, and polls of workers that wait for a task.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "history/times.hpp"
#include "rpc/call.hpp"
#include <temporal/api/common/v1/message.pb.h>

#include <holdfast/base/clock.hpp>

namespace temporal::api::workflowservice::v1 {
class PollActivityTaskQueueResponse;
class PollWorkflowTaskQueueResponse;
}  // namespace temporal::api::workflowservice::v1

namespace holdfast::server::matching {

using history::Time;

enum class QueueType : std::uint8_t { workflow = 1, activity, nexus };

struct QueueKey {
    std::string namespace_id;
    std::string name;  // Of a sticky queue its own name.
    QueueType type = QueueType::workflow;

    friend auto operator<=>(const QueueKey&, const QueueKey&) = default;
};

inline constexpr int default_priority = 3;  // Of 1, which goes first, to 5.

// A workflow task, or an attempt of an activity, as its run knows it. The run decides: a task that
// the run has started already, or does not want any more, is void.
struct QueuedTask {
    std::string workflow_id;
    std::string run_id;
    std::int64_t event_id = 0;  // Of the event that scheduled it.
    std::int32_t stamp = 0;
    int priority = default_priority;
    std::string fairness_key{};  // Of one priority, keys are served in turn.
    double fairness_weight = 1;  // Of a key with twice the weight, twice as many tasks are.
    Time created;                // The age of a backlog counts from here.
    std::optional<Time> expiry;  // Then it is not delivered any more.
    std::int64_t row = 0;        // The stored row that keeps it until it is started.

    friend bool operator==(const QueuedTask&, const QueuedTask&) = default;
};

struct PollInfo {
    std::string request_id{};  // Names the poll in the event of the start; never used again.
    std::string identity{};
    std::string worker_instance_key{};
    std::optional<double> tasks_per_second{};  // The limit that the worker asks for.
    std::string normal_name{};                 // Of a sticky queue: the queue it stands for.
    std::optional<temporal::api::common::v1::WorkerVersionStamp> worker_version{};
};

using WorkflowReply = rpc::Reply<temporal::api::workflowservice::v1::PollWorkflowTaskQueueResponse>;
using ActivityReply = rpc::Reply<temporal::api::workflowservice::v1::PollActivityTaskQueueResponse>;

struct Poll {
    QueueKey queue;
    PollInfo info;
    std::variant<WorkflowReply, ActivityReply> reply;
};

}  // namespace holdfast::server::matching
