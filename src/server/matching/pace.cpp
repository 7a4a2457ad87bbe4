#include "matching/pace.hpp"

#include <algorithm>

namespace holdfast::server::matching {

void Pace::limit(std::optional<double> per_second, Steady now) {
    stopped_ = per_second && *per_second <= 0;
    interval_ = std::chrono::nanoseconds{0};
    if (per_second && !stopped_) {
        const double interval = 1e9 / *per_second;
        const auto longest = static_cast<double>(interval_max.count());
        interval_ =
            std::chrono::nanoseconds{static_cast<std::int64_t>(std::min(interval, longest))};
    }
    if (!stopped_) {
        ready_ = std::min(ready_, now + interval_);
    }
}

std::optional<Steady> Pace::opens() const noexcept {
    return stopped_ ? std::nullopt : std::optional(ready_);
}

bool Pace::take(Steady now) noexcept {
    if (interval_.count() == 0) {
        return false;
    }
    ready_ = std::max(now, ready_ + burst) - burst + interval_;
    return true;
}

void Pace::give_back() noexcept {
    ready_ -= interval_;
}

void RecentRate::add(Steady now) noexcept {
    const std::int64_t current = slot_of(now);
    if (current - newest_ >= slots) {
        counts_.fill(0);
        newest_ = current;
    }
    while (newest_ < current) {
        counts_[static_cast<std::size_t>(++newest_ % slots)] = 0;
    }
    ++counts_[static_cast<std::size_t>(current % slots)];
}

double RecentRate::per_second(Steady now) const noexcept {
    const std::int64_t oldest = slot_of(now) - slots + 1;
    std::uint64_t sum = 0;
    for (std::int64_t each = std::max(oldest, newest_ - slots + 1); each <= newest_; ++each) {
        sum += each < 0 ? 0 : counts_[static_cast<std::size_t>(each % slots)];
    }
    const Steady begin = std::max(since_, Steady{} + oldest * slot);
    const auto span = std::max<std::chrono::nanoseconds>(now - begin, std::chrono::seconds{1});
    return static_cast<double>(sum) / std::chrono::duration<double>(span).count();
}

}  // namespace holdfast::server::matching
