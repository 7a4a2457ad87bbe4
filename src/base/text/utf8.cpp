#include <holdfast/base/utf8.hpp>

#include <cstdint>
#include <cstring>

#include <holdfast/base/assert.hpp>

namespace holdfast {
namespace {

constexpr std::string_view replacement = "\xef\xbf\xbd";

struct Sequence {
    std::size_t bytes = 0;  // Zero: no sequence begins like this.
    char32_t bits = 0;      // What the first byte contributes.
    char32_t smallest = 0;  // Anything below is an overlong form.
};

// Requires: not ASCII.
Sequence sequence_of(unsigned char first) noexcept {
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

// How far `text` from `at` on is ASCII; eight bytes at a time, because most text is that.
std::size_t skip_ascii(std::string_view text, std::size_t at) noexcept {
    constexpr std::uint64_t high_bits = 0x8080808080808080ULL;
    std::uint64_t bytes = 0;
    while (text.size() - at >= sizeof bytes) {
        std::memcpy(&bytes, text.data() + at, sizeof bytes);
        if ((bytes & high_bits) != 0) {
            break;
        }
        at += sizeof bytes;
    }
    while (at < text.size() && static_cast<unsigned char>(text[at]) < 0x80U) {
        ++at;
    }
    return at;
}

}  // namespace

Utf8Character first_character(std::string_view text) noexcept {
    HOLDFAST_ASSERT(!text.empty());
    const auto first = static_cast<unsigned char>(text.front());
    if (first < 0x80U) {
        return {first, 1};
    }
    const Sequence sequence = sequence_of(first);
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

std::size_t valid_utf8_bytes(std::string_view text) noexcept {
    std::size_t at = skip_ascii(text, 0);
    while (at < text.size()) {
        const Utf8Character character = first_character(text.substr(at));
        if (!character.code_point) {
            break;
        }
        at = skip_ascii(text, at + character.bytes);
    }
    return at;
}

bool is_utf8(std::string_view text) noexcept {
    return valid_utf8_bytes(text) == text.size();
}

std::string valid_utf8(std::string_view text) {
    std::string valid;
    valid.reserve(text.size());
    while (true) {
        const std::size_t bytes = valid_utf8_bytes(text);
        valid += text.substr(0, bytes);
        if (bytes == text.size()) {
            return valid;
        }
        valid += replacement;
        text.remove_prefix(bytes + 1);
    }
}

void append_utf8(std::string& out, char32_t code_point) {
    const auto put = [&out](char32_t byte) { out += static_cast<char>(byte); };
    const auto tail = [&](unsigned shift) { put(0x80U | ((code_point >> shift) & 0x3fU)); };
    if (code_point < 0x80) {
        put(code_point);
    } else if (code_point < 0x800) {
        put(0xc0U | (code_point >> 6U));
        tail(0);
    } else if (code_point < 0x10000) {
        put(0xe0U | (code_point >> 12U));
        tail(6);
        tail(0);
    } else {
        put(0xf0U | (code_point >> 18U));
        tail(12);
        tail(6);
        tail(0);
    }
}

bool is_control(char32_t code_point) noexcept {
    return code_point < 0x20 || (code_point >= 0x7f && code_point <= 0x9f) ||
           code_point == 0x2028 || code_point == 0x2029;
}

}  // namespace holdfast
