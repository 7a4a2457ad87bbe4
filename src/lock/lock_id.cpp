#include <holdfast/lock/lock_id.hpp>

#include <algorithm>
#include <array>
#include <cstddef>

#include <holdfast/base/base64url.hpp>
#include <holdfast/base/random.hpp>
#include <holdfast/lock/error.hpp>

namespace holdfast::lock {

LockId LockId::fresh() {
    std::array<std::byte, 16> bytes{};
    secure_random(bytes);
    return LockId(to_base64url(bytes));
}

LockId LockId::parse(std::string_view text) {
    const bool in_alphabet = std::ranges::all_of(text, [](char c) {
        return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
               c == '-' || c == '_';
    });
    if (text.size() != length || !in_alphabet) {
        throw LockError(LockCode::invalid_argument,
                        "Invalid lockId format: a lock id has 22 characters of base64url");
    }
    return LockId(std::string(text));
}

}  // namespace holdfast::lock
