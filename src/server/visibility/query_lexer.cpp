#include "visibility/query_lexer.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

namespace holdfast::server::visibility {

namespace {

constexpr std::array<std::string_view, 18> grammar_words{"AND",
                                                         "OR",
                                                         "NOT",
                                                         "IN",
                                                         "BETWEEN",
                                                         "IS",
                                                         "NULL",
                                                         "TRUE",
                                                         "FALSE",
                                                         "LIMIT",
                                                         "ORDER",
                                                         "STARTS_WITH",
                                                         "BY",
                                                         "GROUP",
                                                         "ASC",
                                                         "DESC",
                                                         "REGEXP",
                                                         "LIKE"};

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}
bool begins_name(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '@';
}
bool is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

std::string in_capitals(std::string_view word) {
    std::string made(word);
    for (char& c : made) {
        c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    }
    return made;
}

// What follows a backslash; every other character stands for itself.
char escaped(char c) {
    constexpr std::array<std::pair<char, char>, 6> known{std::pair{'0', '\0'},
                                                         std::pair{'b', '\b'},
                                                         std::pair{'n', '\n'},
                                                         std::pair{'r', '\r'},
                                                         std::pair{'t', '\t'},
                                                         std::pair{'Z', '\x1a'}};
    const auto* const found = std::ranges::find(known, c, &std::pair<char, char>::first);
    return found == known.end() ? c : found->second;
}

}  // namespace

Word QueryLexer::next() {
    const std::size_t before = at_;
    if (!skip()) {
        return made(Word::Kind::wrong, before, {});
    }
    const std::size_t begin = at_;
    const char c = at(begin);
    if (begin >= text_.size()) {
        return made(Word::Kind::end, begin, {});
    }
    if (begins_name(c)) {
        return bare(begin);
    }
    if (c == '`' || c == '\'' || c == '"') {
        return quoted(begin);
    }
    if (is_digit(c) || (c == '.' && is_digit(at(begin + 1)))) {
        return number(begin);
    }
    return symbol(begin);
}

bool QueryLexer::skip() {
    while (at_ < text_.size()) {
        const std::string_view rest = text_.substr(at_);
        if (is_blank(rest.front())) {
            ++at_;
        } else if (rest.starts_with("/*")) {
            const std::size_t end = text_.find("*/", at_ + 2);
            if (end == std::string_view::npos) {
                return false;
            }
            at_ = end + 2;
        } else if (rest.starts_with("-- ") || rest.starts_with('#')) {
            at_ = std::min(text_.find('\n', at_), text_.size());
        } else {
            break;
        }
    }
    return true;
}

Word QueryLexer::bare(std::size_t begin) {
    while (begins_name(at(at_)) || is_digit(at(at_))) {
        ++at_;
    }
    std::string name(text_.substr(begin, at_ - begin));
    std::string word = in_capitals(name);
    const bool reserved = std::ranges::find(grammar_words, word) != grammar_words.end();
    Word found = made(Word::Kind::name, begin, reserved ? std::move(word) : std::move(name));
    found.reserved = reserved;
    return found;
}

Word QueryLexer::quoted(std::size_t begin) {
    const char quote = text_[begin];
    std::string meaning;
    for (++at_; at_ < text_.size(); ++at_) {
        const char c = text_[at_];
        if (c == quote) {
            if (at(at_ + 1) != quote) {
                ++at_;
                return made(
                    quote == '`' ? Word::Kind::name : Word::Kind::text, begin, std::move(meaning));
            }
            ++at_;  // Doubled: it stands for one.
        } else if (c == '\\' && quote != '`') {
            if (++at_ == text_.size()) {
                break;
            }
            meaning += escaped(text_[at_]);
            continue;
        }
        meaning += c;
    }
    return made(Word::Kind::wrong, begin, {});
}

// Also 0x1f, .5, 1. and 1e-3. The sign is a symbol.
Word QueryLexer::number(std::size_t begin) {
    const auto digits = [&] {
        while (is_digit(at(at_))) {
            ++at_;
        }
    };
    if (at(begin) == '0' && (at(begin + 1) | 0x20) == 'x') {
        at_ += 2;
        const auto is_hex = [](char c) {
            return is_digit(c) || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f');
        };
        while (is_hex(at(at_))) {
            ++at_;
        }
        return made(Word::Kind::number, begin, std::string(text_.substr(begin, at_ - begin)));
    }
    digits();
    if (at(at_) == '.') {
        ++at_;
        digits();
    }
    if ((at(at_) | 0x20) == 'e') {
        const std::size_t sign = at(at_ + 1) == '+' || at(at_ + 1) == '-' ? 1 : 0;
        if (is_digit(at(at_ + 1 + sign))) {
            at_ += 1 + sign;
            digits();
        }
    }
    if (begins_name(at(at_))) {  // 12abc is neither.
        return made(Word::Kind::wrong, begin, {});
    }
    return made(Word::Kind::number, begin, std::string(text_.substr(begin, at_ - begin)));
}

Word QueryLexer::symbol(std::size_t begin) {
    // The longer before the shorter.
    constexpr std::array<std::pair<std::string_view, std::string_view>, 16> symbols{
        std::pair{"<=", "<="},
        std::pair{">=", ">="},
        std::pair{"<>", "!="},
        std::pair{"!=", "!="},
        std::pair{"||", "OR"},
        std::pair{"&&", "AND"},
        std::pair{"!", "NOT"},
        std::pair{"=", "="},
        std::pair{"<", "<"},
        std::pair{">", ">"},
        std::pair{"(", "("},
        std::pair{")", ")"},
        std::pair{",", ","},
        std::pair{"+", "+"},
        std::pair{"-", "-"},
        std::pair{";", ";"}};
    for (const auto& [written, meaning] : symbols) {
        if (text_.substr(begin).starts_with(written)) {
            at_ = begin + written.size();
            return made(Word::Kind::symbol, begin, std::string(meaning));
        }
    }
    at_ = begin + 1;
    return made(Word::Kind::wrong, begin, {});
}

Word QueryLexer::made(Word::Kind kind, std::size_t begin, std::string meaning) const {
    return {.kind = kind,
            .meaning = std::move(meaning),
            .written = text_.substr(begin, at_ - begin),
            .end = at_,
            .reserved = false};
}

}  // namespace holdfast::server::visibility
