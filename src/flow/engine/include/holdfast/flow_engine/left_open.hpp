// The open requests of an execution, from its history alone: for an end that its code does not
// take part in.
#pragma once

#include <span>
#include <string>
#include <vector>

#include <holdfast/flow_engine/event.hpp>
#include <holdfast/flow_engine/execution.hpp>

namespace holdfast::flow {

struct LeftOpen {
    EventId event = 0;
    Dropped operation = Dropped::activity;  // Or child. Timers and waits end with the instance.
    std::string child{};                    // Its instance.
    friend bool operator==(const LeftOpen&, const LeftOpen&) = default;
};

// In the order in which they were asked for.
[[nodiscard]] std::vector<LeftOpen> left_open(std::span<const Event> history);

// Its answer is no longer needed: the turn cancels the activity or the child.
void abandon(Turn& turn, const LeftOpen& operation);

}  // namespace holdfast::flow
