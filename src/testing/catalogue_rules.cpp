#include <holdfast/testing/catalogue_rules.hpp>

#include <optional>
#include <set>

#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <pg_query.h>

#include <holdfast/base/error.hpp>

namespace holdfast::test {
namespace {

using nlohmann::json;

// What one statement does to tables.
struct Write {
    std::string table;
    std::set<std::string> compared;  // Columns that must equal a parameter.
    bool deletes = false;
};

std::optional<std::string> column_equal_parameter(const json& expression) {
    if (expression.value("kind", "") != "AEXPR_OP") {
        return std::nullopt;
    }
    if (expression["name"][0]["String"].value("sval", "") != "=") {
        return std::nullopt;
    }
    const json& left = expression["lexpr"];
    const json& right = expression["rexpr"];
    for (const auto& [column, value] : {std::pair{&left, &right}, std::pair{&right, &left}}) {
        if (column->contains("ColumnRef") && value->contains("ParamRef")) {
            return (*column)["ColumnRef"]["fields"].back()["String"].value("sval", "");
        }
    }
    return std::nullopt;
}

// The columns that a condition fixes: its own comparison, or those of all sides of an AND.
void collect_compared(const json& condition, std::set<std::string>& columns) {
    if (condition.contains("A_Expr")) {
        if (auto column = column_equal_parameter(condition["A_Expr"])) {
            columns.insert(*column);
        }
    } else if (condition.contains("BoolExpr") &&
               condition["BoolExpr"].value("boolop", "") == "AND_EXPR") {
        for (const json& side : condition["BoolExpr"]["args"]) {
            collect_compared(side, columns);
        }
    }
}

Write write_of(const json& statement, const json& owner_of_condition) {
    Write write{.table = statement["relation"].value("relname", ""), .compared = {}};
    if (owner_of_condition.contains("whereClause")) {
        collect_compared(owner_of_condition["whereClause"], write.compared);
    }
    return write;
}

// Walks over a parse tree and keeps what the rules need.
struct Findings {
    std::vector<Write> writes;
    bool weak_lock = false;
    bool writing_cte = false;

    void visit(const json& node, bool in_cte) {
        if (node.is_object()) {
            for (const auto& [key, value] : node.items()) {
                visit_member(key, value, in_cte);
            }
        } else if (node.is_array()) {
            for (const json& element : node) {
                visit(element, in_cte);
            }
        }
    }

private:
    void visit_member(const std::string& key, const json& value, bool in_cte) {
        const bool changes = key == "UpdateStmt" || key == "DeleteStmt";
        if (changes) {
            writes.push_back(write_of(value, value));
            writes.back().deletes = key == "DeleteStmt";
        }
        if (key == "InsertStmt" && value.contains("onConflictClause") &&
            value["onConflictClause"].value("action", "") == "ONCONFLICT_UPDATE") {
            writes.push_back(write_of(value, value["onConflictClause"]));
        }
        if (in_cte && (changes || key == "InsertStmt")) {
            writing_cte = true;
        }
        if (key == "LockingClause" && value.value("strength", "") != "LCS_FORUPDATE") {
            weak_lock = true;
        }
        visit(value, in_cte || key == "CommonTableExpr");
    }
};

class Checker {
public:
    explicit Checker(const sql::Catalogue& catalogue) : catalogue_(catalogue) {}

    std::vector<std::string> check() {
        for (const sql::Statement* statement : catalogue_.statements) {
            for (const Write& write : parse(*statement).writes) {
                const sql::GuardedTable* const table = guarded(write.table);
                if (table != nullptr && !(write.deletes && table->plain_delete)) {
                    blame(
                        *statement,
                        fmt::format("changes the guarded table {} without its guard", write.table));
                }
            }
        }
        for (const sql::Statement* statement : catalogue_.postgres_only) {
            (void)parse_as(*statement, sql::dialect_named("postgres"));
        }
        for (const sql::FencedStatement* fenced : catalogue_.fenced) {
            check_fenced(*fenced);
        }
        return std::move(broken_);
    }

private:
    void check_fenced(const sql::FencedStatement& fenced) {
        (void)parse(fenced.found());
        const sql::Statement& statement = sql::CatalogueReader::write(fenced);
        const Findings found = parse(statement);
        if (found.writes.size() != 1) {
            blame(statement, "is fenced but does not change exactly one table");
            return;
        }
        const sql::GuardedTable* table = guarded(found.writes[0].table);
        if (table == nullptr) {
            blame(statement, "is fenced, but its table is not among the guarded ones");
            return;
        }
        for (const std::string_view token : table->tokens) {
            if (!found.writes[0].compared.contains(std::string(token))) {
                blame(statement, fmt::format("does not compare {} with a parameter", token));
            }
        }
    }

    Findings parse(const sql::Statement& statement) {
        const Findings found = parse_as(statement, sql::dialect_named("postgres"));
        if (parse_as(statement, sql::dialect_named("dsql")).weak_lock) {
            blame(statement, "locks rows by something other than FOR UPDATE");
        }
        if (found.writing_cte) {
            blame(statement, "changes rows inside WITH");
        }
        return found;
    }

    Findings parse_as(const sql::Statement& statement, const sql::Dialect& dialect) {
        Findings findings;
        std::string text;
        try {
            text = sql::render(dialect, statement.name(), statement.text(), catalogue_.names).text;
        } catch (const Error& error) {
            blame(statement, error.what());
            return findings;
        }
        const PgQueryParseResult result = pg_query_parse(text.c_str());
        if (result.error != nullptr) {
            blame(statement, fmt::format("does not parse: {}", result.error->message));
        } else {
            const json tree = json::parse(result.parse_tree);
            if (tree["stmts"].size() != 1) {
                blame(statement, "is not exactly one statement");
            }
            findings.visit(tree["stmts"], false);
        }
        pg_query_free_parse_result(result);
        return findings;
    }

    [[nodiscard]] const sql::GuardedTable* guarded(std::string_view table) const {
        for (const sql::GuardedTable& candidate : catalogue_.guarded) {
            if (candidate.table == table) {
                return &candidate;
            }
        }
        return nullptr;
    }

    void blame(const sql::Statement& statement, std::string_view what) {
        std::string sentence = fmt::format("{} {}", statement.name(), what);
        if (broken_.empty() || broken_.back() != sentence) {
            broken_.push_back(std::move(sentence));
        }
    }

    const sql::Catalogue& catalogue_;
    std::vector<std::string> broken_;
};

}  // namespace

std::vector<std::string> broken_rules(const sql::Catalogue& catalogue) {
    return Checker(catalogue).check();
}

}  // namespace holdfast::test
