// Extends leases while their holders work, and says in time when that fails.
//
// One keeper serves any number of locks, of any backend, with two threads: one sends the
// extensions, the other only watches the time, so that a database that hangs cannot delay the news
// that a lock is lost. The holder is told a safety margin before the lease ends by the local clock,
// while the lock cannot be taken over yet.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>

#include <holdfast/lock/handle.hpp>

namespace holdfast::lock {

struct AutoExtend {
    std::optional<std::chrono::milliseconds> interval{};  // Empty: a third of the ttl.
    // How long before the end the holder is told to stop. Empty: a tenth of the ttl, or twice what
    // the slowest extensions took lately if that is more.
    std::optional<std::chrono::milliseconds> safety_margin{};
    // No extension after it, so that hanging work does not hold a lock for ever. Empty: no limit.
    std::optional<std::chrono::milliseconds> max_lifetime{};
};

// Throws invalid_argument unless 1 ms <= interval <= ttl / 2, the margin fits between the interval
// and the ttl, and a lifetime is positive.
void check_auto_extend(const AutoExtend& settings, std::chrono::milliseconds ttl);

// Safe to share between threads.
class Keeper {
public:
    static constexpr std::size_t locks_max = 10'000;
    // How late a lease that was shortened by hand, or a suspension of the machine, may be noticed:
    // less than the tolerance for which a lock outlives its lease.
    static constexpr std::chrono::milliseconds nap_max = time_tolerance / 2;

    // Requires: `clock` outlives this object.
    explicit Keeper(const Clock& clock = system_clock());
    // Kept locks are no longer extended, without notice to their holders.
    ~Keeper();
    Keeper(const Keeper&) = delete;
    Keeper& operator=(const Keeper&) = delete;

    // Extends the lock by `ttl` repeatedly until it is released or lost. A handle that is not ok is
    // ignored. The handle's on_lost, and whatever waits for its token, runs on a thread of the
    // keeper and must be quick.
    // Requires: as check_auto_extend; the handle's backend outlives the keeper. Throws rate_limited
    // beyond `locks_max`.
    void keep(const Handle& handle, std::chrono::milliseconds ttl, AutoExtend settings = {});

    // How many locks it extends now.
    [[nodiscard]] std::size_t kept() const;

private:
    class Work;
    std::unique_ptr<Work> work_;
};

}  // namespace holdfast::lock
