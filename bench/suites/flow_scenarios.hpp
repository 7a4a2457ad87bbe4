// What is measured of workflows: who starts how many of which, and what is looked at.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include <holdfast/bench/driver.hpp>
#include <holdfast/flow/flow.hpp>

namespace holdfast::bench {

// Where a scenario runs.
struct FlowStage {
    flow::Store& store;
    double commit_us = 0;  // What one commit of the limit took when it was last measured; or 0.
};

struct Scenario {
    std::string_view name;
    int in_flight = 1;
    std::string_view variant{};  // Of the same name and number: ".s1".
    flow::RuntimeOptions options{};
    // One whole workflow, by its id; how many activities it ran.
    std::function<int(flow::Client&, const std::string& id)> one{};
    // Or a round that is not a loop of that.
    std::function<Work(
        const Scenario&, const FlowStage&, std::chrono::nanoseconds, const std::stop_token&)>
        round{};
    std::optional<double> sqlite_floor{};
    std::optional<double> postgres_floor{};
    double ceiling = 0;  // Workflows per second that the workload itself allows.
};

[[nodiscard]] std::vector<Scenario> flow_scenarios();

// One round, in one process with the runtime.
[[nodiscard]] Work run_scenario(const Scenario& scenario,
                                const FlowStage& phase,
                                std::chrono::nanoseconds time,
                                const std::stop_token& stop);

}  // namespace holdfast::bench
