// New statements from the pieces of one: cut by its tokens, so that every expression stays exactly
// as it was written and every parameter keeps its number.
#include <algorithm>
#include <initializer_list>
#include <set>

#include "judge_parts.hpp"
#include <fmt/core.h>

namespace holdfast::dsql {
namespace {

using Words = std::initializer_list<std::string_view>;

class Pieces {
public:
    explicit Pieces(const Judging& judging) : judging_(judging), text_(judging.out.text) {}

    [[nodiscard]] std::size_t size() const { return judging_.tokens.size(); }
    [[nodiscard]] const Token& operator[](std::size_t i) const { return judging_.tokens[i]; }

    // The first token from `from` on, outside all brackets, that is one of these key words; size()
    // if there is none. After a dot or AS a word is a name, whatever it says; and IS DISTINCT FROM
    // has no tables.
    [[nodiscard]] std::size_t find(std::size_t from, Words words) const {
        for (std::size_t i = from; i < size(); ++i) {
            const bool name = i > 0 && (judging_.symbol(i - 1, '.') || judging_.word(i - 1, "AS") ||
                                        judging_.word(i - 1, "DISTINCT"));
            if ((*this)[i].depth == 0 && !name &&
                std::any_of(words.begin(), words.end(), [&](std::string_view word) {
                    return judging_.word(i, word);
                })) {
                return i;
            }
        }
        return size();
    }

    // The token that begins at this place of the text; size() if none does.
    [[nodiscard]] std::size_t at(std::size_t location) const {
        const auto& tokens = judging_.tokens;
        const auto found = std::lower_bound(
            tokens.begin(), tokens.end(), location, [](const Token& token, std::size_t place) {
                return token.begin < place;
            });
        return found != tokens.end() && found->begin == location
                   ? static_cast<std::size_t>(found - tokens.begin())
                   : size();
    }

    // As written, from one token up to another.
    [[nodiscard]] std::string_view slice(std::size_t from, std::size_t to) const {
        if (from >= to || from >= size()) {
            return {};
        }
        const std::size_t begin = (*this)[from].begin;
        return text_.substr(begin, (*this)[to - 1].end - begin);
    }

