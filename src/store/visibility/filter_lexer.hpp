// The words of a filter.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace holdfast::store::filter {

struct Token {
    enum class Kind : std::uint8_t { name, keyword, text, number, symbol, end };
    Kind kind = Kind::end;
    std::string meaning{};  // A keyword in capitals, a text or a name without its quotes.
    std::string_view written{};
    std::size_t begin = 0;

    [[nodiscard]] bool is(std::string_view word) const noexcept {
        return (kind == Kind::keyword || kind == Kind::symbol) && meaning == word;
    }
};

class Lexer {
public:
    // Requires: `text` outlives this object and is UTF-8 without zero bytes.
    explicit Lexer(std::string_view text) noexcept : text_(text) {}

    [[nodiscard]] Token next();

    // Says at which character something is wrong; places count from 1.
    [[noreturn]] void refuse(std::size_t begin, std::string_view what) const;
    [[noreturn]] void refuse(const Token& token, std::string_view expected) const;

private:
    [[nodiscard]] Token word(std::size_t begin);
    [[nodiscard]] Token number(std::size_t begin);
    [[nodiscard]] Token symbol(std::size_t begin);
    // What stands in quotes; a quote in it is doubled or follows a backslash.
    [[nodiscard]] Token quoted(std::size_t begin);
    [[nodiscard]] char escaped();
    [[nodiscard]] char at(std::size_t place) const noexcept {
        return place < text_.size() ? text_[place] : '\0';
    }
    [[nodiscard]] Token made(Token::Kind kind, std::size_t begin, std::string meaning) const;

    std::string_view text_;
    std::size_t at_ = 0;
};

}  // namespace holdfast::store::filter
