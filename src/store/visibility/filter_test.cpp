// What the filter language takes, what it means, and where it says that something is wrong.
#include "visibility/filter.hpp"

#include <functional>

#include "visibility/search_attributes.hpp"
#include <fmt/core.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <holdfast/base/error.hpp>
#include <holdfast/base/units.hpp>

namespace holdfast::store::filter {
namespace {

using testing::HasSubstr;

std::string shown(const Value& value) {
    struct Shown {
        std::string operator()(const std::string& text) const { return text; }
        std::string operator()(std::int64_t number) const { return std::to_string(number); }
        std::string operator()(double number) const { return fmt::format("{}", number); }
        std::string operator()(const Uuid& id) const { return id.text(); }
        std::string operator()(sql::Timestamp time) const {
            return fmt::format("{}us", time.time_since_epoch().count());
        }
    };
    return std::visit(Shown{}, value);
}

// A tree as text: [all x [any y z]].
std::string shown(const Node& node) {
    constexpr std::array tests{"in", "<", "<=", ">", ">=", "between", "starts", "null"};
    if (node.kind == Node::Kind::condition) {
        const Condition& condition = node.condition;
        std::vector<std::string> values;
        values.reserve(condition.values.size());
        for (const Value& value : condition.values) {
            values.push_back(shown(value));
        }
        return fmt::format(
            "{}{} {}{}{}",
            condition.negated ? "!" : "",
            condition.field == nullptr ? condition.attribute : std::string(condition.field->name),
            tests.at(static_cast<std::size_t>(condition.test)),
            values.empty() ? "" : " ",
            fmt::join(values, ","));
    }
    std::vector<std::string> parts;
    parts.reserve(node.parts.size());
    for (const Node& part : node.parts) {
        parts.push_back(shown(part));
    }
    return fmt::format(
        "[{} {}]", node.kind == Node::Kind::all ? "all" : "any", fmt::join(parts, " | "));
}
std::string tree(std::string_view text) {
    const Filter filter = parse(text);
    return filter.where ? shown(*filter.where) : "";
}
std::string order(std::string_view text) {
    std::vector<std::string> names;
    for (const Order& by : parse(text).order) {
        names.push_back(fmt::format("{}{}", by.descending ? "-" : "+", by.field->name));
    }
    return fmt::format("{}", fmt::join(names, ""));
}
std::string refusal(std::string_view text) {
    try {
        (void)parse(text);
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), Code::invalid_argument) << text;
        return error.what();
    }
    return "";
}

TEST(Filter, ComparisonsMeanTheSameHoweverTheyAreWritten) {
    EXPECT_EQ(tree(""), "");
    EXPECT_EQ(tree(" \t\r\n"), "");
    EXPECT_EQ(tree("WorkflowId = 'a'"), "WorkflowId in a");
    EXPECT_EQ(tree("`WorkflowId`=\"a\""), "WorkflowId in a");
    EXPECT_EQ(tree("WorkflowId != 'a'"), "!WorkflowId in a");
    EXPECT_EQ(tree("WorkflowId <> 'a'"), "!WorkflowId in a");
    EXPECT_EQ(tree("HistoryLength<3"), "HistoryLength < 3");
    EXPECT_EQ(tree("HistoryLength <= -3"), "HistoryLength <= -3");
    EXPECT_EQ(tree("HistorySizeBytes > 3"), "HistorySizeBytes > 3");
    EXPECT_EQ(tree("StateTransitionCount>=+3"), "StateTransitionCount >= 3");
    EXPECT_EQ(tree("WorkflowType in ('a', \"b\" ,'c')"), "WorkflowType in a,b,c");
    EXPECT_EQ(tree("WorkflowType Not In ('a')"), "!WorkflowType in a");
    EXPECT_EQ(tree("HistoryLength BETWEEN 1 AND 2"), "HistoryLength between 1,2");
    EXPECT_EQ(tree("HistoryLength NOT between 1 and 2"), "!HistoryLength between 1,2");
    EXPECT_EQ(tree("TaskQueue STARTS_WITH 'q'"), "TaskQueue starts q");
    EXPECT_EQ(tree("TaskQueue NOT STARTS_WITH 'q'"), "!TaskQueue starts q");
    EXPECT_EQ(tree("CloseTime IS NULL"), "CloseTime null");
    EXPECT_EQ(tree("CloseTime is not null"), "!CloseTime null");
    EXPECT_EQ(tree("NOT CloseTime IS NOT NULL"), "CloseTime null");
}

