// 128-bit ids: UUIDs and secret tokens.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <holdfast/base/clock.hpp>

namespace holdfast {

// A value of 16 bytes; the nil UUID by default. Compares as bytes.
struct Uuid {
    std::array<std::byte, 16> bytes{};

    [[nodiscard]] static Uuid v4();          // From the kernel's generator.
    [[nodiscard]] static Uuid v7(Wall now);  // Sorts by time; the rest is random.
    // Canonical 8-4-4-4-12, either case. Empty if it is anything else.
    [[nodiscard]] static std::optional<Uuid> parse(std::string_view text) noexcept;
    // Requires: exactly 16 bytes. Else empty.
    [[nodiscard]] static std::optional<Uuid> from_bytes(std::span<const std::byte> bytes) noexcept;

    [[nodiscard]] std::string text() const;  // Lower case, 36 characters.

    friend auto operator<=>(const Uuid&, const Uuid&) = default;
};

// 128 random bits as 22 characters of base64url. Proves a lease. A secret; never logged.
[[nodiscard]] std::string make_token();

}  // namespace holdfast
