// Everything that Holdfast itself sends to Aurora DSQL is what the service takes: collected from
// the catalogues and migrations that the code runs, in that dialect.
#include <set>

#include "demo_shop.hpp"
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <holdfast/dsql/lint.hpp>
#include <holdfast/flow/sql_provider.hpp>
#include <holdfast/lock/catalogue.hpp>
#include <holdfast/lock/locks.hpp>
#include <holdfast/sql/catalogue.hpp>
#include <holdfast/sql/schema.hpp>

namespace holdfast {
namespace {

using testing::IsEmpty;

// Statements that the service would refuse, until they are mended. One that passes must go from
// here.
const std::set<std::string> known_exceptions{};

std::string rendered(const sql::Statement& statement, const sql::TableNames* names) {
    return sql::render(sql::Product::dsql, statement.name(), statement.text(), names).text;
}

// The rules that a script breaks. Hints are older advice and change nothing.
std::vector<std::string> broken(const std::string& script) {
    std::vector<std::string> rules;
    for (const dsql::Finding& finding : dsql::lint(script)) {
        if (finding.severity == dsql::Severity::error) {
            rules.push_back(fmt::format("{}: {}", finding.rule, finding.reason));
        }
    }
    return rules;
}

std::string all_tables() {
    return std::string(sql::create_schema_table()) + ";\n" +
           sql::schema_dump(lock::schema_part(), sql::Product::dsql) +
           sql::schema_dump(flow::schema_part(), sql::Product::dsql);
}

struct Broken {
    std::set<std::string> names;
    std::string why;

    void judge(const sql::Statement& statement, const sql::TableNames* names_of_tables) {
        // After the tables, so that locks are judged by their keys.
        for (const std::string& rule :
             broken(all_tables() + rendered(statement, names_of_tables))) {
            names.emplace(statement.name());
            why += fmt::format("{}: {}\n", statement.name(), rule);
        }
    }
};

TEST(OwnStatements, EveryMigrationPasses) {
    EXPECT_THAT(broken(all_tables()), IsEmpty());
}

TEST(OwnStatements, EveryStatementOfEveryCataloguePasses) {
    Broken found;
    for (const sql::Catalogue* catalogue :
         {&sql::catalogue(), &lock::catalogue(), &flow::catalogue()}) {
        ASSERT_FALSE(catalogue->statements.empty());
        for (const sql::Statement* statement : catalogue->statements) {
            found.judge(*statement, catalogue->names);
        }
        for (const sql::FencedStatement* statement : catalogue->fenced) {
            found.judge(statement->write(), catalogue->names);
            found.judge(statement->found(), catalogue->names);
        }
    }
    for (const sql::Statement* statement :
         {&app::shop::insert_entry, &app::shop::read_ledger, &app::shop::delete_run}) {
        found.judge(*statement, nullptr);
    }
    EXPECT_EQ(found.why, "");
}

// The test above must be able to fail.
TEST(OwnStatements, AWeakLockWouldBeFound) {
    constexpr sql::Statement weak{"test.weak",
                                  "SELECT * FROM flow_instances WHERE instance_id = $1 FOR SHARE"};
    constexpr sql::Statement range{"test.range",
                                   "SELECT * FROM flow_instances WHERE created_us > $1 FOR UPDATE"};
    Broken found;
    found.judge(weak, nullptr);
    found.judge(range, nullptr);
    EXPECT_EQ(found.names, (std::set<std::string>{"test.weak", "test.range"}));
}

}  // namespace
}  // namespace holdfast
