// Ids that are too long for a key: a digest of the id stands in the key, and the id itself in a
// column beside it.
//
// Databases bound their keys, one of them at 1 KiB. Two ids with one digest are not to be expected;
// should there be two, what was found is compared with what was asked for, so that one is never
// taken for the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include <holdfast/base/uuid.hpp>

namespace holdfast::store {

struct IdDigest {
    Uuid key;                 // Looks like a random UUID, and cannot be turned back.
    std::uint32_t spread{0};  // Independent of the key.
};
[[nodiscard]] IdDigest digest_of(std::span<const std::byte> id);
// The key's part of it.
[[nodiscard]] Uuid key_digest(std::string_view id);

// Throws DamagedData unless the id beside a digest is the one that was asked for. `what` names the
// kind of id.
void require_same_id(std::string_view what, std::string_view found, std::string_view asked);

}  // namespace holdfast::store
