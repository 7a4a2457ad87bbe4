#include <holdfast/base/cron.hpp>

#include <string>

#include <gtest/gtest.h>

#include <holdfast/base/error.hpp>

namespace holdfast {
namespace {

using namespace std::chrono_literals;
using std::chrono::sys_days;
using Moment = Cron::Moment;

Moment at(std::chrono::year_month_day date, std::chrono::milliseconds time = 0ms) {
    return Moment{sys_days{date}} + time;
}
Moment next(std::string_view text, Moment now) {
    return Cron(text).next(now, now);
}

// 2026-11-16 is a Monday.
constexpr std::chrono::year_month_day monday = 2026y / 11 / 16;

TEST(Cron, FindsTheNextMinuteThatFits) {
    EXPECT_EQ(next("* * * * *", at(monday, 10h + 5min)), at(monday, 10h + 6min));
    EXPECT_EQ(next("* * * * *", at(monday, 10h + 5min + 59'999ms)), at(monday, 10h + 6min));
    EXPECT_EQ(next("*/15 * * * *", at(monday, 10h + 50min)), at(monday, 11h));
    EXPECT_EQ(next("30 9 * * *", at(monday, 9h + 30min)), at(2026y / 11 / 17, 9h + 30min))
        << "strictly after now";
    EXPECT_EQ(next("5,10-20/5,50/5 8 * * *", at(monday, 8h + 15min)), at(monday, 8h + 20min));
    EXPECT_EQ(next("5,10-20/5,50/5 8 * * *", at(monday, 8h + 20min)), at(monday, 8h + 50min));
}

TEST(Cron, DaysHaveNamesAndSundayTwoNumbers) {
    const Moment sunday = at(2026y / 11 / 22);
    EXPECT_EQ(next("0 0 * * 0", at(monday)), sunday);
    EXPECT_EQ(next("0 0 * * 7", at(monday)), sunday);
    EXPECT_EQ(next("0 0 * * SUN", at(monday)), sunday);
    EXPECT_EQ(next("0 0 * jan-mar *", at(monday)), at(2027y / 1 / 1));
    EXPECT_EQ(next("0 9 * * mon-fri", at(2026y / 11 / 20, 9h)), at(2026y / 11 / 23, 9h));
}

TEST(Cron, IfBothDaysAreRestrictedEitherIsEnough) {
    EXPECT_EQ(next("0 0 20 * fri", at(monday)), at(2026y / 11 / 20));
    EXPECT_EQ(next("0 0 18 * fri", at(monday)), at(2026y / 11 / 18));
    EXPECT_EQ(next("0 0 18 * fri", at(2026y / 11 / 18)), at(2026y / 11 / 20));
    EXPECT_EQ(next("0 0 */2 * fri", at(monday)), at(2026y / 11 / 27)) << "a star means both";
}

TEST(Cron, AQuestionMarkIsAStar) {
    EXPECT_EQ(next("0 0 ? * fri", at(monday)), at(2026y / 11 / 20));
    EXPECT_EQ(next("0 0 18 * ?", at(monday)), at(2026y / 11 / 18));
    EXPECT_EQ(next("? ? ? ? ?", at(monday)), at(monday, 1min));
    EXPECT_EQ(next("?/15 * * * *", at(monday)), at(monday, 15min));
}

TEST(Cron, MonthsEndAndLeapDaysComeRarely) {
    EXPECT_EQ(next("0 0 31 * *", at(2026y / 11 / 1)), at(2026y / 12 / 31));
    EXPECT_EQ(next("0 0 29 2 *", at(monday)), at(2028y / 2 / 29));
    EXPECT_EQ(next("0 0 29 2 *", at(2096y / 3 / 1)), at(2104y / 2 / 29)) << "2100 has none";
    EXPECT_EQ(next("59 23 31 12 *", at(2026y / 12 / 31, 23h + 59min)),
              at(2027y / 12 / 31, 23h + 59min));
}

TEST(Cron, Nicknames) {
    EXPECT_EQ(next("@hourly", at(monday, 10h)), at(monday, 11h));
    EXPECT_EQ(next("@daily", at(monday, 10h)), at(2026y / 11 / 17));
    EXPECT_EQ(next("@weekly", at(monday)), at(2026y / 11 / 22));
    EXPECT_EQ(next("@monthly", at(monday)), at(2026y / 12 / 1));
    EXPECT_EQ(next("@yearly", at(monday)), at(2027y / 1 / 1));
}

TEST(Cron, AnIntervalKeepsItsBeatAndLeavesOutWhatWasMissed) {
    const Cron cron("@every 90m");
    EXPECT_EQ(cron.next(at(monday), at(monday)), at(monday, 90min));
    EXPECT_EQ(cron.next(at(monday), at(monday, 20min)), at(monday, 90min));
    EXPECT_EQ(cron.next(at(monday), at(monday, 90min)), at(monday, 180min));
    EXPECT_EQ(cron.next(at(monday), at(monday, 10h)), at(monday, 10h + 30min)) << "six were missed";
    EXPECT_EQ(cron.next(at(monday, 1h), at(monday)), at(monday, 2h + 30min)) << "clocks differ";
}

TEST(Cron, WhatIsNotUnderstoodIsRefused) {
    for (const std::string_view wrong : {"",
                                         "* * * *",
                                         "* * * * * *",
                                         "60 * * * *",
                                         "* 24 * * *",
                                         "* * 0 * *",
                                         "* * 32 * *",
                                         "* * * 13 *",
                                         "* * * * 8",
                                         "*/0 * * * *",
                                         "*/99 * * * *",
                                         "5-1 * * * *",
                                         "1- * * * *",
                                         "-1 * * * *",
                                         "1,,2 * * * *",
                                         "a * * * *",
                                         "* * * foo *",
                                         "1/2/3 * * * *",
                                         "?? * * * *",
                                         "1-? * * * *",
                                         "99999999999999999999 * * * *",
                                         "0 0 30 2 *",
                                         "0 0 31 4,6,9,11 *",
                                         "@sometimes",
                                         "@every",
                                         "@every soon",
                                         "@every 0s",
                                         "@every 10ms",
                                         "@every 90000000h"}) {
        EXPECT_THROW(Cron{wrong}, InvalidArgument) << wrong;
    }
    EXPECT_THROW(Cron{std::string(10'000, '*')}, InvalidArgument);
}

}  // namespace
}  // namespace holdfast
