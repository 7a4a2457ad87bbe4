// What Aurora DSQL would say to the statements that were really sent.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "sent.hpp"
#include <fmt/core.h>

#include <holdfast/dsql/lint.hpp>
#include <holdfast/testing/database.hpp>

namespace holdfast::test {

// Reads along, and says what is wrong with what was sent since it was asked last.
class StatementRules {
public:
    explicit StatementRules(Backend backend) : backend_(backend) {}

    [[nodiscard]] std::vector<std::string> complaints() {
        std::vector<std::string> found;
        std::string script;
        for (const std::string& text : sent_.take()) {
            if (text.starts_with("BEGIN") || text.starts_with("COMMIT") || text == "ROLLBACK") {
                continue;  // The script has one transaction for each statement.
            }
            const std::size_t lock = text.rfind(" FOR ");
            if (lock != std::string::npos) {
                locks_.insert(text.substr(lock + 1));
            }
            (text.starts_with("CREATE") ? tables_ : script) += text + ";\n";
        }
        if (backend_ == Backend::dsql && !script.empty()) {
            // After the tables, so that locks are checked by their keys.
            for (const dsql::Finding& finding : dsql::lint(tables_ + script)) {
                if (finding.severity == dsql::Severity::error) {
                    found.push_back(fmt::format("{}: {}", finding.rule, finding.reason));
                }
            }
        }
        return found;
    }
    // All clauses that lock rows, so far.
    [[nodiscard]] const std::set<std::string>& locks() const noexcept { return locks_; }
    [[nodiscard]] const std::string& tables() const noexcept { return tables_; }
    // What was to be committed together, see Sent.
    [[nodiscard]] std::set<std::vector<std::string>> transactions() const {
        return sent_.transactions();
    }

private:
    Sent sent_;
    Backend backend_;
    std::string tables_;
    std::set<std::string> locks_;
};

}  // namespace holdfast::test
