// Runs a scenario: the same scenario and seed give the same result, whatever else happens.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include <holdfast/sim/result.hpp>
#include <holdfast/sim/scenario.hpp>

namespace holdfast::sim {

// How far a simulation has come.
struct Moment {
    Time now{};
    std::uint64_t executed = 0;
    std::size_t waiting = 0;
};

struct Watch {
    std::function<void(const Moment&)> minute{};  // About once in a simulated minute.
    std::stop_token stop{};
    // Of the current pool: what happens in the process of this name,
    std::string traced{};
    std::function<void(Time, std::string_view)> trace{};
    // and why the fleet is short at this moment.
    std::optional<Time> explain_at{};
};

// Runs to the end and evaluates the assertions. Cancelled if the token fires.
// Safe to call from many threads at once.
[[nodiscard]] Result simulate(const Scenario& scenario,
                              std::uint64_t seed,
                              const Watch& watch = {});

}  // namespace holdfast::sim
