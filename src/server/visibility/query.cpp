#include "visibility/query.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "visibility/query_lexer.hpp"
#include "visibility/query_values.hpp"
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <server/namespaces/namespace.pb.h>

#include <holdfast/base/error.hpp>
#include <holdfast/base/utf8.hpp>

namespace holdfast::server::visibility {

namespace {

namespace enums = temporal::api::enums::v1;

constexpr std::size_t depth_max = 40;         // The store's, less what is added here.
constexpr std::size_t values_max = 1000;      // Of one list.
constexpr std::size_t values_together = 128;  // What the store takes of one list.
constexpr std::size_t place_of_first = 27;    // Clients see places as if a SELECT stood before.
constexpr std::string_view division = "TemporalNamespaceDivision";

// Recursive descent: one function for each rule, from the loosest to the tightest. What it returns
// is a text of the store's filter, in parentheses if it has more than one condition.
class QueryParser {
public:
    QueryParser(std::string_view text, const QueryContext& context)
        : lexer_(text), context_(context) {
        advance();
    }

    StoreFilter parse() {
        std::string condition;
        if (word_.kind != Word::Kind::end && !word_.is("GROUP") && !word_.is("ORDER")) {
            condition = any(0);
        }
        StoreFilter made;
        if (take("GROUP")) {
            group_by(made);
        }
        if (word_.is("ORDER") || word_.is("LIMIT")) {
            refuse_operation(fmt::format("'{}' clause", word_.is("LIMIT") ? "LIMIT" : "ORDER BY"));
        }
        if (word_.kind != Word::Kind::end) {
            refuse_syntax();
        }
        if (!names_division_) {
            condition = condition.empty() ? fmt::format("{} IS NULL", division)
                                          : fmt::format("({}) AND {} IS NULL", condition, division);
        }
        made.text = condition + made.text;
        return made;
    }

private:
    // ---- Words ----------------------------------------------------------------------------------

    void advance() { word_ = lexer_.next(); }
    bool take(std::string_view what) {
        const bool found = word_.is(what);
        if (found) {
            advance();
        }
        return found;
    }
    void expect(std::string_view what) {
        if (!take(what)) {
            refuse_syntax();
        }
    }
    [[nodiscard]] bool is_name() const { return word_.kind == Word::Kind::name && !word_.reserved; }

    [[noreturn]] void refuse_syntax() const {
        std::string text = fmt::format("malformed SQL query: syntax error at position {}",
                                       place_of_first + word_.end);
        if (word_.kind != Word::Kind::end) {
            text += fmt::format(" near '{}'", word_.written);
        }
        throw_invalid(text);
    }

    // ---- Conditions -----------------------------------------------------------------------------

    std::string any(std::size_t depth) {
        std::string made = all(depth);
        bool several = false;
        while (take("OR")) {
            made += " OR " + all(depth);
            several = true;
        }
        return several ? fmt::format("({})", made) : made;
    }
    std::string all(std::size_t depth) {
        std::string made = one(depth);
        bool several = false;
        while (take("AND")) {
            made += " AND " + one(depth);
            several = true;
        }
        return several ? fmt::format("({})", made) : made;
    }
    std::string one(std::size_t depth) {
        bool negated = false;
        while (take("NOT")) {
            negated = !negated;
        }
        std::string made;
        if (word_.is("(")) {
            if (depth == depth_max) {
                throw_invalid(fmt::format(
                    "malformed SQL query: more than {} parentheses in each other", depth_max));
            }
            advance();
            made = any(depth + 1);
            expect(")");
        } else {
            made = comparison();
        }
        return negated ? fmt::format("NOT {}", made) : made;
    }

