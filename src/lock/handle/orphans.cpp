#include "handle/orphans.hpp"

namespace holdfast::lock {

void Orphans::adopt(const LockId& lock_id, std::chrono::milliseconds ttl) {
    adopt([this, lock_id](const sql::TxOptions& tx) { (void)lock_sql_.free(tx, lock_id); }, ttl);
}

void Orphans::adopt(Free free, std::chrono::milliseconds ttl) {
    const std::lock_guard lock(mutex_);
    if (orphans_.size() >= orphans_max) {
        return;  // It ends with its lease.
    }
    orphans_.push_back({std::move(free), clock_.steady_now() + ttl + time_tolerance});
    if (!thread_.joinable()) {
        thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
    }
    changed_.notify_one();
}

void Orphans::run(const std::stop_token& stop) {
    constexpr std::chrono::milliseconds patience{2'000};
    constexpr std::chrono::milliseconds patience_at_end{1'000};
    constexpr std::chrono::milliseconds pause{500};
    std::unique_lock lock(mutex_);
    while (changed_.wait(lock, stop, [this] { return !orphans_.empty(); }) &&
           !stop.stop_requested()) {
        if (!free_first(lock, {.deadline = Deadline::after(patience), .stop = stop})) {
            changed_.wait_for(lock, stop, pause, [] { return false; });
        }
    }
    // The destructor does not wait for an unreachable database: the leases end by themselves.
    const Deadline end = Deadline::after(patience_at_end);
    for (std::size_t left = orphans_.size(); left > 0 && !end.passed(); --left) {
        (void)free_first(lock, {.deadline = end});
    }
}

// False if it has to be tried again.
bool Orphans::free_first(std::unique_lock<std::mutex>& lock, const sql::TxOptions& options) {
    const Orphan orphan = orphans_.front();
    orphans_.pop_front();
    lock.unlock();
    bool done = clock_.steady_now() >= orphan.until;
    if (!done) {
        try {
            orphan.free(options);
            done = true;
        } catch (const std::exception&) {
            done = false;  // The database is still unreachable.
        }
    }
    lock.lock();
    if (!done) {
        orphans_.push_back(orphan);
    }
    return done;
}

}  // namespace holdfast::lock
