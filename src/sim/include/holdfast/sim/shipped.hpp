// Scenarios that come with the program.
#pragma once

#include <span>
#include <string_view>

namespace holdfast::sim {

struct Shipped {
    std::string_view name;  // "ecs-150wps", "compat-s/local"
    std::string_view yaml;  // Its first line is a comment that says what it shows.
};

// In alphabetical order.
[[nodiscard]] std::span<const Shipped> shipped_scenarios();

}  // namespace holdfast::sim
