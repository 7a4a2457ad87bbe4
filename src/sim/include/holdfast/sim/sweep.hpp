// What to simulate in turn: seeds, the points of a sweep, the values of a search.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <holdfast/sim/scenario.hpp>

namespace holdfast::sim {

inline constexpr std::size_t runs_max = 100'000;   // With one scenario or many.
inline constexpr std::size_t points_max = 10'000;  // Of a sweep.

// "7", or "1..200". Invalid_argument if it is neither, or more than runs_max.
[[nodiscard]] std::vector<std::uint64_t> parse_seeds(std::string_view text);

// A key and the values it takes in turn.
struct Axis {
    std::string key;
    std::vector<std::string> values;
};

// "KEY=1,5,9", "KEY=1..9", "KEY=10..50/10", "KEY=0.1..0.9/0.2" or "KEY=0s..10m/30s". The steps are
// exact: 0.1, 0.3, 0.5. Else invalid_argument, saying what is wrong.
[[nodiscard]] Axis parse_axis(std::string_view text);

// Every combination, the last axis moving fastest. Invalid_argument beyond points_max,
// or if a key is there twice.
[[nodiscard]] std::vector<std::vector<Override>> combinations(std::span<const Axis> axes);

// Where to look for the largest value that passes.
struct Bounds {
    std::string key;
    std::int64_t low = 0;
    std::int64_t high = 0;
    Time unit{};        // Of both, if they are durations; else zero,
    int digits = 0;     // and they count units of so many digits behind the point.
    bool open = false;  // They were not given; see narrowed().

    [[nodiscard]] std::string text(std::int64_t value) const;
};

// "KEY=10..500", "KEY=0.1..0.9" or "KEY=1s..10m"; values are looked at as finely as the bounds are
// given: by one, by a tenth, by the second, by the millisecond. "KEY" alone is open, from one on.
// Else invalid_argument.
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
