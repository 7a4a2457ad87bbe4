// How often a transaction is retried, and with what backoff.
#pragma once

#include <chrono>

#include <holdfast/base/random.hpp>

namespace holdfast::sql {

// The defaults suit a transaction of a server; locks and queues use shorter bases.
struct RetryPolicy {
    int max_retries = 5;                        // So at most 6 attempts. Below 0 means 0.
    std::chrono::milliseconds base_delay{100};  // Not positive: 100 ms.
    std::chrono::milliseconds max_delay{5000};  // Not positive: 5 s; below the base: the base.
    double jitter_factor = 0.25;                // Kept within [0, 1].

    [[nodiscard]] RetryPolicy normalised() const noexcept;

    // The wait before retry number `retry`, 0 for the first: base doubled `retry` times, at most
    // max_delay, then spread by the jitter factor to both sides. Requires: normalised.
    [[nodiscard]] std::chrono::nanoseconds delay(int retry, Random& random) const noexcept;

    friend bool operator==(const RetryPolicy&, const RetryPolicy&) = default;
};

}  // namespace holdfast::sql