    std::string comparison() {
        if (word_.kind == Word::Kind::text || word_.kind == Word::Kind::number ||
            word_.is("TRUE") || word_.is("FALSE")) {
            throw_invalid("invalid expression: incomplete expression");
        }
        if (!is_name()) {
            refuse_syntax();
        }
        const Attribute attribute = resolved();
        advance();
        if (take("IS")) {
            return null_test(attribute);
        }
        const bool negated = take("NOT");
        if (take("IN")) {
            return in_list(attribute, negated);
        }
        if (take("BETWEEN")) {
            return between(attribute, negated);
        }
        if (word_.is("STARTS_WITH") || word_.is("LIKE") || word_.is("REGEXP")) {
            return prefix(attribute, negated);
        }
        if (negated) {
            refuse_syntax();
        }
        if (word_.kind == Word::Kind::symbol && is_comparison(word_.meaning)) {
            const std::string symbol = word_.meaning;
            advance();
            return compared(attribute, symbol);
        }
        if (!ends_condition()) {
            refuse_syntax();
        }
        throw_invalid("invalid expression: incomplete expression");
    }

    [[nodiscard]] bool ends_condition() const {
        return word_.kind == Word::Kind::end || word_.is(")") || word_.is("AND") ||
               word_.is("OR") || word_.is("GROUP") || word_.is("ORDER") || word_.is("LIMIT");
    }

    std::string null_test(const Attribute& attribute) {
        const bool negated = take("NOT");
        if (word_.is("TRUE") || word_.is("FALSE")) {
            throw_invalid(
                "invalid expression: 'IS' operator can only be used as 'IS NULL' or 'IS "
                "NOT NULL'");
        }
        expect("NULL");
        return fmt::format("{} IS {}NULL", attribute.stored, negated ? "NOT " : "");
    }

    std::string compared(const Attribute& attribute, const std::string& symbol) {
        const bool equality = symbol == "=" || symbol == "!=";
        if (!equality && !is_ordered(attribute.type)) {
            refuse_operator(attribute, symbol);
        }
        if (attribute.type == enums::INDEXED_VALUE_TYPE_TEXT) {
            return words(attribute, symbol == "!=");
        }
        const std::string made =
            fmt::format("{} {} {}", attribute.stored, symbol, value(attribute));
        return if_open(attribute, made, symbol == ">" || symbol == ">=" || symbol == "!=");
    }

    // A run that is open counts as one that closes after all others.
    static std::string if_open(const Attribute& attribute, const std::string& made, bool met) {
        if (attribute.stored != "CloseTime") {
            return made;
        }
        return met ? fmt::format("({} OR CloseTime IS NULL)", made)
                   : fmt::format("({} AND CloseTime IS NOT NULL)", made);
    }

    std::string words(const Attribute& attribute, bool negated) {
        const Literal literal = take_literal();
        if (literal.kind != Literal::Kind::text) {
            refuse_value(attribute, literal);
        }
        const std::vector<std::string> texts = words_in(literal.text);
        if (texts.empty()) {
            throw_invalid(
                fmt::format("invalid expression: no words in the value of {}", attribute.given));
        }
        return fmt::format("{}{} {}IN ({})",
                           attribute.stored,
                           words_column_suffix,
                           negated ? "NOT " : "",
                           fmt::join(texts, ", "));
    }

    std::string in_list(const Attribute& attribute, bool negated) {
        if (attribute.type == enums::INDEXED_VALUE_TYPE_TEXT) {
            refuse_operator(attribute, negated ? "NOT IN" : "IN");
        }
        expect("(");
        std::vector<std::string> values;
        do {
            values.push_back(value(attribute));
            if (values.size() > values_max) {
                throw_invalid(
                    fmt::format("invalid expression: more than {} values in a list", values_max));
            }
        } while (take(","));
        expect(")");
        std::vector<std::string> parts;
        for (std::size_t begin = 0; begin < values.size(); begin += values_together) {
            const std::size_t end = std::min(begin + values_together, values.size());
            parts.push_back(fmt::format("{} {}IN ({})",
                                        attribute.stored,
                                        negated ? "NOT " : "",
                                        fmt::join(values.begin() + std::ptrdiff_t(begin),
                                                  values.begin() + std::ptrdiff_t(end),
                                                  ", ")));
        }
        const std::string made = fmt::format("{}", fmt::join(parts, negated ? " AND " : " OR "));
        return if_open(attribute, parts.size() > 1 ? fmt::format("({})", made) : made, negated);
    }

