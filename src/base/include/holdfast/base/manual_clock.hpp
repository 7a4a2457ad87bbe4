// A clock that stands still until it is moved by hand, for tests and simulations.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <set>
#include <stop_token>
#include <string>

#include <holdfast/base/clock.hpp>

namespace holdfast {

// Safe to share between threads: some sleep by it, another one moves it.
class ManualClock final : public Clock {
public:
    // The initial time: 2024-01-01T00:00:00Z.
    static constexpr Wall first_wall{std::chrono::microseconds{1'704'067'200'000'000}};

    explicit ManualClock(Wall wall = first_wall) noexcept : wall_(wall) {}

    [[nodiscard]] Steady steady_now() const override;
    [[nodiscard]] Wall wall_now() const override;
    [[nodiscard]] std::string boot_id() const override;
    [[nodiscard]] std::chrono::microseconds boot_now() const override;
    // NOLINTNEXTLINE(modernize-use-nodiscard)
    bool sleep_until(Steady until, const std::stop_token& stop) const override;

    // Moves steady, wall and boot time together and wakes those whose time has come.
    // Requires: `by` is not negative.
    void advance(std::chrono::nanoseconds by);

    // As when an operator or a time server sets the clock: wall time jumps, the others do not.
    void set_wall(Wall wall);

    // As after a restart of the machine, or on another one: boot time begins at 0.
    void restart(std::string boot_id);

    // Blocks until at least `count` threads sleep by this clock and are not due yet; false if the
    // deadline, by the machine's clock, passes before. After it the test knows that moving the
    // clock will be noticed.
    [[nodiscard]] bool wait_for_sleepers(std::size_t count, Deadline deadline) const;

private:
    mutable std::mutex mutex_;
    mutable std::condition_variable_any changed_;
    mutable std::multiset<Steady> sleepers_;  // When each is due.
    Steady steady_{std::chrono::hours{1}};    // Not zero, which often means "never yet".
    std::chrono::nanoseconds since_wall_set_{0};
    std::string boot_id_ = "the first boot";
    Steady booted_{};
    Wall wall_;  // As it was last set; the rest has passed since.
};

}  // namespace holdfast
