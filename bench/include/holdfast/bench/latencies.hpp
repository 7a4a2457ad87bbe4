// How long single operations took.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <mutex>
#include <string>
#include <vector>

#include <holdfast/bench/driver.hpp>

namespace holdfast::bench {

// True times of single operations. Safe to share between threads.
class Latencies {
public:
    void add(std::chrono::nanoseconds took) {
        const std::lock_guard lock(mutex_);
        took_us_.push_back(static_cast<double>(took.count()) / 1e3);
    }
    void add_to(std::vector<Count>& figures, const std::string& prefix = "") {
        const std::lock_guard lock(mutex_);
        std::ranges::sort(took_us_);
        figures.push_back({prefix + "p50_us", at(0.5)});
        figures.push_back({prefix + "p99_us", at(0.99)});
    }
    [[nodiscard]] double at(double share) const {
        if (took_us_.empty()) {
            return 0;
        }
        const auto index = static_cast<std::size_t>(share * static_cast<double>(took_us_.size()));
        return took_us_[std::min(index, took_us_.size() - 1)];
    }

private:
    std::mutex mutex_;
    std::vector<double> took_us_;  // In order once they were asked for.
};

}  // namespace holdfast::bench
