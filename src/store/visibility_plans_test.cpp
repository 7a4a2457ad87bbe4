// A search reads what it finds, not the table.
#include <regex>

#include "statements_visibility.hpp"
#include "store_fixture.hpp"

namespace holdfast::store::stories {
namespace {

class VisibilityPlans : public testing::TestWithParam<test::Backend> {
public:
    VisibilityPlans() {
        // Enough rows that reading them all would be the wrong choice.
        const std::string numbers =
            is_sqlite() ? "WITH RECURSIVE s (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s "
                          "WHERE n < 5000) "
                        : "WITH s (n) AS (SELECT generate_series(1, 5000)) ";
        const std::string run = is_sqlite() ? "randomblob(16)" : "gen_random_uuid()";
        db.execute(
            "INSERT INTO executions_visibility (namespace_id, run_id, version, start_time, "
            "execution_time, sort_time, workflow_id, workflow_type_name, status, "
            "memo_encoding, task_queue, root_workflow_id) " +
            numbers + "SELECT " + ns() + ", " + run + ", 1, " + time("n") + ", " + time("n") +
            ", " + time("n") +
            ", 'workflow-' || n % 500, 'type-' || n % 50, n % 100, '', '', '' FROM s");
        db.execute(
            "INSERT INTO visibility_attributes (namespace_id, name, value, sort_time, "
            "start_time, run_id) SELECT namespace_id, 'customer', workflow_id, sort_time, "
            "start_time, run_id FROM executions_visibility");
        db.execute("ANALYZE");
    }
    [[nodiscard]] static bool is_sqlite() { return GetParam() == test::Backend::sqlite; }
    [[nodiscard]] static std::string ns() {
        return is_sqlite() ? "x'00000000000000000000000000000001'"
                           : "'00000000-0000-0000-0000-000000000001'";
    }
    [[nodiscard]] static std::string time(const std::string& n) {
        return is_sqlite() ? n : "to_timestamp(" + n + ")";
    }

    // How the database would run it, with what is asked for in place of parameters.
    std::string plan(const sql::Statement& statement, const std::map<int, std::string>& asked) {
        std::map<int, std::string> values{{1, ns()},
                                          {2, "''"},
                                          {3, "''"},
                                          {4, "0"},
                                          {5, time("0")},
                                          {6, time("99999")},
                                          {7, time("99999")},
                                          {8, ns()},
                                          {9, time("0")},
                                          {10, time("99999")},
                                          {19, "20"}};
        for (int i = 11; i <= 18; ++i) {
            values[i] = "''";
        }
        for (const auto& [i, value] : asked) {
            values[i] = value;
        }
        std::string text = sql::render(is_sqlite() ? sql::Product::sqlite : sql::Product::postgres,
                                       statement.name(),
                                       statement.text())
                               .text;
        for (const auto& [i, value] : values) {
            text = std::regex_replace(
                text,
                std::regex((is_sqlite() ? "\\?" : "\\$") + std::to_string(i) + "(?![0-9])"),
                value);
        }
        std::string lines;
        for (const auto& cells :
             db.look((is_sqlite() ? "EXPLAIN QUERY PLAN " : "EXPLAIN ") + text)) {
            lines += cells.back().value_or("") + "\n";
        }
        return lines;
    }

    MigratedDatabase db{GetParam()};
};

TEST_P(VisibilityPlans, EachSearchWalksAlongItsIndexInTheOrderOfTheAnswer) {
    using namespace statements;
    struct Case {
        const sql::Statement& statement;
        std::map<int, std::string> asked;
        std::string index;
    };
    const std::string attributes =
        is_sqlite() ? "sqlite_autoindex_visibility_attributes_1" : "visibility_attributes_pkey";
    for (const auto& [statement, asked, index] :
         {Case{list_by_time, {}, "executions_visibility_by_time"},
          Case{list_by_workflow, {{2, "'workflow-7'"}}, "executions_visibility_by_workflow"},
          Case{list_by_type, {{3, "'type-7'"}}, "executions_visibility_by_type"},
          Case{list_by_status, {{4, "7"}}, "executions_visibility_by_status"},
          Case{list_by_attribute, {{11, "'customer'"}, {12, "'workflow-7'"}}, attributes}}) {
        const std::string text = plan(statement, asked);
        EXPECT_NE(text.find(index), std::string::npos) << statement.name() << "\n" << text;
        EXPECT_FALSE(std::regex_search(text, std::regex("Seq Scan|SCAN [av]|Sort|B-TREE")))
            << statement.name() << "\n"
            << text;
    }
}

INSTANTIATE_TEST_SUITE_P(Every,
                         VisibilityPlans,
                         testing::Values(test::Backend::sqlite, test::Backend::postgres),
                         test::backend_name);

}  // namespace
}  // namespace holdfast::store::stories