TEST(Filter, AndBindsTighterThanOrAndNotTighterThanBoth) {
    EXPECT_EQ(tree("a = 1 OR b IS NULL AND NOT c IS NULL OR d IS NULL"),
              fmt::format("[any a in {} | [all b null | !c null] | d null]",
                          search_key(std::int64_t{1})));
    EXPECT_EQ(tree("(a IS NULL OR b IS NULL) AND c IS NULL"),
              "[all [any a null | b null] | c null]");
    EXPECT_EQ(tree("(((a IS NULL)) AND (b IS NULL AND c IS NULL))"),
              "[all a null | b null | c null]")
        << "what belongs together is one list";
    EXPECT_EQ(tree("NOT (a IS NULL AND (b IS NULL OR NOT c IS NULL))"),
              "[any !a null | [all !b null | c null]]")
        << "a negation goes down to the conditions";
    EXPECT_EQ(tree("NOT NOT a IS NULL"), "a null");
}

TEST(Filter, ValuesHaveTheTypeOfWhatTheyAreComparedWith) {
    const auto us = [](std::string_view moment) {
        return fmt::format("{}us", parse_moment(moment).time_since_epoch().count());
    };
    const std::string start = "StartTime in ";
    EXPECT_EQ(tree("StartTime = '2026-01-02T03:04:05Z'"), start + us("2026-01-02T03:04:05Z"));
    EXPECT_EQ(tree("StartTime = '2026-01-02T03:04:05.123456789+02:30'"),
              start + us("2026-01-02T00:34:05.123456Z"));
    EXPECT_EQ(tree("StartTime = '2026-01-02T03:04:05-01:00'"), start + us("2026-01-02T04:04:05Z"));
    EXPECT_EQ(tree("StartTime = 1700000000123456789"), start + "1700000000123456us");
    EXPECT_EQ(tree("StartTime = '0001-01-01T00:00:00+23:00'"), start + us("0001-01-01T00:00:00Z"));

    EXPECT_EQ(tree("ExecutionStatus = 'Running'"), "ExecutionStatus in 1");
    EXPECT_EQ(tree("ExecutionStatus IN ('Completed', 'Canceled', 'ContinuedAsNew', 8)"),
              "ExecutionStatus in 2,4,6,8");

    EXPECT_EQ(tree("ExecutionDuration > '1h30m'"), "ExecutionDuration > 5400000000");
    EXPECT_EQ(tree("ExecutionDuration > '01:30:05'"), "ExecutionDuration > 5405000000");
    EXPECT_EQ(tree("ExecutionDuration > 5000"), "ExecutionDuration > 5") << "nanoseconds";
    EXPECT_EQ(tree("ExecutionDuration > '5000'"), "ExecutionDuration > 5");
    EXPECT_EQ(tree("ExecutionDuration > '1.5h'"), "ExecutionDuration > 5400000000");
    EXPECT_EQ(tree("ExecutionDuration > '.25s'"), "ExecutionDuration > 250000");
    EXPECT_EQ(tree("ExecutionDuration > '1d2h3m4s5ms6us7ns'"), "ExecutionDuration > 93784005006");
    EXPECT_EQ(tree("ExecutionDuration > '7\u00B5s' OR ExecutionDuration > '7\u03BCs'"),
              "[any ExecutionDuration > 7 | ExecutionDuration > 7]");
    EXPECT_EQ(tree("ExecutionDuration > '-2m30s'"), "ExecutionDuration > -150000000");
    EXPECT_EQ(tree("ExecutionDuration < '1000000d'"), "ExecutionDuration < 9223372036854775")
        << "as long as any";

    EXPECT_EQ(tree("RunId = '01234567-89AB-cdef-0123-456789abcdef'"),
              "RunId in 01234567-89ab-cdef-0123-456789abcdef");
    EXPECT_EQ(tree(R"(WorkflowId = 'it''s "a" \'b\' \\ \n')"),
              "WorkflowId in it's \"a\" 'b' \\ \n");
    EXPECT_EQ(tree("WorkflowId = \"'\"\"é\""), "WorkflowId in '\"é");
    EXPECT_EQ(tree("`order` = true AND `b` = 'x'"), "[all order in b1 | b in tx]");
}

