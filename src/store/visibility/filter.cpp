#include "visibility/filter.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "visibility/filter_lexer.hpp"
#include "visibility/filter_values.hpp"
#include "visibility/search_attributes.hpp"
#include <fmt/core.h>

#include <holdfast/base/utf8.hpp>

namespace holdfast::store::filter {
namespace {

constexpr std::array all_fields{
    Field{"WorkflowId", Type::text, "workflow_id", false, {}, "workflow_digest", "workflow_prefix"},
    Field{"RunId", Type::id, "run_id", false},
    Field{"WorkflowType",
          Type::text,
          "workflow_type_name",
          false,
          {},
          "workflow_type_digest",
          "workflow_type_prefix"},
    Field{"StartTime", Type::time, "start_time", false},
    Field{"ExecutionTime", Type::time, "execution_time", false},
    Field{"CloseTime", Type::time, "sort_time", false},
    Field{"ExecutionStatus", Type::status, "status", false},
    Field{"TaskQueue", Type::text, "task_queue", false},
    Field{"HistoryLength", Type::number, "history_length", true},
    Field{"HistorySizeBytes", Type::number, "history_size_bytes", true},
    Field{"ExecutionDuration", Type::duration, "execution_duration_us", true},
    Field{"StateTransitionCount", Type::number, "state_transition_count", true},
    Field{"ParentWorkflowId", Type::text, "parent_workflow_id", true},
    Field{"ParentRunId", Type::id, "parent_run_id", true},
    Field{"RootWorkflowId", Type::text, "root_workflow_id", false},
    Field{"RootRunId", Type::id, "root_run_id", true},
    // A schedule is a workflow, too.
    Field{"ScheduleId",
          Type::text,
          "workflow_id",
          false,
          "temporal-sys-scheduler:",
          "workflow_digest",
          "workflow_prefix"},
};

constexpr std::string_view reserved_prefix = "Temporal";
// Attributes of the server that have no prefix by themselves.
constexpr std::array<std::string_view, 3> plain_attributes{
    "BatcherUser", "BinaryChecksums", "BuildIds"};

std::string_view without_prefix(std::string_view name) {
    return name.starts_with(reserved_prefix) ? name.substr(reserved_prefix.size()) : name;
}

// Under which it is kept.
std::string attribute_of(std::string_view name) {
    const std::string_view plain = without_prefix(name);
    const bool known = std::ranges::find(plain_attributes, plain) != plain_attributes.end();
    return std::string(known ? plain : name);
}

// Recursive descent: one function for each rule, from the loosest to the tightest.
class Parser {
public:
    explicit Parser(std::string_view text) : lexer_(text) { advance(); }

    Filter parse() {
        Filter made;
        if (token_.kind != Token::Kind::end && !token_.is("ORDER") && !token_.is("GROUP")) {
            made.where = any(false, 0);
        }
        if (take("GROUP")) {
            group_by(made);
        }
        if (take("ORDER")) {
            order_by(made);
        } else {
            made.order = {{find_field("CloseTime"), true}, {find_field("StartTime"), true}};
        }
        if (token_.kind != Token::Kind::end) {
            lexer_.refuse(token_, "AND, OR, ORDER BY or the end");
        }
        return made;
    }

private:
    void advance() { token_ = lexer_.next(); }
    bool take(std::string_view word) {
        const bool found = token_.is(word);
        if (found) {
            advance();
        }
        return found;
    }
    void expect(std::string_view word) {
        if (!take(word)) {
            lexer_.refuse(token_, word);
        }
    }
    Token take_name(std::string_view expected) {
        if (token_.kind != Token::Kind::name) {
            lexer_.refuse(token_, expected);
        }
        return take_any();
    }
    Token take_any() {
        Token taken = std::move(token_);
        advance();
        return taken;
    }

