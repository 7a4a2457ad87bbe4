// The secret that proves ownership of a lock.
#pragma once

#include <string>
#include <string_view>

namespace holdfast::lock {

// 16 random bytes as 22 characters of base64url. It is enough to release the lock, so it cannot be
// printed by accident: only `reveal` returns the text.
class LockId {
public:
    static constexpr std::size_t length = 22;

    // From the operating system's generator; never repeats.
    [[nodiscard]] static LockId fresh();
    // Throws invalid_argument unless it has the form; the message does not repeat the text.
    [[nodiscard]] static LockId parse(std::string_view text);

    [[nodiscard]] const std::string& reveal() const noexcept { return text_; }

    friend bool operator==(const LockId&, const LockId&) = default;

private:
    explicit LockId(std::string text) noexcept : text_(std::move(text)) {}

    std::string text_;
};

}  // namespace holdfast::lock
