// Permits to open connections, out of a bucket of our own.
//
// The bucket starts full, refills at its rate and never holds more than its burst. Who has to wait
// stands in line: first come, first served, and who leaves gives its place to those behind. No
// clock and no threads: the caller says what time it is, and wakes who was served.
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
    // Requires: 0 < per_second <= 1e6 and burst >= 1. Else invalid_argument: a limit that is none
    // must be somebody's wish, not a slip.
    TokenBucket(double per_second, int burst);

    // Takes a permit if one is there and nobody waits for it.
    [[nodiscard]] bool try_take(Steady now);

    // Stands in line for a permit. False, and at once, if it cannot come by the deadline: then the
    // waiter is not in line. Requires: it is not in line yet.
    [[nodiscard]] bool enter(Steady now, WaiterId waiter, Steady deadline);
    // Without effect if it is not in line any more.
    void leave(WaiterId waiter);
    // The first in line, if its permit is there; it leaves the line with it. Ask until empty.
    [[nodiscard]] std::optional<WaiterId> serve(Steady now);
    // When serve() has something to say next; Steady::max() if nobody waits.
    [[nodiscard]] Steady next_wake(Steady now) const;

    // What is in it is gone; it refills from now on.
    void drain(Steady now) noexcept;

    // From now on. Those in line keep their places, and may come too late.
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
