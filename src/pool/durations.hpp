// Arithmetic on durations that the machines and the threads share.
#pragma once

#include <chrono>
#include <cstdint>

namespace holdfast::pool {

[[nodiscard]] inline std::chrono::nanoseconds part_of(std::chrono::nanoseconds whole,
                                                      double part) noexcept {
    return std::chrono::nanoseconds{
        static_cast<std::int64_t>(static_cast<double>(whole.count()) * part)};
}

[[nodiscard]] inline double in_seconds(std::chrono::nanoseconds time) noexcept {
    return std::chrono::duration<double>(time).count();
}

}  // namespace holdfast::pool
