// How often and how soon an activity is tried again.
//
// All attempts belong to one activity: one scheduled event, one closing event, one idempotency key.
// The policy travels with the activity, and the runtime that ran a failed attempt decides by it.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <holdfast/flow_engine/failure.hpp>

namespace holdfast::flow {

using std::chrono::milliseconds;

enum class Backoff : std::uint8_t { exponential, linear };

inline constexpr std::size_t non_retryable_types_max = 8;

// As workflow code writes it. A child that is tried again is another child, and each delay before
// it a durable timer.
struct RetryPolicy {
    int attempts = 3;         // 1: a failure is final. Attempts whose process died do not count.
    milliseconds first{100};  // Before the second attempt; 0: at once.
    double factor = 2.0;      // Exponential: each delay is the one before times this. 1: all alike.
    milliseconds ceiling{30'000};
    milliseconds per_try{0};     // An attempt may take this long; 0: as long as it needs.
    milliseconds total{0};       // No further attempt begins after this; 0: no bound.
    bool retry_timeouts = true;  // Whether an attempt that took too long is tried again.
    Backoff backoff = Backoff::exponential;
    double jitter = 0.0;  // 0.2: each delay is between 0.8 and 1.2 of itself.
    // Types of failures that are final, besides those that say so themselves: {"CardDeclined"}.
    std::array<std::string_view, non_retryable_types_max> non_retryable{};

    // Before attempt `attempt` + 1, without jitter. Requires: attempt >= 1.
    [[nodiscard]] milliseconds delay_after(int attempt) const noexcept;
};
// A temporary of a type with a destructor inside an awaited expression is destroyed twice by
// g++ 12.
static_assert(std::is_trivially_destructible_v<RetryPolicy>);

// The policy as it is stored, in the history and with the activity that waits for a worker.
struct ActivityRetry {
    int attempts = 3;
    std::int64_t first_ms = 100;
    double factor = 2.0;
    std::int64_t ceiling_ms = 30'000;
    std::optional<std::int64_t> per_try_ms{};
    std::optional<std::int64_t> total_ms{};
    bool timeouts = true;
    bool linear = false;
    std::optional<double> jitter{};
    std::vector<std::string> non_retryable{};

    ActivityRetry() = default;
    explicit ActivityRetry(const RetryPolicy& policy);

    // Whether a failure is followed by another attempt. `failures` counts those so far, this one
    // included.
    [[nodiscard]] bool tries_again(const FailureInfo& failure, int failures) const;
    // The pause before the next attempt, after that many failures. `unit` from 0 to 1 decides
    // where in its jitter it lies.
    [[nodiscard]] milliseconds delay_after(int failures, double unit) const noexcept;

    friend bool operator==(const ActivityRetry&, const ActivityRetry&) = default;
};

// The failure of an operation or an attempt that had no answer within `limit`.
[[nodiscard]] FailureInfo timeout_failure(milliseconds limit);

}  // namespace holdfast::flow
