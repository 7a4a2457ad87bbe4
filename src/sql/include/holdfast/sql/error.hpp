// Errors of the database, as data.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include <holdfast/base/error.hpp>
#include <holdfast/sql/statement.hpp>

namespace holdfast::sql {

// Five characters, or none if the error did not come from a database. SQLite's result codes are
// translated to the state that PostgreSQL gives for the same error.
class SqlState {
public:
    constexpr SqlState() = default;
    // Requires: 5 characters, else the state is empty.
    constexpr explicit SqlState(std::string_view text) noexcept {
        if (text.size() == state_.size()) {
            for (std::size_t i = 0; i < state_.size(); ++i) {
                state_[i] = text[i];
            }
        }
    }
    [[nodiscard]] constexpr bool empty() const noexcept { return state_[0] == '\0'; }
    [[nodiscard]] constexpr std::string_view text() const noexcept {
        return empty() ? std::string_view{} : std::string_view{state_.data(), state_.size()};
    }
    [[nodiscard]] constexpr std::string_view category() const noexcept {
        return text().substr(0, empty() ? 0 : 2);
    }
    friend constexpr bool operator==(const SqlState&, const SqlState&) = default;

private:
    std::array<char, 5> state_{};
};

// What to do about an error. The retry engine looks at nothing else.
enum class ErrorClass {
    condition_failed,     // A guard was lost: a normal answer, never retried.
    cancelled,            // The caller's stop token.
    deadline,             // The caller's deadline.
    retryable,            // 40001, 40P01: the whole transaction may be run again.
    unsupported_feature,  // 0A000: a bug of ours.
    connection_limit,     // 53300, 53400: the server takes no more connections now.
    limit_exceeded,       // 54000 and its kind.
    duplicate,            // 23505.
    connection_lost,      // Class 08, 57P01..57P03, 25P03, 25006, a broken socket.
    permanent,            // Everything else.
};

[[nodiscard]] std::string_view to_string(ErrorClass error_class) noexcept;

// By the SQLSTATE and nothing else; never by the text of a message.
[[nodiscard]] ErrorClass classify(SqlState state) noexcept;
// The same for a refused opening, and the one place where more than the SQLSTATE decides: Aurora
// DSQL refuses every login with 08006 and says why in the HINT only. With a hint it is a refused
// login, without one a server that cannot be reached now.
[[nodiscard]] ErrorClass classify_opening(SqlState state, std::string_view hint) noexcept;
// In this order: condition failed, cancelled, deadline, SQLSTATE, transport, permanent. Looks
// through causes, so that wrapping an error does not change what is done about it.
[[nodiscard]] ErrorClass classify(const Error& error) noexcept;

// A failure reported by the database or by the way to it.
class DatabaseError : public Error {
public:
    DatabaseError(SqlState state,
                  Outcome outcome,
                  std::string message,
                  std::source_location where = std::source_location::current());
    DatabaseError(ErrorClass error_class,
                  SqlState state,
                  Outcome outcome,
                  std::string message,
                  std::source_location where = std::source_location::current());

    [[nodiscard]] SqlState state() const noexcept { return state_; }
    [[nodiscard]] ErrorClass error_class() const noexcept { return class_; }
    // The server's own annotation of a conflict ("OC000"), for a metric's label and nothing else.
    [[nodiscard]] const std::string& annotation() const noexcept { return annotation_; }
    void set_annotation(std::string text) { annotation_ = std::move(text); }
    // What the server added for people.
    [[nodiscard]] const std::string& hint() const noexcept { return hint_; }
    void set_hint(std::string text) { hint_ = std::move(text); }

private:
    SqlState state_;
    ErrorClass class_;
    std::string annotation_;
    std::string hint_;
};

// An opening was refused because its password is too old: a fresh one may be accepted.
[[nodiscard]] bool is_login_expired(const DatabaseError& refused) noexcept;

// The connection broke. Unknown if a commit had been sent and its answer had not come.
class ConnectionLost : public DatabaseError {
public:
    ConnectionLost(Outcome outcome,
                   std::string message,
                   std::source_location where = std::source_location::current())
        : DatabaseError(
              ErrorClass::connection_lost, SqlState{"08006"}, outcome, std::move(message), where) {}
};

// A guard was lost: the row is gone or holds other tokens. Nothing was applied.
class ConditionFailed : public Error {
public:
    ConditionFailed(std::string what,
                    std::string expected,
                    std::string found,
                    std::source_location where = std::source_location::current());

    [[nodiscard]] const std::string& subject() const noexcept { return what_; }
    [[nodiscard]] const std::string& expected() const noexcept { return expected_; }
    // "no row" if there is none.
    [[nodiscard]] const std::string& found() const noexcept { return found_; }

private:
    std::string what_;
    std::string expected_;
    std::string found_;
};

// Every attempt ended in a conflict. Nothing was applied; the cause is the last conflict.
class Exhausted : public Error {
public:
    Exhausted(std::string_view operation,
              int attempts,
              std::exception_ptr last,
              std::source_location where = std::source_location::current());

    [[nodiscard]] int attempts() const noexcept { return attempts_; }

private:
    int attempts_;
};

}  // namespace holdfast::sql
