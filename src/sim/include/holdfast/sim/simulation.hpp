// Runs a scenario: the same scenario and seed give the same result, whatever else happens.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <stop_token>

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
};

// Runs to the end and evaluates the assertions. Cancelled if the token fires.
// Safe to call from many threads at once.
[[nodiscard]] Result simulate(const Scenario& scenario,
                              std::uint64_t seed,
                              const Watch& watch = {});

}  // namespace holdfast::sim
