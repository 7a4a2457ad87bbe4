#include <holdfast/base/visible.hpp>

#include <algorithm>
#include <array>

#include <fmt/core.h>

#include <holdfast/base/utf8.hpp>

namespace holdfast {
namespace {

struct Range {
    char32_t first;
    char32_t last;
};

// Unicode's controls (Cc), format characters (Cf), separators of lines and paragraphs, and letters
// that are drawn as nothing.
constexpr std::array hidden{
    Range{0x00, 0x1F},       Range{0x7F, 0x9F},       Range{0xAD, 0xAD},
    Range{0x34F, 0x34F},     Range{0x600, 0x605},     Range{0x61C, 0x61C},
    Range{0x6DD, 0x6DD},     Range{0x70F, 0x70F},     Range{0x890, 0x891},
    Range{0x8E2, 0x8E2},     Range{0x115F, 0x1160},   Range{0x17B4, 0x17B5},
    Range{0x180B, 0x180F},   Range{0x200B, 0x200F},   Range{0x2028, 0x202E},
    Range{0x2060, 0x206F},   Range{0x3164, 0x3164},   Range{0xFEFF, 0xFEFF},
    Range{0xFFA0, 0xFFA0},   Range{0xFFF0, 0xFFFB},   Range{0x110BD, 0x110BD},
    Range{0x110CD, 0x110CD}, Range{0x13430, 0x1343F}, Range{0x1BCA0, 0x1BCA3},
    Range{0x1D173, 0x1D17A}, Range{0xE0000, 0xE0FFF}};

bool is_hidden(char32_t c) {
    return std::ranges::any_of(
        hidden, [c](const Range& range) { return c >= range.first && c <= range.last; });
}

std::string escape_of(char32_t c) {
    const auto number = static_cast<std::uint32_t>(c);
    if (number <= 0xFF) {
        return fmt::format("\\x{:02x}", number);
    }
    return number <= 0xFFFF ? fmt::format("\\u{:04x}", number) : fmt::format("\\U{:08x}", number);
}

}  // namespace

std::string visible(std::string_view text) {
    std::string shown;
    shown.reserve(text.size());
    while (!text.empty()) {
        const Utf8Character next = first_character(text);
        if (!next.code_point) {
            shown += escape_of(static_cast<unsigned char>(text.front()));
        } else if (text.front() != '\n' && text.front() != '\t' && is_hidden(*next.code_point)) {
            shown += escape_of(*next.code_point);
        } else {
            shown += text.substr(0, next.bytes);
        }
        text.remove_prefix(next.bytes);
    }
    return shown;
}

}  // namespace holdfast
