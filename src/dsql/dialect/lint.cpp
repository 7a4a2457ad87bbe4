#include <holdfast/dsql/lint.hpp>

#include <algorithm>
#include <map>
#include <tuple>

#include "dialect/lint_fixes.hpp"
#include "dialect/sql_lexer.hpp"
#include "dialect/statement_rules.hpp"

namespace holdfast::dsql {
namespace {

constexpr std::int64_t rows_max = 3'000;
constexpr int fix_rounds_max = 8;  // A fixed statement may show further errors.

// Some editors put it before UTF-8 text; psql skips it.
constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";

std::size_t beginning_of(std::string_view sql) {
    return sql.starts_with(byte_order_mark) ? byte_order_mark.size() : 0;
}

// What the script itself has created.
class ScriptTables : public Tables {
public:
    [[nodiscard]] const TableFacts* find(const TableName& name) const override {
        const auto found = facts_.find(key(name));
        return found == facts_.end() ? nullptr : &found->second;
    }

    void follow(const CheckedStatement& statement) {
        if (statement.sets_rules) {
            facts_.clear();  // A bare name may mean another table from here on.
        } else if (statement.created && statement.target) {
            facts_[key(*statement.target)] = *statement.created;
        } else if (statement.kind == Kind::ddl && statement.target && changes_tables(statement)) {
            for (const TableName& table : statement.tables) {
                facts_.erase(key(table));
            }
        }
    }

private:
    using Key = std::pair<std::string, std::string>;
    static Key key(const TableName& name) {
        return {name.schema.empty() ? "public" : name.schema, name.name};
    }

    // After ALTER and DROP the known facts are no longer valid.
    static bool changes_tables(const CheckedStatement& statement) {
        const auto tokens = next_statement(statement.text, 0).tokens;
        return !tokens.empty() && (is_word(statement.text, tokens[0], "ALTER") ||
                                   is_word(statement.text, tokens[0], "DROP"));
    }

    std::map<Key, TableFacts> facts_;
};

// Turns offsets into lines and columns. Requires: offsets that grow.
class Places {
public:
    explicit Places(std::string_view sql) : sql_(sql), at_(beginning_of(sql)) {}

    void set(Finding& finding) {
        if (finding.offset < at_) {
            *this = Places(sql_);
        }
        for (; at_ < std::min(finding.offset, sql_.size()); ++at_) {
            if (sql_[at_] == '\n') {
                ++line_;
                column_ = 1;
            } else if ((static_cast<unsigned char>(sql_[at_]) & 0xC0U) != 0x80U) {
                ++column_;
            }
        }
        finding.line = line_;
        finding.column = column_;
    }

private:
    std::string_view sql_;
    std::size_t at_;
    std::size_t line_ = 1;
    std::size_t column_ = 1;
};

class Linter {
public:
    explicit Linter(std::string_view sql) : sql_(sql) {}

    std::vector<Finding> run() {
        std::size_t at = beginning_of(sql_);
        while ((at = skip_meta_commands(at)) < sql_.size()) {
            const CheckedStatement statement = check_next(sql_, at, rules_, &tables_);
            if (statement.kind == Kind::empty) {
                continue;
            }
            report(statement);
            follow_transaction(statement);
            tables_.follow(statement);
            if (statement.sets_rules) {
                rules_.sync_create_index = statement.sync_create_index.value_or(false);
            }
            if (statement.kind == Kind::copy_in) {
                at = skip_copy_data(at);
            }
        }
        std::sort(findings_.begin(), findings_.end(), [](const Finding& a, const Finding& b) {
            return std::tie(a.offset, a.severity, a.rule) < std::tie(b.offset, b.severity, b.rule);
        });
        Places places(sql_);
        for (Finding& finding : findings_) {
            places.set(finding);
        }
        return std::move(findings_);
    }

private:
    // Lines of psql between the statements: \connect, \set.
    [[nodiscard]] std::size_t skip_meta_commands(std::size_t at) const {
        while ((at = skip_blanks(sql_, at)) < sql_.size() && sql_[at] == '\\') {
            at = std::min(sql_.find('\n', at), sql_.size());
        }
        return at;
    }

    // Data that follow COPY ... FROM STDIN in a script, up to the line `\.`.
    [[nodiscard]] std::size_t skip_copy_data(std::size_t at) const {
        const std::size_t end = sql_.find("\n\\.", at);
        return end == std::string_view::npos ? at : std::min(sql_.find('\n', end + 1), sql_.size());
    }

    void add(const CheckedStatement& statement, const Refusal& remark, Severity severity) {
        findings_.push_back({.offset = remark.offset,
                             .line = 1,
                             .column = 1,
                             .rule = std::string(remark.rule),
                             .severity = severity,
                             .sqlstate = std::string(remark.code),
                             .reason = remark.message,
                             .rewrite = std::string(rewrite_of(remark.rule, remark.message)),
                             .fix = fix_of(sql_, statement, remark)});
    }

