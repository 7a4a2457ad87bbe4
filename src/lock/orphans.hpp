// Locks that may exist though nobody knows of them.
//
// When the answer to an acquisition is lost, and a second try does not tell either, the lock may
// be held by an id that was never handed out. It is released in the background, as soon as the
// database can be reached, and given up when its lease must have run out.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "forms.hpp"

namespace holdfast::lock {

// Safe to share between threads. Its thread starts with the first orphan.
class Orphans {
public:
    explicit Orphans(Forms& forms) : forms_(forms) {}
    Orphans(const Orphans&) = delete;
    Orphans& operator=(const Orphans&) = delete;

    // Does not wait.
    void adopt(const LockId& lock_id, std::chrono::milliseconds ttl);

private:
    struct Orphan {
        LockId lock_id;
        Steady until;
    };

    void run(const std::stop_token& stop);

    static constexpr std::size_t orphans_max = 10'000;

    Forms& forms_;
    std::mutex mutex_;
    std::condition_variable_any changed_;
    std::deque<Orphan> orphans_;
    std::jthread thread_;
};

}  // namespace holdfast::lock
