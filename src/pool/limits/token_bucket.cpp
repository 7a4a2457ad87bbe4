#include <holdfast/pool/token_bucket.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>

#include <fmt/core.h>

#include <holdfast/base/assert.hpp>
#include <holdfast/base/error.hpp>

namespace holdfast::pool {
namespace {

using std::chrono::nanoseconds;

constexpr double rate_max = 1e6;
// What rounding may have taken from a whole token.
constexpr double whole = 1.0 - 1e-9;

void check_rate(double per_second) {
    if (!(per_second > 0 && per_second <= rate_max)) {
        throw InvalidArgument(fmt::format(
            "a rate of {} connections a second is not a limit; give more than 0", per_second));
    }
}

}  // namespace

TokenBucket::TokenBucket(double per_second, int burst)
    : per_second_(per_second), burst_(burst), tokens_(burst) {
    check_rate(per_second);
    if (burst < 1) {
        throw InvalidArgument(
            fmt::format("a burst of {} connections is not valid; give 1 or more", burst));
    }
}

bool TokenBucket::try_take(Steady now) {
    refill(now);
    if (!line_.empty() || tokens_ < whole) {
        return false;
    }
    tokens_ -= 1;
    return true;
}

bool TokenBucket::enter(Steady now, WaiterId waiter, Steady deadline) {
    refill(now);
    HOLDFAST_ASSERT(std::find(line_.begin(), line_.end(), waiter) == line_.end());
    if (when(now, line_.size()) > deadline) {
        return false;
    }
    line_.push_back(waiter);
    return true;
}

void TokenBucket::leave(WaiterId waiter) {
    std::erase(line_, waiter);
}

std::optional<WaiterId> TokenBucket::serve(Steady now) {
    refill(now);
    if (line_.empty() || tokens_ < whole) {
        return std::nullopt;
    }
    tokens_ -= 1;
    const WaiterId first = line_.front();
    line_.pop_front();
    return first;
}

Steady TokenBucket::next_wake(Steady now) const {
    return line_.empty() ? Steady::max() : when(now, 0);
}

void TokenBucket::drain(Steady now) noexcept {
    refill(now);
    tokens_ = 0;
}

void TokenBucket::set_rate(Steady now, double per_second) {
    check_rate(per_second);
    refill(now);
    per_second_ = per_second;
}

double TokenBucket::tokens(Steady now) const noexcept {
    const double passed = std::chrono::duration<double>(now - refilled_).count();
    return std::min(burst_, tokens_ + std::max(passed, 0.0) * per_second_);
}

void TokenBucket::refill(Steady now) noexcept {
    tokens_ = tokens(now);
    refilled_ = std::max(refilled_, now);
}

// When the permit for this place in the queue is there.
Steady TokenBucket::when(Steady now, std::size_t place) const noexcept {
    const double missing = static_cast<double>(place) + whole - tokens(now);
    if (missing <= 0) {
        return now;
    }
    const double wait = std::ceil(missing / per_second_ * 1e9);
    constexpr double longest = 1e18;  // In nanoseconds: some thirty years.
    return now + nanoseconds{static_cast<std::int64_t>(std::min(wait, longest))};
}

}  // namespace holdfast::pool
