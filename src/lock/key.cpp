#include <holdfast/lock/key.hpp>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <span>

#include <fmt/core.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <utf8proc.h>

#include <holdfast/base/assert.hpp>
#include <holdfast/base/base64url.hpp>
#include <holdfast/base/hex.hpp>
#include <holdfast/lock/error.hpp>

namespace holdfast::lock {
namespace {

using Digest = std::array<std::byte, 32>;

[[noreturn]] void refuse(std::string message) {
    throw LockError(LockCode::invalid_argument, std::move(message));
}

const utf8proc_uint8_t* as_utf8(std::string_view text) {
    return reinterpret_cast<const utf8proc_uint8_t*>(text.data());
}

std::string to_nfc(std::string_view text) {
    return normalised_text("Key", text);
}

std::string short_hash(std::string_view text) {
    Digest digest{};
    unsigned int size = 0;
    const int ok = EVP_Digest(text.data(),
                              text.size(),
                              reinterpret_cast<unsigned char*>(digest.data()),
                              &size,
                              EVP_sha256(),
                              nullptr);
    HOLDFAST_ASSERT(ok == 1 && size == digest.size());
    return to_base64url(std::span(digest).first<16>());
}

}  // namespace

std::string normalised_text(std::string_view what, std::string_view text) {
    // Whether plain char has a sign or not.
    if (std::ranges::all_of(text, [](unsigned char c) { return c > 0 && c < 0x80; })) {
        return std::string(text);  // ASCII is normal already.
    }
    if (text.find('\0') != std::string_view::npos) {
        refuse(fmt::format("{} must not contain U+0000", what));
    }
    utf8proc_uint8_t* raw = nullptr;
    const utf8proc_ssize_t length =
        utf8proc_map(as_utf8(text),
                     static_cast<utf8proc_ssize_t>(text.size()),
                     &raw,
                     static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
    const std::unique_ptr<utf8proc_uint8_t, void (*)(void*)> owner(raw, std::free);
    if (length < 0) {
        refuse(fmt::format("{} must be well-formed UTF-8", what));
    }
    return {reinterpret_cast<const char*>(raw), static_cast<std::size_t>(length)};
}

std::string normalised_key(std::string_view key) {
    if (key.empty()) {
        refuse("Key must not be empty");
    }
    std::string normal = to_nfc(key);
    if (normal.size() > key_bytes_max) {
        refuse(fmt::format("Key exceeds maximum length of {} bytes", key_bytes_max));
    }
    return normal;
}

std::string storage_key(std::string_view prefix,
                        std::string_view key,
                        std::size_t limit,
                        std::size_t reserve) {
    if (key.empty()) {
        refuse("Key must not be empty");
    }
    const std::string normal = to_nfc(key);
    while (prefix.ends_with(':')) {
        prefix.remove_suffix(1);
    }
    const std::size_t before = prefix.empty() ? 0 : prefix.size() + 1;
    if (before + reserve > limit) {
        refuse("Prefix exceeds backend limit for storage keys");
    }
    const auto under_prefix = [&](std::string_view name) {
        return prefix.empty() ? std::string(name) : fmt::format("{}:{}", prefix, name);
    };
    std::string full = under_prefix(normal);
    if (full.size() + reserve <= limit) {
        return full;
    }
    std::string hashed = under_prefix(short_hash(full));
    if (hashed.size() + reserve > limit) {
        refuse("Key exceeds backend limits even after hashing");
    }
    return hashed;
}

std::string fence_key(std::string_view prefix,
                      std::string_view storage_key_text,
                      std::size_t limit,
                      std::size_t reserve) {
    return storage_key(prefix, fmt::format("fence:{}", storage_key_text), limit, reserve);
}

std::string hashed_name(std::string_view value, std::string_view secret) {
    constexpr std::string_view public_salt = "holdfast.lock.v1";
    constexpr std::size_t bytes_shown = 12;
    const std::string_view key = secret.empty() ? public_salt : secret;
    const std::string normal = to_nfc(value);
    std::array<unsigned char, 32> mac{};
    unsigned int size = 0;
    const unsigned char* ok = HMAC(EVP_sha256(),
                                   key.data(),
                                   static_cast<int>(key.size()),
                                   reinterpret_cast<const unsigned char*>(normal.data()),
                                   normal.size(),
                                   mac.data(),
                                   &size);
    HOLDFAST_ASSERT(ok != nullptr && size == mac.size());
    return to_hex(std::as_bytes(std::span(mac).first(bytes_shown)));
}

}  // namespace holdfast::lock
