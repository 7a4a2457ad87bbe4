#include <holdfast/sim/report.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace holdfast::sim {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;

// A name may contain characters that are special in the file's format.
TEST(Report, NamesAreQuotedWhereTheyMustBe) {
    Scenario scenario;
    scenario.services = {{.name = "a,\"b\""}, {.name = "plain"}};
    Result result;
    result.samples = {{.at = seconds{1}, .service = 0}, {.at = seconds{1}, .service = 1}};
    EXPECT_THAT(csv_of(scenario, result), HasSubstr("\n2026-01-01T00:00:01Z,\"a,\"\"b\"\"\",0,"));
    EXPECT_THAT(csv_of(scenario, result), HasSubstr("\n2026-01-01T00:00:01Z,plain,0,"));
    EXPECT_THAT(wide_csv_of(scenario, result),
                testing::StartsWith("t_rfc3339,\"a,\"\"b\"\".size\","));
}

TEST(Report, ANameIsNeverAFormulaOfASpreadsheet) {
    for (const std::string name : {"=1+1", "+1", "-1", "@sum", "\tx", "\rx"}) {
        Scenario scenario;
        scenario.services = {{.name = name}};
        Result result;
        result.samples = {{.at = seconds{1}, .service = 0}};
        EXPECT_THAT(csv_of(scenario, result), HasSubstr(",\"'" + name + "\",")) << name;
        EXPECT_THAT(wide_csv_of(scenario, result), HasSubstr(",\"'" + name + ".size\",")) << name;
    }
}

TEST(Report, ProgressIsTheTimeOfDayWhatHappenedAndWhatIsToCome) {
    Scenario scenario{.name = "local", .duration = std::chrono::minutes{20}};
    scenario.services = {{.name = "a", .target = 50}, {.name = "b", .target = 50}};
    EXPECT_EQ(start_of(scenario), "simulating local for 20m: 2 services, 100 connections");
    EXPECT_EQ(progress_of({.now = seconds{61}, .executed = 1'234, .waiting = 9}),
              "00:01:01: 1234 events, 9 waiting");
    EXPECT_EQ(progress_of({.now = std::chrono::hours{49}, .executed = 1, .waiting = 0}),
              "day 3, 01:00:00: 1 events, 0 waiting");
}

TEST(Report, AFailureInJUnitSaysWhereAndWhen) {
    const Violation late{
        .assertion = "ready", .service = "a&\x01", .at = seconds{7}, .what = "late"};
    const Suite suite{"fleet<1>", {{.seed = 3, .violations = {late}}, {.seed = 4}}};
    const std::string xml = junit_of({suite});
    EXPECT_THAT(xml, testing::Not(HasSubstr("testsuites")));
    EXPECT_THAT(junit_of({suite, suite}), HasSubstr("</testsuite>\n</testsuites>\n"));
    EXPECT_THAT(xml, HasSubstr("<testsuite name=\"fleet&lt;1&gt;\" tests=\"2\" failures=\"1\">"));
    EXPECT_THAT(xml, HasSubstr("<failure message=\"ready: a&amp; : late (at 7s)\"/>"));
}

}  // namespace
}  // namespace holdfast::sim
