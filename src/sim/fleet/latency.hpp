// Random moments: how long something takes, and when the next thing comes.
#pragma once

#include <chrono>

#include <holdfast/base/random.hpp>
#include <holdfast/sim/scenario.hpp>

namespace holdfast::sim {

// Nothing lasts longer, so that sums and multiples of such times are still times.
inline constexpr Time time_max = std::chrono::hours{24 * 3'660};

// So many times as long, and at most time_max.
[[nodiscard]] Time scaled(Time time, double factor);

[[nodiscard]] Time draw(const Latency& latency, Random& random);

// The gap between two of `rate` independent arrivals a second. Requires: rate > 0.
[[nodiscard]] Time draw_gap(double rate, Random& random);

// A uniform part of `whole`.
[[nodiscard]] Time draw_part(Time whole, Random& random);

}  // namespace holdfast::sim
