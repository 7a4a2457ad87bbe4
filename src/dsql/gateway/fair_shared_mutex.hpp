// The lock for writing: shared by many that do not block each other, or exclusive.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>

namespace holdfast::dsql {

// Lockable as a shared mutex is. Granted in the order of the requests: many requests of one kind
// cannot keep out one of the other.
class FairSharedMutex {
public:
    void lock() { enter(true); }
    void unlock() {
        const std::lock_guard lock(mutex_);
        alone_ = false;
        admit();
    }
    void lock_shared() { enter(false); }
    void unlock_shared() {
        const std::lock_guard lock(mutex_);
        --together_;
        admit();
    }

private:
    struct Waiter {
        bool alone;
        bool admitted = false;
        std::condition_variable called{};
    };

    void enter(bool alone) {
        std::unique_lock lock(mutex_);
        Waiter self{.alone = alone};
        line_.push_back(&self);
        admit();
        self.called.wait(lock, [&self] { return self.admitted; });
    }

    // Requires: the mutex.
    void admit() {
        while (!line_.empty() && !alone_ && (together_ == 0 || !line_.front()->alone)) {
            Waiter& first = *line_.front();
            line_.pop_front();
            alone_ = first.alone;
            together_ += first.alone ? 0 : 1;
            first.admitted = true;
            first.called.notify_one();
        }
    }

    std::mutex mutex_;
    std::deque<Waiter*> line_;
    int together_ = 0;
    bool alone_ = false;
};

}  // namespace holdfast::dsql
