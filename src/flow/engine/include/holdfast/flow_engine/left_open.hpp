// What an execution has asked for and nobody has answered, by its history alone: for an end that
// the code has no part in.
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

// Nobody wants its answer: the turn says so to whoever has it.
void abandon(Turn& turn, const LeftOpen& operation);

}  // namespace holdfast::flow