    std::string between(const Attribute& attribute, bool negated) {
        if (attribute.type == enums::INDEXED_VALUE_TYPE_BOOL ||
            attribute.type == enums::INDEXED_VALUE_TYPE_TEXT ||
            attribute.type == enums::INDEXED_VALUE_TYPE_KEYWORD_LIST) {
            throw_invalid(
                fmt::format("invalid expression: cannot do range condition on search "
                            "attribute '{}' of type {}",
                            attribute.given,
                            search_attributes::short_name(attribute.type)));
        }
        const std::string first = value(attribute);
        expect("AND");
        const std::string last = value(attribute);
        return if_open(
            attribute,
            fmt::format(
                "{} {}BETWEEN {} AND {}", attribute.stored, negated ? "NOT " : "", first, last),
            negated);
    }

    std::string prefix(const Attribute& attribute, bool negated) {
        const bool other = !word_.is("STARTS_WITH");
        if (other || attribute.type != enums::INDEXED_VALUE_TYPE_KEYWORD ||
            attribute.stored == "ExecutionStatus") {
            refuse_operator(attribute, (negated ? "NOT " : "") + word_.meaning);
        }
        advance();
        return fmt::format(
            "{} {}STARTS_WITH {}", attribute.stored, negated ? "NOT " : "", value(attribute));
    }

    // ---- Names and values -----------------------------------------------------------------------

    Attribute resolved() {
        const std::string& name = word_.meaning;
        Attribute attribute = resolve_name(context_.info, name);
        names_division_ = names_division_ || attribute.stored == division;
        return attribute;
    }

    std::string value(const Attribute& attribute) { return value_text(attribute, take_literal()); }

    Literal take_literal() {
        bool negative = false;
        while (word_.kind == Word::Kind::symbol && (word_.is("-") || word_.is("+"))) {
            negative = negative != word_.is("-");
            advance();
        }
        if (is_name()) {
            refuse_operation(
                fmt::format("column name on the right side of comparison expression "
                            "(did you forget to quote \"{}\"?)",
                            word_.meaning));
        }
        Literal literal{.kind = Literal::Kind::text, .text = word_.meaning};
        if (word_.kind == Word::Kind::number) {
            literal.kind = Literal::Kind::number;
            literal.text.insert(0, negative ? "-" : "");
        } else if (word_.is("TRUE") || word_.is("FALSE")) {
            literal.kind = Literal::Kind::boolean;
        } else if (word_.kind != Word::Kind::text) {
            refuse_syntax();
        }
        advance();
        return literal;
    }

    void group_by(StoreFilter& made) {
        expect("BY");
        if (!is_name()) {
            refuse_syntax();
        }
        const Attribute attribute = resolved();
        if (context_.purpose == Purpose::list) {
            refuse_operation("'GROUP BY' clause");
        }
        advance();
        if (word_.is(",")) {
            refuse_operation("'GROUP BY' clause supports only a single field");
        }
        made.by_status = attribute.stored == "ExecutionStatus";
        if (!made.by_status && attribute.stored != division) {
            refuse_operation(fmt::format(
                "'GROUP BY' clause is not supported for search attribute {}", attribute.given));
        }
        made.grouped = true;
        made.text = fmt::format(" GROUP BY {}", attribute.stored);
    }

    static bool is_comparison(std::string_view symbol) {
        return symbol == "=" || symbol == "!=" || symbol == "<" || symbol == "<=" ||
               symbol == ">" || symbol == ">=";
    }
    static bool is_ordered(search_attributes::Type type) {
        return type != enums::INDEXED_VALUE_TYPE_TEXT &&
               type != enums::INDEXED_VALUE_TYPE_KEYWORD_LIST;
    }

    QueryLexer lexer_;
    const QueryContext& context_;
    Word word_;
    bool names_division_ = false;
};

}  // namespace

StoreFilter translate(std::string_view query, const QueryContext& context) {
    if (!is_utf8(query) || query.find('\0') != std::string_view::npos) {
        throw_invalid("malformed SQL query: it is not a text of UTF-8");
    }
    return QueryParser(query, context).parse();
}

}  // namespace holdfast::server::visibility