TEST(Filter, NumbersOfAttributesHaveTheOrderOfTheirKeys) {
    const std::vector<std::string> ascending{"-1e300",
                                             "-9223372036854775808",
                                             "-9007199254740993",
                                             "-9007199254740992",
                                             "-2.5",
                                             "-1",
                                             "-1e-300",
                                             "0",
                                             "1e-300",
                                             "0.5",
                                             "1",
                                             "10",
                                             "9007199254740992",
                                             "9007199254740993",
                                             "9223372036854775807",
                                             "9223372036854775808",
                                             "1e300"};
    std::string before;
    for (const std::string& number : ascending) {
        const std::string key = tree("x = " + number);
        EXPECT_LT(before, key) << number;
        before = key;
    }
    EXPECT_EQ(tree("x = 12"), tree("x = 12.0"));
    EXPECT_EQ(tree("x = 12"), tree("x = 1.2e1"));
    EXPECT_EQ(tree("x = 0"), tree("x = -0.0"));
}

TEST(Filter, NumbersNeedNotBeWholeAndStatusesHaveTheOrderOfTheirNumbers) {
    EXPECT_EQ(tree("HistoryLength > 1.5"), "HistoryLength > 1.5");
    EXPECT_EQ(tree("HistoryLength < 99999999999999999999"), "HistoryLength < 1e+20");
    EXPECT_EQ(tree("ExecutionStatus > 'Running'"), "ExecutionStatus > 1");
    EXPECT_EQ(tree("ExecutionStatus BETWEEN 'Completed' AND 4"), "ExecutionStatus between 2,4");
}

// As texts: what no id is made of lies somewhere between them, too.
TEST(Filter, IdsAreComparedWithAnyText) {
    const std::string zero = "00000000-0000-0000-0000-000000000000";
    const std::string last = "ffffffff-ffff-ffff-ffff-ffffffffffff";
    const std::string some = "01234567-89ab-cdef-0123-456789abcdef";
    EXPECT_EQ(tree("RunId = 'x'"), "RunId in") << "none is one of them";
    EXPECT_EQ(tree("RunId IN ('x', '" + some + "')"), "RunId in " + some);
    EXPECT_EQ(tree("RunId <= '" + some + "'"), "RunId <= " + some);
    EXPECT_EQ(tree("RunId < '" + some + "'"), "RunId <= 01234567-89ab-cdef-0123-456789abcdee");
    EXPECT_EQ(tree("RunId > '" + some + "'"), "RunId > " + some);
    EXPECT_EQ(tree("RunId < ''"), "RunId < " + zero) << "none is";
    EXPECT_EQ(tree("RunId >= ''"), "RunId >= " + zero) << "all are";
    EXPECT_EQ(tree("RunId < 'x'"), "RunId <= " + last);
    EXPECT_EQ(tree("RunId >= '1'"), "RunId > 0fffffff-ffff-ffff-ffff-ffffffffffff");
    EXPECT_EQ(tree("RunId >= '9A'"), "RunId > 99ffffff-ffff-ffff-ffff-ffffffffffff")
        << "a capital comes before the letters of ids";
    EXPECT_EQ(tree("RunId STARTS_WITH '0123'"),
              "RunId between 01230000-0000-0000-0000-000000000000,"
              "0123ffff-ffff-ffff-ffff-ffffffffffff");
    EXPECT_EQ(tree("RunId STARTS_WITH ''"), "RunId between " + zero + "," + last);
    EXPECT_EQ(tree("RunId NOT STARTS_WITH 'x'"), "!RunId between " + last + "," + zero);
    EXPECT_EQ(tree("ParentRunId BETWEEN '0' AND '0123z'"),
              "ParentRunId between " + zero + ",0123ffff-ffff-ffff-ffff-ffffffffffff");
}

TEST(Filter, NamesAreTakenWithThePrefixOfTheServerToo) {
    EXPECT_EQ(tree("TemporalWorkflowId = 'a'"), "WorkflowId in a");
    EXPECT_EQ(order("ORDER BY TemporalStartTime"), "+StartTime");
    EXPECT_EQ(tree("TemporalScheduledById = 'a'"), "TemporalScheduledById in ta");
    EXPECT_EQ(tree("TemporalBuildIds = 'a' OR BuildIds = 'b'"),
              "[any BuildIds in ta | BuildIds in tb]");
    EXPECT_EQ(tree("ScheduleId = 'daily'"), "ScheduleId in temporal-sys-scheduler:daily");
    EXPECT_EQ(tree("TemporalScheduleId STARTS_WITH 'd'"),
              "ScheduleId starts temporal-sys-scheduler:d");
    EXPECT_EQ(tree("`ScheduleId` = 'daily'"), "ScheduleId in tdaily")
        << "in backquotes it is a search attribute";
    EXPECT_EQ(tree("`workflowid` = 'a' AND `WorkflowId` = 'a'"),
              "[all workflowid in ta | WorkflowId in a]");
}

