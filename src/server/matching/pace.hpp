// How fast a queue gives its tasks away, and how fast it did.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>

#include <holdfast/base/clock.hpp>

namespace holdfast::server::matching {

// A limit with the tokens of one second in store: the generic cell rate algorithm. A token more
// than that passes when the store is full.
class Pace {
public:
    // Nothing for no limit; 0 stops the queue. A span that is owed under the old limit is cut to
    // that of one token of the new one.
    void limit(std::optional<double> per_second, Steady now);

    [[nodiscard]] bool open(Steady now) const noexcept { return !stopped_ && ready_ <= now; }
    // When it will be open; nothing if only another limit opens it.
    [[nodiscard]] std::optional<Steady> opens() const noexcept;

    // True if a token was taken, which may be given back. Requires: it is open.
    bool take(Steady now) noexcept;
    void give_back() noexcept;

private:
    static constexpr std::chrono::nanoseconds burst = std::chrono::seconds{1};
    static constexpr std::chrono::nanoseconds interval_max = std::chrono::hours{24};

    std::chrono::nanoseconds interval_{0};  // 0 without a limit.
    bool stopped_ = false;
    Steady ready_{};
};

// Events per second over the last 30 s.
class RecentRate {
public:
    explicit RecentRate(Steady now) noexcept : since_(now) {}

    void add(Steady now) noexcept;
    [[nodiscard]] double per_second(Steady now) const noexcept;

private:
    static constexpr std::chrono::nanoseconds slot = std::chrono::seconds{5};
    static constexpr std::int64_t slots = 6;

    [[nodiscard]] static std::int64_t slot_of(Steady at) noexcept {
        return at.time_since_epoch() / slot;
    }

    Steady since_;
    std::int64_t newest_ = 0;
    std::array<std::uint64_t, slots> counts_{};  // The slot n at n % slots.
};

}  // namespace holdfast::server::matching
