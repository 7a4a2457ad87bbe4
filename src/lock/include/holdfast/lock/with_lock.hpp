// Waits for a lock, runs a function under it, releases the lock.
//
//     with_lock(locks, {.key = "invoice/7"}, [&](Handle& lock) { pay(lock.fence()); });
//
// While the function runs, the lease is extended. If the lock is lost, the handle's token fires and
// the function should end; its late writes are refused where fences are checked.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <holdfast/lock/handle.hpp>
#include <holdfast/lock/keeper.hpp>

namespace holdfast::lock {

enum class Backoff : std::uint8_t { exponential, fixed };
// How much of the delay between two attempts is random.
enum class Jitter : std::uint8_t { equal, full, none };

// How to wait for a busy lock. A backend with a wait queue does not poll: there only the timeout
// ends the wait.
struct Acquisition {
    int max_retries = 10;  // After the first attempt; for a backend without a wait queue.
    std::chrono::milliseconds retry_delay{100};
    std::chrono::milliseconds max_delay{1'000};
    Backoff backoff = Backoff::exponential;
    Jitter jitter = Jitter::equal;
    // Also for the attempt under way. There is a last attempt when it has passed, and that one may
    // take a quarter of it more, half a second at most. Zero: one attempt, which does not wait.
    std::chrono::milliseconds timeout{5'000};
    std::stop_token stop{};  // Ends the wait; has no effect after it.

    std::string meta{};              // Shown with the lock.
    const Clock* clock = nullptr;    // Null: the machine's.
    std::function<double()> unit{};  // Uniform in [0, 1). Empty: this thread's generator.
};

// Waits until the lock is acquired. Busy only if the timeout is zero.
// All attempts use one lock id, so the next attempt finds a lock whose answer was lost. Throws
// LockError: acquisition_timeout if the lock stayed busy, or the backend unreachable, for the
// allowed time; aborted if one of the tokens fired; failures that waiting cannot cure are passed
// on. Then nothing is held, provided that the backend can still be reached.
// Requires: as Backend::acquire; no option is negative.
[[nodiscard]] Acquired acquire_waiting(Backend& backend,
                                       std::string_view key,
                                       std::chrono::milliseconds ttl,
                                       const Acquisition& acquisition = {},
                                       const std::stop_token& stop = {});

struct WithLock {
    std::string key;
    std::chrono::milliseconds ttl = default_ttl;
    std::stop_token stop{};  // Ends the wait. The release at the end ignores it.
    Acquisition acquisition{};
    // Empty: the lease is not extended, and must be longer than the work.
    std::optional<AutoExtend> auto_extend = AutoExtend{};
    Keeper* keeper = nullptr;  // Null: one of its own, with its threads, for this call.
    // Called as in HandleOptions, and also if only the release finds the lock gone.
    std::function<void(LostReason)> on_lost{};
    // Throw LockError if the lock was lost while the function ran, and it did not throw itself.
    bool throw_if_lost = false;
    std::function<void(const ReleaseFailure&)> on_release_error{};
    std::optional<std::chrono::milliseconds> dispose_timeout{};
    Logger* logger = nullptr;
};

// The lock of with_lock, for a scope instead of a function.
class LockScope {
public:
    // Waits for the lock as acquire_waiting does; a lock that is busy is always thrown.
    // Requires: `backend` and the keeper outlive this object.
    LockScope(Backend& backend, const WithLock& options);
    // As finish, but never throws.
    ~LockScope();
    LockScope(const LockScope&) = delete;
    LockScope& operator=(const LockScope&) = delete;

    [[nodiscard]] Handle& handle() noexcept { return handle_; }

    // Releases. Throws LockError if the lock was lost and `throw_if_lost` is set.
    void finish();

private:
    // True if the lock was lost.
    bool end() noexcept;

    bool throw_if_lost_;
    std::unique_ptr<Keeper> own_keeper_;
    Handle handle_;
    bool ended_ = false;
};

// The function's answer or exception is passed on, whatever the outcome of the release.
template <class Function>
std::invoke_result_t<Function, Handle&> with_lock(Backend& backend,
                                                  const WithLock& options,
                                                  Function&& function) {
    LockScope scope(backend, options);
    if constexpr (std::is_void_v<std::invoke_result_t<Function, Handle&>>) {
        std::invoke(std::forward<Function>(function), scope.handle());
        scope.finish();
    } else {
        std::invoke_result_t<Function, Handle&> answer =
            std::invoke(std::forward<Function>(function), scope.handle());
        scope.finish();
        return answer;
    }
}

}  // namespace holdfast::lock
