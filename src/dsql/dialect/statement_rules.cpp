#include "dialect/statement_rules.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <unordered_map>

#include "dialect/prepare_text.hpp"
#include "dialect/rules_parts.hpp"
#include <fmt/core.h>
#include <pg_query.h>

namespace holdfast::dsql {
namespace {

std::string lower(std::string_view text) {
    std::string result(text);
    for (char& c : result) {
        c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    }
    return result;
}

void check_transaction(const Checking& checking, const Json& node) {
    using Words = std::pair<Kind, std::string_view>;
    static const std::unordered_map<std::string_view, Words> kinds{
        {"TRANS_STMT_BEGIN", {Kind::begin, ""}},
        {"TRANS_STMT_START", {Kind::begin, ""}},
        {"TRANS_STMT_COMMIT", {Kind::commit, ""}},
        {"TRANS_STMT_ROLLBACK", {Kind::rollback, ""}},
        {"TRANS_STMT_SAVEPOINT", {Kind::other, "SAVEPOINT"}},
        {"TRANS_STMT_RELEASE", {Kind::other, "RELEASE"}},
        {"TRANS_STMT_ROLLBACK_TO", {Kind::other, "ROLLBACK TO"}},
        {"TRANS_STMT_PREPARE", {Kind::other, "PREPARE TRANSACTION"}},
        {"TRANS_STMT_COMMIT_PREPARED", {Kind::other, "COMMIT PREPARED"}},
        {"TRANS_STMT_ROLLBACK_PREPARED", {Kind::other, "ROLLBACK PREPARED"}},
    };
    const auto found = kinds.find(text_field(node, "kind"));
    const Words words = found == kinds.end() ? Words{Kind::other, "UNKNOWN"} : found->second;
    checking.out.kind = words.first;
    std::string refused{words.second};
    if (flag_field(node, "chain")) {
        refused = words.first == Kind::commit ? "COMMIT AND CHAIN" : "ROLLBACK AND CHAIN";
    }
    if (!refused.empty()) {
        checking.refuse("transaction",
                        not_supported,
                        fmt::format("unsupported transaction statement: {}", refused));
    }
}

// As it was written, one word or two.
std::string level_as_written(const Checking& checking,
                             const std::string& level,
                             std::size_t place) {
    const auto first = std::find_if(checking.tokens.begin(),
                                    checking.tokens.end(),
                                    [&](const SqlToken& token) { return token.begin == place; });
    const std::ptrdiff_t words = level.find(' ') == std::string::npos ? 1 : 2;
    if (checking.tokens.end() - first < words) {
        return level;
    }
    return checking.out.text.substr(place, (first + words - 1)->end - place);
}

// The options of BEGIN and SET TRANSACTION. True if all were an isolation level that is offered.
bool check_transaction_modes(const Checking& checking, const Json& options, bool begin) {
    bool only_levels = true;
    for (const Json& option : options) {
        const Json& element = field(option, "DefElem");
        const std::string name = text_field(element, "defname");
        const Json& value = field(field(element, "arg"), "A_Const");
        if (name == "transaction_isolation") {
            const std::string level = text_field(field(value, "sval"), "sval");
            if (level != "repeatable read") {
                checking.refuse("isolation-level",
                                not_supported,
                                fmt::format("Unsupported isolation level: {}",
                                            level_as_written(checking, level, location_of(value))),
                                location_of(value));
            }
            continue;
        }
        only_levels = false;
        if (name == "transaction_read_only") {
            checking.out.read_only = field(value, "ival").value("ival", 0) != 0;
        } else if (begin) {
            checking.refuse("transaction",
                            not_supported,
                            "unsupported transaction statement: DEFERRABLE",
                            location_of(element));
        }
    }
    return only_levels;
}

void check_set(const Checking& checking, const Json& node) {
    checking.out.kind = Kind::set;
    const std::string kind = text_field(node, "kind");
    const std::string name = text_field(node, "name");
    checking.out.parameter = kind == "VAR_RESET_ALL" ? "all" : lower(name);
    if (checking.out.parameter == "disable_sync_create_index") {
        const Json& args = field(node, "args");
        const Json& value = args.empty() ? args : field(args[0], "A_Const");
        const std::string word = lower(text_field(field(value, "sval"), "sval"));
        checking.out.sync_create_index =
            word == "off" || word == "false" || word == "no" || word == "0" ||
            (value.contains("ival") && field(value, "ival").value("ival", 0) == 0);
    }
    checking.out.sets_rules = kind == "VAR_RESET_ALL" || checking.out.parameter == "search_path" ||
                              checking.out.parameter == "disable_sync_create_index";
    if (kind == "VAR_SET_MULTI") {
        if (name != "TRANSACTION" ||
            !check_transaction_modes(checking, field(node, "args"), false)) {
            checking.out.read_only = false;
            checking.refuse(
                "parameter",
                not_supported,
                fmt::format("setting configuration parameter \"{}\" not supported", name));
        }
        return;
    }
    if (kind == "VAR_RESET_ALL") {
        return;
    }
    if (checking.out.parameter == "role") {  // Inside a transaction only; or to give it up.
        if (!flag_field(node, "is_local") && kind != "VAR_RESET") {
            checking.refuse("parameter",
                            not_supported,
                            "setting configuration parameter \"role\" not supported");
        }
        return;
    }
    check_setting(checking, node);
}

void check_show(const Checking& checking, const Json& node) {
    checking.out.kind = Kind::show;
    checking.out.parameter = lower(text_field(node, "name"));
    if (checking.out.parameter == "lc_collate") {
        checking.refuse(
            "parameter", "42704", "unrecognized configuration parameter \"lc_collate\"");
    }
}

void check_vacuum(const Checking& checking, const Json& node) {
    if (flag_field(node, "is_vacuumcmd")) {
        checking.out.kind = Kind::other;
        checking.refuse("vacuum", not_supported, "unsupported VACUUM statement");
        return;
    }
    checking.out.kind = Kind::analyze;
    bool plain = !node.contains("options") && !field(node, "rels").empty();
    for (const Json& relation : field(node, "rels")) {
        const Json& table = field(relation, "VacuumRelation");
        plain = plain && !table.contains("va_cols");
        checking.out.tables.push_back(table_name(field(table, "relation")));
    }
    if (!plain) {
        checking.refuse("analyze", not_supported, "unsupported ANALYZE statement");
    }
}

void check_copy(const Checking& checking, const Json& node) {
    const bool in = flag_field(node, "is_from");
    checking.out.kind = in ? Kind::copy_in : Kind::copy_out;
    if (node.contains("filename") || flag_field(node, "is_program")) {
        checking.refuse("copy-file", not_supported, "unsupported statement: Copy");
    }
    checking.hint("copy", "older versions of the service had no COPY");
    checking.out.copy_columns = field(node, "attlist").size();
    for (const Json& option : field(node, "options")) {
        const Json& element = field(option, "DefElem");
        checking.out.binary_copy =
            checking.out.binary_copy || (text_field(element, "defname") == "format" &&
                                         string_value(field(element, "arg")) == "binary");
    }
    if (node.contains("relation")) {
        checking.out.tables.push_back(table_name(field(node, "relation")));
        if (in) {
            checking.out.target = checking.out.tables.back();
        }
    }
    check_inside(checking, field(node, "query"));
    check_inside(checking, field(node, "whereClause"));
}

void check_call(const Checking& checking, const Json& node) {
    checking.out.kind = Kind::call;
    const Json& args = field(field(node, "funccall"), "args");
    for (const Json& arg : args) {
        if (arg.contains("SubLink")) {
            checking.refuse("call-subquery",
                            not_supported,
                            "cannot use subquery in CALL argument",
                            location_of(field(arg, "SubLink")));
        }
    }
    const Json& name = field(field(node, "funccall"), "funcname");
    if (name.size() != 2 || string_value(name[0]) != "sys") {
        checking.refuse("call", not_supported, "CALL is for procedures of the schema sys only");
    }
    check_inside(checking, args);
}

bool check_query_statement(const Checking& checking, std::string_view name, const Json& node) {
    if (name != "SelectStmt" && name != "InsertStmt" && name != "UpdateStmt" &&
        name != "DeleteStmt" && name != "MergeStmt") {
        return false;
    }
    check_query(checking, name, node);
    return true;
}

// EXPLAIN ANALYZE runs what it explains.
void check_explain(const Checking& checking, const Json& node) {
    const auto [name, query] = unwrapped(field(node, "query"));
    CheckedStatement& out = checking.out;
    if (!check_query_statement(checking, name, *query)) {
        checking.refuse(
            "statement",
            not_supported,
            fmt::format("unsupported statement: {}", name.substr(0, name.find("Stmt"))));
        out.kind = Kind::other;
        return;
    }
    bool runs = false;
    for (const Json& option : field(node, "options")) {
        const Json& element = field(option, "DefElem");
        const std::string value = string_value(field(element, "arg"));
        runs = runs || (text_field(element, "defname") == "analyze" && value != "false" &&
                        value != "off" && value != "0");
    }
    out.kind = runs ? out.kind : Kind::read;
    out.returning = true;
    out.rewrite.clear();
    out.rows_of_values.reset();
    if (!runs) {
        out.target.reset();
        out.row_locks.clear();
        out.writes_by_cte = false;
    }
}

void check_deallocate(const Checking& checking, const Json& node) {
    checking.out.kind = Kind::deallocate;
    if (node.contains("name")) {
        checking.refuse("statement", not_supported, "unsupported statement: Deallocate");
    }
}

void refuse_statement(const Checking& checking, std::string_view name) {
    checking.out.kind = Kind::other;
    if (name == "CreateEnumStmt") {
        checking.refuse("create-type", not_supported, "CREATE TYPE not supported");
    } else if (name == "AlterEnumStmt") {
        checking.refuse("alter-type", not_supported, "ALTER TYPE not supported");
    } else if (name == "CreateTrigStmt") {
        checking.refuse("trigger", not_supported, "CREATE TRIGGER not supported");
    } else {
        checking.refuse(
            "statement",
            not_supported,
            fmt::format("unsupported statement: {}", name.substr(0, name.find("Stmt"))));
    }
}

void check_tree(const Checking& checking, std::string_view name, const Json& node) {
    using StatementRules = void (*)(const Checking&, const Json&);
    static const std::unordered_map<std::string_view, StatementRules> checks{
        {"VariableSetStmt", check_set},
        {"VariableShowStmt", check_show},
        {"VacuumStmt", check_vacuum},
        {"CopyStmt", check_copy},
        {"CallStmt", check_call},
        {"ExplainStmt", check_explain},
        {"DeallocateStmt", check_deallocate},
    };
    if (check_query_statement(checking, name, node)) {
        return;
    }
    if (name == "TransactionStmt") {
        check_transaction(checking, node);
        (void)check_transaction_modes(checking, field(node, "options"), true);
    } else if (name == "ConstraintsSetStmt") {
        checking.out.kind = Kind::set_constraints;
    } else if (const auto found = checks.find(name); found != checks.end()) {
        found->second(checking, node);
    } else if (check_ddl(checking, name, node)) {
        checking.out.kind = Kind::ddl;
        checking.out.row_locks.clear();  // Those of a view or a function, which lock nothing now.
    } else {
        refuse_statement(checking, name);
    }
}

// Bytes into the text for the parser's count of characters, which begins with 1.
std::size_t place_of_character(std::string_view text, int position) {
    std::size_t at = 0;
    for (int characters = 1; characters < position && at < text.size(); ++characters) {
        do {
            ++at;
        } while (at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0U) == 0x80U);
    }
    return at;
}

struct FreeResult {
    void operator()(PgQueryParseResult* result) const { pg_query_free_parse_result(*result); }
};

void keep_syntax_error(const Checking& checking, const PgQueryError& error) {
    CheckedStatement& out = checking.out;
    out.kind = Kind::unparsed;
    out.syntax_error = error.message;
    if (const std::size_t end = out.syntax_error.find('\n'); end != std::string::npos) {
        out.syntax_error.resize(end);  // A string without an end goes on to the end of the text.
    }
    out.syntax_offset = place_of_character(out.text, error.cursorpos);
    if (out.syntax_error == "CHECK constraints cannot be marked DEFERRABLE") {
        checking.refuse("deferrable", not_supported, out.syntax_error);
    }
}

// JSON is UTF-8, and a client's text may have another encoding: for the check, any letter can stand
// for such a byte.
std::string without_high_bytes(std::string text) {
    std::replace_if(
        text.begin(),
        text.end(),
        [](char c) { return static_cast<unsigned char>(c) >= 0x80; },
        'x');
    return text;
}

void parse_and_check(const Checking& checking, const std::string& text) {
    PgQueryParseResult result = pg_query_parse(text.c_str());
    const std::unique_ptr<PgQueryParseResult, FreeResult> owner(&result);
    if (result.error != nullptr) {
        keep_syntax_error(checking, *result.error);
        return;
    }
    const Json tree = Json::parse(result.parse_tree, nullptr, false);
    if (tree.is_discarded()) {
        if (const std::string ascii = without_high_bytes(text); ascii != text) {
            parse_and_check(checking, ascii);
            return;
        }
    }
    const Json& statements = field(tree, "stmts");
    if (statements.size() != 1) {  // Only if our tokens differ from PostgreSQL's: refuse it.
        checking.out.kind = Kind::other;
        checking.refuse("syntax", "42601", "cannot tell the statements of this text apart");
        return;
    }
    const auto [name, node] = unwrapped(field(statements[0], "stmt"));
    check_tree(checking, name, *node);
}

}  // namespace

