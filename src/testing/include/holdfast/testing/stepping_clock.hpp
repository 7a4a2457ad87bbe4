// The machine's clocks, of which a test may set the wall clock and restart the machine.
#pragma once

#include <atomic>
#include <chrono>
#include <mutex>
#include <stop_token>
#include <string>
#include <utility>

#include <holdfast/base/clock.hpp>

namespace holdfast::test {

// Safe to share between threads.
class SteppingClock final : public Clock {
public:
    [[nodiscard]] Steady steady_now() const override { return system_clock().steady_now(); }
    [[nodiscard]] Wall wall_now() const override {
        return system_clock().wall_now() + std::chrono::microseconds{step_us_.load()};
    }
    [[nodiscard]] std::string boot_id() const override {
        const std::lock_guard lock(mutex_);
        return boot_id_;
    }
    [[nodiscard]] std::chrono::microseconds boot_now() const override {
        return system_clock().boot_now() - std::chrono::microseconds{booted_us_.load()};
    }
    // NOLINTNEXTLINE(modernize-use-nodiscard)
    bool sleep_until(Steady until, const std::stop_token& stop) const override {
        return system_clock().sleep_until(until, stop);
    }

    // How far the wall clock is from the right time.
    void set_wall_ahead(std::chrono::microseconds by) { step_us_ = by.count(); }

    // Boot time begins at 0 again. Requires: databases that read this clock are opened after it.
    void restart(std::string boot_id) {
        const std::lock_guard lock(mutex_);
        boot_id_ = std::move(boot_id);
        booted_us_ = system_clock().boot_now().count();
    }

private:
    std::atomic<std::int64_t> step_us_ = 0;
    std::atomic<std::int64_t> booted_us_ = 0;
    mutable std::mutex mutex_;
    std::string boot_id_ = "boot 1";
};

}  // namespace holdfast::test
