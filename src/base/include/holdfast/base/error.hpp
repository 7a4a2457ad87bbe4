// The one family of failures that crosses a floor.
//
// A failure has a code, on which callers act, and an outcome, which says whether the failed call's
// work can be in the database. The message is for people: one sentence that names the cure.
#pragma once

#include <exception>
#include <source_location>
#include <string>
#include <string_view>

namespace holdfast {

// Kind of error. A code exists only where some caller acts differently on it; the message has the
// rest.
enum class Code {
    invalid_argument,  // Rejected before any work.
    condition_failed,  // The row is not as the caller believed. A normal answer: reload, decide.
    conflict,          // Rolled back by the database, retried for us, and still losing.
    unavailable,       // No usable connection, or too slow. May work later.
    unsupported,       // The database refuses the statement itself. A bug of ours.
    internal,          // A bug of ours, or damaged data.
    not_found,
    already_exists,
    limit_exceeded,  // Larger, longer or more than the database accepts. Never works unchanged.
    cancelled,       // The caller's stop token fired.
    deadline,        // The caller's deadline passed.
    unauthorized,    // The database refused the login or the permission.
    exhausted,       // The server has no room for another connection.
};

// Whether the failed call's work can be in the database. Unknown must never be repeated blindly.
enum class Outcome { not_applied, unknown };

[[nodiscard]] std::string_view to_string(Code code) noexcept;
[[nodiscard]] std::string_view to_string(Outcome outcome) noexcept;

// Subclasses add what was found, never flow.
class Error : public std::exception {
public:
    Error(Code code,
          Outcome outcome,
          std::string message,
          std::source_location where = std::source_location::current());

    [[nodiscard]] const char* what() const noexcept override { return message_.c_str(); }
    [[nodiscard]] Code code() const noexcept { return code_; }
    [[nodiscard]] Outcome outcome() const noexcept { return outcome_; }
    [[nodiscard]] const std::source_location& where() const noexcept { return where_; }

    // What led to this failure; empty if this is where it began.
    [[nodiscard]] const std::exception_ptr& cause() const noexcept { return cause_; }
    void set_cause(std::exception_ptr cause) noexcept { cause_ = std::move(cause); }

    // Puts "step: " before the message, so that a report reads from the outside in.
    void add_context(std::string_view step);

private:
    Code code_;
    Outcome outcome_;
    std::string message_;
    std::source_location where_;
    std::exception_ptr cause_;
};

// Rejected before any work, so nothing was applied.
class InvalidArgument : public Error {
public:
    explicit InvalidArgument(std::string message,
                             std::source_location where = std::source_location::current())
        : Error(Code::invalid_argument, Outcome::not_applied, std::move(message), where) {}
};

// The messages from the outermost failure to the first cause, joined by ": caused by "; a cause
// that the message before it quotes is not repeated.
[[nodiscard]] std::string describe(const std::exception_ptr& error);

}  // namespace holdfast
