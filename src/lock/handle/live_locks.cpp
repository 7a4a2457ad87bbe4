#include "handle/live_locks.hpp"

#include <algorithm>

namespace holdfast::lock {

LiveLocks::LiveLocks(Metrics* metrics, std::string_view db, const Clock& clock)
    : counts_(metrics != nullptr), clock_(clock) {
    if (metrics == nullptr) {
        return;
    }
    gauge_ = metrics->gauge("holdfast_lock_live",
                            "Locks that this process holds and whose lease has not run out.",
                            {{"db", db}});
    refresher_ = metrics->refresh_with([this] {
        const std::lock_guard lock(mutex_);
        forget_the_dead();
        gauge_.set(static_cast<double>(until_.size()));
    });
}

void LiveLocks::add(const LockId& lock_id, Steady safe_until) {
    if (!counts_) {
        return;
    }
    const std::lock_guard lock(mutex_);
    until_.insert_or_assign(lock_id.reveal(), safe_until);
    if (until_.size() > room_) {  // The metrics may never be read.
        forget_the_dead();
        room_ = std::max(room_, 2 * until_.size());
    }
}

void LiveLocks::remove(const LockId& lock_id) {
    if (!counts_) {
        return;
    }
    const std::lock_guard lock(mutex_);
    until_.erase(lock_id.reveal());
}

void LiveLocks::forget_the_dead() {
    std::erase_if(until_,
                  [now = clock_.steady_now()](const auto& entry) { return entry.second <= now; });
}

}  // namespace holdfast::lock
