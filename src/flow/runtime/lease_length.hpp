// How long leases are.
//
// A lease that runs out while its holder lives was too short for what the machine has to do: others
// take over what is nearly done, begin it again, and lose it in the same way, until nobody gets
// anything done and the attempts run out. So whoever comes late to its leases takes longer ones,
// twice as long each time, and goes back to what was asked for when it has long been in time.
#pragma once

#include <chrono>
#include <mutex>

#include <holdfast/base/clock.hpp>

namespace holdfast::flow {

// Safe to share between threads.
class LeaseLength {
public:
    // A dead process keeps others waiting for a lease, so there is an end to it.
    static constexpr int stretch_max = 16;
    static constexpr std::chrono::seconds relax_after{60};

    explicit LeaseLength(std::chrono::milliseconds asked) noexcept : asked_(asked) {}

    [[nodiscard]] std::chrono::milliseconds get() const noexcept {
        const std::lock_guard lock(mutex_);
        return asked_ * stretch_;
    }

    // A lease was looked after, `age` after it began or was renewed: in time, if a third of it was
    // left.
    void looked_after(std::chrono::nanoseconds age, Steady now) noexcept {
        const std::lock_guard lock(mutex_);
        const auto in_time = [&](int stretch) { return age <= asked_ * stretch * 2 / 3; };
        if (!in_time(stretch_)) {
            stretch_ = stretch_ < stretch_max ? stretch_ * 2 : stretch_;
            changed_ = now;
        } else if (!in_time(stretch_ / 2)) {
            changed_ = now;  // Half as long would have been too short.
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
