// Many simulations, on all cores. What comes out does not depend on how many threads there are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <stop_token>
#include <vector>

#include <holdfast/sim/figures.hpp>
#include <holdfast/sim/scenario.hpp>

namespace holdfast::sim {

inline constexpr unsigned threads_max = 1'024;

struct Job {
    const Scenario* scenario = nullptr;
    std::uint64_t seed = 0;
};

struct BatchOptions {
    unsigned threads = 0;  // 0: as many as the machine has cores. At most threads_max.
    std::stop_token stop{};
    std::function<void(std::size_t done)> progress{};  // From any of the threads, one at a time.
};

// In the order of the jobs. What a simulation throws is thrown here, once all threads have ended.
// Once a stop is asked for, nothing new begins and what is under way is given up: those outcomes
// are not `finished`. Requires: the scenarios outlive the call.
[[nodiscard]] std::vector<Outcome> run_batch(std::span<const Job> jobs,
                                             const BatchOptions& options);

}  // namespace holdfast::sim
