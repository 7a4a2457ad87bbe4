#include "report/plot.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include <holdfast/base/report.hpp>
#include <holdfast/bench/report.hpp>

namespace holdfast::bench {
namespace {

using report::Svg;

constexpr double page_width = 900;
constexpr double name_width = 190;   // Names of the results, on the left.
constexpr double value_width = 180;  // Values, on the right.
constexpr double plot_left = name_width;
constexpr double plot_right = page_width - value_width;
constexpr double axis_height = 34;

// From a ratio to a place between plot_left and plot_right; every doubling has the same width.
class RatioScale {
public:
    explicit RatioScale(std::span<const Result> results) {
        double low = 1;
        double high = 1;
        const auto take = [&low, &high](double value) {
            if (value > 0) {
                low = std::min(low, value);
                high = std::max(high, value);
            }
        };
        for (const Result& result : results) {
            for (const double round : result.ratio.rounds) {
                take(round);
            }
            take(result.floor.value_or(1));
        }
        low_ = std::floor(std::log2(low) - 0.15);
        high_ = std::ceil(std::log2(high) + 0.15);
    }
    [[nodiscard]] double x(double ratio) const {
        const double at = (std::log2(ratio) - low_) / (high_ - low_);
        return plot_left + std::clamp(at, 0.0, 1.0) * (plot_right - plot_left);
    }
    [[nodiscard]] int first_power() const { return static_cast<int>(low_); }
    [[nodiscard]] int last_power() const { return static_cast<int>(high_); }

private:
    double low_ = 0;
    double high_ = 0;
};

void draw_ratio_axis(Svg& svg, const RatioScale& scale, double bottom) {
    for (int power = scale.first_power(); power <= scale.last_power(); ++power) {
        const double ratio = std::exp2(power);
        const double x = scale.x(ratio);
        svg.line(power == 0 ? "one" : "grid", {x, 18}, {x, bottom});
        svg.text("tick middle", {x, bottom + 18}, fmt::format("{:g}×", ratio));
    }
    svg.text("tick middle", {scale.x(1), 12}, "the limit");
}

void draw_ratio_row(Svg& svg, const RatioScale& scale, const Result& result, double y) {
    svg.text("name", {0, y + 4}, result.name);
    for (const double round : result.ratio.rounds) {
        svg.circle("round", {scale.x(round), y + 12}, 2.5);
    }
    svg.line("whisker", {scale.x(result.ratio.lower), y}, {scale.x(result.ratio.upper), y});
    svg.circle(result.below_floor() ? "median below" : "median",
               {scale.x(result.ratio.median), y},
               5.5,
               fmt::format("{}: {:.3f} of the limit, quartiles {:.3f} to {:.3f}, {} rounds",
                           result.name,
                           result.ratio.median,
                           result.ratio.lower,
                           result.ratio.upper,
                           result.ratio.rounds.size()));
    svg.text("value", {plot_right + 14, y + 5}, fmt::format("{:.2f}×", result.ratio.median));
    if (result.floor) {
        const double x = scale.x(*result.floor);
        svg.line("floor", {x, y - 13}, {x, y + 13});
        svg.text(
            result.below_floor() ? "note below" : "note",
            {plot_right + 74, y + 5},
            fmt::format("{} {:g}", result.below_floor() ? "✗ below" : "✓ floor", *result.floor));
    }
}

struct Bar {
    std::string_view style;
    std::string_view who;
    const Spread& spread;
};

void draw_bar(Svg& svg, const Result& result, const Bar& bar, double y, double per_unit) {
    const double width = std::max(1.0, bar.spread.median * per_unit);
    svg.rectangle(bar.style,
                  {{plot_left, y}, width, 13},
                  fmt::format("{}, {}: {} {}, quartiles {} to {}",
                              result.name,
                              bar.who,
                              grouped(bar.spread.median),
                              result.unit,
                              grouped(bar.spread.lower),
                              grouped(bar.spread.upper)));
    svg.line("error",
             {plot_left + bar.spread.lower * per_unit, y + 6.5},
             {plot_left + bar.spread.upper * per_unit, y + 6.5});
    const double end = std::max(bar.spread.median, bar.spread.upper) * per_unit;
    svg.text("small", {plot_left + end + 7, y + 11}, grouped(bar.spread.median));
}

}  // namespace

std::string ratio_plot(std::span<const Result> results) {
    constexpr double row_height = 42;
    const double bottom = 26 + row_height * static_cast<double>(results.size());
    const RatioScale scale{results};
    Svg svg{"Ours as a multiple of the limit", page_width, bottom + axis_height};
    draw_ratio_axis(svg, scale, bottom);
    double y = 26 + row_height / 2;
    for (const Result& result : results) {
        draw_ratio_row(svg, scale, result, y);
        y += row_height;
    }
    return std::move(svg).finish();
}

std::string rate_plot(std::span<const Result> results) {
    constexpr double row_height = 44;
    double top = 1;
    for (const Result& result : results) {
        top = std::max({top, result.ours.upper, result.limit.upper});
    }
    const double step = report::axis_step(top, 4);
    const double per_unit = (plot_right - plot_left) / top;
    const double bottom = 10 + row_height * static_cast<double>(results.size());
    Svg svg{"Rates of ours and of the limit", page_width, bottom + axis_height};
    for (int tick = 0; tick * step <= top; ++tick) {
        const double at = tick * step;
        const double x = plot_left + at * per_unit;
        svg.line("grid", {x, 4}, {x, bottom});
        svg.text("tick middle", {x, bottom + 18}, grouped(at));
    }
    double y = 10;
    for (const Result& result : results) {
        svg.text("name", {0, y + 21}, result.name);
        draw_bar(svg, result, {"ours", "ours", result.ours}, y + 4, per_unit);
        draw_bar(svg, result, {"limit", "the limit", result.limit}, y + 20, per_unit);
        y += row_height;
    }
    return std::move(svg).finish();
}

}  // namespace holdfast::bench
