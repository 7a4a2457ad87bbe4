#include <holdfast/base/report.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace holdfast::report {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(Chart, StepsAreOnesTwosAndFives) {
    EXPECT_DOUBLE_EQ(axis_step(100, 4), 50);
    EXPECT_DOUBLE_EQ(axis_step(22'000, 4), 10'000);
    EXPECT_DOUBLE_EQ(axis_step(0.08, 4), 0.02);
}

TEST(Report, TextFromOutsideIsNeverMarkup) {
    EXPECT_EQ(escaped("a<b> & \"c\"\n\x1b"), "a&lt;b&gt; &amp; &quot;c&quot;  ");
    Chart chart("<script>", "<u>", 10, 10);
    chart.line("a", "<l>", {{0, 0}, {1, 1}});
    chart.marker("<m>", 5);
    const std::string html = page("<t>", "", std::move(chart).figure());
    for (const char* markup : {"<script>", "<u>", "<l>", "<m>", "<t>"}) {
        EXPECT_THAT(html, Not(HasSubstr(markup)));
    }
}

TEST(Report, APageNeedsNothingElse) {
    const std::string html = page("a", "b { }", "<p>c</p>");
    for (const char* outside :
         {"http:", "https:", "@import", "url(", "<link", " src=", "<script"}) {
        EXPECT_THAT(html, Not(HasSubstr(outside)));
    }
    EXPECT_THAT(html, HasSubstr("prefers-color-scheme: dark"));
    EXPECT_THAT(html, HasSubstr("b { }</style>"));
}

TEST(Svg, APieceHasItsTitleInside) {
    Svg svg("picture", 10, 20);
    svg.line("grid", {1, 2}, {3, 4}, "here");
    svg.rectangle("a", {{1, 2}, 3, 4}, {}, 0.5);
    EXPECT_EQ(std::move(svg).finish(),
              "<svg viewBox=\"0 0 10 20\" role=\"img\" aria-label=\"picture\">\n"
              "<line class=\"grid\" x1=\"1.0\" y1=\"2.0\" x2=\"3.0\" y2=\"4.0\"><title>here</title>"
              "</line>\n<rect class=\"a\" x=\"1.0\" y=\"2.0\" width=\"3.00\" height=\"4.0\" "
              "fill-opacity=\"0.50\"/>\n</svg>\n");
}

}  // namespace
}  // namespace holdfast::report
