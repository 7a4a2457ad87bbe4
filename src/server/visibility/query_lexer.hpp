// The words of the query language for runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace holdfast::server::visibility {

struct Word {
    enum class Kind : std::uint8_t { name, text, number, symbol, end, wrong };
    Kind kind = Kind::end;
    std::string meaning;  // Without quotes; of a bare name in capitals if it is a word of the
                          // grammar, and then `reserved`.
    std::string_view written;
    std::size_t end = 0;  // Where it ends in the text.
    bool reserved = false;

    [[nodiscard]] bool is(std::string_view what) const noexcept {
        return (reserved || kind == Kind::symbol) && meaning == what;
    }
};

class QueryLexer {
public:
    // Requires: `text` outlives this object.
    explicit QueryLexer(std::string_view text) noexcept : text_(text) {}

    // A wrong one is the last.
    [[nodiscard]] Word next();

private:
    [[nodiscard]] char at(std::size_t place) const noexcept {
        return place < text_.size() ? text_[place] : '\0';
    }
    // Blanks and comments; false if a comment does not end.
    [[nodiscard]] bool skip();
    [[nodiscard]] Word bare(std::size_t begin);
    [[nodiscard]] Word quoted(std::size_t begin);
    [[nodiscard]] Word number(std::size_t begin);
    [[nodiscard]] Word symbol(std::size_t begin);
    [[nodiscard]] Word made(Word::Kind kind, std::size_t begin, std::string meaning) const;

    std::string_view text_;
    std::size_t at_ = 0;
};

}  // namespace holdfast::server::visibility
