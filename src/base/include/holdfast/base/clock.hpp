// Time, passed in by the caller.
//
// Steady time measures how long; wall time says when, for people and for keys. Boot time is the
// same for all processes of a machine until it is started again, and nothing sets it: it decides
// leases in a file. In a server the server's clock does.
#pragma once

#include <chrono>
#include <stop_token>
#include <string>

namespace holdfast {

using Steady = std::chrono::steady_clock::time_point;
using Wall = std::chrono::sys_time<std::chrono::microseconds>;

class Clock {
public:
    virtual ~Clock() = default;

    [[nodiscard]] virtual Steady steady_now() const = 0;
    [[nodiscard]] virtual Wall wall_now() const = 0;

    // Names the start of the machine that `boot_now` counts from.
    [[nodiscard]] virtual std::string boot_id() const = 0;
    // How long ago that was, with the time for which the machine was suspended.
    [[nodiscard]] virtual std::chrono::microseconds boot_now() const = 0;

    // Sleeps until `until` by this clock. False if the stop token fired first, and then at once.
    // NOLINTNEXTLINE(modernize-use-nodiscard): a caller may check by itself why it woke.
    virtual bool sleep_until(Steady until, const std::stop_token& stop) const = 0;
};

// The machine's own clocks.
[[nodiscard]] const Clock& system_clock() noexcept;

// The moment at which a call gives up. There is no "never": everything has an end.
class Deadline {
public:
    [[nodiscard]] static Deadline at(Steady when) noexcept { return Deadline{when}; }
    [[nodiscard]] static Deadline after(std::chrono::nanoseconds wait) {
        return Deadline{std::chrono::steady_clock::now() + clamped(wait)};
    }

    [[nodiscard]] Steady when() const noexcept { return when_; }
    [[nodiscard]] bool passed() const { return passed(std::chrono::steady_clock::now()); }
    [[nodiscard]] bool passed(Steady now) const noexcept { return now >= when_; }

    // Zero once the deadline has passed.
    [[nodiscard]] std::chrono::nanoseconds remaining() const {
        return remaining(std::chrono::steady_clock::now());
    }
    [[nodiscard]] std::chrono::nanoseconds remaining(Steady now) const noexcept {
        return now >= when_ ? std::chrono::nanoseconds{0} : when_ - now;
    }

    [[nodiscard]] Deadline earlier(Deadline other) const noexcept {
        return when_ <= other.when_ ? *this : other;
    }

    friend bool operator==(const Deadline&, const Deadline&) = default;

private:
    explicit Deadline(Steady when) noexcept : when_(when) {}

    // Keeps `now + wait` from overflowing for absurd waits.
    static std::chrono::nanoseconds clamped(std::chrono::nanoseconds wait) noexcept {
        constexpr std::chrono::nanoseconds longest = std::chrono::hours{24 * 365};
        return wait > longest ? longest : wait;
    }

    Steady when_;
};

}  // namespace holdfast
