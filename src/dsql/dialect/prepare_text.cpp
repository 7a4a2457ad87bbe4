#include "dialect/prepare_text.hpp"

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

void blank(const Checking& checking, std::size_t token) {
    const SqlToken& at = checking.tokens[token];
    std::fill(checking.out.text.begin() + static_cast<std::ptrdiff_t>(at.begin),
              checking.out.text.begin() + static_cast<std::ptrdiff_t>(at.end),
              ' ');
}

// The token behind a name with dots in it.
std::size_t behind_name(const Checking& checking, std::size_t token) {
    ++token;
    while (checking.symbol(token, '.')) {
        token += 2;
    }
    return token;
}

void take_async(const Checking& checking) {
    if (checking.word(0, "CREATE")) {
        const std::size_t index = checking.word(1, "UNIQUE") ? 2 : 1;
        if (checking.word(index, "INDEX") && checking.word(index + 1, "ASYNC")) {
            checking.out.async = true;
            blank(checking, index + 1);
        }
    } else if (checking.word(0, "ALTER") && checking.word(1, "TABLE") &&
               checking.word(2, "ASYNC")) {
        // A table may have that name; only VALIDATE CONSTRAINT is done asynchronously.
        std::size_t name = 3;
        name += checking.word(name, "IF") ? 2 : 0;
        name += checking.word(name, "ONLY") ? 1 : 0;
        if (checking.word(behind_name(checking, name), "VALIDATE")) {
            checking.out.async = true;
            blank(checking, 2);
        }
    }
}

bool is_storage_mode(const Checking& checking, std::size_t token) {
    static constexpr std::array<std::string_view, 5> modes{
        "PLAIN", "EXTERNAL", "EXTENDED", "MAIN", "DEFAULT"};
    return std::any_of(modes.begin(), modes.end(), [&](std::string_view mode) {
        return checking.word(token, mode);
    });
}

// `c text STORAGE plain` in CREATE TABLE or behind ADD COLUMN: after a name and a type.
void take_storage(const Checking& checking) {
    const bool create =
        checking.word(0, "CREATE") && (checking.word(1, "TABLE") || checking.word(2, "TABLE"));
    if (!create && !(checking.word(0, "ALTER") && checking.word(1, "TABLE"))) {
        return;
    }
    const std::uint32_t depth = create ? 1 : 0;
    std::size_t column = checking.tokens.size();  // Where the current definition begins.
    for (std::size_t i = 2; i < checking.tokens.size(); ++i) {
        const std::uint32_t at = checking.tokens[i].depth;
        if (create ? (checking.symbol(i, '(') && at == 0) || (checking.symbol(i, ',') && at == 1)
                   : at == 0 && checking.word(i, "ADD")) {
            column = i + 1;
            column += !create && checking.word(column, "COLUMN") ? 1 : 0;
            column += !create && checking.word(column, "IF") ? 3 : 0;
        } else if (!create && at == 0 && checking.symbol(i, ',')) {
            column = checking.tokens.size();
        } else if (at == depth && i >= column + 2 && checking.word(i, "STORAGE") &&
                   is_storage_mode(checking, i + 1) && !checking.word(i - 1, "INCLUDING") &&
                   !checking.word(i - 1, "EXCLUDING")) {
            blank(checking, i);
            blank(checking, i + 1);
        }
    }
}

// 1_000 is a number since PostgreSQL 16.
void take_underscores(const Checking& checking) {
    std::string& text = checking.out.text;
    for (const SqlToken& token : checking.tokens) {
        if (token.kind == SqlToken::Kind::number) {
            const auto begin = text.begin() + static_cast<std::ptrdiff_t>(token.begin);
            const auto end = text.begin() + static_cast<std::ptrdiff_t>(token.end);
            std::fill(std::remove(begin, end, '_'), end, ' ');
        }
    }
}

// Estimates what a statement's tree will be like, from its tokens.
class Shape {
public:
    explicit Shape(const Checking& checking) : checking_(checking) {}

    [[nodiscard]] bool fits() {
        levels_.emplace_back();
        for (std::size_t i = 0; i < checking_.tokens.size(); ++i) {
            add(i);
            if (total_ > chain_max || columns_ * checking_.tokens.size() > repeated_tokens_max) {
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
            if (checking_.symbol(token + 1, '=')) {
                columns_ += levels_.back().commas;
            }
            levels_.pop_back();
        }
    }

    void add(std::size_t token) {
        const auto word = [&](std::string_view text) { return checking_.word(token, text); };
        const auto symbol = [&](char c) { return checking_.symbol(token, c); };
        const bool is_symbol = checking_.tokens[token].kind == SqlToken::Kind::symbol;
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
        if (!checking_.word(token, "UPDATE") ||
            (token > 0 && (checking_.word(token - 1, "FOR") || checking_.word(token - 1, "KEY") ||
                           checking_.word(token - 1, "ON")))) {
            return;
        }
        nested_update_ = nested_update_ ||
                         std::any_of(levels_.begin(), levels_.end() - 1, [](const Level& level) {
                             return level.update;
                         });
        levels_.back().update = true;
    }

    const Checking& checking_;
    std::vector<Level> levels_;
    std::size_t total_ = 0;
    std::size_t columns_ = 0;
    bool nested_update_ = false;
};

}  // namespace

bool check_iam(const Checking& checking) {
    if (!checking.word(0, "AWS") || !checking.word(1, "IAM")) {
        return false;
    }
    CheckedStatement& out = checking.out;
    const bool grant = checking.word(2, "GRANT") && checking.word(4, "TO");
    out.iam_revoke = checking.word(2, "REVOKE") && checking.word(4, "FROM");
    if ((!grant && !out.iam_revoke) || checking.tokens.size() != 6 ||
        checking.tokens[5].kind != SqlToken::Kind::string) {
        return false;
    }
    const auto piece = [&](std::size_t token) {
        const SqlToken& at = checking.tokens[token];
        return out.text.substr(at.begin, at.end - at.begin);
    };
    out.role = piece(3);
    if (checking.tokens[3].kind == SqlToken::Kind::quoted && out.role.size() > 1) {
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

bool prepare_text(const Checking& checking) {
    if (checking.tokens.size() > tokens_max || !Shape(checking).fits()) {
        checking.out.kind = Kind::other;
        checking.refuse("depth", "54001", "stack depth limit exceeded");
        return false;
    }
    take_async(checking);
    take_storage(checking);
    take_underscores(checking);
    return true;
}

}  // namespace holdfast::dsql
