// A search reads what it finds, not the table.
#include <regex>

#include "test/store_fixture.hpp"
#include "visibility/visibility_query.hpp"

namespace holdfast::store::tests {
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
            "execution_time, sort_time, workflow_id, workflow_digest, workflow_prefix, "
            "workflow_type_name, workflow_type_digest, workflow_type_prefix, status, "
            "memo_encoding, task_queue, root_workflow_id) " +
            numbers + "SELECT " + ns() + ", " + run + ", 1, " + time("n") + ", " + time("n") +
            ", " + time("n") + ", 'workflow-' || n % 500, " + digest("n % 500") +
            ", 'workflow-' || n % 500, " + "'type-' || n % 50, " + digest("n % 50") +
            ", 'type-' || n % 50, " + "n % 100, '', '', '' FROM s");
        db.execute(
            "INSERT INTO visibility_attributes (namespace_id, name, value, sort_time, "
            "start_time, run_id) SELECT namespace_id, 'customer', 't' || workflow_id, sort_time, "
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

    // As good as one for a plan, and made by the database itself.
    [[nodiscard]] static std::string digest(const std::string& n) {
        return is_sqlite() ? "CAST(printf('%016d', " + n + ") AS BLOB)"
                           : "lpad((" + n + ")::text, 32, '0')::uuid";
    }

    // A parameter as text.
    [[nodiscard]] static std::string literal(const sql::Param& param) {
        switch (param.kind()) {
            case sql::Kind::int64:
                return std::to_string(param.number());
            case sql::Kind::timestamp:
                return time(
                    std::to_string(is_sqlite() ? param.number() : param.number() / 1'000'000));
            case sql::Kind::uuid:
                return param.uuid() == space || param.uuid() == Uuid{} ? ns() : digest("7");
            default:
                return "'" + std::string(param.view()) + "'";
        }
    }

    // How the database would read the second page, with what is asked for in place of parameters.
    std::string plan(std::string_view text_of_filter) {
        const filter::Filter parsed = filter::parse(text_of_filter);
        VisibilityPlace place{};
        for (std::size_t i = 0; i < parsed.order.size(); ++i) {
            place.keys.emplace_back(at(99999s));
        }
        VisibilityQuery query(NamespaceId{space}, parsed);
        const sql::BuiltQuery built = std::move(query).page(place, 20);
        std::string text = built.text;
        for (std::size_t i = built.args.size(); i > 0; --i) {
            text = std::regex_replace(text,
                                      std::regex("\\$" + std::to_string(i) + "(?![0-9])"),
                                      literal(built.args[i - 1]));
        }
        std::string lines;
        for (const auto& cells :
             db.look((is_sqlite() ? "EXPLAIN QUERY PLAN " : "EXPLAIN ") + text)) {
            lines += cells.back().value_or("") + "\n";
        }
        return lines;
    }

    static inline const Uuid space = *Uuid::parse("00000000-0000-0000-0000-000000000001");
    MigratedDatabase db{GetParam()};
};

TEST_P(VisibilityPlans, EachSearchWalksAlongItsIndexInTheOrderOfTheAnswer) {
    struct Case {
        std::string filter;
        std::string index;
    };
    const std::string attributes =
        is_sqlite() ? "sqlite_autoindex_visibility_attributes_1" : "visibility_attributes_pkey";
    for (const auto& [filter, index] :
         {Case{"", "executions_visibility_by_time"},
          Case{"CloseTime < '1970-01-01T00:20:00Z'", "executions_visibility_by_time"},
          Case{"WorkflowId = 'workflow-7'", "executions_visibility_by_workflow"},
          Case{"WorkflowType = 'type-7'", "executions_visibility_by_type"},
          Case{"ExecutionStatus = 'TimedOut'", "executions_visibility_by_status"},
          Case{"customer = 'workflow-7'", attributes},
          Case{"HistoryLength IS NULL AND customer = 'workflow-7'", attributes},
          Case{"(customer = 'workflow-7') AND TemporalNamespaceDivision IS NULL", attributes}}) {
        const std::string text = plan(filter);
        EXPECT_NE(text.find(index), std::string::npos) << filter << "\n" << text;
        EXPECT_FALSE(std::regex_search(text, std::regex("Seq Scan|SCAN [av]|Sort|B-TREE")))
            << filter << "\n"
            << text;
    }
}

// What begins with a text lies together in the index, not in the order of the answer.
TEST_P(VisibilityPlans, ASearchForAPrefixReadsWhatBeginsWithIt) {
    HOLDFAST_CHECK("store 229");
    for (const auto& [filter, index] : std::vector<std::pair<std::string, std::string>>{
             {"WorkflowId STARTS_WITH 'workflow-77'", "executions_visibility_by_workflow_prefix"},
             {"WorkflowType STARTS_WITH 'type-49'", "executions_visibility_by_type_prefix"}}) {
        const std::string text = plan(filter);
        EXPECT_NE(text.find(index), std::string::npos) << filter << "\n" << text;
        EXPECT_FALSE(std::regex_search(text, std::regex("Seq Scan|SCAN [av]"))) << text;
    }
}

// A file's planner has no statistics: what an attribute is compared with must not lead it astray.
class FilePlans : public VisibilityPlans {};

TEST_P(FilePlans, AttributesOfARunAreLookedUpByTheRun) {
    for (const std::string_view filter : {"WorkflowId = 'workflow-7' AND customer = 'workflow-7'",
                                          "WorkflowType = 'type-7' AND customer > 'workflow-7'",
                                          "WorkflowType = 'type-7' AND customer IS NULL"}) {
        const std::string text = plan(filter);
        EXPECT_NE(text.find("visibility_attributes_by_run (namespace_id=? AND run_id=? AND name=?"),
                  std::string::npos)
            << filter << "\n"
            << text;
        EXPECT_EQ(text.find("B-TREE"), std::string::npos) << filter << "\n" << text;
    }
}

INSTANTIATE_TEST_SUITE_P(Every,
                         VisibilityPlans,
                         testing::Values(test::Backend::sqlite, test::Backend::postgres),
                         test::backend_name);
INSTANTIATE_TEST_SUITE_P(File,
                         FilePlans,
                         testing::Values(test::Backend::sqlite),
                         test::backend_name);

}  // namespace
}  // namespace holdfast::store::tests