    [[nodiscard]] std::set<std::string_view> parameters(std::size_t from, std::size_t to) const {
        std::set<std::string_view> found;
        for (std::size_t i = from; i < std::min(to, size()); ++i) {
            if ((*this)[i].kind == Token::Kind::parameter) {
                found.insert(slice(i, i + 1));
            }
        }
        return found;
    }

private:
    const Judging& judging_;
    std::string_view text_;
};

// A locking clause from its FOR on: the token behind it, or `from` if this is none.
std::size_t end_of_lock_clause(const Judging& judging, std::size_t from) {
    if (!judging.word(from, "FOR")) {
        return from;
    }
    std::size_t i = from + 1;
    if (judging.word(i, "UPDATE") || judging.word(i, "SHARE")) {
        i += 1;
    } else if (judging.word(i, "KEY") && judging.word(i + 1, "SHARE")) {
        i += 2;
    } else if (judging.word(i, "NO") && judging.word(i + 1, "KEY")) {
        i += 3;
    } else {
        return from;
    }
    if (judging.word(i, "OF")) {
        i += 2;  // And the first name.
        while (judging.symbol(i, '.') || judging.symbol(i, ',')) {
            i += 2;
        }
    }
    if (judging.word(i, "NOWAIT")) {
        i += 1;
    } else if (judging.word(i, "SKIP") && judging.word(i + 1, "LOCKED")) {
        i += 2;
    }
    return std::min(i, judging.tokens.size());
}

std::string quoted_name(std::string_view name) {
    std::string result = "\"";
    for (const char c : name) {
        result.append(c == '"' ? 2 : 1, c);
    }
    return result + '"';
}

// How the rest of the statement calls the table.
std::string alias_of(const Json& range_var) {
    const Json& alias = field(range_var, "alias");
    return quoted_name(text_field(alias.is_object() ? alias : range_var,
                                  alias.is_object() ? "aliasname" : "relname"));
}

// Not those with a list of column names, nor ONLY: too rare to be worth a mistake.
bool is_plain(const Json& range_var) {
    return flag_field(range_var, "inh") && !field(range_var, "alias").contains("colnames");
}

// Values that a SET clause takes from parameters would be missing from a mere count, and PostgreSQL
// wants to know the type of each parameter. So they stand where they are typed and never computed.
// False if some assignment is too clever for that.
bool keep_parameters(const Judging& judging,
                     const Pieces& pieces,
                     const std::string& alias,
                     std::size_t from,
                     std::size_t to,
                     std::string& condition) {
    for (std::size_t begin = from; begin < to;) {
        std::size_t end = begin;
        while (end < to && !(pieces[end].depth == 0 && judging.symbol(end, ','))) {
            ++end;
        }
        if (!pieces.parameters(begin, end).empty()) {
            std::size_t equals = begin;
            while (equals < end && !judging.symbol(equals, '=')) {
                ++equals;
            }
            if (judging.symbol(begin, '(') || equals != begin + 1) {
                return false;
            }
            const std::string_view value = pieces.slice(equals + 1, end);
            const bool bare = end == equals + 2;
            condition += bare ? fmt::format(" AND (true OR COALESCE({}, {}.{}) IS NULL)",
                                            value,
                                            alias,
                                            pieces.slice(begin, begin + 1))
                              : fmt::format(" AND (true OR ({}) IS NULL)", value);
        }
        begin = end + 1;
    }
    return true;
}

}  // namespace

std::size_t lock_clause_location(const Judging& judging, std::string_view strength) {
    for (std::size_t i = 0; i < judging.tokens.size(); ++i) {
        const bool matches = strength == "LCS_FORUPDATE"        ? judging.word(i + 1, "UPDATE")
                             : strength == "LCS_FORSHARE"       ? judging.word(i + 1, "SHARE")
                             : strength == "LCS_FORNOKEYUPDATE" ? judging.word(i + 1, "NO")
                                                                : judging.word(i + 1, "KEY");
        if (matches && end_of_lock_clause(judging, i) != i) {
            return judging.tokens[i].begin;
        }
    }
    return 0;
}

std::string without_lock_clauses(const Judging& judging) {
    std::string text = judging.out.text;
    for (std::size_t i = 0; i < judging.tokens.size(); ++i) {
        const std::size_t end = end_of_lock_clause(judging, i);
        if (end > i) {
            const std::size_t begin = judging.tokens[i].begin;
            text.replace(begin,
                         judging.tokens[end - 1].end - begin,
                         judging.tokens[end - 1].end - begin,
                         ' ');
            i = end - 1;
        }
    }
    return text;
}

std::string count_of_changes(const Judging& judging, std::string_view name, const Json& node) {
    const Json& relation = field(node, "relation");
    const Pieces pieces(judging);
    const std::size_t table = pieces.at(location_of(relation));
    if (!is_plain(relation) || table == pieces.size()) {
        return {};
    }
    const bool update = name == "UpdateStmt";
    const std::size_t where = pieces.find(table + 1, {"WHERE"});
    const std::size_t table_end =
        update ? pieces.find(table + 1, {"SET"}) : pieces.find(table + 1, {"USING", "WHERE"});
    const std::size_t others =
        update ? pieces.find(table_end, {"FROM"}) : pieces.find(table_end, {"USING"});
    const bool joined = node.contains(update ? "fromClause" : "usingClause");
    if (joined != (others < where) || node.contains("whereClause") != (where < pieces.size())) {
        return {};  // A word was taken for what it is not.
    }
    std::string condition;
    if (where < pieces.size()) {
        condition = fmt::format(" WHERE ({})", pieces.slice(where + 1, pieces.size()));
    }
    std::string extra;
    if (update && !keep_parameters(judging,
                                   pieces,
                                   alias_of(relation),
                                   table_end + 1,
                                   std::min({others, where, pieces.size()}),
                                   extra)) {
        return {};
    }
    if (!extra.empty() && condition.empty()) {
        condition = " WHERE true";
    }
    // A row that meets several partners is changed once.
    return joined ? fmt::format("SELECT count(DISTINCT {}.ctid) FROM {}, {}{}{}",
                                alias_of(relation),
                                pieces.slice(table, table_end),
                                pieces.slice(others + 1, where),
                                condition,
                                extra)
                  : fmt::format("SELECT count(*) FROM {}{}{}",
                                pieces.slice(table, table_end),
                                condition,
                                extra);
}

std::string touch_of_rows(const Judging& judging, const Json& select, const TableFacts& facts) {
    const Json& range = field(field(select, "fromClause")[0], "RangeVar");
    const Pieces pieces(judging);
    const std::size_t table = pieces.at(location_of(range));
    if (facts.key.empty() || table == pieces.size() || pieces[table].depth != 0 ||
        !is_plain(range) || select.contains("withClause")) {
        return {};
    }
    const std::size_t where = pieces.find(table + 1, {"WHERE"});
    const std::size_t tail =
        pieces.find(where < pieces.size() ? where : table + 1,
                    {"GROUP", "HAVING", "WINDOW", "ORDER", "LIMIT", "OFFSET", "FETCH", "FOR"});
    if (select.contains("whereClause") != (where < pieces.size())) {
        return {};
    }
    const std::string alias = alias_of(range);
    const std::string target = fmt::format("UPDATE {} SET {} = {}.{}",
                                           pieces.slice(table, std::min(where, tail)),
                                           quoted_name(facts.key[0]),
                                           alias,
                                           quoted_name(facts.key[0]));
    const bool limited = select.contains("limitCount") || select.contains("limitOffset");
    const std::size_t used_to = limited ? pieces.size() : tail;
    if (pieces.parameters(0, pieces.size()) != pieces.parameters(table, used_to)) {
        return {};  // One of them would have no type.
    }
    if (!limited) {
        return where < pieces.size()
                   ? fmt::format("{} WHERE {}", target, pieces.slice(where + 1, tail))
                   : target;
    }
    std::string key;
    for (const std::string& column : facts.key) {
        key += fmt::format("{}{}.{}", key.empty() ? "" : ", ", alias, quoted_name(column));
    }
    const std::string query = without_lock_clauses(judging);
    return fmt::format("{} WHERE ({}) IN (SELECT {} FROM {}\n)",
                       target,
                       key,
                       key,
                       std::string_view(query).substr(pieces[table].begin));
}

}  // namespace holdfast::dsql
