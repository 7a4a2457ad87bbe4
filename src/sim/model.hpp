// What the models share: how they are run, and where their randomness comes from.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "event_queue.hpp"

#include <holdfast/base/error.hpp>
#include <holdfast/base/units.hpp>
#include <holdfast/sim/result.hpp>
#include <holdfast/sim/scenario.hpp>
#include <holdfast/sim/simulation.hpp>

namespace holdfast::sim {

[[nodiscard]] Result simulate_reservoir(const Scenario& scenario,
                                        std::uint64_t seed,
                                        const Watch& watch);
[[nodiscard]] Result simulate_keeper(const Scenario& scenario,
                                     std::uint64_t seed,
                                     const Watch& watch);

[[nodiscard]] Result simulate_fleet(const Scenario& scenario,
                                    std::uint64_t seed,
                                    const Watch& watch);

// Each service has its own generator, so that one more service does not change the others' numbers.
[[nodiscard]] std::uint64_t seed_of(std::uint64_t seed,
                                    std::string_view owner,
                                    std::string_view purpose) noexcept;

// The assertions of the older models. The first violation ends the evaluation, as it always did.
[[nodiscard]] std::vector<Violation> check_compat(const Scenario& scenario, const Result& result);

// Those of the current pool: all of them, each with everything it found.
[[nodiscard]] std::vector<Violation> check_assertions(const Scenario& scenario,
                                                      const Result& result);

// The fleet at one sample.
struct FleetTotal {
    Time at{};
    int owned = 0;
    int target = 0;
};

[[nodiscard]] std::vector<FleetTotal> totals_of(const Result& result);
// How long after a fault the fleet had `share` of its target again; max(): never.
[[nodiscard]] Time recovery_after(const std::vector<FleetTotal>& totals, Time fault, double share);

// Adds one to the second of `now`.
void count_open(std::vector<std::uint32_t>& opens, Time now);

// Processes all events up to the end.
template <class What, class Handle>
void run_events(EventQueue<What>& events, const Watch& watch, Handle handle) {
    constexpr std::uint64_t look_every = 1 << 10;  // A minute can be very full.
    Time told{};
    while (const auto what = events.next()) {
        handle(*what);
        const bool minute = events.now() - told >= std::chrono::minutes{1};
        if (minute && watch.minute) {
            watch.minute({events.now(), events.executed(), events.waiting()});
        }
        if (minute) {
            told = events.now();
        }
        if ((minute || events.executed() % look_every == 0) && watch.stop.stop_requested()) {
            throw Error(
                Code::cancelled,
                holdfast::Outcome::not_applied,
                "the simulation was stopped at " +
                    format_duration(std::chrono::floor<std::chrono::seconds>(events.now())) +
                    " of " + format_duration(events.end()));
        }
    }
}

}  // namespace holdfast::sim
