#include "prepare_text.hpp"

#include <algorithm>
#include <array>

namespace holdfast::dsql {
namespace {

// Some 300 bytes of memory each, once parsed. The 3,000 rows of a transaction need far fewer.
constexpr std::size_t tokens_max = 1'000'000;
// Longest chain of operators in a tree; PostgreSQL's own stack ends before it.
constexpr std::size_t chain_max = 10'000;
// `SET (a, b, c) = (SELECT ...)` repeats its right side in the tree for each column.
constexpr std::size_t repeated_tokens_max = 10'000'000;

void blank(const Judging& judging, std::size_t token) {
    const Token& at = judging.tokens[token];
    std::fill(judging.out.text.begin() + static_cast<std::ptrdiff_t>(at.begin),
              judging.out.text.begin() + static_cast<std::ptrdiff_t>(at.end),
              ' ');
}

// The token behind a name with dots in it.
std::size_t behind_name(const Judging& judging, std::size_t token) {
    ++token;
    while (judging.symbol(token, '.')) {
        token += 2;
    }
    return token;
}

void take_async(const Judging& judging) {
    if (judging.word(0, "CREATE")) {
        const std::size_t index = judging.word(1, "UNIQUE") ? 2 : 1;
        if (judging.word(index, "INDEX") && judging.word(index + 1, "ASYNC")) {
            judging.out.async = true;
            blank(judging, index + 1);
        }
    } else if (judging.word(0, "ALTER") && judging.word(1, "TABLE") && judging.word(2, "ASYNC")) {
        // A table may have that name; only VALIDATE CONSTRAINT is done asynchronously.
        std::size_t name = 3;
        name += judging.word(name, "IF") ? 2 : 0;
        name += judging.word(name, "ONLY") ? 1 : 0;
        if (judging.word(behind_name(judging, name), "VALIDATE")) {
            judging.out.async = true;
            blank(judging, 2);
        }
    }
}

bool is_storage_mode(const Judging& judging, std::size_t token) {
    static constexpr std::array<std::string_view, 5> modes{
        "PLAIN", "EXTERNAL", "EXTENDED", "MAIN", "DEFAULT"};
    return std::any_of(modes.begin(), modes.end(), [&](std::string_view mode) {
        return judging.word(token, mode);
    });
}

// `c text STORAGE plain` in CREATE TABLE or behind ADD COLUMN: after a name and a type.
void take_storage(const Judging& judging) {
    const bool create =
        judging.word(0, "CREATE") && (judging.word(1, "TABLE") || judging.word(2, "TABLE"));
    if (!create && !(judging.word(0, "ALTER") && judging.word(1, "TABLE"))) {
        return;
    }
    const std::uint32_t depth = create ? 1 : 0;
    std::size_t column = judging.tokens.size();  // Where the definition at hand begins.
    for (std::size_t i = 2; i < judging.tokens.size(); ++i) {
        const std::uint32_t at = judging.tokens[i].depth;
        if (create ? (judging.symbol(i, '(') && at == 0) || (judging.symbol(i, ',') && at == 1)
                   : at == 0 && judging.word(i, "ADD")) {
            column = i + 1;
            column += !create && judging.word(column, "COLUMN") ? 1 : 0;
            column += !create && judging.word(column, "IF") ? 3 : 0;
        } else if (!create && at == 0 && judging.symbol(i, ',')) {
            column = judging.tokens.size();
        } else if (at == depth && i >= column + 2 && judging.word(i, "STORAGE") &&
                   is_storage_mode(judging, i + 1) && !judging.word(i - 1, "INCLUDING") &&
                   !judging.word(i - 1, "EXCLUDING")) {
            blank(judging, i);
            blank(judging, i + 1);
        }
    }
}

// 1_000 is a number since PostgreSQL 16.
void take_underscores(const Judging& judging) {
    std::string& text = judging.out.text;
    for (const Token& token : judging.tokens) {
        if (token.kind == Token::Kind::number) {
            const auto begin = text.begin() + static_cast<std::ptrdiff_t>(token.begin);
            const auto end = text.begin() + static_cast<std::ptrdiff_t>(token.end);
            std::fill(std::remove(begin, end, '_'), end, ' ');
        }
    }
}

// Estimates what a statement's tree will be like, from its tokens.
class Shape {
public:
    explicit Shape(const Judging& judging) : judging_(judging) {}

