// Many simulations, on all cores. What comes out does not depend on how many threads there are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include <holdfast/sim/figures.hpp>
#include <holdfast/sim/scenario.hpp>

namespace holdfast::sim {

inline constexpr std::size_t runs_max = 1'000'000;
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
// Requires: the scenarios outlive the call.
[[nodiscard]] std::vector<Outcome> run_batch(std::span<const Job> jobs,
                                             const BatchOptions& options);

// "7", or "1..200". Invalid_argument if it is neither, or more than runs_max.
[[nodiscard]] std::vector<std::uint64_t> parse_seeds(std::string_view text);

// A key and the values it takes in turn.
struct Axis {
    std::string key;
    std::vector<std::string> values;
};

// "KEY=1,5,9", "KEY=1..9", "KEY=10..50/10" or "KEY=0s..10m/30s". Else invalid_argument.
[[nodiscard]] Axis parse_axis(std::string_view text);

// Every combination, the last axis moving fastest. Invalid_argument beyond runs_max.
[[nodiscard]] std::vector<std::vector<Override>> combinations(std::span<const Axis> axes);

// Where to look for the largest value that passes.
struct Bounds {
    std::string key;
    std::int64_t low = 0;
    std::int64_t high = 0;
    Time unit{};        // Of both, if they are durations; else zero.
    bool open = false;  // Nobody gave them; see narrowed().

    [[nodiscard]] std::string text(std::int64_t value) const;
};

// "KEY=10..500" or "KEY=1s..10m"; durations are looked at by the second, or by the millisecond if
// they are given so. "KEY" alone is open, from one on. Else invalid_argument.
[[nodiscard]] Bounds parse_bounds(std::string_view text);

// Open bounds drawn round the edge: one, two, four and so on, up to the first that fails after one
// that passed. So nothing is simulated that is more than twice as large as it must be. Empty if
// none passes.
[[nodiscard]] Bounds narrowed(Bounds bounds, const std::function<bool(std::int64_t)>& passes);

// The largest value from `low` to `high` that passes, if all below it do; below `low` if none does.
// `passes` is asked about log2(high - low) times.
[[nodiscard]] std::int64_t largest_passing(std::int64_t low,
                                           std::int64_t high,
                                           const std::function<bool(std::int64_t)>& passes);

}  // namespace holdfast::sim
