// When runs want to be looked at: the rows of the timer category that are due soon, in memory.
//
// A run has one row. What is due in it, or whether anything is, the run's state tells; a row only
// says when to look. A row that finds nothing to do is moved to the next moment without touching
// the run.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "executor/alarms.hpp"

#include <holdfast/base/clock.hpp>
#include <holdfast/store/history_tasks.hpp>

namespace holdfast::server::engine {

struct RunName {
    std::string namespace_id;
    std::string workflow_id;
    std::string run_id;

    friend auto operator<=>(const RunName&, const RunName&) = default;
};

// Safe to share between threads.
class Wakes {
public:
    // `due` is called on the thread of the alarms, for each row when its time has come; it must not
    // block. `load` is called there too, when the rows of the next window should be added.
    Wakes(const Clock& clock,
          Alarms& alarms,
          std::function<void(const store::TaskKey&, const RunName&)> due,
          std::function<void()> load);
    ~Wakes();
    Wakes(const Wakes&) = delete;
    Wakes& operator=(const Wakes&) = delete;

    // Rows are in memory if they are due before this.
    [[nodiscard]] Wall horizon() const;
    // Moves it on, before the rows up to there are read and added.
    void extend(Wall horizon);

    // A row that is stored. One beyond the horizon is left to its window.
    void add(const store::TaskKey& key, const RunName& run);
    void remove(const store::TaskKey& key);
    // The wall time of the clock has moved: what is due by now rings. Requires: called by an alarm.
    void look();

    void stop();
    [[nodiscard]] std::size_t size() const;

private:
    void ring();
    void arm_locked();

    const Clock& clock_;
    Alarms& alarms_;
    const std::function<void(const store::TaskKey&, const RunName&)> due_;
    const std::function<void()> load_;

    mutable std::mutex mutex_;
    std::map<store::TaskKey, RunName> rows_;
    Wall horizon_{};
    bool loading_ = false;
    bool stopped_ = false;
    std::optional<AlarmId> alarm_;
    Wall armed_for_{};
};

}  // namespace holdfast::server::engine
