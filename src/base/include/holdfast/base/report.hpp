// Static HTML pages with SVG pictures, for benchmarks and simulations.
//
// A page needs nothing else: no scripts, no fonts, nothing is fetched. Colours come from its style
// sheet by class, so that one picture serves light and dark screens.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::report {

// As text or as the value of an attribute, in HTML and XML. Control characters become blanks: XML
// cannot hold them, not even escaped.
[[nodiscard]] std::string escaped(std::string_view text);

// A whole page. `body` is HTML, `style` is CSS that follows the kit's own: colours --page, --card,
// --edge, --ink, --soft, --grid and the series --a to --d, text, tables, and the classes of Chart.
[[nodiscard]] std::string page(std::string_view title,
                               std::string_view style,
                               std::string_view body);

// 1, 2 or 5 times a power of ten, so that an axis up to `most` has about `parts` steps.
// Requires: both positive.
[[nodiscard]] double axis_step(double most, int parts);

struct Point {
    double x = 0;
    double y = 0;
};

struct Rectangle {
    Point corner;  // Upper left.
    double width = 0;
    double height = 0;
};

// A picture, drawn piece by piece; y grows downwards. `css` are the classes of a piece, `title` is
// shown when the pointer rests on it. Labels and titles are plain text.
class Svg {
public:
    Svg(std::string_view label, double width, double height);

    void line(std::string_view css, Point from, Point to, std::string_view title = {});
    void path(std::string_view css, const std::vector<Point>& points, bool closed = false);
    void rectangle(std::string_view css,
                   const Rectangle& area,
                   std::string_view title = {},
                   double opacity = 1);
    void circle(std::string_view css, Point centre, double radius, std::string_view title = {});
    void text(std::string_view css, Point at, std::string_view text);

    [[nodiscard]] std::string finish() &&;

private:
    void end(std::string_view element, std::string_view title);

    std::string text_;
};

// A chart with axes and a legend. The classes a, b, c and d are the series' colours, f is that of
// markers.
class Chart {
public:
    // Axes from 0 to `x_most` and `y_most`. Requires: both positive.
    Chart(std::string title, std::string_view x_unit, double x_most, double y_most);

    void line(std::string_view css, std::string_view label, const std::vector<Point>& points);
    // Between two lines over the same x.
    void band(std::string_view css,
              std::string_view label,
              const std::vector<Point>& low,
              const std::vector<Point>& high);
    // A column at each x, `width` wide, from `base` on.
    void columns(std::string_view css,
                 std::string_view label,
                 const std::vector<Point>& points,
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
    // A vertical line for an event, such as a fault.
    void marker(std::string_view label, double x);

    // An HTML figure with title, legend and picture. Once.
    [[nodiscard]] std::string figure() &&;

private:
    [[nodiscard]] Point at(Point point) const;
    void axes();
    void note(std::string_view css, std::string_view label);

    std::string title_;
    double x_most_;
    double y_most_;
    Svg svg_;
    std::vector<std::pair<std::string, std::string>> legend_;  // Class and label.
};

}  // namespace holdfast::report
