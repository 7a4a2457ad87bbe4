#include <algorithm>

#include <fmt/core.h>

#include <holdfast/base/report.hpp>

namespace holdfast::report {
namespace {

constexpr double width = 960;
constexpr double height = 260;
constexpr double left = 64;
constexpr double right = 16;
constexpr double top = 14;
constexpr double bottom = 34;
constexpr double least = 1e-9;  // An axis of length zero has no scale.

}  // namespace

Chart::Chart(std::string title, std::string_view x_unit, double x_most, double y_most)
    : title_(std::move(title)),
      x_most_(std::max(x_most, least)),
      y_most_(std::max(y_most, least)),
      svg_(title_, width, height) {
    axes();
    svg_.text("tick end", {width - right, height - 2}, x_unit);
}

Point Chart::at(Point point) const {
    return {left + point.x / x_most_ * (width - left - right),
            height - bottom - point.y / y_most_ * (height - top - bottom)};
}

void Chart::note(std::string_view css, std::string_view label) {
    legend_.emplace_back(css, label);
}

void Chart::line(std::string_view css, std::string_view label, const std::vector<Point>& points) {
    std::vector<Point> placed;
    placed.reserve(points.size());
    for (const Point& point : points) {
        placed.push_back(at(point));
    }
    svg_.path(fmt::format("line {}", css), placed);
    note(css, label);
}

void Chart::band(std::string_view css,
                 std::string_view label,
                 const std::vector<Point>& low,
                 const std::vector<Point>& high) {
    std::vector<Point> placed;
    placed.reserve(high.size() + low.size());
    for (const Point& point : high) {
        placed.push_back(at(point));
    }
    for (auto point = low.rbegin(); point != low.rend(); ++point) {
        placed.push_back(at(*point));
    }
    svg_.path(fmt::format("band {}", css), placed, true);
    note(css, label);
}

void Chart::columns(std::string_view css,
                    std::string_view label,
                    const std::vector<Point>& points,
                    double column_width,
                    const std::vector<double>& base) {
    for (std::size_t i = 0; i < points.size(); ++i) {
        const Point& point = points[i];
        if (point.y <= 0) {
            continue;
        }
        const double from = base.empty() ? 0 : base[i];
        const Point corner = at({point.x, from + point.y});
        const Point other = at({std::min(x_most_, point.x + column_width), from});
        svg_.rectangle(fmt::format("column {}", css),
                       {corner, std::max(0.6, other.x - corner.x - 0.3), other.y - corner.y});
    }
    note(css, label);
}

void Chart::cells(std::string_view css,
                  std::string_view label,
                  const std::vector<Cell>& cells,
                  double cell_width,
                  double cell_height) {
    for (const Cell& cell : cells) {
        if (cell.part <= 0) {
            continue;
        }
        const Point corner = at({cell.x, std::min(y_most_, cell.y + cell_height)});
        const Point other = at({std::min(x_most_, cell.x + cell_width), cell.y});
        svg_.rectangle(fmt::format("cell-of-map {}", css),
                       {corner, other.x - corner.x, other.y - corner.y},
                       {},
                       0.08 + 0.92 * std::min(1.0, cell.part));
    }
    note(css, label);
}

void Chart::level(std::string_view css, std::string_view label, double y) {
    svg_.line(fmt::format("level {}", css), at({0, y}), at({x_most_, y}));
    note(css, label);
}

void Chart::marker(std::string_view label, double x) {
    svg_.line("fault", {at({x, 0}).x, top}, {at({x, 0}).x, height - bottom}, label);
    if (legend_.empty() || legend_.back().first != "f") {
        note("f", "faults");
    }
}

void Chart::axes() {
    constexpr double rounding = 1.0001;
    const double y_step = axis_step(y_most_, 4);
    for (int i = 0; i * y_step <= y_most_ * rounding; ++i) {
        const double y = at({0, i * y_step}).y;
        svg_.line("grid", {left, y}, {width - right, y});
        svg_.text("tick end", {left - 8, y + 4}, fmt::format("{:g}", i * y_step));
    }
    const double x_step = axis_step(x_most_, 8);
    for (int i = 0; i * x_step <= x_most_ * rounding; ++i) {
        svg_.text("tick middle",
                  {at({i * x_step, 0}).x, height - bottom + 18},
                  fmt::format("{:g}", i * x_step));
    }
}

std::string Chart::figure() && {
    std::string legend;
    for (const auto& [css, label] : legend_) {
        legend += fmt::format("<span><i class=\"{}\"></i>{}</span>", css, escaped(label));
    }
    return fmt::format(
        "<figure><figcaption>{}</figcaption><p class=\"legend\">{}</p>\n{}</figure>\n",
        escaped(title_),
        legend,
        std::move(svg_).finish());
}

}  // namespace holdfast::report
