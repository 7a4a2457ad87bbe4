// The database's clock between the moments it was read: what it said last, plus what has passed
// here.
#pragma once

#include <chrono>
#include <mutex>

#include <holdfast/base/clock.hpp>
#include <holdfast/flow_engine/ids.hpp>

namespace holdfast::flow {

// Safe to share between threads.
class DatabaseClock {
public:
    void heard(Moment now) {
        const std::lock_guard lock(mutex_);
        said_ = now;
        at_ = std::chrono::steady_clock::now();
    }
    [[nodiscard]] Moment now() const {
        const std::lock_guard lock(mutex_);
        const auto passed = std::chrono::steady_clock::now() - at_;
        return said_ + std::chrono::duration_cast<std::chrono::milliseconds>(passed);
    }

private:
    mutable std::mutex mutex_;
    Moment said_{};
    Steady at_{};
};

}  // namespace holdfast::flow
