#include <cmath>
#include <iterator>

#include <fmt/core.h>

#include <holdfast/base/report.hpp>

namespace holdfast::report {

std::string escaped(std::string_view text) {
    std::string safe;
    safe.reserve(text.size());
    for (const char c : text) {
        switch (c) {
            case '&':
                safe += "&amp;";
                break;
            case '<':
                safe += "&lt;";
                break;
            case '>':
                safe += "&gt;";
                break;
            case '"':
                safe += "&quot;";
                break;
            default:
                safe += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
        }
    }
    return safe;
}

double axis_step(double most, int parts) {
    const double rough = most / parts;
    const double power = std::pow(10.0, std::floor(std::log10(rough)));
    for (const double digit : {1.0, 2.0, 5.0}) {
        if (rough <= digit * power) {
            return digit * power;
        }
    }
    return 10 * power;
}

Svg::Svg(std::string_view label, double width, double height)
    : text_(fmt::format("<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">\n",
                        width,
                        height,
                        escaped(label))) {}

void Svg::line(std::string_view css, Point from, Point to, std::string_view title) {
    fmt::format_to(std::back_inserter(text_),
                   "<line class=\"{}\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"",
                   css,
                   from.x,
                   from.y,
                   to.x,
                   to.y);
    end("line", title);
}

void Svg::path(std::string_view css, const std::vector<Point>& points, bool closed) {
    std::string steps;
    for (const Point& point : points) {
        fmt::format_to(std::back_inserter(steps),
                       "{}{:.1f} {:.1f}",
                       steps.empty() ? "M" : "L",
                       point.x,
                       point.y);
    }
    text_ += fmt::format("<path class=\"{}\" d=\"{}{}\"/>\n", css, steps, closed ? "Z" : "");
}

void Svg::rectangle(std::string_view css,
                    const Rectangle& area,
                    std::string_view title,
                    double opacity) {
    fmt::format_to(
        std::back_inserter(text_),
        "<rect class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{:.1f}\"",
        css,
        area.corner.x,
        area.corner.y,
        area.width,
        area.height);
    if (opacity < 1) {
        text_ += fmt::format(" fill-opacity=\"{:.2f}\"", opacity);
    }
    end("rect", title);
}

void Svg::circle(std::string_view css, Point centre, double radius, std::string_view title) {
    fmt::format_to(std::back_inserter(text_),
                   "<circle class=\"{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\"",
                   css,
                   centre.x,
                   centre.y,
                   radius);
    end("circle", title);
}

void Svg::text(std::string_view css, Point at, std::string_view text) {
    fmt::format_to(std::back_inserter(text_),
                   "<text class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n",
                   css,
                   at.x,
                   at.y,
                   escaped(text));
}

void Svg::end(std::string_view element, std::string_view title) {
    text_ += title.empty() ? std::string("/>\n")
                           : fmt::format("><title>{}</title></{}>\n", escaped(title), element);
}

std::string Svg::finish() && {
    return std::move(text_) + "</svg>\n";
}

}  // namespace holdfast::report
