// UTF-8: checking, repairing and writing it. The one place that decides which bytes are valid.
//
// Valid is what RFC 3629 allows: overlong forms, surrogates and values past U+10FFFF are invalid,
// so that two spellings of one text cannot exist.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace holdfast {

// The character at the front of some text. `code_point` is empty if the first byte does not begin a
// valid sequence; then `bytes` is 1, so that a loop always moves on.
struct Utf8Character {
    std::optional<char32_t> code_point;
    std::size_t bytes = 1;
};

// Requires: `text` is not empty.
[[nodiscard]] Utf8Character first_character(std::string_view text) noexcept;

// Where the first invalid byte is; `text.size()` if all of it is valid. Fast on ASCII.
[[nodiscard]] std::size_t valid_utf8_bytes(std::string_view text) noexcept;
// Whether all of it is valid; U+0000 is, although SQL text cannot hold it.
[[nodiscard]] bool is_utf8(std::string_view text) noexcept;

// `text` with every invalid byte replaced by U+FFFD.
[[nodiscard]] std::string valid_utf8(std::string_view text);

// Requires: a code point that is not a surrogate.
void append_utf8(std::string& out, char32_t code_point);

// Whether a character breaks or hides a line for some reader: controls, and the separators that are
// line ends to some programs (U+0085, U+2028, U+2029).
[[nodiscard]] bool is_control(char32_t code_point) noexcept;

}  // namespace holdfast
