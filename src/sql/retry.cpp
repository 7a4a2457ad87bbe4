#include <holdfast/sql/retry.hpp>

#include <algorithm>
#include <cmath>

namespace holdfast::sql {

RetryPolicy RetryPolicy::normalised() const noexcept {
    using std::chrono::milliseconds;
    RetryPolicy policy = *this;
    policy.max_retries = std::max(policy.max_retries, 0);
    if (policy.base_delay <= milliseconds{0}) {
        policy.base_delay = milliseconds{100};
    }
    if (policy.max_delay <= milliseconds{0}) {
        policy.max_delay = milliseconds{5000};
    }
    policy.max_delay = std::max(policy.max_delay, policy.base_delay);
    policy.jitter_factor =
        std::isnan(policy.jitter_factor) ? 0.25 : std::clamp(policy.jitter_factor, 0.0, 1.0);
    return policy;
}

std::chrono::nanoseconds RetryPolicy::delay(int retry, Random& random) const noexcept {
    std::chrono::nanoseconds wait = base_delay;
    // Doubling step by step and stopping at the cap cannot overflow, however large `retry` is.
    for (int i = 0; i < retry && wait < max_delay; ++i) {
        wait *= 2;
    }
    wait = std::min<std::chrono::nanoseconds>(wait, max_delay);
    const double spread = 1.0 + jitter_factor * (2.0 * random.unit() - 1.0);
    const double nanoseconds = static_cast<double>(wait.count()) * spread;
    return std::chrono::nanoseconds{static_cast<std::int64_t>(std::max(nanoseconds, 0.0))};
}

}  // namespace holdfast::sql
