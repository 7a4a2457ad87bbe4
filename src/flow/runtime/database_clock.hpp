// The database clock between two readings: the last reading, plus the time that has passed here.
#pragma once

#include <chrono>
#include <mutex>

#include <holdfast/base/clock.hpp>
#include <holdfast/flow_engine/ids.hpp>

namespace holdfast::flow {

// Safe to share between threads.
class DatabaseClock {
public:
    explicit DatabaseClock(const Clock& clock) : clock_(clock) {}

    void heard(Moment now) {
        const std::lock_guard lock(mutex_);
        said_ = now;
        at_ = clock_.steady_now();
    }
    [[nodiscard]] Moment now() const {
        const std::lock_guard lock(mutex_);
        const auto passed = clock_.steady_now() - at_;
        return said_ + std::chrono::duration_cast<std::chrono::milliseconds>(passed);
    }

private:
    const Clock& clock_;
    mutable std::mutex mutex_;
    Moment said_{};
    Steady at_{};
};

}  // namespace holdfast::flow
