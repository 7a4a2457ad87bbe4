// How many locks this process holds, as far as it knows: for the metrics.
#pragma once

#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include <holdfast/base/clock.hpp>
#include <holdfast/base/metrics.hpp>
#include <holdfast/lock/backend.hpp>

namespace holdfast::lock {

// Safe to share between threads. Without metrics it does nothing.
class LiveLocks {
public:
    // Requires: `metrics`, if any, and `clock` outlive it.
    LiveLocks(Metrics* metrics, std::string_view db, const Clock& clock);
    LiveLocks(const LiveLocks&) = delete;
    LiveLocks& operator=(const LiveLocks&) = delete;

    // Taken, or extended.
    void add(const LockId& lock_id, Steady safe_until);
    void remove(const LockId& lock_id);

private:
    void forget_the_dead();

    const bool counts_;
    const Clock& clock_;
    Gauge gauge_;
    std::mutex mutex_;
    std::unordered_map<std::string, Steady> until_;  // By id.
    std::size_t room_ = 1'024;                       // Beyond it, the dead are looked for.
    Refresher refresher_;                            // Last: it uses the others.
};

}  // namespace holdfast::lock
