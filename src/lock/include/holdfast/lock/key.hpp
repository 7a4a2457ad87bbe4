// The name of a lock, in the program and in the table.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace holdfast::lock {

inline constexpr std::size_t key_bytes_max = 512;

// In Unicode NFC, as keys are stored and compared. Throws invalid_argument, with `what` as the name
// of the text, if it is not well-formed UTF-8 or contains U+0000, which no SQL text can hold.
[[nodiscard]] std::string normalised_text(std::string_view what, std::string_view text);

// The key as it is stored and compared: Unicode NFC, otherwise unchanged. Throws invalid_argument
// if it is empty, not well-formed UTF-8, contains U+0000, or has more than 512 bytes then.
[[nodiscard]] std::string normalised_key(std::string_view key);

// "prefix:key" if it fits into `limit` bytes less `reserve`; else the key becomes 22 characters of
// its SHA-256, under the same prefix. Trailing colons of the prefix do not count. Throws
// invalid_argument if the key is empty or even that does not fit.
[[nodiscard]] std::string storage_key(std::string_view prefix,
                                      std::string_view key,
                                      std::size_t limit,
                                      std::size_t reserve);

// The name of a lock's counter, derived from its storage key, so that both are hashed together or
// not at all: one counter per lock.
[[nodiscard]] std::string fence_key(std::string_view prefix,
                                    std::string_view storage_key,
                                    std::size_t limit,
                                    std::size_t reserve);

// What stands for a key or a lock id in logs, events and reports: 24 hexadecimal digits of an HMAC
// under `secret`. Without a secret of the deployment's own, short keys can be guessed from it.
[[nodiscard]] std::string hashed_name(std::string_view value, std::string_view secret = {});

}  // namespace holdfast::lock