const Json& field(const Json& node, const char* name) {
    static const Json none;
    if (!node.is_object()) {
        return none;
    }
    const auto found = node.find(name);
    return found == node.end() ? none : *found;
}

std::string text_field(const Json& node, const char* name) {
    const Json& value = field(node, name);
    return value.is_string() ? value.get<std::string>() : std::string{};
}

bool flag_field(const Json& node, const char* name) {
    const Json& value = field(node, name);
    return value.is_boolean() && value.get<bool>();
}

std::size_t location_of(const Json& node) {
    const Json& value = field(node, "location");
    return value.is_number_unsigned() ? value.get<std::size_t>() : 0;
}

std::string string_value(const Json& wrapped) {
    return text_field(field(wrapped, "String"), "sval");
}

TableName table_name(const Json& range_var) {
    return {.schema = text_field(range_var, "schemaname"),
            .name = text_field(range_var, "relname")};
}

std::pair<std::string_view, const Json*> unwrapped(const Json& wrapped) {
    if (!wrapped.is_object() || wrapped.empty()) {
        return {"", &wrapped};
    }
    const auto only = wrapped.begin();
    return {only.key(), &only.value()};
}

void check_parameter(const Checking& checking, const std::string& name, std::size_t location) {
    static constexpr std::array<std::string_view, 17> accepted{"application_name",
                                                               "client_encoding",
                                                               "datestyle",
                                                               "extra_float_digits",
                                                               "intervalstyle",
                                                               "timezone",
                                                               "search_path",
                                                               "enable_bitmapscan",
                                                               "enable_hashjoin",
                                                               "enable_indexonlyscan",
                                                               "enable_indexscan",
                                                               "enable_material",
                                                               "enable_mergejoin",
                                                               "enable_nestloop",
                                                               "enable_seqscan",
                                                               "dsql.enable_batched_nestloop",
                                                               "disable_sync_create_index"};
    if (std::find(accepted.begin(), accepted.end(), lower(name)) == accepted.end()) {
        checking.refuse("parameter",
                        not_supported,
                        fmt::format("setting configuration parameter \"{}\" not supported", name),
                        location);
    }
}

