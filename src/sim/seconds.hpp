// Simulated time as a number, for figures and charts.
#pragma once

#include <chrono>

#include <holdfast/sim/scenario.hpp>

namespace holdfast::sim {

[[nodiscard]] inline double seconds_of(Time time) {
    return std::chrono::duration<double>(time).count();
}

}  // namespace holdfast::sim
