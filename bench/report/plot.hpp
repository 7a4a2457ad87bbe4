// Pictures of benchmark results, as SVG. Colours come from the page's style sheet, so that one
// picture serves light and dark screens.
#pragma once

#include <span>
#include <string>

#include <holdfast/bench/driver.hpp>

namespace holdfast::bench {

// One row per result: the rounds as faint dots, the quartiles as a bar, the median as a dot, the
// floor as a mark, and a line at 1, the limit. The scale is logarithmic.
[[nodiscard]] std::string ratio_plot(std::span<const Result> results);

// Ours and the limit as two bars per result, with the quartiles. All results share one scale, so
// give it those that belong together.
[[nodiscard]] std::string rate_plot(std::span<const Result> results);

}  // namespace holdfast::bench
