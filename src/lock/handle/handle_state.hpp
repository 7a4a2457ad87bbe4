// What a handle and its keeper share: one lock, and the calls under way on it.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

#include <holdfast/lock/handle.hpp>

namespace holdfast::lock {

// One attempt, whose `safe_until` is right even if the machine was suspended during it.
[[nodiscard]] Acquired acquire_once(Backend& backend,
                                    std::string_view key,
                                    std::chrono::milliseconds ttl,
                                    const AcquireOptions& options);

// Safe to share between threads. No callback and no call of the backend runs under its mutex.
class Handle::State : public std::enable_shared_from_this<Handle::State> {
public:
    State(Backend& backend, std::string key, Grant grant, HandleOptions options);

    [[nodiscard]] Grant grant() const;
    [[nodiscard]] Steady safe_until() const;
    [[nodiscard]] const Clock& clock() const noexcept { return clock_; }
    [[nodiscard]] std::stop_token lost() const { return lost_.get_token(); }
    [[nodiscard]] std::optional<LostReason> lost_reason() const;
    [[nodiscard]] std::optional<Released> released() const;

    Released release(const CallOptions& options);
    Extended extend(std::chrono::milliseconds ttl, const CallOptions& options);
    void dispose() noexcept;

    enum class Beat : std::uint8_t {
        extended,
        again,    // A transient failure, or another release or extension is under way.
        refused,  // The lock is lost.
        failed,   // A retry would not help.
    };
    // The keeper's extension. Sends nothing once a release has begun.
    Beat heartbeat(std::chrono::milliseconds ttl, const CallOptions& options) noexcept;
    // Whether there is nothing left to keep: the lock was released or lost.
    [[nodiscard]] bool over() const;
    // The first call fires the token and on_lost; the others do nothing.
    void lose(LostReason reason) noexcept;
    // The same, unless a release has begun.
    void lose_if_held(LostReason reason) noexcept;

private:
    enum class Phase : std::uint8_t { active, releasing, disposed };
    struct Disposal;

    [[nodiscard]] LockError::Context context() const;
    bool begin_disposal();
    void begin_release();  // Requires: the mutex is held and the phase is active.
    void end_release(Phase next, std::optional<Released> answer = std::nullopt) noexcept;
    // Empty if the backend answered.
    std::optional<LockError> release_for_disposal(const CallOptions& options) noexcept;
    bool dispose_within(std::chrono::milliseconds timeout);
    void report(const LockError& error) noexcept;
    void end_extension(const Extended& answer,
                       ExtendMode mode,
                       std::chrono::nanoseconds suspended_before);
    void end_extension() noexcept;
    void tell_lost(LostReason reason) noexcept;

    Backend& backend_;
    const std::string key_;
    const HandleOptions options_;
    const Clock& clock_;
    std::stop_source lost_;

    mutable std::mutex mutex_;
    std::condition_variable_any changed_;
    Grant grant_;  // Its id never changes, so it is read without the mutex.
    std::chrono::nanoseconds suspended_at_;  // When safe_until was set.
    Phase phase_ = Phase::active;
    bool extending_ = false;  // One at a time, so that the last answer is the last lease.
    std::thread::id releaser_;
    std::stop_source release_ended_;
    std::optional<Released> released_;
    std::optional<LostReason> lost_reason_;
};

}  // namespace holdfast::lock
