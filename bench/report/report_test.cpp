#include <holdfast/bench/report.hpp>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "report/plot.hpp"
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <holdfast/base/error.hpp>
#include <holdfast/testing/temp_dir.hpp>

namespace holdfast::bench {
namespace {

using testing::HasSubstr;
using testing::Not;

Result result_named(std::string name,
                    const std::vector<double>& ratios,
                    std::optional<double> floor) {
    std::vector<double> ours;
    ours.reserve(ratios.size());
    for (const double ratio : ratios) {
        ours.push_back(ratio * 8000);
    }
    return {.name = std::move(name),
            .unit = "tx/s",
            .ours = spread_of(ours),
            .limit = spread_of(std::vector<double>(ratios.size(), 8000)),
            .ratio = spread_of(ratios),
            .floor = floor,
            .ours_cpu_us = 31.5,
            .limit_cpu_us = 20.25,
            .counts = {{"commits_per_tx", 0.125}}};
}

Report report_named(std::string bench) {
    return {.bench = std::move(bench),
            .time = "2026-01-02T03:04:05Z",
            .machine = {.cores = 2,
                        .cpu = "A <Fast> CPU",
                        .kernel = "Linux",
                        .memory_bytes = 8'000'000'000,
                        .flush_us = 71.5,
                        .load = 0.25,
                        .filesystem = "ext4"},
            .durability = {{"postgres", {{"fsync", "on"}}}},
            .results = {result_named("pg.update.c8", {0.9, 0.95, 0.92}, 0.85),
                        result_named("sqlite.commit.w8", {2.1, 2.2, 2.3}, 2.5)},
            .failed = {{"pg.update.c32", "too many <clients>"}},
            .peak_memory_bytes = 12'000'000};
}

std::string contents(const std::filesystem::path& file) {
    std::ostringstream text;
    text << std::ifstream(file).rdbuf();
    return text.str();
}

TEST(ReportJson, HasThePromisedShape) {
    const auto json = nlohmann::json::parse(to_json(report_named("sql")));
    EXPECT_EQ(json["bench"], "sql");
    EXPECT_EQ(json["machine"]["cores"], 2);
    EXPECT_EQ(json["durability"]["postgres"]["fsync"], "on");
    EXPECT_EQ(json["peak_memory_bytes"], 12'000'000);
    const auto& result = json["results"][0];
    EXPECT_EQ(result["name"], "pg.update.c8");
    EXPECT_EQ(result["unit"], "tx/s");
    EXPECT_DOUBLE_EQ(result["ratio"].get<double>(), 0.92);
    EXPECT_DOUBLE_EQ(result["ours"].get<double>(), 0.92 * 8000);
    EXPECT_DOUBLE_EQ(result["limit"].get<double>(), 8000);
    EXPECT_EQ(result["rounds"], 3);
    for (const char* key : {"ours_quartiles", "limit_quartiles", "ratio_quartiles"}) {
        EXPECT_EQ(result[key].size(), 2U) << key;
    }
    EXPECT_DOUBLE_EQ(result["counts"]["commits_per_tx"].get<double>(), 0.125);
}

TEST(ReportJson, ComesBackAsItWas) {
    const Report report = report_named("sql");
    EXPECT_EQ(report_from_json(to_json(report)), report);
    EXPECT_THROW((void)report_from_json("{}"), InvalidArgument);
    EXPECT_THROW((void)report_from_json("not JSON"), InvalidArgument);
}

TEST(Page, HoldsItsReportsAndNothingFromElsewhere) {
    const std::vector<Report> reports{report_named("lock"), report_named("sql")};
    const std::string page = to_page(reports);
    EXPECT_EQ(reports_in_page(page), reports);
    for (const char* outside : {"http:", "https:", "@import", "url(", "<link", " src="}) {
        EXPECT_THAT(page, Not(HasSubstr(outside)));
    }
    EXPECT_THAT(page, HasSubstr("prefers-color-scheme: dark"));
    EXPECT_THAT(page, HasSubstr("A &lt;Fast&gt; CPU"));
}

TEST(Page, ANameCannotEndTheElementThatHoldsTheData) {
    Report report = report_named("sql");
    report.machine.cpu = "</script><script>alert(1)</script>";
    const std::string page = to_page(std::vector{report});
    EXPECT_THAT(page, Not(HasSubstr("<script>alert")));
    EXPECT_EQ(reports_in_page(page), std::vector{report});
}

TEST(Page, ShowsWhatIsBelowItsFloor) {
    const Report report = report_named("sql");
    EXPECT_THAT(ratio_plot(std::span(report.results).first(1)), HasSubstr("✓ floor 0.85"));
    EXPECT_THAT(ratio_plot(std::span(report.results).last(1)), HasSubstr("✗ below 2.5"));
}

// Seen once: two compilers on two cores, and a ratio of 236.
TEST(Page, SaysWhenOthersKeptTheMachineBusy) {
    Report report = report_named("sql");
    EXPECT_THAT(to_page(std::vector{report}), Not(HasSubstr("kept the machine busy")));
    report.machine.load = 3.7;
    EXPECT_THAT(to_page(std::vector{report}), HasSubstr("kept the machine busy (load 3.7)"));
}

TEST(MergeIntoPage, ReplacesTheReportOfTheSameBenchAndKeepsTheOthers) {
    const test::TempDir folder;
    const auto file = folder / "report.html";
    merge_into_page(file, report_named("sql"));
    merge_into_page(file, report_named("lock"));
    Report newer = report_named("sql");
    newer.time = "2026-02-03T04:05:06Z";
    merge_into_page(file, newer);
    EXPECT_EQ(reports_in_page(contents(file)), (std::vector{report_named("lock"), newer}));
}

TEST(MergeIntoPage, LeavesAFileThatIsNotAPageOfOursAlone) {
    const test::TempDir folder;
    const auto file = folder / "diary.html";
    std::ofstream(file) << "dear diary";
    EXPECT_THROW(merge_into_page(file, report_named("sql")), InvalidArgument);
    EXPECT_EQ(contents(file), "dear diary");
    EXPECT_THROW(merge_into_page(folder / "missing/report.html", report_named("sql")), Error);
    EXPECT_FALSE(std::filesystem::exists(folder / "missing"));
}

TEST(Grouped, PutsCommasBetweenThousands) {
    EXPECT_EQ(grouped(0), "0");
    EXPECT_EQ(grouped(999), "999");
    EXPECT_EQ(grouped(1000), "1,000");
    EXPECT_EQ(grouped(12345678.4), "12,345,678");
    EXPECT_EQ(grouped(12.345), "12.35");
    EXPECT_EQ(grouped(-1234), "-1,234");
}

TEST(Machine, KnowsItselfAndWhatAFlushCosts) {
    const test::TempDir folder;
    const Machine machine = describe_machine(folder.path());
    EXPECT_GE(machine.cores, 1);
    EXPECT_GT(machine.memory_bytes, 0);
    EXPECT_GT(machine.flush_us, 0);
    EXPECT_FALSE(machine.filesystem.empty());
    EXPECT_TRUE(std::filesystem::is_empty(folder.path())) << "nothing may be left behind";
    EXPECT_GT(peak_memory_bytes(), 0);
    EXPECT_THROW((void)describe_machine(folder / "missing"), Error);
}

}  // namespace
}  // namespace holdfast::bench
