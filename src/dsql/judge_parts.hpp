// One statement while it is being judged; shared by the files that judge its parts.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "judge.hpp"
#include "tokens.hpp"
#include <nlohmann/json.hpp>

namespace holdfast::dsql {

constexpr std::string_view not_supported = "0A000";

struct Judging {
    Judged& out;
    const std::vector<Token>& tokens;  // Of out.text.
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
void judge_query(const Judging& judging, std::string_view name, const Json& node);
// An expression or a query inside another statement: refusals and tables only.
void judge_inside(const Judging& judging, const Json& tree);
// Whether an expression may give another value next time; `stable` ones such as now() count too.
[[nodiscard]] bool is_mutable(const Json& expression);
[[nodiscard]] bool is_volatile_function(std::string_view name);

// CREATE, ALTER, DROP, GRANT, REVOKE, COMMENT. False if the statement is none of those accepted.
[[nodiscard]] bool judge_ddl(const Judging& judging, std::string_view name, const Json& node);

void judge_create_table(const Judging& judging, const Json& node);
void judge_alter_table(const Judging& judging, const Json& node);
void judge_create_index(const Judging& judging, const Json& node);
// A column's or a domain's type. False if it is refused.
bool judge_type(const Judging& judging, const Json& type_name);
// The CACHE of a sequence or identity column; `obligatory` unless it exists already.
void judge_cache(const Judging& judging,
                 const Json& options,
                 bool identity,
                 bool obligatory,
                 std::size_t location = 0);
// SET of a parameter, in whatever form.
void judge_parameter(const Judging& judging, const std::string& name, std::size_t location);

// Texts made from the statement's own pieces; see Judged. Empty where it cannot be done safely.
// A statement whose locks were all taken out is the same query, and so it is here.
[[nodiscard]] std::string without_lock_clauses(const Judging& judging);
// Where the first locking clause of this strength ("LCS_FORSHARE") stands.
[[nodiscard]] std::size_t lock_clause_location(const Judging& judging, std::string_view strength);
[[nodiscard]] std::string count_of_changes(const Judging& judging,
                                           std::string_view name,
                                           const Json& node);
[[nodiscard]] std::string touch_of_rows(const Judging& judging,
                                        const Json& select,
                                        const TableFacts& facts);

}  // namespace holdfast::dsql
