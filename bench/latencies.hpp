// How long single operations took.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <mutex>
#include <vector>

namespace holdfast::bench {

// True times of single operations. Safe to share between threads.
class Latencies {
public:
    void add(std::chrono::nanoseconds took) {
        const std::lock_guard lock(mutex_);
        took_us_.push_back(static_cast<double>(took.count()) / 1e3);
    }
    [[nodiscard]] double at(double share) {
        const std::lock_guard lock(mutex_);
        if (took_us_.empty()) {
            return 0;
        }
        const auto index = static_cast<std::size_t>(share * static_cast<double>(took_us_.size()));
        const auto nth =
            took_us_.begin() + static_cast<std::ptrdiff_t>(std::min(index, took_us_.size() - 1));
        std::nth_element(took_us_.begin(), nth, took_us_.end());
        return *nth;
    }

private:
    std::mutex mutex_;
    std::vector<double> took_us_;
};

}  // namespace holdfast::bench
