#include <holdfast/flow_engine/retry.hpp>

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

namespace holdfast::flow {
namespace {

milliseconds grown(
    std::int64_t first_ms, double factor, std::int64_t ceiling_ms, bool linear, int attempt) {
    const auto base = static_cast<double>(first_ms);
    const double wanted = linear ? base * attempt : base * std::pow(factor, attempt - 1);
    // A power that overflows is infinite, and the ceiling holds for it too; a century is enough.
    constexpr auto longest = static_cast<double>(milliseconds{std::chrono::years{100}}.count());
    const double bounded = std::min({wanted, static_cast<double>(ceiling_ms), longest});
    return milliseconds{static_cast<std::int64_t>(std::max(bounded, 0.0))};
}

std::optional<std::int64_t> unless_zero(milliseconds time) {
    return time.count() != 0 ? std::optional(std::int64_t{time.count()}) : std::nullopt;
}

}  // namespace

milliseconds RetryPolicy::delay_after(int attempt) const noexcept {
    return grown(first.count(), factor, ceiling.count(), backoff == Backoff::linear, attempt);
}

ActivityRetry::ActivityRetry(const RetryPolicy& policy)
    : attempts(policy.attempts),
      first_ms(policy.first.count()),
      factor(policy.factor),
      ceiling_ms(policy.ceiling.count()),
      per_try_ms(unless_zero(policy.per_try)),
      total_ms(unless_zero(policy.total)),
      timeouts(policy.retry_timeouts),
      linear(policy.backoff == Backoff::linear) {
    if (policy.jitter > 0.0) {
        jitter = policy.jitter;
    }
    for (const std::string_view type : policy.non_retryable) {
        if (!type.empty()) {
            non_retryable.emplace_back(type);
        }
    }
}

bool ActivityRetry::tries_again(const FailureInfo& failure, int failures) const {
    if (failures >= attempts || !failure.retryable || !reaches_code(failure.kind)) {
        return false;
    }
    if (failure.kind == FailureKind::timeout && !timeouts) {
        return false;
    }
    return std::ranges::find(non_retryable, failure.type) == non_retryable.end();
}

milliseconds ActivityRetry::delay_after(int failures, double unit) const noexcept {
    const milliseconds delay = grown(first_ms, factor, ceiling_ms, linear, failures);
    if (!jitter || delay.count() == 0) {
        return delay;
    }
    const double spread = 1.0 - *jitter + 2.0 * *jitter * std::clamp(unit, 0.0, 1.0);
    return milliseconds{std::llround(static_cast<double>(delay.count()) * spread)};
}

FailureInfo timeout_failure(milliseconds limit) {
    return FailureInfo{.kind = FailureKind::timeout,
                       .type = "TimedOut",
                       .message = fmt::format("no answer within {} ms", limit.count())};
}

}  // namespace holdfast::flow
