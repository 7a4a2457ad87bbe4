#include "report/chart.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

namespace holdfast::sim {
namespace {

constexpr double width = 960;
constexpr double height = 260;
constexpr double left = 64;
constexpr double right = 16;
constexpr double top = 14;
constexpr double bottom = 34;

std::string path_of(const std::vector<ChartPoint>& points) {
    std::string path;
    for (const ChartPoint& point : points) {
        path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", point.x, point.y);
    }
    return path;
}

}  // namespace

std::string escape_xml(std::string_view text) {
    std::string escaped;
    for (const char c : text) {
        switch (c) {
            case '&':
                escaped += "&amp;";
                break;
            case '<':
                escaped += "&lt;";
                break;
            case '>':
                escaped += "&gt;";
                break;
            case '"':
                escaped += "&quot;";
                break;
            default:  // XML has no room for other control characters, not even escaped.
                escaped += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
        }
    }
    return escaped;
}

double nice_step(double most, int parts) {
    const double raw = most / parts;
    const double power = std::pow(10, std::floor(std::log10(raw)));
    for (const double factor : {1.0, 2.0, 5.0}) {
        if (raw <= factor * power) {
            return factor * power;
        }
    }
    return 10 * power;
}

Chart::Chart(std::string title, std::string x_unit, double x_most, double y_most)
    : title_(std::move(title)),
      x_unit_(std::move(x_unit)),
      x_most_(std::max(x_most, 1e-9)),
      y_most_(std::max(y_most, 1e-9)) {}

double Chart::at_x(double x) const {
    return left + x / x_most_ * (width - left - right);
}

double Chart::at_y(double y) const {
    return height - bottom - y / y_most_ * (height - top - bottom);
}

void Chart::note(std::string_view css, std::string_view label) {
    legend_.emplace_back(css, label);
}

void Chart::line(std::string_view css,
                 std::string_view label,
                 const std::vector<ChartPoint>& points) {
    std::vector<ChartPoint> placed;
    placed.reserve(points.size());
    for (const ChartPoint& point : points) {
        placed.push_back({at_x(point.x), at_y(point.y)});
    }
    body_ += fmt::format("<path class=\"line {}\" d=\"{}\"/>\n", css, path_of(placed));
    note(css, label);
}

void Chart::band(std::string_view css,
                 std::string_view label,
                 const std::vector<ChartPoint>& low,
                 const std::vector<ChartPoint>& high) {
    std::vector<ChartPoint> placed;
    placed.reserve(high.size() + low.size());
    for (const ChartPoint& point : high) {
        placed.push_back({at_x(point.x), at_y(point.y)});
    }
    for (auto point = low.rbegin(); point != low.rend(); ++point) {
        placed.push_back({at_x(point->x), at_y(point->y)});
    }
    body_ += fmt::format("<path class=\"band {}\" d=\"{}Z\"/>\n", css, path_of(placed));
    note(css, label);
}

void Chart::columns(std::string_view css,
                    std::string_view label,
                    const std::vector<ChartPoint>& points,
                    double column_width,
                    const std::vector<double>& base) {
    for (std::size_t i = 0; i < points.size(); ++i) {
        const ChartPoint& point = points[i];
        if (point.y <= 0) {
            continue;
        }
        const double from = base.empty() ? 0 : base[i];
        const double x = at_x(point.x);
        body_ += fmt::format(
            "<rect class=\"column {}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.2f}\" "
            "height=\"{:.1f}\"/>\n",
            css,
            x,
            at_y(from + point.y),
            std::max(0.6, at_x(std::min(x_most_, point.x + column_width)) - x - 0.3),
            at_y(from) - at_y(from + point.y));
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
        const double x = at_x(cell.x);
        const double y = at_y(std::min(y_most_, cell.y + cell_height));
        body_ += fmt::format(
            "<rect class=\"cell-of-map {}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.2f}\" "
            "height=\"{:.1f}\" fill-opacity=\"{:.2f}\"/>\n",
            css,
            x,
            y,
            at_x(std::min(x_most_, cell.x + cell_width)) - x,
            at_y(cell.y) - y,
            0.08 + 0.92 * std::min(1.0, cell.part));
    }
    note(css, label);
}

void Chart::level(std::string_view css, std::string_view label, double y) {
    body_ +=
        fmt::format("<line class=\"level {}\" x1=\"{}\" x2=\"{}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/>\n",
                    css,
                    left,
                    width - right,
                    at_y(y),
                    at_y(y));
    note(css, label);
}

void Chart::marker(std::string_view label, double x) {
    body_ += fmt::format(
        "<line class=\"fault\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1}\" y2=\"{2}\"><title>{3}"
        "</title></line>\n",
        at_x(x),
        top,
        height - bottom,
        escape_xml(label));
    if (legend_.empty() || legend_.back().first != "f") {
        note("f", "faults");
    }
}

std::string Chart::axes() const {
    std::string text;
    const double y_step = nice_step(y_most_, 4);
    for (double y = 0; y <= y_most_ * 1.0001; y += y_step) {
        text += fmt::format(
            "<line class=\"grid\" x1=\"{0}\" x2=\"{1}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\"/>"
            "<text class=\"tick y\" x=\"{3}\" y=\"{4:.1f}\">{5:g}</text>\n",
            left,
            width - right,
            at_y(y),
            left - 8,
            at_y(y) + 4,
            y);
    }
    const double x_step = nice_step(x_most_, 8);
    for (double x = 0; x <= x_most_ * 1.0001; x += x_step) {
        text += fmt::format("<text class=\"tick x\" x=\"{:.1f}\" y=\"{}\">{:g}</text>\n",
                            at_x(x),
                            height - bottom + 18,
                            x);
    }
    return text + fmt::format("<text class=\"tick unit\" x=\"{}\" y=\"{}\">{}</text>\n",
                              width - right,
                              height - 2,
                              escape_xml(x_unit_));
}

std::string Chart::svg() const {
    std::string legend;
    for (const auto& [css, label] : legend_) {
        legend += fmt::format(
            "<span class=\"key\"><i class=\"{}\"></i>{}</span>", css, escape_xml(label));
    }
    return fmt::format(
        "<figure><figcaption>{0}</figcaption><p class=\"legend\">{1}</p>\n"
        "<svg viewBox=\"0 0 {2} {3}\" role=\"img\" aria-label=\"{0}\">\n{4}{5}</svg></figure>\n",
        escape_xml(title_),
        legend,
        width,
        height,
        axes(),
        body_);
}

}  // namespace holdfast::sim