    Node any(bool negated, std::size_t depth) {
        const Node::Kind kind = negated ? Node::Kind::all : Node::Kind::any;
        Node made = all(negated, depth);
        while (take("OR")) {
            made = joined(kind, std::move(made), all(negated, depth));
        }
        return made;
    }
    Node all(bool negated, std::size_t depth) {
        const Node::Kind kind = negated ? Node::Kind::any : Node::Kind::all;
        Node made = one(negated, depth);
        while (take("AND")) {
            made = joined(kind, std::move(made), one(negated, depth));
        }
        return made;
    }
    Node one(bool negated, std::size_t depth) {
        while (take("NOT")) {
            negated = !negated;
        }
        if (!token_.is("(")) {
            return {.condition = condition(negated)};
        }
        if (depth == depth_max) {
            lexer_.refuse(token_.begin,
                          fmt::format("more than {} parentheses in each other", depth_max));
        }
        advance();
        Node made = any(negated, depth + 1);
        expect(")");
        return made;
    }
    static Node joined(Node::Kind kind, Node left, Node right) {
        if (left.kind != kind) {
            Node wrapped{.kind = kind};
            wrapped.parts.push_back(std::move(left));
            left = std::move(wrapped);
        }
        if (right.kind == kind) {
            std::move(right.parts.begin(), right.parts.end(), std::back_inserter(left.parts));
        } else {
            left.parts.push_back(std::move(right));
        }
        return left;
    }

    Condition condition(bool negated) {
        const Token name = take_name("a name, NOT or (");
        if (++conditions_ > conditions_max) {
            lexer_.refuse(name.begin, fmt::format("more than {} conditions", conditions_max));
        }
        Condition made{.field = field_of(name), .negated = negated};
        if (made.field == nullptr) {
            made.attribute = attribute_of(name.meaning);
        }
        if (take("IS")) {
            made.test = Test::null;
            made.negated = negated != take("NOT");
            expect("NULL");
        } else if (token_.kind == Token::Kind::symbol) {
            comparison(made);
        } else {
            made.negated = negated != take("NOT");
            words(made);
        }
        return made;
    }

    // Null: a search attribute. One that looks like a field stands in backquotes.
    [[nodiscard]] const Field* field_of(const Token& name) const {
        const bool quoted = name.written.starts_with('`');
        if (const Field* const field = find_field(name.meaning);
            field != nullptr && (!quoted || field->prefix.empty())) {
            return field;
        }
        const auto same = [](char a, char b) { return (a | 0x20) == (b | 0x20); };
        for (const Field& field : all_fields) {
            if (!quoted && std::ranges::equal(field.name, name.meaning, same)) {
                lexer_.refuse(name,
                              fmt::format("{}, or `{}` for a search attribute of this name",
                                          field.name,
                                          name.meaning));
            }
        }
        if (!is_attribute_name(name.meaning)) {
            lexer_.refuse(name, "a name of letters, digits and _");
        }
        return nullptr;
    }

    void comparison(Condition& made) {
        constexpr std::array<std::pair<std::string_view, Test>, 4> ordered{
            std::pair{"<", Test::less},
            std::pair{"<=", Test::less_or_equal},
            std::pair{">", Test::greater},
            std::pair{">=", Test::greater_or_equal}};
        const Token symbol = take_any();
        if (symbol.is("!=")) {
            made.negated = !made.negated;
        } else if (!symbol.is("=")) {
            const auto* const found =
                std::find_if(ordered.begin(), ordered.end(), [&](const auto& known) {
                    return symbol.is(known.first);
                });
            if (found == ordered.end()) {
                lexer_.refuse(symbol, "a comparison such as = or IN");
            }
            made.test = found->second;
        }
        if (is_id(made)) {
            compare_ids(made, take_text());
        } else {
            made.values.push_back(value(made));
        }
    }

    void words(Condition& made) {
        const Token word = take_any();
        if (word.is("IN")) {
            list(made);
        } else if (word.is("BETWEEN")) {
            between(made);
        } else if (word.is("STARTS_WITH")) {
            prefix(made, word);
        } else {
            lexer_.refuse(word, "a comparison such as = or IN");
        }
    }

