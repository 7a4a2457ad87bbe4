#include <holdfast/base/base64url.hpp>

#include <cstdint>

namespace holdfast {
namespace {

constexpr std::string_view alphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

constexpr unsigned bits_per_character = 6;
constexpr unsigned bits_per_byte = 8;

}  // namespace

std::string to_base64url(std::span<const std::byte> bytes) {
    std::string text;
    text.reserve((bytes.size() * 4 + 2) / 3);
    std::uint32_t pending = 0;
    unsigned bits = 0;
    for (const std::byte byte : bytes) {
        pending = (pending << bits_per_byte) | std::to_integer<std::uint32_t>(byte);
        bits += bits_per_byte;
        while (bits >= bits_per_character) {
            bits -= bits_per_character;
            text += alphabet[(pending >> bits) & 0x3fU];
        }
    }
    if (bits > 0) {
        text += alphabet[(pending << (bits_per_character - bits)) & 0x3fU];
    }
    return text;
}

std::optional<std::vector<std::byte>> from_base64url(std::string_view text) {
    if (text.size() % 4 == 1) {
        return std::nullopt;
    }
    std::vector<std::byte> bytes;
    bytes.reserve(text.size() * 3 / 4);
    std::uint32_t pending = 0;
    unsigned bits = 0;
    for (const char character : text) {
        const std::size_t value = alphabet.find(character);
        if (value == std::string_view::npos) {
            return std::nullopt;
        }
        pending = (pending << bits_per_character) | static_cast<std::uint32_t>(value);
        bits += bits_per_character;
        if (bits >= bits_per_byte) {
            bits -= bits_per_byte;
            bytes.push_back(static_cast<std::byte>((pending >> bits) & 0xffU));
        }
    }
    const std::uint32_t leftover = pending & ((1U << bits) - 1);
    if (leftover != 0) {
        return std::nullopt;
    }
    return bytes;
}

}  // namespace holdfast