// In some encodings a byte of a letter looks like a quote or a backslash to code that does not know
// the encoding, as here. Those are refused.
void check_encoding(const Checking& checking, std::string_view value, std::size_t location) {
    static constexpr std::array<std::string_view, 30> accepted{
        "utf8",        "unicode",     "sqlascii",    "latin1",      "latin2",      "latin3",
        "latin4",      "latin5",      "latin6",      "latin7",      "latin8",      "latin9",
        "latin10",     "iso88591",    "iso885915",   "win1250",     "win1251",     "win1252",
        "win1253",     "win1254",     "win1255",     "win1256",     "win1257",     "win1258",
        "windows1250", "windows1251", "windows1252", "windows1253", "windows1254", "windows1257"};
    std::string plain;
    for (const char c : lower(value)) {
        if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) {
            plain += c;
        }
    }
    if (std::find(accepted.begin(), accepted.end(), plain) == accepted.end()) {
        checking.refuse(
            "parameter",
            not_supported,
            fmt::format(
                "setting configuration parameter \"client_encoding\" to \"{}\" not supported",
                value),
            location);
    }
}

void check_setting(const Checking& checking, const Json& node) {
    const std::string name = text_field(node, "name");
    const std::string kind = text_field(node, "kind");
    check_parameter(checking, name, 0);
    if (lower(name) == "client_encoding" && kind == "VAR_SET_VALUE") {
        for (const Json& arg : field(node, "args")) {
            check_encoding(checking, text_field(field(field(arg, "A_Const"), "sval"), "sval"), 0);
        }
    }
}

