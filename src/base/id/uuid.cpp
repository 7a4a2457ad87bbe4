#include <holdfast/base/uuid.hpp>

#include <algorithm>
#include <cstdint>

#include <holdfast/base/base64url.hpp>
#include <holdfast/base/error.hpp>
#include <holdfast/base/random.hpp>

namespace holdfast {
namespace {

constexpr std::string_view hex_digits = "0123456789abcdef";

// A dash stands before these bytes of the canonical text.
constexpr bool dash_before(std::size_t byte) noexcept {
    return byte == 4 || byte == 6 || byte == 8 || byte == 10;
}

std::optional<unsigned> hex_value(char digit) noexcept {
    if (digit >= '0' && digit <= '9') {
        return static_cast<unsigned>(digit - '0');
    }
    if (digit >= 'a' && digit <= 'f') {
        return static_cast<unsigned>(digit - 'a' + 10);
    }
    if (digit >= 'A' && digit <= 'F') {
        return static_cast<unsigned>(digit - 'A' + 10);
    }
    return std::nullopt;
}

std::array<std::byte, 16> random_16() {
    std::array<std::byte, 16> bytes;
    secure_random(bytes);
    return bytes;
}

void set_version(std::array<std::byte, 16>& bytes, unsigned version) noexcept {
    bytes[6] = (bytes[6] & std::byte{0x0f}) | static_cast<std::byte>(version << 4U);
    bytes[8] = (bytes[8] & std::byte{0x3f}) | std::byte{0x80};
}

}  // namespace

Uuid Uuid::v4() {
    Uuid uuid{random_16()};
    set_version(uuid.bytes, 4);
    return uuid;
}

Uuid Uuid::v7(Wall now) {
    const std::int64_t us = now.time_since_epoch().count();
    constexpr std::int64_t us_end = (std::int64_t{1} << 48U) * 1000;
    if (us < 0 || us >= us_end) {
        throw InvalidArgument(
            "a version 7 UUID holds no time before 1970 or after 10889; set the "
            "machine's clock");
    }
    // 48 bits of milliseconds, then the fraction of the millisecond in the 12 bits beside the
    // version (RFC 9562, method 3): ids of one process sort by microsecond.
    const auto ms = static_cast<std::uint64_t>(us / 1000);
    const auto fraction = static_cast<std::uint64_t>(us % 1000) * 4096 / 1000;

    Uuid uuid{random_16()};
    for (unsigned i = 0; i < 6; ++i) {
        uuid.bytes[i] = static_cast<std::byte>((ms >> (40U - 8U * i)) & 0xffU);
    }
    uuid.bytes[6] = static_cast<std::byte>(fraction >> 8U);
    uuid.bytes[7] = static_cast<std::byte>(fraction & 0xffU);
    set_version(uuid.bytes, 7);
    return uuid;
}

std::optional<Uuid> Uuid::parse(std::string_view text) noexcept {
    if (text.size() != 36) {
        return std::nullopt;
    }
    Uuid uuid;
    std::size_t at = 0;
    for (std::size_t i = 0; i < uuid.bytes.size(); ++i) {
        if (dash_before(i) && text[at++] != '-') {
            return std::nullopt;
        }
        const auto high = hex_value(text[at++]);
        const auto low = hex_value(text[at++]);
        if (!high || !low) {
            return std::nullopt;
        }
        uuid.bytes[i] = static_cast<std::byte>(*high << 4U | *low);
    }
    return uuid;
}

std::optional<Uuid> Uuid::from_bytes(std::span<const std::byte> bytes) noexcept {
    Uuid uuid;
    if (bytes.size() != uuid.bytes.size()) {
        return std::nullopt;
    }
    std::copy(bytes.begin(), bytes.end(), uuid.bytes.begin());
    return uuid;
}

std::string Uuid::text() const {
    std::string text;
    text.reserve(36);
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        if (dash_before(i)) {
            text += '-';
        }
        const auto value = std::to_integer<unsigned>(bytes[i]);
        text += hex_digits[value >> 4U];
        text += hex_digits[value & 0x0fU];
    }
    return text;
}

std::string make_token() {
    return to_base64url(random_16());
}

}  // namespace holdfast
