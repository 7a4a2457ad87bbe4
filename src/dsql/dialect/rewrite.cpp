// New statements made from the pieces of another, cut by its tokens, so that every expression stays
// exactly as it was written and every parameter keeps its number.
#include <algorithm>
#include <initializer_list>
#include <set>

#include "dialect/rules_parts.hpp"
#include <fmt/core.h>

namespace holdfast::dsql {
namespace {

using Words = std::initializer_list<std::string_view>;

class Pieces {
public:
    explicit Pieces(const Checking& checking) : checking_(checking), text_(checking.out.text) {}

    [[nodiscard]] std::size_t size() const { return checking_.tokens.size(); }
    [[nodiscard]] const SqlToken& operator[](std::size_t i) const { return checking_.tokens[i]; }

    // The first token from `from` on, outside all brackets, that is one of these key words; size()
    // if there is none. After a dot or AS a word is a name; and IS DISTINCT FROM has no tables.
    [[nodiscard]] std::size_t find(std::size_t from, Words words) const {
        for (std::size_t i = from; i < size(); ++i) {
            const bool name =
                i > 0 && (checking_.symbol(i - 1, '.') || checking_.word(i - 1, "AS") ||
                          checking_.word(i - 1, "DISTINCT"));
            if ((*this)[i].depth == 0 && !name &&
                std::any_of(words.begin(), words.end(), [&](std::string_view word) {
                    return checking_.word(i, word);
                })) {
                return i;
            }
        }
        return size();
    }

    // The token that begins at this place of the text; size() if none does.
    [[nodiscard]] std::size_t at(std::size_t location) const {
        const auto& tokens = checking_.tokens;
        const auto found = std::lower_bound(
            tokens.begin(), tokens.end(), location, [](const SqlToken& token, std::size_t place) {
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
            if ((*this)[i].kind == SqlToken::Kind::parameter) {
                found.insert(slice(i, i + 1));
            }
        }
        return found;
    }

private:
    const Checking& checking_;
    std::string_view text_;
};

// A locking clause from its FOR on: the token behind it, or `from` if this is none.
std::size_t end_of_lock_clause(const Checking& checking, std::size_t from) {
    if (!checking.word(from, "FOR")) {
        return from;
    }
    std::size_t i = from + 1;
    if (checking.word(i, "UPDATE") || checking.word(i, "SHARE")) {
        i += 1;
    } else if (checking.word(i, "KEY") && checking.word(i + 1, "SHARE")) {
        i += 2;
    } else if (checking.word(i, "NO") && checking.word(i + 1, "KEY")) {
        i += 3;
    } else {
        return from;
    }
    if (checking.word(i, "OF")) {
        i += 2;  // And the first name.
        while (checking.symbol(i, '.') || checking.symbol(i, ',')) {
            i += 2;
        }
    }
    if (checking.word(i, "NOWAIT")) {
        i += 1;
    } else if (checking.word(i, "SKIP") && checking.word(i + 1, "LOCKED")) {
        i += 2;
    }
    return std::min(i, checking.tokens.size());
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

// Not with a list of column names, nor ONLY: too rare to be worth the risk.
bool is_plain(const Json& range_var) {
    return flag_field(range_var, "inh") && !field(range_var, "alias").contains("colnames");
}

// A count would lack the parameters of the SET clause, and PostgreSQL needs the type of each
// parameter. So they are placed where they are typed and never computed. False if an assignment is
// too complex for that.
bool keep_parameters(const Checking& checking,
                     const Pieces& pieces,
                     const std::string& alias,
                     std::size_t from,
                     std::size_t to,
                     std::string& condition) {
    for (std::size_t begin = from; begin < to;) {
        std::size_t end = begin;
        while (end < to && !(pieces[end].depth == 0 && checking.symbol(end, ','))) {
            ++end;
        }
        if (!pieces.parameters(begin, end).empty()) {
            std::size_t equals = begin;
            while (equals < end && !checking.symbol(equals, '=')) {
                ++equals;
            }
            if (checking.symbol(begin, '(') || equals != begin + 1) {
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

std::size_t lock_clause_location(const Checking& checking, std::string_view strength) {
    for (std::size_t i = 0; i < checking.tokens.size(); ++i) {
        const bool matches = strength == "LCS_FORUPDATE"        ? checking.word(i + 1, "UPDATE")
                             : strength == "LCS_FORSHARE"       ? checking.word(i + 1, "SHARE")
                             : strength == "LCS_FORNOKEYUPDATE" ? checking.word(i + 1, "NO")
                                                                : checking.word(i + 1, "KEY");
        if (matches && end_of_lock_clause(checking, i) != i) {
            return checking.tokens[i].begin;
        }
    }
    return 0;
}

std::string without_lock_clauses(const Checking& checking) {
    std::string text = checking.out.text;
    for (std::size_t i = 0; i < checking.tokens.size(); ++i) {
        const std::size_t end = end_of_lock_clause(checking, i);
        if (end > i) {
            const std::size_t begin = checking.tokens[i].begin;
            text.replace(begin,
                         checking.tokens[end - 1].end - begin,
                         checking.tokens[end - 1].end - begin,
                         ' ');
            i = end - 1;
        }
    }
    return text;
}

std::string count_of_changes(const Checking& checking, std::string_view name, const Json& node) {
    const Json& relation = field(node, "relation");
    const Pieces pieces(checking);
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
        return {};  // A word was misread.
    }
    std::string condition;
    if (where < pieces.size()) {
        condition = fmt::format(" WHERE ({})", pieces.slice(where + 1, pieces.size()));
    }
    std::string extra;
    if (update && !keep_parameters(checking,
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

std::string touch_of_rows(const Checking& checking, const Json& select, const TableFacts& facts) {
    const Json& range = field(field(select, "fromClause")[0], "RangeVar");
    const Pieces pieces(checking);
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
    const std::string query = without_lock_clauses(checking);
    return fmt::format("{} WHERE ({}) IN (SELECT {} FROM {}\n)",
                       target,
                       key,
                       key,
                       std::string_view(query).substr(pieces[table].begin));
}

}  // namespace holdfast::dsql
