// The waiters and the starting time of this floor's tests.
#pragma once

#include <chrono>

#include <holdfast/pool/machine.hpp>

namespace holdfast::pool {

inline constexpr WaiterId ann{1};
inline constexpr WaiterId bob{2};

inline constexpr Steady start{std::chrono::hours{1}};

// A pool that is content with nothing but all of its connections.
inline Config full(int target) {
    Config config;
    config.target = target;
    config.min_ready = target;
    return config;
}

}  // namespace holdfast::pool
