#include "orphans.hpp"

namespace holdfast::lock {

void Orphans::adopt(const LockId& lock_id, std::chrono::milliseconds ttl) {
    const std::lock_guard lock(mutex_);
    if (orphans_.size() >= orphans_max) {
        return;  // It ends with its lease.
    }
    orphans_.push_back({lock_id, std::chrono::steady_clock::now() + ttl + time_tolerance});
    if (!thread_.joinable()) {
        thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
    }
    changed_.notify_one();
}

void Orphans::run(const std::stop_token& stop) {
    constexpr std::chrono::milliseconds patience{2'000};
    constexpr std::chrono::milliseconds pause{500};
    std::unique_lock lock(mutex_);
    while (changed_.wait(lock, stop, [this] { return !orphans_.empty(); })) {
        const Orphan orphan = orphans_.front();
        orphans_.pop_front();
        lock.unlock();
        bool done = std::chrono::steady_clock::now() >= orphan.until;
        if (!done) {
            try {
                (void)forms_.free({.deadline = Deadline::after(patience), .stop = stop},
                                  orphan.lock_id);
                done = true;
            } catch (const std::exception&) {
                done = false;  // The database is still away.
            }
        }
        lock.lock();
        if (!done) {
            orphans_.push_back(orphan);
            changed_.wait_for(lock, stop, pause, [] { return false; });
        }
    }
}

}  // namespace holdfast::lock
