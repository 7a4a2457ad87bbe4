// Durations, sizes and moments as people write them: 250ms, 1m30s, 64KiB, 10MB,
// 2026-01-02T03:04:05Z.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include <holdfast/base/clock.hpp>

namespace holdfast {

// Whole numbers with the units d, h, m, s, ms, us, ns, larger units first, each at most once. A
// number without a unit is refused, except 0: 30 need not mean seconds.
// Requires: at most about 292 years. Else invalid_argument, saying what is wrong with the text.
[[nodiscard]] std::chrono::nanoseconds parse_duration(std::string_view text);

// The shortest text that parse_duration() reads back as `duration`. Requires: not negative.
[[nodiscard]] std::string format_duration(std::chrono::nanoseconds duration);

// Bytes: a whole number, alone or with B, kB, MB, GB, TB (powers of 1000) or KiB, MiB, GiB, TiB
// (powers of 1024). Requires: fits 64 bits. Else invalid_argument, saying what is wrong.
[[nodiscard]] std::uint64_t parse_size(std::string_view text);

// A text that parse_size() reads back as `bytes`: in the largest unit that leaves a whole number.
[[nodiscard]] std::string format_size(std::uint64_t bytes);

// A moment of ISO 8601 in UTC, from the year 1 on: 2026-01-02T03:04:05Z, also with a fraction
// (which is cut to microseconds) or with +00:00 for Z. Else invalid_argument, with an example.
[[nodiscard]] Wall parse_moment(std::string_view text);

}  // namespace holdfast
