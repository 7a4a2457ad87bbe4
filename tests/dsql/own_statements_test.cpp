// Everything that Holdfast itself sends to Aurora DSQL is what the service takes: collected from
// the catalogues and migrations that the code runs, in that dialect.
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "demo/shop.hpp"
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <holdfast/dsql/lint.hpp>
#include <holdfast/flow/sql_provider.hpp>
#include <holdfast/lock/catalogue.hpp>
#include <holdfast/lock/locks.hpp>
#include <holdfast/sql/catalogue.hpp>
#include <holdfast/sql/schema.hpp>
#include <holdfast/store/catalogue.hpp>
#include <holdfast/testing/catalogue_rules.hpp>
#include <holdfast/testing/check.hpp>

namespace holdfast {
namespace {

using testing::IsEmpty;

// Statements that the service would refuse, until they are mended. One that passes must go from
// here.
const std::set<std::string> known_exceptions{};

std::string rendered(const sql::Statement& statement, const sql::TableNames* names) {
    return sql::render(sql::dialect_named("dsql"), statement.name(), statement.text(), names).text;
}

// The rules that a script breaks. Hints change nothing, except those about FOR UPDATE: our own
// statements stay within the guide, also where the service accepts more.
std::vector<std::string> broken(const std::string& script) {
    std::vector<std::string> rules;
    for (const dsql::Finding& finding : dsql::lint(script)) {
        if (finding.severity == dsql::Severity::error || finding.rule.starts_with("for-update")) {
            rules.push_back(fmt::format("{}: {}", finding.rule, finding.reason));
        }
    }
    return rules;
}

std::string all_tables() {
    return std::string(sql::create_schema_table()) + ";\n" +
           sql::schema_dump(lock::schema_part(), sql::dialect_named("dsql")) +
           sql::schema_dump(flow::schema_part(), sql::dialect_named("dsql")) +
           sql::schema_dump(store::schema_part(), sql::dialect_named("dsql"));
}

// Statements, checked after the tables, so that locks are checked by their keys.
class Court {
public:
    void call(const sql::Statement& statement, const sql::TableNames* names_of_tables) {
        called_.emplace_back(statement.name(), rendered(statement, names_of_tables) + ";\n");
    }
    // The names of those that break a rule; `why` says which. All are read at once, for the tables
    // take longer than a statement does; only if there is something to blame, one by one.
    std::set<std::string> guilty() {
        const std::string tables = all_tables();
        std::string everything = tables;
        for (const auto& [name, text] : called_) {
            everything += text;
        }
        std::set<std::string> names;
        if (broken(everything).empty()) {
            return names;
        }
        for (const auto& [name, text] : called_) {
            for (const std::string& rule : broken(tables + text)) {
                names.insert(name);
                why += fmt::format("{}: {}\n", name, rule);
            }
        }
        return names;
    }
    std::string why;

private:
    std::vector<std::pair<std::string, std::string>> called_;
};

TEST(OwnStatements, EveryMigrationPasses) {
    EXPECT_THAT(broken(all_tables()), IsEmpty());
}

TEST(OwnStatements, EveryStatementOfEveryCataloguePasses) {
    HOLDFAST_CHECK("store 212");
    Court court;
    for (const sql::Catalogue* catalogue :
         {&sql::catalogue(), &lock::catalogue(), &flow::catalogue(), &store::catalogue()}) {
        ASSERT_FALSE(catalogue->statements.empty());
        for (const sql::Statement* statement : catalogue->statements) {
            court.call(*statement, catalogue->names);
        }
        for (const sql::FencedStatement* statement : catalogue->fenced) {
            court.call(sql::CatalogueReader::write(*statement), catalogue->names);
            court.call(statement->found(), catalogue->names);
        }
    }
    for (const sql::Statement* statement :
         {&app::shop::insert_entry, &app::shop::read_ledger, &app::shop::delete_run}) {
        court.call(*statement, nullptr);
    }
    EXPECT_THAT(court.guilty(), IsEmpty()) << court.why;
}

// The test above must be able to fail.
TEST(OwnStatements, AWeakLockWouldBeFound) {
    constexpr sql::Statement weak{"test.weak",
                                  "SELECT * FROM flow_instances WHERE instance_id = $1 FOR SHARE"};
    constexpr sql::Statement range{"test.range",
                                   "SELECT * FROM flow_instances WHERE created_us > $1 FOR UPDATE"};
    Court court;
    court.call(weak, nullptr);
    court.call(range, nullptr);
    EXPECT_EQ(court.guilty(), (std::set<std::string>{"test.weak", "test.range"}));
}

}  // namespace
}  // namespace holdfast
