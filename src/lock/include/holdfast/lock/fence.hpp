// The number that makes a late holder harmless.
//
// A fence grows each time its key's lock is taken. Whatever the lock protects remembers the largest
// it has seen and refuses smaller ones (an equal one is the same holder's next write). As text a
// fence has 15 digits, so that byte order is numeric order.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace holdfast::lock {

// Grows with every acquisition of its key, and never returns to an earlier value: the counter
// survives release, expiry and purge.
enum class Fence : std::uint64_t {};

inline constexpr int fence_digits = 15;
inline constexpr std::int64_t fence_max = 900'000'000'000'000;  // The largest that is ever issued.
inline constexpr std::int64_t fence_warn = 90'000'000'000'000;  // Above it, the log warns.

[[nodiscard]] constexpr std::uint64_t value_of(Fence fence) noexcept {
    return static_cast<std::uint64_t>(fence);
}

// Throws invalid_argument unless 0 <= number < 10^15.
[[nodiscard]] std::string format_fence(std::int64_t number);
[[nodiscard]] std::string to_string(Fence fence);

// Throws invalid_argument unless it is exactly 15 digits.
[[nodiscard]] Fence parse_fence(std::string_view text);

}  // namespace holdfast::lock
