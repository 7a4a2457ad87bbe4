// The time, cheaply.
#pragma once

#include <chrono>
#include <ctime>

#include <holdfast/base/clock.hpp>

namespace holdfast::pool {

// The machine's steady clock, some milliseconds late at most. That is exact enough for ages and
// idle times, and reading the exact time twice costs as much as the rest of a borrow.
[[nodiscard]] inline Steady coarse_steady_now() noexcept {
    timespec time{};
    static_cast<void>(::clock_gettime(CLOCK_MONOTONIC_COARSE, &time));
    return Steady{std::chrono::seconds{time.tv_sec} + std::chrono::nanoseconds{time.tv_nsec}};
}

}  // namespace holdfast::pool
