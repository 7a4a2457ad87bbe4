// What flow asks of the JSON in payloads, beyond the grammar.
#pragma once

#include <cstddef>
#include <string_view>

#include <holdfast/base/json_text.hpp>

namespace holdfast::flow {

// Arrays and objects inside each other in one payload. A stored event wraps payloads (the event,
// its failure, the list of arguments), so they get less than the scanner takes.
inline constexpr std::size_t payload_depth_max = json::depth_max - 8;

// UTF-8 without a zero, which not every database takes.
[[nodiscard]] bool is_storable(std::string_view text) noexcept;

// Whether two values are equal but for fields that only one of them has: a struct has gained or
// lost some since the other was written. Requires: JSON, as a scanner has accepted it.
[[nodiscard]] bool agree(std::string_view one, std::string_view other);

}  // namespace holdfast::flow
