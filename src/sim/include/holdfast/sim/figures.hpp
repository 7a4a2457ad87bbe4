// A result in a few numbers, and many results in a few more.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <holdfast/sim/result.hpp>
#include <holdfast/sim/scenario.hpp>

namespace holdfast::sim {

struct Figure {
    std::string name;  // With its unit: "fill_s", "wait_p99_ms".
    double value = 0;
    bool more_is_worse = true;
};

// Always the same names in the same order for one profile.
[[nodiscard]] std::vector<Figure> figures_of(const Scenario& scenario, const Result& result);

// How long after a fault, or after its end, the fleet had its whole target again, by the samples;
// max(): never.
struct Recovery {
    Strike strike;
    Time took{};
};

// Of each fault, in order of time.
[[nodiscard]] std::vector<Recovery> recoveries_of(const Result& result);

// One figure over many runs.
struct Spread {
    std::string name;
    double mean = 0;
    double deviation = 0;
    double p5 = 0;
    double p50 = 0;
    double p95 = 0;
    double p99 = 0;
    double worst = 0;
    std::uint64_t worst_seed = 0;
};

struct Outcome {
    std::uint64_t seed = 0;
    std::uint64_t events = 0;
    std::vector<Figure> figures{};
    std::vector<Violation> violations{};
    bool finished = true;  // Else it was stopped, and there is nothing in it.

    [[nodiscard]] bool passed() const noexcept { return violations.empty(); }
};

// Requires: all have the same figures. Empty of none.
[[nodiscard]] std::vector<Spread> spread_of(std::span<const Outcome> outcomes);

}  // namespace holdfast::sim