    [[nodiscard]] bool fits() {
        levels_.emplace_back();
        for (std::size_t i = 0; i < judging_.tokens.size(); ++i) {
            add(i);
            if (total_ > chain_max || columns_ * judging_.tokens.size() > repeated_tokens_max) {
                return false;
            }
        }
        return !nested_update_;
    }

private:
    // Everything between two brackets, or between CASE and END.
    struct Level {
        std::size_t chain = 0;   // Tokens that may each add to the depth, since the last comma.
        std::size_t joined = 0;  // Those that go on after it: set operations, joins.
        std::size_t commas = 0;
        bool update = false;
    };

    void grow(std::size_t Level::* part) {
        ++(levels_.back().*part);
        ++total_;
    }

    void open() { levels_.emplace_back(); }

    void close(std::size_t token) {
        if (levels_.size() > 1) {
            total_ -= levels_.back().chain + levels_.back().joined;
            if (judging_.symbol(token + 1, '=')) {
                columns_ += levels_.back().commas;
            }
            levels_.pop_back();
        }
    }

    void add(std::size_t token) {
        const auto word = [&](std::string_view text) { return judging_.word(token, text); };
        const auto symbol = [&](char c) { return judging_.symbol(token, c); };
        const bool is_symbol = judging_.tokens[token].kind == Token::Kind::symbol;
        if ((is_symbol && (symbol('(') || symbol('['))) || word("CASE")) {
            grow(&Level::chain);
            open();
        } else if ((is_symbol && (symbol(')') || symbol(']'))) || word("END")) {
            close(token);
        } else if ((is_symbol && symbol(',')) || word("AND") || word("OR")) {
            total_ -= levels_.back().chain;
            levels_.back().chain = 0;
            levels_.back().commas += is_symbol ? 1 : 0;
        } else if (word("UNION") || word("INTERSECT") || word("EXCEPT") || word("JOIN")) {
            grow(&Level::joined);
        } else {
            grow(&Level::chain);
            follow_update(token);
        }
    }

    // A change inside the SET of another would repeat repetitions; no database accepts it.
    void follow_update(std::size_t token) {
        if (!judging_.word(token, "UPDATE") ||
            (token > 0 && (judging_.word(token - 1, "FOR") || judging_.word(token - 1, "KEY") ||
                           judging_.word(token - 1, "ON")))) {
            return;
        }
        nested_update_ = nested_update_ ||
                         std::any_of(levels_.begin(), levels_.end() - 1, [](const Level& level) {
                             return level.update;
                         });
        levels_.back().update = true;
    }

    const Judging& judging_;
    std::vector<Level> levels_;
    std::size_t total_ = 0;
    std::size_t columns_ = 0;
    bool nested_update_ = false;
};

}  // namespace

bool judge_iam(const Judging& judging) {
    if (!judging.word(0, "AWS") || !judging.word(1, "IAM")) {
        return false;
    }
    Judged& out = judging.out;
    const bool grant = judging.word(2, "GRANT") && judging.word(4, "TO");
    out.iam_revoke = judging.word(2, "REVOKE") && judging.word(4, "FROM");
    if ((!grant && !out.iam_revoke) || judging.tokens.size() != 6 ||
        judging.tokens[5].kind != Token::Kind::string) {
        return false;
    }
    const auto piece = [&](std::size_t token) {
        const Token& at = judging.tokens[token];
        return out.text.substr(at.begin, at.end - at.begin);
    };
    out.role = piece(3);
    if (judging.tokens[3].kind == Token::Kind::quoted && out.role.size() > 1) {
        out.role = out.role.substr(1, out.role.size() - 2);
    } else {
        std::transform(out.role.begin(), out.role.end(), out.role.begin(), [](char c) {
            return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
        });
    }
    out.arn = piece(5);
    out.arn = out.arn.size() > 1 ? out.arn.substr(1, out.arn.size() - 2) : "";
    out.text.clear();
    return true;
}

bool prepare_text(const Judging& judging) {
    if (judging.tokens.size() > tokens_max || !Shape(judging).fits()) {
        judging.out.kind = Kind::other;
        judging.refuse("depth", "54001", "stack depth limit exceeded");
        return false;
    }
    take_async(judging);
    take_storage(judging);
    take_underscores(judging);
    return true;
}

}  // namespace holdfast::dsql
