// Reading text that came from outside and may not be text at all.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace holdfast {

// One character at the front of some text. `code_point` is empty if the first byte begins no valid
// UTF-8 sequence; then `bytes` is 1, so that a loop always moves on.
struct Utf8Character {
    std::optional<char32_t> code_point;
    std::size_t bytes = 1;
};

// Requires: `text` is not empty. Overlong forms, surrogates and values past U+10FFFF are invalid.
[[nodiscard]] Utf8Character first_character(std::string_view text) noexcept;

// `text` with every invalid byte replaced by U+FFFD.
[[nodiscard]] std::string valid_utf8(std::string_view text);

// Whether a character breaks or hides a line for some reader: controls, and the separators that are
// line ends to some programs (U+0085, U+2028, U+2029).
[[nodiscard]] bool is_control(char32_t code_point) noexcept;

}  // namespace holdfast
