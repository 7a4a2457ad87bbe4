// Looks that every idle process repeats, and searches over many instances, must not read tables
// from one end to the other.
#include <regex>
#include <string>

#include "provider/statements_admin.hpp"
#include <gtest/gtest.h>

#include <holdfast/flow/sql_provider.hpp>
#include <holdfast/sql/schema.hpp>
#include <holdfast/testing/backends.hpp>
#include <holdfast/testing/database.hpp>

namespace holdfast::flow {
namespace {

class Plans : public testing::TestWithParam<test::Backend> {
protected:
    Plans() { fill(); }

    // Enough rows that reading them all would be the wrong choice.
    void fill() {
        const bool sqlite = GetParam() == test::Backend::sqlite;
        const std::string numbers =
            sqlite ? "WITH RECURSIVE s (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < "
                     "20000) "
                   : "WITH s (n) AS (SELECT generate_series(1, 20000)) ";
        const std::string id = sqlite ? "printf('i%05d', n)" : "'i' || lpad(n::text, 5, '0')";
        const std::string token = sqlite ? "randomblob(16)" : "gen_random_uuid()";
        const std::string no = sqlite ? "0" : "FALSE";
        db.execute(
            "INSERT INTO flow_activities (instance_id, execution, event, name, input, workflow, "
            "version, tag, lock_token, available_at_us, queued_us, attempts, failures) " +
            numbers + "SELECT " + id +
            ", 1, 2, 'work', '[]', 'flow', '1.0.0', "
            "CASE n % 4 WHEN 0 THEN '' ELSE 'tag' || (n % 4) END, " +
            token + ", 4000000000000000 + n, 0, 0, 0 FROM s");
        db.execute(
            "INSERT INTO flow_instances (instance_id, name, version, execution, status, "
            "origin, lock_token, locked_until_us, starts_at_us, last_event, history_bytes, "
            "suspended, "
            "status_version, created_us, updated_us) " +
            numbers + "SELECT " + id + ", 'flow', '1.0.0', 1, 'running', " + token + ", " + token +
            ", 0, 0, 1, 100, " + no + ", 0, n, n FROM s");
        db.execute("INSERT INTO flow_attributes (instance_id, name, value) " + numbers + "SELECT " +
                   id + ", 'customer', '\"' || (n % 5000) || '\"' FROM s");
        db.execute("ANALYZE");
    }

    // How the database would run it, with these arguments.
    std::string plan(const sql::Statement& statement, const std::vector<std::string>& arguments) {
        const bool sqlite = GetParam() == test::Backend::sqlite;
        const sql::Dialect& dialect = sql::dialect_named(sqlite ? "sqlite" : "postgres");
        const sql::Rendered rendered = sql::render(dialect, statement.name(), statement.text());
        std::string text = rendered.text;
        for (std::size_t i = rendered.arguments + rendered.clocks.size(); i > 0; --i) {
            const std::string value = i <= arguments.size() ? arguments[i - 1] : "0";
            text = std::regex_replace(text,
                                      std::regex(std::string{'\\', dialect.parameter_mark} +
                                                 std::to_string(i) + "(?![0-9])"),
                                      value);
        }
        std::string lines;
        for (const auto& cells : db.look((sqlite ? "EXPLAIN QUERY PLAN " : "EXPLAIN ") + text)) {
            lines += cells.back().value_or("") + "\n";
        }
        return lines;
    }
    static bool reads_all_of(const std::string& plan, const std::string& table) {
        return plan.find("Seq Scan on " + table) != std::string::npos ||
               std::regex_search(plan, std::regex("SCAN (" + table + "|[a-z])( |\n|$)(?!USING)"));
    }

    test::Database db{GetParam(), schema_part()};
};

TEST_P(Plans, TheCheckCanFail) {
    static constexpr sql::Statement everything{
        "test.everything", "SELECT count(*) FROM flow_activities a WHERE a.name = $1"};
    const std::string text = plan(everything, {"'x'"});
    EXPECT_TRUE(reads_all_of(text, "flow_activities")) << text;
}

TEST_P(Plans, TheEarliestActivityIsFoundByTheIndex) {
    for (const sql::Statement* look :
         {&statements::earliest_activity, &statements::next_activity}) {
        const std::string text = plan(*look, {});
        EXPECT_FALSE(reads_all_of(text, "flow_activities")) << text;
        EXPECT_NE(text.find("flow_activities_by_availability"), std::string::npos) << text;
    }
}

TEST_P(Plans, ActivitiesOfATagAreFoundByTheIndexAndSoAreTheTags) {
    for (const std::string& text :
         {plan(statements::find_activities, {"8", "''", "'tag1'", "TRUE"}),
          plan(statements::activity_tags, {"64"})}) {
        EXPECT_FALSE(reads_all_of(text, "flow_activities")) << text;
        EXPECT_NE(text.find("flow_activities_by_availability"), std::string::npos) << text;
    }
}

TEST_P(Plans, AListingWalksAlongTheIndexByCreation) {
    const std::string text =
        plan(statements::list_instances,
             {"''", "''", "''", "0", "9000000000000", "9000000000000", "''", "50", "''"});
    EXPECT_FALSE(reads_all_of(text, "flow_instances")) << text;
    EXPECT_NE(text.find("flow_instances_by_creation"), std::string::npos) << text;
}

TEST_P(Plans, AnAttributeIsFoundByItsIndex) {
    const std::string text = plan(statements::list_by_attribute,
                                  {"''",
                                   "''",
                                   "''",
                                   "0",
                                   "9000000000000",
                                   "9000000000000",
                                   "''",
                                   "50",
                                   "''",
                                   "'customer'",
                                   "'\"7\"'",
                                   "''",
                                   "''",
                                   "''",
                                   "''",
                                   "''",
                                   "''"});
    EXPECT_FALSE(reads_all_of(text, "flow_instances")) << text;
    EXPECT_FALSE(reads_all_of(text, "flow_attributes")) << text;
    EXPECT_NE(text.find("flow_attributes_by_value"), std::string::npos) << text;
}

TEST_P(Plans, WhatEndedLongAgoIsLookedForAmongTheOld) {
    const std::string text = plan(statements::find_ended, {"100", "50"});
    EXPECT_FALSE(reads_all_of(text, "flow_instances")) << text;
}

INSTANTIATE_TEST_SUITE_P(Every, Plans, test::every_backend(), test::backend_name);

}  // namespace
}  // namespace holdfast::flow
