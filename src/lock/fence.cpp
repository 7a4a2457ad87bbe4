#include <holdfast/lock/fence.hpp>

#include <algorithm>
#include <charconv>

#include <fmt/core.h>

#include <holdfast/lock/error.hpp>

namespace holdfast::lock {

std::string format_fence(std::int64_t number) {
    constexpr std::int64_t longest = 999'999'999'999'999;
    if (number < 0) {
        throw LockError(LockCode::invalid_argument, "Fence must be non-negative");
    }
    if (number > longest) {
        throw LockError(LockCode::invalid_argument, "Fence exceeds 15-digit limit");
    }
    return fmt::format("{:0{}}", number, fence_digits);
}

std::string to_string(Fence fence) {
    return format_fence(static_cast<std::int64_t>(fence));
}

Fence parse_fence(std::string_view text) {
    const bool digits = std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
    if (text.size() != fence_digits || !digits) {
        throw LockError(LockCode::invalid_argument, "a fence is written as exactly 15 digits");
    }
    std::uint64_t number = 0;
    std::from_chars(text.data(), text.data() + text.size(), number);
    return Fence{number};
}

}  // namespace holdfast::lock
