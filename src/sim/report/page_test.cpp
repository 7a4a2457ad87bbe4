#include <holdfast/sim/page.hpp>

#include "fleet/test/fleet_fixture.hpp"
#include <gtest/gtest.h>

namespace holdfast::sim {
namespace {

std::size_t count(const std::string& text, const std::string& what) {
    std::size_t found = 0;
    for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) {
        ++found;
    }
    return found;
}

TEST(Page, HasAChartForEachQuestionAndMarksTheFaults) {
    const Scenario scenario = parse_scenario("a<b>.yaml",
                                             "duration: 1m\n"
                                             "faults: [{kind: mass_drop, at: 30s}]\n"
                                             "services: [{name: a, workload: {enabled: true,\n"
                                             "            arrivals: steady, rate: 50}}]\n")
                                  .scenario;
    const std::string page = page_of(scenario, simulate(scenario, 1));
    EXPECT_EQ(count(page, "<svg "), 9);
    EXPECT_EQ(count(page, "class=\"fault\""), 6) << "one in each chart over time";
    EXPECT_EQ(count(page, "<i class=\"f\"></i>faults"), 6) << "and what it is";
    EXPECT_GE(count(page, "class=\"cell-of-map a\""), 60) << "one or more at each look";
    EXPECT_EQ(count(page, "a<b>"), 0) << "names are not markup";
    EXPECT_EQ(count(page, "http"), 0) << "nothing is fetched";
}

// Where the first of a kind begins, in the units of the picture.
double first_x(const std::string& page, const std::string& mark, const std::string& attribute) {
    const auto at = page.find(mark);
    EXPECT_NE(at, std::string::npos) << mark;
    const auto from = page.find(attribute, at) + attribute.size();
    return std::stod(page.substr(from));
}

// At a whole second, where one bar ends and the next begins, what a fault takes is behind its line.
TEST(Page, AFaultIsInTheBarThatItsLineIsIn) {
    for (const char* moment : {"30s", "10s", "45s"}) {
        const Scenario scenario =
            parse_scenario("a.yaml",
                           std::string("duration: 1m\nfaults: [{kind: mass_drop, at: ") + moment +
                               "}]\nservices: [{name: a, probeEvery: 1s}]\n")
                .scenario;
        const Result result = simulate(scenario, 1);
        const std::string page = page_of(scenario, result);
        const std::string closed = page.substr(page.find("Connections closed"));
        const double bar = first_x(closed, "class=\"column d\"", "x=\"");
        const double line = first_x(closed, "class=\"fault\"", "x1=\"");
        const double wide = first_x(closed, "class=\"column d\"", "width=\"");
        EXPECT_LE(bar, line + 0.11) << moment;
        EXPECT_GT(bar + wide, line + 0.11) << moment << ": not in the bar before it";
        EXPECT_EQ(count(closed, "class=\"column d\""), 1) << moment;
    }
}

TEST(Page, OfASweepFramesWhatDoesNotHold) {
    const std::string page = page_of("s",
                                     {{.title = "fill_s",
                                       .column_key = "x",
                                       .row_key = "y",
                                       .cells = {{"1", "a", 5, true}, {"2", "a", 7, false}}}});
    EXPECT_EQ(count(page, "class=\"cell\""), 1);
    EXPECT_EQ(count(page, "class=\"cell fails\""), 1);
}

TEST(Page, OfASweepShowsInGreenWhatIsGood) {
    SweepMap map{.title = "lowest_owned_share",
                 .column_key = "x",
                 .row_key = "",
                 .cells = {{"1", "", 0, true}, {"2", "", 1, true}},
                 .more_is_worse = false};
    constexpr auto best_last = "hsl(130 62% 62%)\">1<";
    EXPECT_EQ(count(page_of("s", {map}), best_last), 1);
    map.more_is_worse = true;
    EXPECT_EQ(count(page_of("s", {map}), best_last), 0);
}

}  // namespace
}  // namespace holdfast::sim
