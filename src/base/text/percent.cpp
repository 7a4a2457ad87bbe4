#include <holdfast/base/percent.hpp>

#include <charconv>

namespace holdfast {
namespace {

constexpr std::string_view hex_digits = "0123456789ABCDEF";

bool stays(char c) noexcept {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.' || c == '_' || c == '~';
}

}  // namespace

std::string percent_encoded(std::string_view text, std::string_view keep) {
    std::string encoded;
    encoded.reserve(text.size());
    for (const char c : text) {
        if (stays(c) || keep.find(c) != std::string_view::npos) {
            encoded += c;
        } else {
            const auto byte = static_cast<unsigned char>(c);
            encoded += '%';
            encoded += hex_digits[byte >> 4U];
            encoded += hex_digits[byte & 0xfU];
        }
    }
    return encoded;
}

std::optional<std::string> percent_decoded(std::string_view text) {
    std::string decoded;
    decoded.reserve(text.size());
    for (std::size_t at = 0; at < text.size(); ++at) {
        if (text[at] != '%') {
            decoded += text[at];
            continue;
        }
        unsigned value = 0;
        const std::string_view digits = text.substr(at + 1, 2);
        const auto [end, fault] =
            std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
        if (digits.size() != 2 || fault != std::errc{} || end != digits.data() + 2) {
            return std::nullopt;
        }
        decoded += static_cast<char>(value);
        at += 2;
    }
    return decoded;
}

}  // namespace holdfast
