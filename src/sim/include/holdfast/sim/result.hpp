// The result of a simulation.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <holdfast/sim/scenario.hpp>

namespace holdfast::sim {

// Since the start, of one service.
struct Counters {
    std::int64_t checkouts = 0;
    std::int64_t empty = 0;  // No connection was free.
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
    std::uint32_t service = 0;  // In file order; each pool of a process is one.
    int ready = 0;
    int lent = 0;
    int target = 0;
    Counters counters{};

    [[nodiscard]] int owned() const noexcept { return ready + lent; }
    friend bool operator==(const Sample&, const Sample&) = default;
};

// An assertion that does not hold.
struct Violation {
    std::string assertion{};
    std::string service{};  // Empty: no single service.
    Time at{};              // When it was so for the first time, or worst.
    std::string what{};     // In words, with the value found and the one allowed.
    // The same for programs. No value: it never came.
    std::optional<double> value{};
    double limit = 0;
    std::string unit{};  // "connections", "openings", "requests", "per_second", "share", "ms"
    bool fleet = false;  // The value is that of all; the service has the largest part in it.

    friend bool operator==(const Violation&, const Violation&) = default;
};

// Something that happened in a service.
struct Incident {
    Time at{};
    std::uint32_t service = 0;
};

// Why a connection is gone.
enum class Gone : std::uint8_t {
    aged,
    surplus,  // One too many.
    lost,     // By a fault, or closed by the server.
    given_up  // Its process ended, or lost the right to it.
};

struct Closing {
    Time at{};
    std::uint32_t service = 0;
    Gone why{};
};

// A request that was not served at once.
struct Delay {
    Time asked{};
    std::uint32_t service = 0;
    Time waited{};
};

// A fault that struck, or that passed.
struct Strike {
    Time at{};
    FaultKind kind{};
    bool over = false;
};

// A permit to open a connection.
struct Permit {
    Time asked{};  // With the slot that goes with it.
    Time usable{};
    std::uint32_t service = 0;
};

// How many connections were how old, at one moment.
struct AgeRow {
    Time at{};
    std::vector<std::uint32_t> counts{};  // The first are younger than Observations::age_part.
};

// Observations of the current pool. Waits, idles, ages and spells are sorted.
struct Observations {
    // As they happened:
    std::vector<Incident> opened{};   // The cluster let a connection in,
    std::vector<Closing> closed{};    // saw it go,
    std::vector<Incident> rejects{};  // or refused one.
    std::vector<Incident> wasted{};   // Closed as one too many before it was used.
    std::vector<Incident> peaks{};    // So many were open as never before: one more each time.
    std::vector<Incident> orphans{};  // Leases in the shared table whose process is gone.
    std::vector<Delay> empties{};     // In the order in which they ended.

    std::vector<Time> waits{};       // Until a connection was lent, or in vain.
    std::vector<Time> idles{};       // How long each lay ready before it was lent.
    std::vector<Time> ages{};        // Of connections that a process closed.
    std::vector<AgeRow> age_rows{};  // Of those open, some sixty times.
    Time age_part{};
    std::vector<Time> short_spells{};  // How long a process had fewer than its target.
    std::vector<Time> filled{};        // By service, from its start; max(): never.
    std::vector<Strike> struck{};
    std::int64_t rejected_rate = 0;  // By the cluster, as too many in a second,
    std::int64_t rejected_full = 0;  // or at a time.
    std::int64_t refused = 0;        // Requests that waited and got none.
    std::int64_t leaked = 0;         // Open at the cluster, without an owner.
    std::int64_t shed = 0;           // Given up, because the right to hold them was lost.
    int total_max = 0;               // Open at a time.

    // Of the limits that the fleet shares.
    std::vector<Permit> permits{};               // In the order in which they were granted.
    std::vector<std::uint32_t> table_refused{};  // Writes that failed their condition, by second.
    std::int64_t table_calls = 0;
    std::int64_t table_throttled = 0;
    std::int64_t table_conflicts = 0;  // Transactions that met another one.
    std::int64_t table_unanswered = 0;
    std::int64_t table_counted = 0;  // Connections that its counter takes for open, at the end.
    Time degraded{};                 // At least one process could not ask it.

    [[nodiscard]] std::int64_t rejected() const noexcept { return rejected_rate + rejected_full; }
};

// The smallest value that `part` of them do not exceed; 0 of none. Requires: sorted.
[[nodiscard]] Time quantile(const std::vector<Time>& sorted, double part);

struct Result {
    std::uint64_t events = 0;
    std::vector<Sample> samples;       // By time, then in file order.
    std::vector<Sample> last;          // The state at the end, one per service.
    std::vector<std::uint32_t> opens;  // In each second.
    std::vector<Violation> violations;
    Observations seen;                     // Of the current pool.
    std::vector<std::string> explanation;  // What Watch::explain_at asked for.

    [[nodiscard]] bool passed() const noexcept { return violations.empty(); }
    [[nodiscard]] std::uint32_t opens_max() const noexcept;
};

}  // namespace holdfast::sim
