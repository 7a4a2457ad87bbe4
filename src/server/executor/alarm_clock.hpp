// Alarms of a server: one thread that sleeps by its clock.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>
#include <unordered_map>
#include <utility>

#include "executor/alarms.hpp"

namespace holdfast::server {

// Alarms of one moment ring in the order in which they were set. Safe to share between threads.
class AlarmClock final : public Alarms {
public:
    // Requires: `clock` outlives this object.
    explicit AlarmClock(const Clock& clock);
    ~AlarmClock() override;

    AlarmId set(Steady at, Job ring) override;
    bool cancel(AlarmId alarm) override;

    // Waits for the alarm that rings. After it none rings: those that are set, and those that will
    // be, are destroyed. Requires: not called by an alarm.
    void stop();

private:
    using Key = std::pair<Steady, std::uint64_t>;
    using ByTime = std::map<Key, Job>;

    void ring_all();
    void sleep(std::unique_lock<std::mutex>& lock, Steady until);

    const Clock& clock_;
    std::mutex mutex_;
    std::condition_variable set_;
    ByTime by_time_;
    std::unordered_map<std::uint64_t, ByTime::iterator> by_id_;
    std::uint64_t last_id_ = 0;
    // While the thread sleeps: until when, and what wakes it before.
    std::optional<Steady> asleep_until_;
    std::stop_source wake_;
    bool stopped_ = false;

    std::mutex joining_;
    std::thread thread_;  // Last: it uses all of the above.
};

}  // namespace holdfast::server
