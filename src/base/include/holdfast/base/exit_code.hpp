// How a program of ours ends.
#pragma once

#include <exception>
#include <string>

namespace holdfast {

inline constexpr int exit_done = 0;
inline constexpr int exit_refused = 1;  // A condition failed, or somebody said no.
inline constexpr int exit_usage = 2;    // The command line, a URL or the configuration is wrong.
inline constexpr int exit_unavailable = 3;  // The database or a file cannot be reached; try later.
inline constexpr int exit_internal = 4;     // A bug, or damaged data.
inline constexpr int exit_signal_base = 128;  // Plus the signal: 130 for SIGINT, 143 for SIGTERM.

// For the footer of --help.
inline constexpr const char* exit_codes_help =
    "Exit codes: 0 done, 1 refused or a condition failed, 2 usage, 3 unavailable, 4 internal;\n"
    "130 after SIGINT and 143 after SIGTERM, once everything is shut down.";

// The only place that turns a failure into an exit code.
[[nodiscard]] int exit_code_of(const std::exception& failure) noexcept;

// The failure in one line, for people.
[[nodiscard]] std::string sentence_of(const std::exception& failure);

}  // namespace holdfast
