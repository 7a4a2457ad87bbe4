// A clock whose wall time is ahead of another one by all that was skipped.
#pragma once

#include <atomic>
#include <cstdint>

#include <holdfast/base/clock.hpp>

namespace holdfast::server::time_skipping {

// Safe to share between threads.
class SkippingClock final : public Clock {
public:
    // Requires: `real` outlives this object.
    explicit SkippingClock(const Clock& real) noexcept : real_(real) {}

    // Wall time is `when` or later from now on; it never goes back by this.
    void skip_to(Wall when);

    [[nodiscard]] Wall wall_now() const override;

    // These do not skip: what waits for a caller waits in real time.
    [[nodiscard]] Steady steady_now() const override { return real_.steady_now(); }
    [[nodiscard]] std::string boot_id() const override { return real_.boot_id(); }
    [[nodiscard]] std::chrono::microseconds boot_now() const override { return real_.boot_now(); }
    bool sleep_until(Steady until, const std::stop_token& stop) const override {
        return real_.sleep_until(until, stop);
    }

private:
    const Clock& real_;
    std::atomic<std::int64_t> skipped_us_ = 0;
};

}  // namespace holdfast::server::time_skipping
