#include "visibility/filter_lexer.hpp"

#include <algorithm>
#include <array>

#include <fmt/core.h>

#include <holdfast/base/error.hpp>

namespace holdfast::store::filter {
namespace {

constexpr std::array<std::string_view, 15> keywords{"AND",
                                                    "OR",
                                                    "NOT",
                                                    "IN",
                                                    "BETWEEN",
                                                    "IS",
                                                    "NULL",
                                                    "STARTS_WITH",
                                                    "ORDER",
                                                    "GROUP",
                                                    "BY",
                                                    "ASC",
                                                    "DESC",
                                                    "TRUE",
                                                    "FALSE"};
constexpr std::size_t shown_bytes_max = 40;

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}
bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool is_part(char c) {
    return is_letter(c) || is_digit(c);
}
bool is_space(char c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}
bool continues_character(char c) {
    return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U;
}

std::string upper(std::string_view word) {
    std::string made(word);
    for (char& c : made) {
        c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    }
    return made;
}

std::string shown(std::string_view written) {
    if (written.size() <= shown_bytes_max) {
        return std::string(written);
    }
    std::size_t end = shown_bytes_max;
    while (end > 0 && continues_character(written[end])) {
        --end;
    }
    return fmt::format("{}...", written.substr(0, end));
}

}  // namespace

Token Lexer::next() {
    while (is_space(at(at_))) {
        ++at_;
    }
    const std::size_t begin = at_;
    const char c = at(begin);
    if (begin == text_.size()) {
        return made(Token::Kind::end, begin, {});
    }
    if (is_letter(c)) {
        return word(begin);
    }
    if (is_digit(c) || ((c == '-' || c == '+') && is_digit(at(begin + 1)))) {
        return number(begin);
    }
    if (c == '\'' || c == '"' || c == '`') {
        return quoted(begin);
    }
    return symbol(begin);
}

Token Lexer::word(std::size_t begin) {
    while (is_part(at(at_))) {
        ++at_;
    }
    const std::string_view written = text_.substr(begin, at_ - begin);
    std::string capitals = upper(written);
    if (std::find(keywords.begin(), keywords.end(), capitals) != keywords.end()) {
        return made(Token::Kind::keyword, begin, std::move(capitals));
    }
    return made(Token::Kind::name, begin, std::string(written));
}

Token Lexer::number(std::size_t begin) {
    const auto digits = [&] {
        while (is_digit(at(at_))) {
            ++at_;
        }
    };
    ++at_;  // A sign or a digit.
    digits();
    if (at(at_) == '.' && is_digit(at(at_ + 1))) {
        ++at_;
        digits();
    }
    if (at(at_) == 'e' || at(at_) == 'E') {
        const std::size_t sign = at(at_ + 1) == '-' || at(at_ + 1) == '+' ? 1 : 0;
        if (is_digit(at(at_ + 1 + sign))) {
            at_ += 1 + sign;
            digits();
        }
    }
    if (is_part(at(at_)) || at(at_) == '.') {
        refuse(at_, "a number ends here, and something else follows it without a space");
    }
    return made(Token::Kind::number, begin, std::string(text_.substr(begin, at_ - begin)));
}

Token Lexer::symbol(std::size_t begin) {
    for (const std::string_view two : {"!=", "<>", "<=", ">="}) {
        if (text_.substr(begin, 2) == two) {
            at_ += 2;
            return made(Token::Kind::symbol, begin, two == "<>" ? "!=" : std::string(two));
        }
    }
    constexpr std::string_view single = "=<>(),";
    if (single.find(text_[begin]) == std::string_view::npos) {
        std::size_t end = begin + 1;
        while (end < text_.size() && continues_character(text_[end])) {
            ++end;
        }
        refuse(begin,
               fmt::format("\"{}\" means nothing here; put texts into quotes",
                           text_.substr(begin, end - begin)));
    }
    ++at_;
    return made(Token::Kind::symbol, begin, std::string(text_.substr(begin, 1)));
}

Token Lexer::quoted(std::size_t begin) {
    const char quote = text_[begin];
    std::string meaning;
    for (++at_; at_ < text_.size(); ++at_) {
        const char c = text_[at_];
        if (c == quote) {
            ++at_;
            if (at(at_) != quote) {
                return made(quote == '`' ? Token::Kind::name : Token::Kind::text,
                            begin,
                            std::move(meaning));
            }
        }
        meaning += c == '\\' && quote != '`' ? escaped() : c;
    }
    refuse(begin, fmt::format("a {} begins here and never ends", quote));
}

char Lexer::escaped() {
    switch (const char c = at(++at_)) {
        case '\'':
        case '"':
        case '\\':
            return c;
        case 'n':
            return '\n';
        case 'r':
            return '\r';
        case 't':
            return '\t';
        default:
            refuse(at_ - 1, R"(expected \', \", \\, \n, \r or \t; write a backslash as \\)");
    }
}

Token Lexer::made(Token::Kind kind, std::size_t begin, std::string meaning) const {
    return {.kind = kind,
            .meaning = std::move(meaning),
            .written = text_.substr(begin, at_ - begin),
            .begin = begin};
}

void Lexer::refuse(std::size_t begin, std::string_view what) const {
    const std::string_view before = text_.substr(0, begin);
    const auto place = 1 + std::count_if(before.begin(), before.end(), [](char c) {
                           return !continues_character(c);
                       });
    throw InvalidArgument(fmt::format("the filter is wrong at character {}: {}", place, what));
}

void Lexer::refuse(const Token& token, std::string_view expected) const {
    const std::string found = token.kind == Token::Kind::end
                                  ? std::string("it ends")
                                  : fmt::format("found {}", shown(token.written));
    refuse(token.begin, fmt::format("expected {}, but {}", expected, found));
}

}  // namespace holdfast::store::filter
