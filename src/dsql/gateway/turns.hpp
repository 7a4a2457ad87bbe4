// Who may write: many who are not in each other's way, or one alone.
#pragma once

#include <condition_variable>
#include <mutex>

namespace holdfast::dsql {

// Lockable as a shared mutex is. Whoever wants it alone comes before all who ask later, so that a
// crowd cannot keep it out.
class Turns {
public:
    void lock() {
        std::unique_lock lock(mutex_);
        ++waiting_;
        free_.wait(lock, [this] { return !alone_ && together_ == 0; });
        --waiting_;
        alone_ = true;
    }
    void unlock() {
        const std::lock_guard lock(mutex_);
        alone_ = false;
        free_.notify_all();
    }
    void lock_shared() {
        std::unique_lock lock(mutex_);
        free_.wait(lock, [this] { return !alone_ && waiting_ == 0; });
        ++together_;
    }
    void unlock_shared() {
        const std::lock_guard lock(mutex_);
        if (--together_ == 0) {
            free_.notify_all();
        }
    }

private:
    std::mutex mutex_;
    std::condition_variable free_;
    int together_ = 0;
    int waiting_ = 0;  // To be alone.
    bool alone_ = false;
};

}  // namespace holdfast::dsql
