// What every kind of lock store can do.
//
// A backend makes single attempts: it answers "busy" at once and never retries for the caller.
// Waiting, extending and releasing at the end of a scope are built on top, in with_lock.hpp,
// handle.hpp and keeper.hpp, and work with any backend. The one in SQL tables is locks.hpp.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <variant>

#include <holdfast/base/clock.hpp>
#include <holdfast/lock/fence.hpp>
#include <holdfast/lock/lock_id.hpp>

namespace holdfast::lock {

// By the clock that decides leases: the server's, or the host's for SQLite. Never to be compared
// with this process's clock; `safe_until` is for that.
using ServerTime = std::chrono::sys_time<std::chrono::milliseconds>;

inline constexpr std::chrono::milliseconds default_ttl{30'000};
inline constexpr std::chrono::milliseconds ttl_max{31'536'000'000};  // 365 days.
// How long past its expiry a lock still counts as held. It allows for a late holder; do not plan
// with it.
inline constexpr std::chrono::milliseconds time_tolerance{1'000};

// The one rule of liveness, on every backend and in every operation.
[[nodiscard]] constexpr bool is_live(ServerTime expires_at,
                                     ServerTime now,
                                     std::chrono::milliseconds tolerance = time_tolerance) {
    return expires_at > now - tolerance;
}

struct CallOptions {
    std::stop_token stop{};
    std::optional<Deadline> deadline{};  // Empty: the backend's own limit per operation.
};

struct AcquireOptions {
    std::stop_token stop{};
    std::optional<Deadline> deadline{};
    // Empty: a fresh one. The same id again is a repeat: it succeeds if that id holds the lock, or
    // the lock is free, and its fence is new.
    std::optional<LockId> lock_id{};
    std::string meta{};  // Shown by `find` and `list`; at most 4 KiB of UTF-8.
    int attempt = 1;     // The number of the attempt within one wait; for telemetry.
};

struct Grant {
    LockId lock_id;
    Fence fence{};
    ServerTime expires_at{};
    Steady safe_until{};  // By this process's clock; never later than the true expiry.
};

struct Busy {
    std::optional<std::chrono::milliseconds> retry_after{};  // When the lease runs out, if known.
};

using Acquired = std::variant<Grant, Busy>;

// Why there was no lock to release or extend; a hint for telemetry.
enum class Missing : std::uint8_t { expired, not_found };

struct Released {
    bool ok = false;  // This call removed a live lock.
    std::optional<Missing> why{};
    // Not `ok`, but the answer to the first try was lost: this call may have removed the lock.
    bool indeterminate = false;
};

struct Extended {
    bool ok = false;
    ServerTime expires_at{};
    Steady safe_until{};
    std::optional<Missing> why{};
};

enum class ExtendMode : std::uint8_t {
    replace,  // The lease ends `ttl` from now, even if that is sooner than before.
    at_least  // For heartbeats: a longer lease set in the meantime stays.
};

// A lock without its secrets. Diagnostic only: it may be out of date when it is read, so it must
// not decide about a change.
struct LockInfo {
    std::string key_hash;
    std::string lock_id_hash;
    ServerTime expires_at{};
    ServerTime acquired_at{};  // An extension does not change it.
    Fence fence{};
};

// With the raw identifiers: a separate type, so that they are returned only on request.
struct RawLockInfo {
    LockInfo info;
    std::string key;
    LockId lock_id;
    std::string owner;  // "host:pid", as set by the holder.
    std::string meta;
};

enum class TimeAuthority : std::uint8_t { server, client };

struct Capabilities {
    std::string_view backend;  // "postgres", "sqlite", "dsql".
    bool supports_fencing = true;
    TimeAuthority time_authority = TimeAuthority::server;
};

// A place in the wait queue of one key. A release keeps the key free for a moment for the first
// waiter, and notifies it. Not safe to share between threads.
class WaitTicket {
public:
    // Leaves the queue, and passes an unused turn on to the next waiter.
    virtual ~WaitTicket() = default;

    // Before the first try: waits behind earlier waiters of this process, because only the first of
    // them asks the database. Ends at `until`, or when the token fires.
    virtual void wait_behind(Steady /*until*/, const std::stop_token& /*stop*/) {}
    // Takes a place at the end, unless it has one. True if it took one: then the lock must be tried
    // once more, because it may have become free before the place was visible.
    virtual bool join() = 0;
    // Waits until notified, until `until`, until the backend's longest wait without a notification
    // has passed, or until the token fires. Then the lock is worth a try.
    virtual void wait(Steady until, const std::stop_token& stop) = 0;
    // Called when the lock has been acquired.
    virtual void arrived() noexcept = 0;
};

// Safe to share between threads. Arguments are checked first, then the stop token, then the
// database is asked. All failures are thrown as LockError.
class Backend {
public:
    virtual ~Backend() = default;

    // Takes the lock if it is free or its lease has expired.
    // Requires: `key` as for normalised_key; 0 < ttl <= ttl_max.
    // If the outcome is unknown, a live lock may be left behind until `ttl` has passed.
    [[nodiscard]] virtual Acquired acquire(std::string_view key,
                                           std::chrono::milliseconds ttl,
                                           const AcquireOptions& options = {}) = 0;
    // A second release of the same lock is not `ok`; another owner's lock is never touched.
    virtual Released release(const LockId& lock_id, const CallOptions& options = {}) = 0;
    // A lost lock stays lost.
    virtual Extended extend(const LockId& lock_id,
                            std::chrono::milliseconds ttl,
                            const CallOptions& options = {},
                            ExtendMode mode = ExtendMode::replace) = 0;
    [[nodiscard]] virtual bool is_locked(std::string_view key, const CallOptions& options = {}) = 0;

    // Empty if the lock is free or its lease has expired.
    [[nodiscard]] virtual std::optional<LockInfo> find(std::string_view key,
                                                       const CallOptions& options = {}) = 0;
    [[nodiscard]] virtual std::optional<LockInfo> find_by_id(const LockId& lock_id,
                                                             const CallOptions& options = {}) = 0;
    [[nodiscard]] virtual std::optional<RawLockInfo> find_raw(std::string_view key,
                                                              const CallOptions& options = {}) = 0;
    [[nodiscard]] virtual std::optional<RawLockInfo> find_raw_by_id(
        const LockId& lock_id, const CallOptions& options = {}) = 0;

    // For a wait for `key` with this id that ends after `patience`; does not ask the database yet.
    // Null if this backend has no wait queue: then a waiter polls.
    [[nodiscard]] virtual std::unique_ptr<WaitTicket> line_up(std::string_view key,
                                                              const LockId& lock_id,
                                                              Deadline patience) = 0;

    // For an id that may hold a lock, will not be used again, and could not be released. The lock
    // is released in the background as soon as possible, unless its lease ends first. Does not
    // wait.
    virtual void abandon(const LockId& lock_id, std::chrono::milliseconds ttl) noexcept = 0;

    [[nodiscard]] virtual const Capabilities& capabilities() const noexcept = 0;
};

// Whether the id holds a lock now. Never a guard before a change: see guard.hpp.
[[nodiscard]] inline bool owns(Backend& backend,
                               const LockId& lock_id,
                               const CallOptions& options = {}) {
    return backend.find_by_id(lock_id, options).has_value();
}

}  // namespace holdfast::lock