TEST(Filter, TimesOfSearchAttributesAreMoments) {
    EXPECT_EQ(tree("due = '2026-01-02T03:04:05Z'"), tree("due = '2026-01-02T05:04:05.000+02:00'"));
    EXPECT_LT(tree("due = '1969-12-31T23:59:59Z'"), tree("due = '2026-01-02T03:04:05Z'"));
    EXPECT_EQ(tree("due STARTS_WITH '2026-01-02T03:04:05Z'"), "due starts t2026-01-02T03:04:05Z");
    EXPECT_EQ(tree("due = '2026-01-02'"), "due in t2026-01-02") << "a day is no moment";
    EXPECT_EQ(tree("due BETWEEN '2026' AND '2026-01-02T03:04:05Z'"),
              "due between t2026,t2026-01-02T03:04:05Z");
}

TEST(Filter, AnOrderHasNamesAndDirections) {
    EXPECT_EQ(order(""), "-CloseTime-StartTime");
    EXPECT_EQ(order("WorkflowId = 'a'"), "-CloseTime-StartTime");
    EXPECT_EQ(order("order by StartTime"), "+StartTime");
    EXPECT_EQ(order("ORDER BY RunId, ParentWorkflowId DESC, ScheduleId"),
              "+RunId-ParentWorkflowId+ScheduleId");
    EXPECT_EQ(order("WorkflowId = 'a' ORDER BY StartTime desc, WorkflowType ASC, HistoryLength"),
              "-StartTime+WorkflowType+HistoryLength");
    EXPECT_EQ(parse("a = 1").groups, Groups::none);
    EXPECT_EQ(parse("GROUP BY ExecutionStatus").groups, Groups::by_status);
    EXPECT_EQ(parse("a = 1 group by ExecutionStatus").groups, Groups::by_status);
    EXPECT_EQ(parse("GROUP BY TemporalNamespaceDivision").groups, Groups::by_division);
}

