#include "id_digest.hpp"

#include <algorithm>
#include <array>

#include <fmt/core.h>
#include <openssl/evp.h>

#include <holdfast/base/assert.hpp>
#include <holdfast/store/error.hpp>

namespace holdfast::store {

IdDigest digest_of(std::span<const std::byte> id) {
    std::array<std::byte, 32> digest{};
    const int done = EVP_Digest(id.data(),
                                id.size(),
                                reinterpret_cast<unsigned char*>(digest.data()),
                                nullptr,
                                EVP_sha256(),
                                nullptr);
    HOLDFAST_ASSERT(done == 1);
    IdDigest made;
    std::copy_n(digest.begin(), made.key.bytes.size(), made.key.bytes.begin());
    made.key.bytes[6] = (made.key.bytes[6] & std::byte{0x0F}) | std::byte{0x40};
    made.key.bytes[8] = (made.key.bytes[8] & std::byte{0x3F}) | std::byte{0x80};
    for (std::size_t i = 16; i < 20; ++i) {  // From the other half of the digest.
        made.spread = (made.spread << 8U) | std::to_integer<std::uint32_t>(digest.at(i));
    }
    return made;
}

Uuid key_digest(std::string_view id) {
    return digest_of(std::as_bytes(std::span(id))).key;
}

void require_same_id(std::string_view what, std::string_view found, std::string_view asked) {
    if (found != asked) {
        throw DamagedData(
            fmt::format("the row of {} \"{}\" is that of \"{}\"; their digests are the same, or "
                        "one is damaged",
                        what,
                        asked,
                        found));
    }
}

}  // namespace holdfast::store
