// Bytes as hexadecimal digits.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace holdfast {

// Two lower-case digits per byte.
[[nodiscard]] std::string to_hex(std::span<const std::byte> bytes);

}  // namespace holdfast
