// What an opener does when the fleet's limiter is unreachable, or was wrong.
#pragma once

#include <holdfast/base/clock.hpp>
#include <holdfast/pool/fleet_limits.hpp>

namespace holdfast::pool {

// Whether to ask a store that does not answer. After some failures in a row it is not asked, except
// for a probe now and then; the first answer ends that. Not safe to share between threads.
class Breaker {
public:
    explicit Breaker(const FleetLimits& limits) : limits_(limits) {}

    // Whether to ask now. While open it says yes to one caller per interval: the probe.
    [[nodiscard]] bool may_ask(Steady now);

    // Each true when it changed whether the breaker is open.
    bool answered();  // A refused condition is an answer, and so is throttling (is_heard).
    bool failed(Steady now);

    [[nodiscard]] bool open() const noexcept { return failures_ >= limits_.breaker_failures; }
    [[nodiscard]] int failures() const noexcept { return failures_; }

private:
    const FleetLimits limits_;
    int failures_ = 0;  // In a row.
    Steady probe_at_{};
};

// How much of its rate a process may use after the server has refused its rate of connections.
class SlowDown {
public:
    explicit SlowDown(const FleetLimits& limits) : limits_(limits) {}

    void refused(Steady now);               // 53400.
    [[nodiscard]] double part(Steady now);  // 1: all of it.

private:
    const FleetLimits limits_;
    double part_ = 1;
    Steady refused_{};
    Steady since_{};  // The latest change.
};

}  // namespace holdfast::pool
