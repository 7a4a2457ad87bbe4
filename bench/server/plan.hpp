// What the workflows of a scenario do, decided from the events of each task alone: no replay.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <temporal/api/workflowservice/v1/request_response.pb.h>

namespace holdfast::server_bench {

enum class PlanKind : std::uint8_t { chain, fanout, signals, timer, update };

struct Plan {
    std::string_view name;
    PlanKind kind = PlanKind::chain;
    int steps = 0;  // Activities, signals or updates.
};

// hello, chain1, chain5, fanout, signals, timers, updates.
[[nodiscard]] std::span<const Plan> plans();

// Workflows that wait for one signal.
inline constexpr Plan open_plan{"open", PlanKind::signals, 1};

// What a worker has seen of one run.
class Sight {
public:
    void see(const temporal::api::history::v1::HistoryEvent& event);

    // Adds the commands of this task, and the answers to its updates. True if the run ends.
    [[nodiscard]] bool decide(
        const Plan& plan,
        const std::string& task_queue,
        const temporal::api::workflowservice::v1::PollWorkflowTaskQueueResponse& task,
        temporal::api::workflowservice::v1::RespondWorkflowTaskCompletedRequest& into);

private:
    [[nodiscard]] int wanted(const Plan& plan) const;

    int scheduled_ = 0;
    int done_ = 0;
    int signals_ = 0;
    bool timer_started_ = false;
    bool timer_fired_ = false;
    int updates_ = 0;
};

// 16 bytes, the input and the result of everything.
void set_payload(temporal::api::common::v1::Payloads& into);

}  // namespace holdfast::server_bench
