// Telemetry of locks: an event for every call of a backend.
//
// Events carry hashes, so that they may go where the keys and the ids, which are secrets, may not.
// Whatever is built on the wrapper is observed too: handles, keepers, with_lock.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include <holdfast/lock/backend.hpp>
#include <holdfast/lock/error.hpp>

namespace holdfast::lock {

enum class EventType : std::uint8_t { acquire, release, extend, is_locked, find };

enum class EventResult : std::uint8_t {
    ok,    // Granted, released, extended, locked, found.
    fail,  // The opposite; still an answer.
    error  // A LockError was thrown.
};

[[nodiscard]] std::string_view to_string(EventType type) noexcept;
[[nodiscard]] std::string_view to_string(EventResult result) noexcept;

struct Event {
    EventType type{};
    EventResult result{};
    std::string_view reason{};   // "locked", "expired", "not-found"; empty: none, or not known.
    std::string key_hash{};      // Of a call by key.
    std::string lock_id_hash{};  // Of a call by id, and of a grant.
    std::optional<Fence> fence{};
    std::optional<LockCode> code{};  // Of an error.
    int attempt = 1;                 // The number of the attempt within one wait.
    std::chrono::nanoseconds duration{};
    // Raw, if asked for.
    std::optional<std::string> key{};
    std::optional<std::string> lock_id{};
};

// Asked with an event that has no raw identifiers yet; if it throws, there will be none.
using RawPredicate = std::function<bool(const Event&)>;

struct ObservedOptions {
    // Called after each call, on its thread, so it must be quick. What it throws is dropped.
    std::function<void(const Event&)> on_event{};
    std::variant<bool, RawPredicate> include_raw = false;
    std::string hash_secret{};     // As in LocksOptions; the same gives the same hashes.
    const Clock* clock = nullptr;  // Null: the machine's.
};

class Observed final : public Backend {
public:
    // Requires: `backend` outlives this object.
    Observed(Backend& backend, ObservedOptions options);

    [[nodiscard]] Acquired acquire(std::string_view key,
                                   std::chrono::milliseconds ttl,
                                   const AcquireOptions& options = {}) override;
    Released release(const LockId& lock_id, const CallOptions& options = {}) override;
    Extended extend(const LockId& lock_id,
                    std::chrono::milliseconds ttl,
                    const CallOptions& options = {},
                    ExtendMode mode = ExtendMode::replace) override;
    [[nodiscard]] bool is_locked(std::string_view key, const CallOptions& options = {}) override;
    [[nodiscard]] std::optional<LockInfo> find(std::string_view key,
                                               const CallOptions& options = {}) override;
    [[nodiscard]] std::optional<LockInfo> find_by_id(const LockId& lock_id,
                                                     const CallOptions& options = {}) override;
    [[nodiscard]] std::optional<RawLockInfo> find_raw(std::string_view key,
                                                      const CallOptions& options = {}) override;
    [[nodiscard]] std::optional<RawLockInfo> find_raw_by_id(
        const LockId& lock_id, const CallOptions& options = {}) override;
    // Waiting in the queue is not a call of its own: its attempts are.
    [[nodiscard]] std::unique_ptr<WaitTicket> line_up(std::string_view key,
                                                      const LockId& lock_id,
                                                      Deadline patience) override;
    void abandon(const LockId& lock_id, std::chrono::milliseconds ttl) noexcept override;
    [[nodiscard]] const Capabilities& capabilities() const noexcept override;

private:
    struct Subject;
    template <class Call, class Tell>
    auto observe(Event event, const Subject& subject, Call call, Tell tell);
    void emit(Event event, const Subject& subject) const noexcept;
    [[nodiscard]] bool wants_raw(const Event& event) const noexcept;

    Backend& backend_;
    const ObservedOptions options_;
    const Clock& clock_;
};

}  // namespace holdfast::lock
