// Locks that may be held by an id that no caller has.
//
// When the answers to an acquisition and to its repeat are lost, the lock may be held by an id that
// was never returned. It is released in the background, as soon as the database can be reached, and
// given up when its lease must have run out.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

#include "statements/lock_sql.hpp"

#include <holdfast/base/clock.hpp>

namespace holdfast::lock {

// Safe to share between threads. Its thread starts with the first orphan. Its end tries those that
// are left once more, for a second at most.
class Orphans {
public:
    Orphans(LockSql& lock_sql, const Clock& clock) : lock_sql_(lock_sql), clock_(clock) {}
    Orphans(const Orphans&) = delete;
    Orphans& operator=(const Orphans&) = delete;

    // Does not wait.
    void adopt(const LockId& lock_id, std::chrono::milliseconds ttl);
    // The same for something other than a lock: `free` releases it, or throws. Requires: what it
    // uses outlives this object.
    using Free = std::function<void(const sql::TxOptions&)>;
    void adopt(Free free, std::chrono::milliseconds ttl);

private:
    struct Orphan {
        Free free;
        Steady until;
    };

    void run(const std::stop_token& stop);
    bool free_first(std::unique_lock<std::mutex>& lock, const sql::TxOptions& options);

    static constexpr std::size_t orphans_max = 10'000;

    LockSql& lock_sql_;
    const Clock& clock_;
    std::mutex mutex_;
    std::condition_variable_any changed_;
    std::deque<Orphan> orphans_;
    std::jthread thread_;
};

}  // namespace holdfast::lock
