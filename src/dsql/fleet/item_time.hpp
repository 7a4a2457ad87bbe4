// Times as the items of the shared tables hold them.
#pragma once

#include <chrono>
#include <cstdint>

#include <holdfast/base/clock.hpp>

namespace holdfast::dsql {

// Milliseconds since 1970, rounded down.
[[nodiscard]] inline std::int64_t ms(Wall time) {
    return std::chrono::floor<std::chrono::milliseconds>(time).time_since_epoch().count();
}

// Rounded up: the wall clock has microseconds.
[[nodiscard]] inline std::chrono::microseconds us(std::chrono::nanoseconds time) {
    return std::chrono::ceil<std::chrono::microseconds>(time);
}

}  // namespace holdfast::dsql
