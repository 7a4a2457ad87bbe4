#include "visibility/query.hpp"

#include <string>

#include <gtest/gtest.h>
#include <server/namespaces/namespace.pb.h>

#include <holdfast/base/error.hpp>
#include <holdfast/testing/check.hpp>

namespace holdfast::server::visibility {

namespace {

class QueryTest : public testing::Test {
protected:
    QueryTest() {
        (*info.mutable_aliases())["Int01"] = "Level";
        (*info.mutable_aliases())["Keyword01"] = "Order Id.v2";
        (*info.mutable_aliases())["Text01"] = "Notes";
        (*info.mutable_aliases())["Bool01"] = "Paid";
    }

    // Without what is added for divisions, so that only the condition is there.
    std::string filter(const std::string& query) {
        const std::string text = translate(query, {.info = info}).text;
        const std::size_t added = text.rfind(") AND TemporalNamespaceDivision IS NULL");
        return added == std::string::npos ? text : text.substr(1, added - 1);
    }
    std::string refusal(const std::string& query, Purpose purpose = Purpose::list) {
        try {
            return "(taken) " + translate(query, {.info = info, .purpose = purpose}).text;
        } catch (const InvalidArgument& error) {
            return error.what();
        }
    }

    search_attributes::Info info;
};

TEST_F(QueryTest, AQueryThatNamesNoDivisionFindsOnlyRunsWithoutOne) {
    HOLDFAST_CHECK("server F159");
    EXPECT_EQ(translate("", {.info = info}).text, "TemporalNamespaceDivision IS NULL");
    EXPECT_EQ(translate("RunId = 'r' OR WorkflowId = 'w'", {.info = info}).text,
              "((RunId = 'r' OR WorkflowId = 'w')) AND TemporalNamespaceDivision IS NULL");
    EXPECT_EQ(translate("TemporalNamespaceDivision = 'x'", {.info = info}).text,
              "TemporalNamespaceDivision = 'x'");
}

TEST_F(QueryTest, AliasesBecomeColumnsAndTheServersNamesNeedNoPrefix) {
    HOLDFAST_CHECK("server F164");
    HOLDFAST_CHECK("server F178");
    EXPECT_EQ(filter("`Order Id.v2` = \"o-7\" AND Level > 3"), "(Keyword01 = 'o-7' AND Int01 > 3)");
    EXPECT_EQ(filter("`WorkflowType`=\"x\""), "WorkflowType = 'x'");
    EXPECT_EQ(filter("ScheduledById = 's'"), "TemporalScheduledById = 's'");
}

TEST_F(QueryTest, AnAliasWinsOverTheIdOfASchedule) {
    HOLDFAST_CHECK("server F179");
    EXPECT_EQ(filter("ScheduleId = 's'"), "WorkflowId = 's'");
    (*info.mutable_aliases())["Keyword02"] = "ScheduleId";
    EXPECT_EQ(filter("ScheduleId = 's'"), "Keyword02 = 's'");
}

TEST_F(QueryTest, AStatusIsNamedShortlyOrInFullOrByItsNumber) {
    HOLDFAST_CHECK("server F165");
    for (const char* const status : {"'TimedOut'", "'WORKFLOW_EXECUTION_STATUS_TIMED_OUT'", "7"}) {
        EXPECT_EQ(filter("ExecutionStatus = " + std::string(status)),
                  "ExecutionStatus = 'TimedOut'");
    }
    EXPECT_EQ(refusal("ExecutionStatus = 'Sleeping'"),
              "invalid query: invalid expression: invalid ExecutionStatus value 'Sleeping'");
}

TEST_F(QueryTest, AnOpenRunCountsAsClosedAfterAllOthers) {
    EXPECT_EQ(filter("CloseTime > '2026-01-02T03:04:05Z'"),
              "(CloseTime > '2026-01-02T03:04:05Z' OR CloseTime IS NULL)");
    EXPECT_EQ(filter("CloseTime < 0"),
              "(CloseTime < '1970-01-01T00:00:00.000000Z' AND CloseTime IS NOT NULL)");
}

TEST_F(QueryTest, ATextIsSearchedByItsWords) {
    EXPECT_EQ(filter("Notes = 'Quick fox'"), "Text01_words IN ('quick', 'fox')");
    EXPECT_EQ(refusal("Notes STARTS_WITH 'q'"),
              "invalid query: operation is not supported: operator 'STARTS_WITH' not supported "
              "for Text type search attribute 'Notes'");
}

TEST_F(QueryTest, WhatTheNamespaceDoesNotKnowIsRefused) {
    HOLDFAST_CHECK("server F162");
    HOLDFAST_CHECK("server F176");
    EXPECT_EQ(refusal("Nope = 1"), "invalid query: invalid search attribute: Nope");
    EXPECT_EQ(refusal("workflowid = 'w'"), "invalid query: invalid search attribute: workflowid");
    EXPECT_EQ(filter("Level between 1 and 2"), "Int01 BETWEEN 1 AND 2");
}

TEST_F(QueryTest, AValueOfAnotherTypeIsRefusedInTheWordsOfTheRealServer) {
    EXPECT_EQ(refusal("Level = 'abc'"),
              "invalid query: invalid expression: invalid value type for search attribute Level of "
              "type Int: \"abc\" (type: string)");
    EXPECT_EQ(refusal("StartTime > 'yesterday'"),
              "invalid query: invalid expression: unable to parse datetime 'yesterday'");
}

TEST_F(QueryTest, ARangeOfTruthsIsRefused) {
    HOLDFAST_CHECK("server F171");
    EXPECT_EQ(refusal("Paid BETWEEN false AND true"),
              "invalid query: invalid expression: cannot do range condition on search attribute "
              "'Paid' of type Bool");
}

TEST_F(QueryTest, ANameOnTheRightAsksForQuotes) {
    HOLDFAST_CHECK("server F177");
    EXPECT_EQ(refusal("WorkflowId = order7"),
              "invalid query: operation is not supported: column name on the right side of "
              "comparison expression (did you forget to quote \"order7\"?)");
}

TEST_F(QueryTest, WhatTheLanguageDoesNotHaveIsRefusedInTheWordsOfTheRealServer) {
    HOLDFAST_CHECK("server F180");
    EXPECT_EQ(refusal("WorkflowId = "),
              "invalid query: malformed SQL query: syntax error at position 40");
    EXPECT_EQ(refusal("WorkflowId = 'w' LIMIT 5"),
              "invalid query: operation is not supported: 'LIMIT' clause");
    EXPECT_EQ(
        refusal("WorkflowId LIKE 'w%'"),
        "invalid query: operation is not supported: operator 'LIKE' not supported for Keyword "
        "type search attribute 'WorkflowId'");
    EXPECT_EQ(refusal("WorkflowId = 'w' ORDER BY StartTime"),
              "invalid query: operation is not supported: 'ORDER BY' clause");
}

TEST_F(QueryTest, OnlyCountsAreGroupedAndOnlyByTheirStatusOrDivision) {
    HOLDFAST_CHECK("server F182");
    HOLDFAST_CHECK("server F183");
    EXPECT_EQ(refusal("GROUP BY ExecutionStatus"),
              "invalid query: operation is not supported: 'GROUP BY' clause");
    EXPECT_EQ(refusal("GROUP BY WorkflowType", Purpose::count),
              "invalid query: operation is not supported: 'GROUP BY' clause is not supported for "
              "search attribute WorkflowType");
    EXPECT_TRUE(
        translate("GROUP BY ExecutionStatus", {.info = info, .purpose = Purpose::count}).by_status);
}

}  // namespace

}  // namespace holdfast::server::visibility
