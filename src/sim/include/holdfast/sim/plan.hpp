// Sizing formulas: the expected figures of a scenario without running it.
#pragma once

#include <string>
#include <vector>

#include <holdfast/sim/scenario.hpp>

namespace holdfast::sim {

struct PlanLine {
    std::string name;  // "fill_s"
    double value = 0;
    std::string formula;  // "(N - B) / R"
    std::string trouble;  // Why that cannot work; empty if it can.
};

// N: connections of the fleet, R: new ones per second, B: burst, G: guard, F: fill time.
[[nodiscard]] std::vector<PlanLine> plan_of(const Scenario& scenario);

}  // namespace holdfast::sim
