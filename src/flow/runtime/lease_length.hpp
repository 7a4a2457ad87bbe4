// How long leases are.
//
// A lease that runs out while its holder lives was too short for the load of the machine: other
// processes take over nearly finished work, begin it again, and lose it in the same way, until no
// work completes and the attempts run out. So a process that renews its leases late takes longer
// ones, twice as long each time, and returns to the configured length after it has long been in
// time.
#pragma once

#include <chrono>
#include <mutex>

#include <holdfast/base/clock.hpp>

namespace holdfast::flow {

// Safe to share between threads.
class LeaseLength {
public:
    // Bounded, because the work of a dead process waits for the end of its lease.
    static constexpr int stretch_max = 16;
    static constexpr std::chrono::seconds relax_after{60};

    explicit LeaseLength(std::chrono::milliseconds asked) noexcept : asked_(asked) {}

    [[nodiscard]] std::chrono::milliseconds get() const noexcept {
        const std::lock_guard lock(mutex_);
        return asked_ * stretch_;
    }

    // A lease was renewed, `age` after it began or was last renewed: in time, if a third of it was
    // left.
    void looked_after(std::chrono::nanoseconds age, Steady now) noexcept {
        const std::lock_guard lock(mutex_);
        const auto in_time = [&](int stretch) { return age <= asked_ * stretch * 2 / 3; };
        if (!in_time(stretch_)) {
            stretch_ = stretch_ < stretch_max ? stretch_ * 2 : stretch_;
            changed_ = now;
        } else if (!in_time(stretch_ / 2)) {
            changed_ = now;  // Half the length would have been too short.
        } else if (stretch_ > 1 && now - changed_ >= relax_after) {
            stretch_ /= 2;
            changed_ = now;
        }
    }

private:
    const std::chrono::milliseconds asked_;
    mutable std::mutex mutex_;
    int stretch_ = 1;
    Steady changed_{};
};

}  // namespace holdfast::flow
