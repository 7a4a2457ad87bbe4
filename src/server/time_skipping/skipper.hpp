// Decides when the time of a server jumps, and to which moment.
//
// Time jumps to the next moment at which a run or a sleeping caller is due, if it is not locked
// and nothing runs: no workflow task, no attempt of an activity, no start of a child, no request
// between runs. While something runs, and while time is locked, it passes as real time does.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/run_observer.hpp"
#include "executor/alarms.hpp"
#include "time_skipping/skipping_clock.hpp"

namespace holdfast::server::time_skipping {

// Safe to share between threads.
class Skipper final : public engine::RunObserver {
public:
    // `locks` is the number of locks at first. Requires: `clock` and `alarms` outlive this object.
    Skipper(SkippingClock& clock, Alarms& alarms, std::int64_t locks);

    // `jumped` is called by an alarm after each jump. Call this once, before the first run is
    // committed.
    void connect(std::function<void()> jumped) { jumped_ = std::move(jumped); }

    [[nodiscard]] Wall now() const { return clock_.wall_now(); }

    void lock();
    // False if it was not locked.
    [[nodiscard]] bool unlock();

    // Calls `over` once, when the server's time is `until`: at once if it is so.
    using Sleep = std::uint64_t;
    Sleep sleep_until(Wall until, std::function<void()> over);
    // As sleep_until(), and time is unlocked until then or until the sleep is cancelled: it does
    // not jump further before it is locked again. Nothing if it was not locked.
    std::optional<Sleep> unlock_until(Wall until, std::function<void()> over);
    // `over` is not called any more, or has begun to be.
    void cancel(Sleep sleep);

    // RunObserver
    void committed(const history::state::Run& run) override;
    [[nodiscard]] std::shared_ptr<void> work() override;
    void idle() override { jump(); }

private:
    struct KnownRun {
        bool runs = false;  // Something of it is done right now.
        std::optional<Wall> due;
    };
    struct Sleeper {
        Wall until;
        std::function<void()> over;
        AlarmId alarm{};
        bool then_lock = false;
    };

    Sleep add_sleeper_locked(Wall until, std::function<void()> over, bool then_lock);
    void end_sleeper_locked(std::map<Sleep, Sleeper>::iterator sleeper);
    void forget_locked(const std::string& run_id);
    // Nothing if time has to pass by itself.
    [[nodiscard]] std::optional<Wall> target_locked() const;
    void jump();
    void wake_sleepers();

    SkippingClock& clock_;
    Alarms& alarms_;
    std::function<void()> jumped_;

    std::mutex mutex_;
    std::int64_t locks_;
    std::int64_t works_ = 0;
    std::size_t running_ = 0;  // Runs of which something is done.
    std::unordered_map<std::string, KnownRun> runs_;
    std::set<std::pair<Wall, std::string>> due_;
    std::map<Sleep, Sleeper> sleepers_;
    Sleep last_sleep_ = 0;
};

// Whether something of the run is done right now, so that its time is real.
[[nodiscard]] bool is_running(const history::state::Run& run);

}  // namespace holdfast::server::time_skipping
