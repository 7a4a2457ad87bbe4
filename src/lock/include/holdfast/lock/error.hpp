// What can go wrong with a lock, beyond the answers "busy" and "lost".
#pragma once

#include <cstdint>
#include <exception>
#include <optional>
#include <source_location>
#include <string>
#include <string_view>

#include <holdfast/base/error.hpp>

namespace holdfast::lock {

enum class LockCode : std::uint8_t {
    service_unavailable,  // The database cannot be reached, or cannot work now.
    auth_failed,          // The database refuses the credentials or the privileges.
    invalid_argument,     // Refused before any work, or by the database.
    rate_limited,         // No connection free: the pool's or the server's limit.
    network_timeout,      // No answer in time.
    acquisition_timeout,  // with_lock: the lock was not released in time.
    aborted,              // The caller's stop token.
    internal,             // A bug of ours, damaged data, or a fence counter at its end.
};

// "ServiceUnavailable": the name that logs, events and the command line use.
[[nodiscard]] std::string_view to_string(LockCode code) noexcept;

// `what()` never contains a key or a lock id; `context` may, and is for the caller alone.
class LockError : public Error {
public:
    // Raw identifiers: not for logs.
    struct Context {
        std::optional<std::string> key{};
        std::optional<std::string> lock_id{};
        std::string sqlstate{};
    };

    // An empty message becomes the code's name.
    explicit LockError(LockCode code,
                       std::string message = {},
                       Outcome outcome = Outcome::not_applied,
                       std::source_location where = std::source_location::current());

    [[nodiscard]] LockCode lock_code() const noexcept { return code_; }
    // Whether the same call may succeed later.
    [[nodiscard]] bool retryable() const noexcept { return retryable_; }
    // The outcome is unknown: the change may have been applied.
    [[nodiscard]] bool indeterminate() const noexcept { return outcome() == Outcome::unknown; }
    [[nodiscard]] const Context& context() const noexcept { return context_; }

    void set_context(Context context) { context_ = std::move(context); }
    void set_retryable(bool retryable) noexcept { retryable_ = retryable; }

private:
    LockCode code_;
    bool retryable_;
    Context context_;
};

// The database floor's failure as a lock's: by SQLSTATE, then by code. A LockError comes back as it
// is; a foreign exception becomes `internal` with its cause.
[[nodiscard]] LockError to_lock_error(const std::exception_ptr& failure,
                                      LockError::Context context = {});

}  // namespace holdfast::lock
