// Alarms that ring when the test moves its clock through them, on the test's thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "executor/alarms.hpp"

#include <holdfast/base/manual_clock.hpp>

namespace holdfast::server::tests {

// Alarms may be set and cancelled by any thread; one thread moves the clock.
class ManualAlarms final : public Alarms {
public:
    // Requires: `clock` outlives this object.
    explicit ManualAlarms(ManualClock& clock) : clock_(clock) {}

    AlarmId set(Steady at, Job ring) override {
        const std::lock_guard lock(mutex_);
        const AlarmId id{++last_id_};
        waiting_.emplace(Key{at, id}, std::move(ring));
        return id;
    }

    bool cancel(AlarmId alarm) override {
        Waiting::node_type cancelled;  // Destroyed without the lock.
        const std::lock_guard lock(mutex_);
        for (auto each = waiting_.begin(); each != waiting_.end(); ++each) {
            if (each->first.second == alarm) {
                cancelled = waiting_.extract(each);
                return true;
            }
        }
        return false;
    }

    // Moves the clock by `by`, and stops on the way at each alarm, those set by others as well, to
    // ring it at its moment. Says how many rang.
    std::size_t advance(std::chrono::nanoseconds by) {
        const Steady end = clock_.steady_now() + by;
        std::size_t rang = ring_due();
        for (auto at = next(); at && *at <= end; at = next()) {
            clock_.advance(*at - clock_.steady_now());
            rang += ring_due();
        }
        clock_.advance(end - clock_.steady_now());
        return rang;
    }

    // Rings what is due now.
    std::size_t ring_due() {
        std::size_t rang = 0;
        for (;;) {
            Waiting::node_type due;
            {
                const std::lock_guard lock(mutex_);
                if (waiting_.empty() || waiting_.begin()->first.first > clock_.steady_now()) {
                    return rang;
                }
                due = waiting_.extract(waiting_.begin());
            }
            std::move(due.mapped())();
            ++rang;
        }
    }

    // When the next one rings; nothing if none is set.
    [[nodiscard]] std::optional<Steady> next() const {
        const std::lock_guard lock(mutex_);
        return waiting_.empty() ? std::nullopt : std::optional(waiting_.begin()->first.first);
    }

    [[nodiscard]] std::size_t waiting() const {
        const std::lock_guard lock(mutex_);
        return waiting_.size();
    }

private:
    using Key = std::pair<Steady, AlarmId>;
    using Waiting = std::map<Key, Job>;

    ManualClock& clock_;
    mutable std::mutex mutex_;
    Waiting waiting_;
    std::uint64_t last_id_ = 0;
};

}  // namespace holdfast::server::tests
