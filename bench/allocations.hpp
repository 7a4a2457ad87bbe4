// How often memory was asked for.
#pragma once

#include <cstdint>
#include <optional>

namespace holdfast::bench {

// Calls of operator new by this thread so far. Empty if they are not counted: only a binary that is
// built with the tests, and without a sanitizer, counts them.
[[nodiscard]] std::optional<std::uint64_t> allocations() noexcept;

}  // namespace holdfast::bench