TEST(Filter, AMistakeIsNamedWithItsPlace) {
    struct Case {
        std::string_view text;
        int place;
        std::string_view said;
    };
    for (const auto& [text, place, said] : {
             Case{"WorkflowId", 11, "expected a comparison such as = or IN, but it ends"},
             Case{"WorkflowId = ", 14, "expected a text in quotes, but it ends"},
             Case{"WorkflowId = 5", 14, "expected a text in quotes, but found 5"},
             Case{"WorkflowId = abc", 14, "expected a text in quotes, but found abc"},
             Case{"WorkflowID = 'a'",
                  1,
                  "expected WorkflowId, or `WorkflowID` for a search attribute of this name"},
             Case{"a = 'é' AND b = ", 17, "but it ends"},
             Case{"a = 'é", 5, "a ' begins here and never ends"},
             Case{"`a = 1", 1, "a ` begins here and never ends"},
             Case{"`a b` = 1", 1, "expected a name of letters, digits and _"},
             Case{"(a = 1", 7, "expected ), but it ends"},
             Case{"a = 1)", 6, "expected AND, OR, ORDER BY or the end, but found )"},
             Case{"a = 1 b = 2", 7, "but found b"},
             Case{"AND a = 1", 1, "expected a name, NOT or (, but found AND"},
             Case{"a = 1 AND", 10, "expected a name, NOT or ("},
             Case{"a ( 1", 3, "expected a comparison such as = or IN, but found ("},
             Case{"a LIKE 'x%'", 3, "but found LIKE"},
             Case{"a = NULL", 5, "expected a text in quotes, a number, true or false"},
             Case{"a IS 1", 6, "expected NULL, but found 1"},
             Case{"a IN ()", 7, "but found )"},
             Case{"a IN (1", 8, "expected ), but it ends"},
             Case{"a BETWEEN 1 OR 2", 13, "expected AND, but found OR"},
             Case{"a BETWEEN 1 AND 'x'", 17, "expected a value of the same kind"},
             Case{"a STARTS_WITH 1", 15, "expected a text in quotes, but found 1"},
             Case{"StartTime STARTS_WITH '2'", 11, "another comparison, for StartTime"},
             Case{"ExecutionStatus = 'running'", 19, "expected a status"},
             Case{"ExecutionStatus = 9", 19, "expected a status"},
             Case{"RunId = 7", 9, "expected a text in quotes"},
             Case{"RunId IN ('x', 7)", 16, "expected a text in quotes"},
             Case{"HistoryLength STARTS_WITH '2'", 15, "another comparison, for HistoryLength"},
             Case{"StartTime > 'yesterday'", 13, "yesterday"},
             Case{"StartTime > 1.5", 13, "expected a time"},
             Case{"StartTime > 'yesterday +02:00'", 13, "expected a time such as"},
             Case{"StartTime > 'yesterday +02:00'", 13, "found 'yesterday +02:00'"},
             Case{"StartTime > '2026-01-02T03:04:05++1:+2'", 13, "expected a time such as"},
             Case{"ExecutionDuration > 'long'", 21, "found 'long'"},
             Case{"ExecutionDuration > ''", 21, "expected a duration such as '1h30m'"},
             Case{"ExecutionDuration > '-'", 21, "expected a duration"},
             Case{"ExecutionDuration > '1h30'", 21, "expected a duration"},
             Case{"ExecutionDuration > '.h'", 21, "expected a duration"},
             Case{"ExecutionDuration > '1 h'", 21, "expected a duration"},
             Case{"ExecutionDuration > '01:60:00'", 21, "expected a duration"},
             Case{"ExecutionDuration > '1:+1:+1'", 21, "expected a duration"},
             Case{"HistoryLength = 'x'", 17, "expected a number"},
             Case{"HistoryLength = 1e999", 17, "expected a number"},
             Case{"a = 1e999", 5, "expected a number that is not as large"},
             Case{"a = 12abc", 7, "something else follows"},
             Case{"a = 1;", 6, "\";\" means nothing here"},
             Case{"a = 'x' -- b", 9, "\"-\" means nothing here"},
             Case{"a = 'C:\\dir'", 8, "write a backslash as"},
             Case{"ORDER BY", 9, "expected a name"},
             Case{"ORDER StartTime", 7, "expected BY"},
             Case{"ORDER BY level", 10, "something to sort by"},
             Case{"ORDER BY StartTime DESC ASC", 25, "but found ASC"},
             Case{"GROUP BY WorkflowType", 10, "expected ExecutionStatus"},
         }) {
        const std::string refused = refusal(text);
        EXPECT_THAT(refused, HasSubstr(fmt::format("at character {}: ", place))) << text;
        EXPECT_THAT(refused, HasSubstr(std::string(said))) << text;
    }
}

TEST(Filter, WhatIsTooMuchIsRefused) {
    const auto times = [](std::size_t n, std::string_view text) {
        std::string made;
        for (std::size_t i = 0; i < n; ++i) {
            made += text;
        }
        return made;
    };
    const auto nested = [&](std::size_t n) { return times(n, "(") + "a IS NULL" + times(n, ")"); };
    EXPECT_EQ(tree(nested(depth_max)), "a null");
    EXPECT_THAT(refusal(nested(depth_max + 1)), HasSubstr("more than 50 parentheses"));
    EXPECT_THAT(refusal(times(bytes_max, "(")), HasSubstr("more than 50 parentheses"));
    EXPECT_EQ(tree(times(2'000, "NOT ") + "a IS NULL"), "a null") << "costs no depth";
    EXPECT_EQ(refusal("a=1" + times(conditions_max - 1, " OR a=1")), "");
    EXPECT_THAT(refusal("a=1" + times(conditions_max, " OR a=1")), HasSubstr("200 conditions"));
    EXPECT_EQ(refusal("a IN (1" + times(values_max - 1, ",1") + ")"), "");
    EXPECT_THAT(refusal("a IN (1" + times(values_max, ",1") + ")"), HasSubstr("128 values"));
    EXPECT_THAT(refusal("ORDER BY StartTime" + times(4, ",StartTime")), HasSubstr("4 names"));
    EXPECT_THAT(refusal(times(bytes_max + 1, " ")), HasSubstr("a filter of 16385 bytes"));
    EXPECT_THAT(refusal(std::string_view("a = '\0'", 7)), HasSubstr("zero byte"));
    EXPECT_THAT(refusal("a = '\xC3'"), HasSubstr("UTF-8"));
    EXPECT_LE(refusal("WorkflowId = " + times(300, "é")).size(), 120U) << "nobody reads it all";
}

}  // namespace
}  // namespace holdfast::store::filter
