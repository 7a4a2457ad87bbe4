#include <holdfast/base/manual_clock.hpp>

#include <algorithm>
#include <iterator>
#include <utility>

#include <holdfast/base/assert.hpp>

namespace holdfast {

Steady ManualClock::steady_now() const {
    const std::lock_guard lock(mutex_);
    return steady_;
}

Wall ManualClock::wall_now() const {
    const std::lock_guard lock(mutex_);
    return wall_ + std::chrono::floor<std::chrono::microseconds>(since_wall_set_);
}

std::string ManualClock::boot_id() const {
    const std::lock_guard lock(mutex_);
    return boot_id_;
}

std::chrono::microseconds ManualClock::boot_now() const {
    const std::lock_guard lock(mutex_);
    return std::chrono::floor<std::chrono::microseconds>(steady_ - booted_);
}

void ManualClock::restart(std::string boot_id) {
    const std::lock_guard lock(mutex_);
    boot_id_ = std::move(boot_id);
    booted_ = steady_;
}

bool ManualClock::sleep_until(Steady until, const std::stop_token& stop) const {
    std::unique_lock lock(mutex_);
    const auto self = sleepers_.insert(until);
    changed_.notify_all();
    changed_.wait(lock, stop, [&] { return steady_ >= until; });
    sleepers_.erase(self);
    return !stop.stop_requested();
}

void ManualClock::advance(std::chrono::nanoseconds by) {
    HOLDFAST_ASSERT(by.count() >= 0);
    const std::lock_guard lock(mutex_);
    steady_ += by;
    since_wall_set_ += by;
    changed_.notify_all();
}

void ManualClock::set_wall(Wall wall) {
    const std::lock_guard lock(mutex_);
    wall_ = wall;
    since_wall_set_ = std::chrono::nanoseconds{0};
}

bool ManualClock::wait_for_sleepers(std::size_t count, Deadline deadline) const {
    std::unique_lock lock(mutex_);
    return changed_.wait_until(lock, deadline.when(), [&] {
        // One that is due has only not been scheduled yet: it does not sleep any more.
        const auto not_due = sleepers_.upper_bound(steady_);
        return static_cast<std::size_t>(std::distance(not_due, sleepers_.end())) >= count;
    });
}

}  // namespace holdfast
