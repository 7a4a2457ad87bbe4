// How large things may be that are stored whole.
#pragma once

#include <cstddef>

namespace holdfast::flow {

// An input, a result, a message. Beyond it the code gets a Failure of type "LimitExceeded", and a
// client an Error limit_exceeded: keep large things elsewhere, and pass their address.
inline constexpr std::size_t payload_bytes_max = 1U << 20U;

}  // namespace holdfast::flow