namespace {

// More than scripts contain; each one costs another parse.
constexpr int aliases_max = 32;

CheckedStatement check_piece(
    std::string_view sql, std::size_t& from, const Rules& rules, const Tables* tables, int aliases);

// Since PostgreSQL 16 a subquery in FROM needs no name, so one is given to it. Empty if that is not
// what is wrong with the statement.
std::optional<CheckedStatement> check_with_alias(const Checking& checking,
                                                 std::string_view original,
                                                 int aliases) {
    const CheckedStatement& out = checking.out;
    const auto& tokens = checking.tokens;
    if (!out.syntax_error.ends_with(" in FROM must have an alias") || aliases >= aliases_max) {
        return std::nullopt;
    }
    const auto opening = std::find_if(tokens.begin(), tokens.end(), [&](const SqlToken& token) {
        return token.begin == out.syntax_offset;
    });
    const auto closing = std::find_if(opening, tokens.end(), [&](const SqlToken& token) {
        return token.depth == opening->depth && is_symbol(out.text, token, ')');
    });
    if (closing == tokens.end()) {
        return std::nullopt;
    }
    const std::string alias = fmt::format(" AS holdfast_unnamed_{}", aliases + 1);
    std::string text(original);
    text.insert(closing->end, alias);
    std::size_t at = 0;
    CheckedStatement named = check_piece(text, at, checking.rules, checking.tables, aliases + 1);
    const auto move_back = [&](std::size_t& place) {
        place = place > closing->end ? std::max(place - alias.size(), closing->end) : place;
    };
    if (named.refusal) {
        move_back(named.refusal->offset);
    }
    for (auto* more : {&named.further, &named.hints}) {
        for (Refusal& remark : *more) {
            move_back(remark.offset);
        }
    }
    move_back(named.syntax_offset);
    named.offset = out.offset;
    return named;
}

CheckedStatement check_piece(std::string_view sql,
                             std::size_t& from,
                             const Rules& rules,
                             const Tables* tables,
                             int aliases) {
    CheckedStatement out;
    StatementTokens statement = next_statement(sql, from);
    out.offset = from;
    from = statement.next;
    if (statement.tokens.empty()) {
        return out;
    }
    out.offset = statement.tokens.front().begin;
    out.text = sql.substr(out.offset, statement.tokens.back().end - out.offset);
    for (SqlToken& token : statement.tokens) {
        token.begin -= out.offset;
        token.end -= out.offset;
        out.has_parameters = out.has_parameters || token.kind == SqlToken::Kind::parameter;
    }
    const Checking checking{
        .out = out, .tokens = statement.tokens, .rules = rules, .tables = tables};
    if (check_iam(checking)) {
        out.kind = Kind::ddl;
    } else if (out.text.find('\0') != std::string::npos) {
        out.kind = Kind::unparsed;
        out.syntax_error = "invalid byte in the text: 0x00";
    } else if (prepare_text(checking)) {
        const std::string_view original = sql.substr(out.offset, out.text.size());
        parse_and_check(checking, out.text);
        if (auto named = check_with_alias(checking, original, aliases)) {
            out = std::move(*named);
        }
    }
    if (out.refusal) {
        out.refusal->offset += out.offset;
    }
    for (auto* more : {&out.further, &out.hints}) {
        for (Refusal& remark : *more) {
            remark.offset += out.offset;
        }
    }
    out.syntax_offset += out.offset;
    return out;
}

}  // namespace

CheckedStatement check_next(std::string_view sql,
                            std::size_t& from,
                            const Rules& rules,
                            const Tables* tables) {
    return check_piece(sql, from, rules, tables, 0);
}

std::vector<CheckedStatement> check_statements(std::string_view sql,
                                               const Rules& rules,
                                               const Tables* tables) {
    std::vector<CheckedStatement> statements;
    for (std::size_t at = 0; at < sql.size();) {
        CheckedStatement next = check_next(sql, at, rules, tables);
        if (next.kind != Kind::empty) {
            statements.push_back(std::move(next));
        }
    }
    if (statements.empty()) {
        statements.emplace_back();
    }
    return statements;
}

}  // namespace holdfast::dsql
