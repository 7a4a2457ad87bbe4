// The lock of an executor: one thread uses it at a time.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

namespace holdfast::dsql {

// Lockable as a mutex is. Unlike a mutex it may be held for long, and while another Occupancy is
// locked: that must use try_lock_for, so that there is no deadlock.
class Occupancy {
public:
    void lock() {
        std::unique_lock lock(mutex_);
        free_.wait(lock, [this] { return !taken_; });
        taken_ = true;
    }
    [[nodiscard]] bool try_lock_for(std::chrono::milliseconds patience) {
        std::unique_lock lock(mutex_);
        if (!free_.wait_for(lock, patience, [this] { return !taken_; })) {
            return false;
        }
        taken_ = true;
        return true;
    }
    void unlock() {
        const std::lock_guard lock(mutex_);
        taken_ = false;
        free_.notify_one();
    }

private:
    std::mutex mutex_;
    std::condition_variable free_;
    bool taken_ = false;
};

}  // namespace holdfast::dsql
