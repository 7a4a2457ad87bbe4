// Bytes as text that needs no escaping in URLs, file names and logs (RFC 4648 section 5, unpadded).
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast {

[[nodiscard]] std::string to_base64url(std::span<const std::byte> bytes);

// Empty if `text` is not exactly what to_base64url() gives for some bytes: there is one spelling
// only, so that two different texts never stand for the same secret.
[[nodiscard]] std::optional<std::vector<std::byte>> from_base64url(std::string_view text);

}  // namespace holdfast
