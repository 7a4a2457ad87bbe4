// Exit codes of the programs.
#pragma once

#include <exception>
#include <string>

#include <holdfast/base/error.hpp>

namespace holdfast {

inline constexpr int exit_done = 0;
inline constexpr int exit_refused = 1;  // A condition failed, or the user said no.
inline constexpr int exit_usage = 2;    // The command line, a URL or the configuration is wrong.
inline constexpr int exit_unavailable = 3;  // The database or a file cannot be reached; try later.
inline constexpr int exit_internal = 4;     // A bug, or damaged data.
inline constexpr int exit_signal_base = 128;  // Plus the signal: 130 for SIGINT, 143 for SIGTERM.

// Codes of `holdfast lock`, as in sysexits.h and the shell: they must not be mistaken for those of
// the program it runs.
inline constexpr int exit_no_backend = 69;  // The database cannot be reached.
inline constexpr int exit_lost = 70;        // The lock is not held any more.
inline constexpr int exit_contended = 75;   // Another holder has the lock.
inline constexpr int exit_not_runnable = 126;
inline constexpr int exit_no_program = 127;

// For the footer of --help.
inline constexpr const char* exit_codes_help =
    "Exit codes: 0 done, 1 refused or a condition failed, 2 usage, 3 unavailable, 4 internal;\n"
    "130 after SIGINT and 143 after SIGTERM, once everything is shut down.";

inline constexpr const char* lock_exit_codes_help =
    "Exit codes: 0 done, 1 refused, 2 usage, 4 internal, 69 database out of reach, 70 lock lost,\n"
    "75 lock held by another, 126 and 127 command not runnable; else the command's own.";

// A failure with an exit code of its own.
class CodedError : public Error {
public:
    CodedError(int exit_code, const Error& failure) : Error(failure), exit_code_(exit_code) {}
    CodedError(int exit_code, Code code, std::string message)
        : Error(code, Outcome::not_applied, std::move(message)), exit_code_(exit_code) {}

    [[nodiscard]] int exit_code() const noexcept { return exit_code_; }

private:
    int exit_code_;
};

// The only place that turns a failure into an exit code.
[[nodiscard]] int exit_code_of(const std::exception& failure) noexcept;

// The failure in one line, for people.
[[nodiscard]] std::string sentence_of(const std::exception& failure);

}  // namespace holdfast