    void report(const CheckedStatement& statement) {
        if (statement.refusal) {
            add(statement, *statement.refusal, Severity::error);
        } else if (statement.kind == Kind::unparsed) {
            add(statement,
                {.rule = "syntax",
                 .code = "42601",
                 .message = statement.syntax_error,
                 .offset = statement.syntax_offset},
                Severity::error);
        }
        for (const Refusal& refusal : statement.further) {
            add(statement, refusal, Severity::error);
        }
        for (const Refusal& hint : statement.hints) {
            add(statement, hint, Severity::hint);
        }
        if (statement.rows_of_values.value_or(0) > rows_max) {
            refuse_rows(statement);
        }
    }

    void refuse_rows(const CheckedStatement& statement) {
        refuse(statement, "row-limit", "54000", "transaction row limit exceeded");
    }

    void refuse(const CheckedStatement& statement,
                std::string_view rule,
                std::string_view code,
                std::string_view message) {
        add(statement,
            {.rule = rule,
             .code = code,
             .message = std::string(message),
             .offset = statement.offset},
            Severity::error);
    }

    // One DDL statement in a transaction, and no rows changed beside it.
    void follow_transaction(const CheckedStatement& statement) {
        if (statement.kind == Kind::begin && !open_) {
            open_ = true;
            ddl_ = rows_ = false;
            inserted_ = 0;
        } else if (statement.kind == Kind::commit || statement.kind == Kind::rollback) {
            open_ = false;
        } else if (open_) {
            follow_inside(statement);
        }
    }

    void follow_inside(const CheckedStatement& statement) {
        const bool ddl = statement.kind == Kind::ddl;
        const bool rows = statement.kind == Kind::write || statement.kind == Kind::lock ||
                          statement.kind == Kind::copy_in;
        if (ddl && ddl_) {
            refuse(statement,
                   "ddl-count",
                   "0A000",
                   "multiple ddl statements not supported in a transaction");
        } else if ((ddl && rows_) || (rows && ddl_)) {
            refuse(statement,
                   "ddl-and-dml",
                   "0A000",
                   "ddl and dml are not supported in the same transaction");
        } else if (statement.kind == Kind::analyze) {
            refuse(statement, "analyze", "25001", "ANALYZE cannot run inside a transaction block");
        }
        ddl_ = ddl_ || ddl;
        rows_ = rows_ || rows;
        // How many rows other statements change is unknown; ON CONFLICT may leave some out.
        const std::int64_t inserts =
            statement.on_conflict ? 0 : statement.rows_of_values.value_or(0);
        const bool within = inserted_ <= rows_max;
        inserted_ += inserts;
        if (within && inserted_ > rows_max && inserts <= rows_max) {
            refuse_rows(statement);
        }
    }

    std::string_view sql_;
    ScriptTables tables_;
    Rules rules_;
    std::vector<Finding> findings_;
    bool open_ = false;          // Behind BEGIN.
    bool ddl_ = false;           // This transaction had one.
    bool rows_ = false;          // This transaction changed or locked rows.
    std::int64_t inserted_ = 0;  // How many rows by VALUES, for certain.
};

// Leaves out an edit that overlaps an earlier one.
std::size_t apply_edits(std::string& text, const std::vector<Finding>& findings) {
    std::vector<const TextEdit*> edits;
    for (const Finding& finding : findings) {
        for (const TextEdit& edit : finding.fix) {
            edits.push_back(&edit);
        }
    }
    std::sort(edits.begin(), edits.end(), [](const TextEdit* a, const TextEdit* b) {
        return std::tie(a->begin, a->end, a->text) > std::tie(b->begin, b->end, b->text);
    });
    std::size_t applied = 0;
    std::size_t free_until = text.size() + 1;
    for (const TextEdit* edit : edits) {
        if (edit->end < free_until) {
            text.replace(edit->begin, edit->end - edit->begin, edit->text);
            free_until = edit->begin;
            ++applied;
        }
    }
    return applied;
}

}  // namespace

std::vector<Finding> lint(std::string_view sql) {
    return Linter(sql).run();
}

Fixed lint_fix(std::string_view sql) {
    Fixed fixed{.text = std::string(sql), .fixes = 0, .left = lint(sql)};
    for (int round = 0; round < fix_rounds_max; ++round) {
        const std::size_t applied = apply_edits(fixed.text, fixed.left);
        if (applied == 0) {
            break;
        }
        fixed.fixes += applied;
        fixed.left = lint(fixed.text);
    }
    return fixed;
}

}  // namespace holdfast::dsql
