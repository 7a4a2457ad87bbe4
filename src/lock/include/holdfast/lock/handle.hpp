// A lock as an object: its destructor releases the lock.
//
// A handle knows how long the lock is safe by this process's own clock, and fires a stop token when
// the lock is lost. It does not extend itself: that is keeper.hpp.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include <holdfast/lock/backend.hpp>
#include <holdfast/lock/error.hpp>

namespace holdfast {
class Logger;
}

namespace holdfast::lock {

// Why a holder must stop.
enum class LostReason : std::uint8_t {
    refused,        // The backend says that this id no longer holds the lock.
    out_of_time,    // No extension succeeded before the lease ran short.
    failed,         // Extending failed with an error that a retry cannot cure.
    lifetime_over,  // The allowed lifetime of the lock has passed.
};

[[nodiscard]] std::string_view to_string(LostReason reason) noexcept;

// A lock that could not be released: it stays held until its lease ends.
struct ReleaseFailure {
    const LockError& error;  // Its cause is what was thrown, where that was something else.
    const std::string& key;
    const LockId& lock_id;
    std::string_view source = "disposal";
};

// How long this machine has been suspended since it started: what steady time does not count.
[[nodiscard]] std::chrono::nanoseconds time_suspended() noexcept;

struct HandleOptions {
    // For a release at the end of a scope, which cannot throw. Called on the thread that disposes
    // of the handle; what it throws is dropped. Empty: a warning of the logger.
    std::function<void(const ReleaseFailure&)> on_release_error{};
    // Called once, when the lock is lost and not released yet, right after `lost()` has fired.
    // What it throws is dropped.
    std::function<void(LostReason)> on_lost{};
    // The longest time that the end of the handle may take. The release is cancelled then, but may
    // need a moment more to end on a thread of its own, which the backend must outlive.
    // Empty: the backend's limit for one call.
    std::optional<std::chrono::milliseconds> dispose_timeout{};
    Logger* logger = nullptr;                               // Null: silence.
    const Clock* clock = nullptr;                           // Null: the machine's.
    std::function<std::chrono::nanoseconds()> suspended{};  // Empty: time_suspended.
};

// Moves, and never copies: there is one owner. A handle may be used from several threads, except
// that it must not be moved or destroyed meanwhile.
class Handle {
public:
    // Requires: `backend` outlives the handle. A Busy gives a handle that is not ok.
    // Throws invalid_argument if the dispose_timeout is not positive.
    Handle(Backend& backend, std::string key, Acquired acquired, HandleOptions options = {});
    // As dispose.
    ~Handle();
    Handle(Handle&& other) noexcept;
    // Disposes of what it had.
    Handle& operator=(Handle&& other) noexcept;
    Handle(const Handle&) = delete;
    Handle& operator=(const Handle&) = delete;

    // Whether the lock was taken; it stays true when it is released or lost.
    [[nodiscard]] bool ok() const noexcept { return state_ != nullptr; }
    // Why a handle is not ok.
    [[nodiscard]] const Busy& busy() const noexcept { return busy_; }
    [[nodiscard]] const std::string& key() const noexcept { return key_; }

    // These require ok().
    [[nodiscard]] Grant grant() const;  // With the times of the last extension.
    [[nodiscard]] Fence fence() const;
    [[nodiscard]] ServerTime expires_at() const;
    // The end of the lease by steady time, on the safe side: less what the machine was suspended.
    [[nodiscard]] Steady safe_until() const;

    // Until safe_until; zero when it has passed, and for a handle that is not ok.
    [[nodiscard]] std::chrono::nanoseconds remaining() const;
    // Fires when the lock is lost. Never fires for a handle that is not ok.
    [[nodiscard]] std::stop_token lost() const;
    [[nodiscard]] std::optional<LostReason> lost_reason() const;

    // Releases the lock. Any further call, also a concurrent one, is not ok and does not ask the
    // backend. Throws LockError; after a retryable one the handle is as before, and may be released
    // again.
    Released release(const CallOptions& options = {});
    // The lease ends `ttl` from now. Asks the backend, also after a release.
    Extended extend(std::chrono::milliseconds ttl, const CallOptions& options = {});
    // Releases the lock unless that has been done; waits for a release under way instead of sending
    // a second one. Failures go to on_release_error.
    void dispose() noexcept;
    // The backend's answer to the release; empty before it, and if the backend could not be asked.
    [[nodiscard]] std::optional<Released> released() const;
    // Whether the release found that the lock had been lost before. If the first answer was lost
    // and the repeat found no lock, the first try has most likely released it: that does not count
    // as a loss, unless the lease was over.
    [[nodiscard]] bool gone_at_release() const;

    class State;  // Shared with a keeper.

private:
    friend class Keeper;
    friend class LockScope;

    std::string key_;
    Busy busy_;
    std::shared_ptr<State> state_;
};

// One attempt, as a handle.
// Requires: as Backend::acquire.
[[nodiscard]] Handle acquire_handle(Backend& backend,
                                    std::string_view key,
                                    std::chrono::milliseconds ttl,
                                    const AcquireOptions& options = {},
                                    HandleOptions handle_options = {});

}  // namespace holdfast::lock
