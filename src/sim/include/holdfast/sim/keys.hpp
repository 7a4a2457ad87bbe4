// The keys of a scenario file and the names of its assertions, as the reader itself knows them.
#pragma once

#include <string>
#include <vector>

#include <holdfast/sim/scenario.hpp>

namespace holdfast::sim {

struct ScenarioKey {
    std::string path;  // "services[0].workload.rate"
    std::string kind;  // "duration", "number", "whole number", "text", or the words to choose from
    std::string fallback;  // What is in force if it is missing; empty if it must be given.
};

// In the order in which they are read.
[[nodiscard]] std::vector<ScenarioKey> scenario_keys(Profile profile);

// As violations name them, in the order in which they are evaluated.
[[nodiscard]] std::vector<std::string> assertion_names(const Scenario& scenario);

}  // namespace holdfast::sim
