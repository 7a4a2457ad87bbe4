// Pictures: one page that needs nothing else, readable on light and dark screens.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <holdfast/sim/result.hpp>
#include <holdfast/sim/scenario.hpp>

namespace holdfast::sim {

// How a run went: connections, openings, what was closed and why, waits, ages, with the faults
// marked.
[[nodiscard]] std::string page_of(const Scenario& scenario, const Result& result);

// A point of a sweep, for a map of colours.
struct SweepCell {
    std::string column;
    std::string row;
    double value = 0;
    bool holds = true;
};

struct SweepMap {
    std::string title;  // Of the figure that is shown.
    std::string column_key;
    std::string row_key;  // Empty: a sweep along one axis.
    std::vector<SweepCell> cells;
    bool more_is_worse = true;  // Else green is much.
};

[[nodiscard]] std::string page_of(const std::string& title, const std::vector<SweepMap>& maps);

}  // namespace holdfast::sim
