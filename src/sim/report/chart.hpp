// A chart as SVG. Colours come from the page's style sheet, by class.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::sim {

struct ChartPoint {
    double x = 0;
    double y = 0;
};

class Chart {
public:
    // Axes from 0 to `x_most` and `y_most`. Requires: both positive.
    Chart(std::string title, std::string x_unit, double x_most, double y_most);

    void line(std::string_view css, std::string_view label, const std::vector<ChartPoint>& points);
    // Between two lines over the same x.
    void band(std::string_view css,
              std::string_view label,
              const std::vector<ChartPoint>& low,
              const std::vector<ChartPoint>& high);
    // A column at each x, `width` wide, from `base` on.
    void columns(std::string_view css,
                 std::string_view label,
                 const std::vector<ChartPoint>& points,
                 double width,
                 const std::vector<double>& base = {});
    // A map: cells `width` by `height` from (x, y) on, the darker the larger their `part` of 1.
    struct Cell {
        double x = 0;
        double y = 0;
        double part = 0;
    };
    void cells(std::string_view css,
               std::string_view label,
               const std::vector<Cell>& cells,
               double width,
               double height);
    void level(std::string_view css, std::string_view label, double y);
    void marker(std::string_view label, double x);

    [[nodiscard]] std::string svg() const;

private:
    [[nodiscard]] double at_x(double x) const;
    [[nodiscard]] double at_y(double y) const;
    [[nodiscard]] std::string axes() const;
    void note(std::string_view css, std::string_view label);

    std::string title_;
    std::string x_unit_;
    double x_most_;
    double y_most_;
    std::string body_;
    std::vector<std::pair<std::string, std::string>> legend_;  // Class and label.
};

[[nodiscard]] std::string escape_xml(std::string_view text);
// 1 or 2 or 5 times a power of ten: about `parts` steps up to `most`.
[[nodiscard]] double nice_step(double most, int parts);

}  // namespace holdfast::sim
