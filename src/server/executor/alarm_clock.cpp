#include "executor/alarm_clock.hpp"

namespace holdfast::server {

AlarmClock::AlarmClock(const Clock& clock) : clock_(clock), thread_([this] { ring_all(); }) {}

AlarmClock::~AlarmClock() {
    stop();
}

AlarmId AlarmClock::set(Steady at, Job ring) {
    std::optional<std::stop_source> wake;
    std::uint64_t id = 0;
    {
        const std::lock_guard lock(mutex_);
        id = ++last_id_;
        if (stopped_) {
            return AlarmId{id};
        }
        by_id_.emplace(id, by_time_.emplace(Key{at, id}, std::move(ring)).first);
        if (asleep_until_ && at < *asleep_until_) {
            wake = wake_;
        }
    }
    if (wake) {
        wake->request_stop();  // It runs a callback of the clock: without the lock.
    } else {
        set_.notify_one();
    }
    return AlarmId{id};
}

bool AlarmClock::cancel(AlarmId alarm) {
    ByTime::node_type cancelled;  // Destroyed without the lock.
    const std::lock_guard lock(mutex_);
    const auto found = by_id_.find(static_cast<std::uint64_t>(alarm));
    if (found == by_id_.end()) {
        return false;
    }
    // The thread may wake for nothing; that is cheaper than to wake it for each cancellation.
    cancelled = by_time_.extract(found->second);
    by_id_.erase(found);
    return true;
}

void AlarmClock::stop() {
    ByTime left;  // Destroyed without the lock.
    std::optional<std::stop_source> wake;
    {
        const std::lock_guard lock(mutex_);
        stopped_ = true;
        left = std::exchange(by_time_, {});
        by_id_.clear();
        if (asleep_until_) {
            wake = wake_;
        }
    }
    set_.notify_all();
    if (wake) {
        wake->request_stop();
    }
    const std::lock_guard joining(joining_);
    if (thread_.joinable()) {
        thread_.join();
    }
}

void AlarmClock::ring_all() {
    std::unique_lock lock(mutex_);
    while (!stopped_) {
        if (by_time_.empty()) {
            set_.wait(lock, [this] { return stopped_ || !by_time_.empty(); });
            continue;
        }
        const auto [at, id] = by_time_.begin()->first;
        if (at > clock_.steady_now()) {
            sleep(lock, at);
            continue;
        }
        ByTime::node_type due = by_time_.extract(by_time_.begin());
        by_id_.erase(id);
        lock.unlock();
        std::move(due.mapped())();
        lock.lock();
    }
}

void AlarmClock::sleep(std::unique_lock<std::mutex>& lock, Steady until) {
    wake_ = std::stop_source();
    asleep_until_ = until;
    const std::stop_token token = wake_.get_token();
    lock.unlock();
    clock_.sleep_until(until, token);
    lock.lock();
    asleep_until_.reset();
}

}  // namespace holdfast::server
