// Rules that every statement of every floor keeps, checked on PostgreSQL's own parse tree.
#pragma once

#include <string>
#include <vector>

#include <holdfast/sql/statement.hpp>

namespace holdfast::sql {

// Lets tests read the write of a fenced statement; above `sql` only `Tx` and `Database` send it.
struct CatalogueReader {
    [[nodiscard]] static const Statement& write(const FencedStatement& statement) noexcept {
        return statement.write();
    }
};

}  // namespace holdfast::sql

namespace holdfast::test {

// One sentence for each rule a statement breaks; empty if all is well. The rules:
// - it parses, as one statement, in PostgreSQL's and in DSQL's dialect;
// - a row lock is FOR UPDATE, nothing weaker: DSQL has no other;
// - no data-modifying WITH: DSQL has none;
// - a plain statement never updates rows of a guarded table, and deletes them only where the table
//   says so;
// - a fenced statement compares each of its table's tokens with a parameter, by a condition that
//   must hold (not one side of an OR).
[[nodiscard]] std::vector<std::string> broken_rules(const sql::Catalogue& catalogue);

}  // namespace holdfast::test