    void between(Condition& made) {
        made.test = Test::between;
        if (is_id(made)) {
            const std::string first = take_text();
            expect("AND");
            made.values = ids_between(first, take_text());
            return;
        }
        const Token first = token_;
        made.values.push_back(value(made));
        expect("AND");
        const Token last = token_;
        made.values.push_back(value(made));
        if (made.field != nullptr || kind_of(made.values[0]) == kind_of(made.values[1])) {
            return;
        }
        if (first.kind != Token::Kind::text || last.kind != Token::Kind::text) {
            lexer_.refuse(last, "a value of the same kind as the first");
        }
        made.values = {text_key(first), text_key(last)};  // A time, and what is none.
    }
    void prefix(Condition& made, const Token& word) {
        made.test = Test::starts_with;
        if (is_id(made)) {
            made.test = Test::between;
            made.values = ids_with_prefix(take_text());
            return;
        }
        if (made.field != nullptr && made.field->type != Type::text) {
            lexer_.refuse(word, fmt::format("another comparison, for {}", made.field->name));
        }
        if (token_.kind != Token::Kind::text) {
            lexer_.refuse(token_, "a text in quotes");
        }
        made.values.push_back(made.field == nullptr ? text_key(take_any()) : value(made));
    }
    void list(Condition& made) {
        expect("(");
        std::size_t count = 0;
        do {
            if (++count > values_max) {
                lexer_.refuse(token_.begin, fmt::format("more than {} values", values_max));
            }
            if (is_id(made)) {
                compare_ids(made, take_text());
            } else {
                made.values.push_back(value(made));
            }
        } while (take(","));
        expect(")");
    }

    Value value(const Condition& made) {
        const Token token = take_any();
        if (made.field == nullptr) {
            return key_of(lexer_, token);
        }
        Value read = value_of(lexer_, token, made.field->type);
        if (!made.field->prefix.empty()) {
            read = fmt::format("{}{}", made.field->prefix, std::get<std::string>(read));
        }
        return read;
    }
    std::string take_text() {
        if (token_.kind != Token::Kind::text) {
            lexer_.refuse(token_, "a text in quotes");
        }
        return take_any().meaning;
    }
    static bool is_id(const Condition& made) {
        return made.field != nullptr && made.field->type == Type::id;
    }
    static char kind_of(const Value& key) { return std::get<std::string>(key).front(); }

    void group_by(Filter& made) {
        expect("BY");
        constexpr std::string_view expected = "ExecutionStatus or TemporalNamespaceDivision";
        const Token name = take_name(expected);
        if (const Field* const field = find_field(name.meaning);
            field != nullptr && field->type == Type::status) {
            made.groups = Groups::by_status;
        } else if (name.meaning == division) {
            made.groups = Groups::by_division;
        } else {
            lexer_.refuse(name, expected);
        }
    }
    void order_by(Filter& made) {
        expect("BY");
        do {
            const Token name = take_name("a name");
            const Field* const field = field_of(name);
            if (field == nullptr) {
                lexer_.refuse(name, "something to sort by, which search attributes are not");
            }
            if (made.order.size() == orders_max) {
                lexer_.refuse(name.begin, fmt::format("more than {} names to sort by", orders_max));
            }
            made.order.push_back({.field = field, .descending = token_.is("DESC")});
            if (!take("DESC")) {
                (void)take("ASC");
            }
        } while (take(","));
    }

    Lexer lexer_;
    Token token_{};
    std::size_t conditions_ = 0;
};

void require_text(std::string_view text) {
    if (text.size() > bytes_max) {
        throw InvalidArgument(
            fmt::format("a filter of {} bytes; give it {} at most", text.size(), bytes_max));
    }
    if (text.find('\0') != std::string_view::npos) {
        throw InvalidArgument("the filter has a zero byte, which no text may have");
    }
    if (!is_utf8(text)) {
        throw InvalidArgument("the filter is not UTF-8; encode it so");
    }
}

}  // namespace

std::span<const Field> fields() noexcept {
    return all_fields;
}

const Field* find_field(std::string_view name) noexcept {
    const auto* const found = std::ranges::find(all_fields, without_prefix(name), &Field::name);
    return found == all_fields.end() ? nullptr : found;
}

Filter parse(std::string_view text) {
    require_text(text);
    return Parser(text).parse();
}

}  // namespace holdfast::store::filter
