#include "text/utf8.hpp"

#include <holdfast/base/assert.hpp>

namespace holdfast {
namespace {

constexpr std::string_view replacement = "\xef\xbf\xbd";

struct Sequence {
    std::size_t bytes = 0;  // Zero: no sequence begins like this.
    char32_t bits = 0;      // What the first byte contributes.
    char32_t smallest = 0;  // Anything below is an overlong form.
};

Sequence sequence_of(unsigned char first) noexcept {
    if (first < 0x80U) {
        return {1, first, 0};
    }
    if ((first & 0xe0U) == 0xc0U) {
        return {2, first & 0x1fU, 0x80};
    }
    if ((first & 0xf0U) == 0xe0U) {
        return {3, first & 0x0fU, 0x800};
    }
    if ((first & 0xf8U) == 0xf0U) {
        return {4, first & 0x07U, 0x10000};
    }
    return {};
}

}  // namespace

Utf8Character first_character(std::string_view text) noexcept {
    HOLDFAST_ASSERT(!text.empty());
    const Sequence sequence = sequence_of(static_cast<unsigned char>(text.front()));
    if (sequence.bytes == 0 || sequence.bytes > text.size()) {
        return {};
    }
    char32_t code_point = sequence.bits;
    for (std::size_t i = 1; i < sequence.bytes; ++i) {
        const auto next = static_cast<unsigned char>(text[i]);
        if ((next & 0xc0U) != 0x80U) {
            return {};
        }
        code_point = (code_point << 6U) | (next & 0x3fU);
    }
    const bool surrogate = code_point >= 0xd800 && code_point <= 0xdfff;
    if (code_point < sequence.smallest || code_point > 0x10ffff || surrogate) {
        return {};
    }
    return {code_point, sequence.bytes};
}

std::string valid_utf8(std::string_view text) {
    std::string valid;
    valid.reserve(text.size());
    while (!text.empty()) {
        const Utf8Character character = first_character(text);
        valid += character.code_point ? text.substr(0, character.bytes) : replacement;
        text.remove_prefix(character.bytes);
    }
    return valid;
}

bool is_control(char32_t code_point) noexcept {
    return code_point < 0x20 || (code_point >= 0x7f && code_point <= 0x9f) ||
           code_point == 0x2028 || code_point == 0x2029;
}

}  // namespace holdfast
