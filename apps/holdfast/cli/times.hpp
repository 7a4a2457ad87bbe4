// Formats and parses times.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

namespace holdfast::app {

// "350 ms", "1.24 s", "3 min 5 s", "2 d 4 h": two figures that matter.
[[nodiscard]] std::string elapsed(std::chrono::milliseconds duration);
// "2026-11-16 00:28:20", in UTC.
[[nodiscard]] std::string moment_text(std::chrono::sys_time<std::chrono::milliseconds> moment);

// The value of an option such as --ttl; invalid_argument, which names the option.
[[nodiscard]] std::chrono::milliseconds duration_of(std::string_view option,
                                                    const std::string& text);

}  // namespace holdfast::app
