// At most n holders at a time.
//
// A permit is a lease on one of n places, with a fence that grows over all of them. All callers
// must agree on n: an acquisition with another number than the current holders' is refused.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <variant>

#include <holdfast/lock/backend.hpp>

namespace holdfast::sql {
struct TxOptions;
}

namespace holdfast::lock {

class Locks;

struct Permit {
    LockId permit_id;
    int slot = 0;  // 0 to n-1; unique among the current holders.
    Fence fence{};
    ServerTime expires_at{};
    Steady safe_until{};
};

// Safe to share between threads. Uses the tables and the clock of `locks`.
class Semaphore {
public:
    static constexpr int permits_max = 1'024;

    // Requires: `locks` outlives it; `key` as for a lock, whose keys are separate; 1 <= permits <=
    // permits_max. Else invalid_argument.
    Semaphore(Locks& locks, std::string_view key, int permits);

    // One attempt. Busy if all places are taken, with the time until the first lease ends. If the
    // answer is lost, the call is repeated once with the same id. If the outcome stays unknown, a
    // permit that may have been taken is released in the background.
    [[nodiscard]] std::variant<Permit, Busy> acquire(std::chrono::milliseconds ttl,
                                                     const CallOptions& options = {});
    // False if the permit is lost; then it stays lost.
    bool extend(Permit& permit, std::chrono::milliseconds ttl, const CallOptions& options = {});
    // True if this call released the permit. False also if the first answer was lost, the call was
    // repeated, and the first try had released it.
    bool release(const Permit& permit, const CallOptions& options = {});

private:
    void take(Permit& permit, std::chrono::milliseconds ttl, const sql::TxOptions& options);

    Locks& locks_;
    std::string key_;
    std::string fence_key_;
    int permits_;
};

}  // namespace holdfast::lock
