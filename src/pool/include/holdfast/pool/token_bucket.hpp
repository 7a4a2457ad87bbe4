// Permits to open connections, out of a local bucket.
//
// The bucket starts full, refills at its rate and never holds more than its burst. Waiters queue:
// first come, first served, and the places behind a waiter that leaves move up. No clock and no
// threads: the caller passes the time, and wakes the waiters that were served.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>

#include <holdfast/base/clock.hpp>
#include <holdfast/pool/machine.hpp>

namespace holdfast::pool {

// Not safe to share between threads. Requires of all calls: `now` never goes back.
class TokenBucket {
public:
    // Requires: 0 < per_second <= 1e6 and burst >= 1. Else invalid_argument: a missing limit must
    // be explicit.
    TokenBucket(double per_second, int burst);

    // Takes a permit if one is there and there is no waiter.
    [[nodiscard]] bool try_take(Steady now);

    // Queues a waiter for a permit. False if the permit cannot come by the deadline: then the
    // waiter is not queued. Requires: it is not queued yet.
    [[nodiscard]] bool enter(Steady now, WaiterId waiter, Steady deadline);
    // No effect if it is not queued any more.
    void leave(WaiterId waiter);
    // The first waiter, if its permit is there; it leaves the queue with it. Call until empty.
    [[nodiscard]] std::optional<WaiterId> serve(Steady now);
    // When serve() has its next answer; Steady::max() without waiters.
    [[nodiscard]] Steady next_wake(Steady now) const;

    // Empties the bucket; it refills from now on.
    void drain(Steady now) noexcept;

    // From now on. Waiters keep their places, and may be served too late.
    void set_rate(Steady now, double per_second);

    [[nodiscard]] double rate() const noexcept { return per_second_; }
    [[nodiscard]] double tokens(Steady now) const noexcept;
    [[nodiscard]] std::size_t waiting() const noexcept { return line_.size(); }

private:
    void refill(Steady now) noexcept;
    [[nodiscard]] Steady when(Steady now, std::size_t place) const noexcept;

    double per_second_;
    const double burst_;
    double tokens_;
    Steady refilled_{};
    std::deque<WaiterId> line_;
};

}  // namespace holdfast::pool
