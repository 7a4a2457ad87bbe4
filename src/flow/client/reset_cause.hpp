// What has ended an execution, by its history.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <holdfast/flow_engine/event.hpp>

namespace holdfast::flow {

// An event that only says that the execution has ended, or what the end gave up.
[[nodiscard]] bool belongs_to_the_end(const Event& event);

struct Cause {
    std::size_t kept = 0;          // How many events precede it and are kept.
    std::optional<Event> event{};  // Empty: the code itself.
    bool ran_out = false;          // It is a timeout, which has to start again.
};

// Dates the last turn in `events` anew: timers that its code asks for begin then.
void date_last_turn(std::vector<Event>& events, std::int64_t now_ms);

// Pure. Throws Error condition_failed unless the execution has failed or was cancelled.
[[nodiscard]] Cause cause_of_end(const std::vector<Event>& history);

}  // namespace holdfast::flow
