// One statement while it is being checked; shared by the files that check its parts.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "dialect/sql_lexer.hpp"
#include "dialect/statement_rules.hpp"
#include <nlohmann/json.hpp>

namespace holdfast::dsql {

constexpr std::string_view not_supported = "0A000";

struct Checking {
    CheckedStatement& out;
    const std::vector<SqlToken>& tokens;  // Of out.text.
    const Rules& rules;
    const Tables* tables;

    // The first refusal counts, as it does for the service.
    void refuse(std::string_view rule,
                std::string_view code,
                std::string message,
                std::size_t location = 0) const {
        Refusal refusal{
            .rule = rule, .code = code, .message = std::move(message), .offset = location};
        if (out.refusal) {
            out.further.push_back(std::move(refusal));
        } else {
            out.refusal = std::move(refusal);
        }
    }

    void hint(std::string_view rule, std::string_view message, std::size_t location = 0) const {
        out.hints.push_back(
            {.rule = rule, .code = {}, .message = std::string(message), .offset = location});
    }

    [[nodiscard]] const TableFacts* facts(const TableName& name) const {
        return tables == nullptr ? nullptr : tables->find(name);
    }
    [[nodiscard]] bool word(std::size_t token, std::string_view upper_case) const {
        return token < tokens.size() && is_word(out.text, tokens[token], upper_case);
    }
    [[nodiscard]] bool symbol(std::size_t token, char c) const {
        return token < tokens.size() && is_symbol(out.text, tokens[token], c);
    }
};

// Reading a parse tree, where a field that has its type's zero is left out.
using Json = nlohmann::json;
[[nodiscard]] const Json& field(const Json& node, const char* name);  // Null if it has none.
[[nodiscard]] std::string text_field(const Json& node, const char* name);
[[nodiscard]] bool flag_field(const Json& node, const char* name);
[[nodiscard]] std::size_t location_of(const Json& node);
[[nodiscard]] std::string string_value(const Json& wrapped);  // Of {"String": {"sval": ...}}.
[[nodiscard]] TableName table_name(const Json& range_var);
// The node inside a wrapped one: its name and its fields.
[[nodiscard]] std::pair<std::string_view, const Json*> unwrapped(const Json& wrapped);

// SELECT, INSERT, UPDATE, DELETE, MERGE.
void check_query(const Checking& checking, std::string_view name, const Json& node);
// An expression or a query inside another statement: refusals and tables only.
void check_inside(const Checking& checking, const Json& tree);
// Whether an expression may give another value next time; `stable` ones such as now() count too.
[[nodiscard]] bool is_mutable(const Json& expression);
[[nodiscard]] bool is_volatile_function(std::string_view name);

// CREATE, ALTER, DROP, GRANT, REVOKE, COMMENT. False if the statement is none of those accepted.
[[nodiscard]] bool check_ddl(const Checking& checking, std::string_view name, const Json& node);

void check_create_table(const Checking& checking, const Json& node);
void check_alter_table(const Checking& checking, const Json& node);
void check_create_index(const Checking& checking, const Json& node);
// A column's or a domain's type. False if it is refused.
bool check_type(const Checking& checking, const Json& type_name);
// The CACHE of a sequence or identity column; `obligatory` unless it exists already.
void check_cache(const Checking& checking,
                 const Json& options,
                 bool identity,
                 bool obligatory,
                 std::size_t location = 0);
// CREATE, ALTER, DROP, GRANT, REVOKE, COMMENT of a role. False if the statement is none of those.
[[nodiscard]] bool check_role(const Checking& checking, std::string_view name, const Json& node);
// SET of a parameter, in whatever form.
void check_parameter(const Checking& checking, const std::string& name, std::size_t location);
// The same with its value, of a VariableSetStmt; the parameter `role` is not among them.
void check_setting(const Checking& checking, const Json& node);
void check_encoding(const Checking& checking, std::string_view value, std::size_t location);

// Texts made from the statement's own pieces; see CheckedStatement. Empty where it cannot be done
// safely. A statement whose locks were all taken out is the same query, and so it is here.
[[nodiscard]] std::string without_lock_clauses(const Checking& checking);
// Where the first locking clause of this strength ("LCS_FORSHARE") stands.
[[nodiscard]] std::size_t lock_clause_location(const Checking& checking, std::string_view strength);
[[nodiscard]] std::string count_of_changes(const Checking& checking,
                                           std::string_view name,
                                           const Json& node);
[[nodiscard]] std::string touch_of_rows(const Checking& checking,
                                        const Json& select,
                                        const TableFacts& facts);

}  // namespace holdfast::dsql
