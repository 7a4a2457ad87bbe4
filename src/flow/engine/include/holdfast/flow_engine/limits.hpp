// Size limits of what is stored as one value.
#pragma once

#include <cstddef>

namespace holdfast::flow {

// An input, a result, a message. Beyond it the code gets a Failure of type "LimitExceeded", and a
// client an Error limit_exceeded: keep large values elsewhere, and pass their address.
//
// The strictest database takes 1 MiB in one value, and what is stored has names and times around
// the payload. One limit for all of them, so that what runs on a file runs on a cluster too.
inline constexpr std::size_t payload_bytes_max = (1U << 20U) - (16U << 10U);

}  // namespace holdfast::flow
