// What came of a simulation.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <holdfast/sim/scenario.hpp>

namespace holdfast::sim {

// Since the start, of one service.
struct Counters {
    std::int64_t checkouts = 0;
    std::int64_t empty = 0;  // Nobody could be served at once.
    std::int64_t discard_expired = 0;
    std::int64_t discard_guard = 0;
    std::int64_t discard_full = 0;
    std::int64_t dropped = 0;  // Lost by a fault.
    std::int64_t opens = 0;
    std::int64_t open_failures = 0;
    std::int64_t scan_evictions = 0;
    std::int64_t denies = 0;  // By the limiter.
    std::int64_t work_started = 0;
    std::int64_t work_completed = 0;

    // Of the older model with a keeper.
    std::int64_t closed_age = 0;
    std::int64_t closed_server = 0;
    std::int64_t warmup_opens = 0;
    std::int64_t keeper_opens = 0;
    std::int64_t workload_opens = 0;
    std::int64_t waits = 0;

    [[nodiscard]] std::int64_t discards() const noexcept {
        return discard_expired + discard_guard + discard_full;
    }
    friend bool operator==(const Counters&, const Counters&) = default;
};

// One service at one moment.
struct Sample {
    Time at{};
    std::uint32_t service = 0;  // In file order.
    int ready = 0;
    int lent = 0;
    int target = 0;
    Counters counters{};

    [[nodiscard]] int owned() const noexcept { return ready + lent; }
    friend bool operator==(const Sample&, const Sample&) = default;
};

// An assertion that does not hold.
struct Violation {
    std::string assertion;
    std::string service;  // Empty: the fleet.
    Time at{};
    std::string what;  // In words, with the value found and the one allowed.

    friend bool operator==(const Violation&, const Violation&) = default;
};

struct Result {
    std::uint64_t events = 0;
    std::vector<Sample> samples;       // By time, then in file order.
    std::vector<Sample> last;          // The state at the end, one per service.
    std::vector<std::uint32_t> opens;  // In each second.
    std::vector<Violation> violations;

    [[nodiscard]] bool passed() const noexcept { return violations.empty(); }
    [[nodiscard]] std::uint32_t opens_max() const noexcept;
};

}  // namespace holdfast::sim
