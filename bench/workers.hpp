// A number of threads that do the same thing over and over, from one moment until another.
#pragma once

#include <chrono>
#include <functional>
#include <stop_token>

#include <holdfast/base/random.hpp>
#include <holdfast/bench/driver.hpp>

namespace holdfast::bench {

// Calls `operation` from `workers` threads at once, each with a generator of its own, until the
// time is over or the token fires. If one throws, all end and the first exception comes out.
[[nodiscard]] Work run_workers(int workers,
                               std::chrono::nanoseconds time,
                               const std::stop_token& stop,
                               const std::function<void(Random&)>& operation);

}  // namespace holdfast::bench
