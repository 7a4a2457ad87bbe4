// The right to have one connection exist, as a lease in a shared store: one item per connection and
// a counter of them all.
//
// For fleets that count this way already; blocks of slots (slot_blocks.hpp) cost the store less.
// What keeps the counter true: a lease and its count change in one transaction; each transaction
// has a token, so that a repeat does nothing; releases are repeated until they are answered; and
// every lease names its owner, whose heartbeat shows that it is alive, so that others can release
// the leases of a dead owner. A pure state machine: it takes events with their times and returns
// what to ask the store.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <holdfast/base/clock.hpp>
#include <holdfast/base/random.hpp>
#include <holdfast/pool/fleet_limits.hpp>

namespace holdfast::pool {

struct LeasesConfig {
    std::int64_t limit = 10'000;  // Of the whole fleet.
    // The most connections while the store does not answer. Zero: none.
    int local_cap = 0;
};

// 32 lower-case hexadecimal digits: 128 bits from the kernel's generator.
using LeaseId = std::string;
[[nodiscard]] LeaseId new_lease_id();

// --- What happened ---

enum class LeaseWish : std::uint64_t {};  // Chosen by the driver; unique among those that wait.

// Answered by exactly one LeaseGranted or LeaseDenied, unless LeaveLease comes first.
struct WantLease {
    LeaseWish wish{};
    Steady deadline{};
};
// No effect if it was answered. A lease that is acquired anyway is released.
struct LeaveLease {
    LeaseWish wish{};
};
struct GiveLeaseBack {
    LeaseId lease;
};

// The result of an acquisition or a release.
enum class LeaseAnswer {
    done,
    full,        // The counter is at its limit.
    conflict,    // Another transaction was at the counter.
    throttled,   // The store is reachable, but throttles.
    unanswered,  // The outcome is unknown.
};
struct LeaseAcquired {
    LeaseId lease;
    LeaseAnswer answer = LeaseAnswer::done;
};
struct LeaseReleased {
    LeaseId lease;
    LeaseAnswer answer = LeaseAnswer::done;
};
struct HeartAnswered {
    bool done = false;
    bool throttled = false;  // Not done, but the store is reachable: the local cap does not apply.
};
struct LeasesTick {};

using LeaseEvent = std::variant<WantLease,
                                LeaveLease,
                                GiveLeaseBack,
                                LeaseAcquired,
                                LeaseReleased,
                                HeartAnswered,
                                LeasesTick>;

// --- What to do ---

// Counter plus one if below the limit, and the lease put: one transaction. To be answered by
// LeaseAcquired. A repeat has the same token.
struct AcquireLease {
    LeaseId lease;
    std::string token;
};
// The lease deleted if it is there, and counter minus one: one transaction. To be answered by
// LeaseReleased; that the lease is not there any more is `done`.
struct ReleaseLease {
    LeaseId lease;
    std::string token;
};
// To be answered by HeartAnswered.
struct BeatHeart {};

struct LeaseGranted {
    LeaseWish wish{};
    LeaseId lease;
    bool local = false;  // Under the local cap: the store knows nothing of it.
};
enum class LeaseDenial { full, unanswered, timeout };
[[nodiscard]] std::string_view to_string(LeaseDenial why) noexcept;
struct LeaseDenied {
    LeaseWish wish{};
    LeaseDenial why = LeaseDenial::full;
};

using LeaseAction = std::variant<AcquireLease, ReleaseLease, BeatHeart, LeaseGranted, LeaseDenied>;
using LeaseActions = std::vector<LeaseAction>;

// Not safe to share between threads. Requires of all calls: `now` never goes back.
class Leases {
public:
    // Only the simulator makes the identifiers itself, so that it can be repeated.
    Leases(const LeasesConfig& config,
           const FleetLimits& limits,
           std::uint64_t seed,
           std::function<LeaseId()> new_id = new_lease_id);

    void step(Steady now, const LeaseEvent& event, LeaseActions& out);
    [[nodiscard]] Steady next_wake() const noexcept { return wake_; }

    // The number of connections to close: they have no lease any more, or never had one. Granted
    // leases count only while our heartbeats are answered; a dead owner's leases are given to
    // others.
    [[nodiscard]] int excess() const noexcept;
    [[nodiscard]] int used() const noexcept { return static_cast<int>(held_.size()); }
    [[nodiscard]] bool degraded() const noexcept { return degraded_; }
    // Releases that the store has not confirmed yet.
    [[nodiscard]] int releasing() const noexcept { return static_cast<int>(releases_.size()); }
    [[nodiscard]] std::uint64_t release_retries() const noexcept { return release_retries_; }

private:
    struct Wish {
        LeaseWish id{};
        Steady deadline{};
        bool wanted = true;
        bool asked = false;     // The store; its answer is pending.
        bool doubtful = false;  // It may have been acquired, but the answer was lost.
        std::string token;
        Steady again{};  // When to ask once more.
        int tries = 0;
    };
    struct Release {
        std::string token;
        bool asked = false;
        Steady again{};
        int tries = 0;
    };

    void on(Steady now, const WantLease& want, LeaseActions& out);
    void on(Steady now, const LeaveLease& leave, LeaseActions& out);
    void on(Steady now, const GiveLeaseBack& back, LeaseActions& out);
    void on(Steady now, const LeaseAcquired& acquired, LeaseActions& out);
    void on(Steady now, const LeaseReleased& released, LeaseActions& out);
    void on(Steady now, const HeartAnswered& heart, LeaseActions& out);
    void on(Steady now, const LeasesTick& tick, LeaseActions& out);

    void note_answer(bool answered) noexcept;
    void release(Steady now, const LeaseId& lease);
    void forget(Steady now, const LeaseId& lease);
    void deny(Steady now, const LeaseId& lease, LeaseDenial why, LeaseActions& out);
    template <class Which>
    void deny_waiting(Steady now, LeaseDenial why, LeaseActions& out, Which&& which);
    void ask_again(Steady now, LeaseActions& out);
    void beat(Steady now, LeaseActions& out);
    [[nodiscard]] bool needs_heart() const noexcept;
    void plan_wake(Steady now) noexcept;
    [[nodiscard]] std::chrono::nanoseconds nap(LeaseAnswer answer, int tries);

    const LeasesConfig config_;
    const FleetLimits limits_;
    Random random_;
    const std::function<LeaseId()> new_id_;

    std::map<LeaseId, Wish> wishes_;
    std::map<LeaseId, Release> releases_;
    std::set<LeaseId> held_;
    // Of those held:
    std::set<LeaseId> local_;               // The store does not know them.
    std::set<LeaseId> lost_;                // Our heartbeats were not answered for too long.
    std::map<LeaseId, LeaseId> inherited_;  // A lost one, and the true one it stands for now.
    std::uint64_t release_retries_ = 0;

    bool beating_ = false;
    Steady beat_asked_{};
    Steady beat_at_{};
    Steady alive_until_{};  // As far as others may know.
    int failures_ = 0;      // Calls in a row that were not answered.
    bool degraded_ = false;
    Steady wake_ = Steady::max();
};

// --- What dead owners held ---

struct OwnerSeen {
    std::string owner;
    Wall alive_until{};
};
struct LeaseSeen {
    LeaseId lease;
    std::string owner;  // Empty: written by another program, without a heartbeat.
    Wall created{};
};

// The leases whose owner is dead by `now`, with the allowance for clocks that differ, or was never
// heard of. One that names no owner is dead when no connection can be that old: to end it sooner
// would count a living connection as gone, and once more when its process releases it.
[[nodiscard]] std::vector<LeaseId> leases_to_reap(std::span<const OwnerSeen> owners,
                                                  std::span<const LeaseSeen> leases,
                                                  Wall now,
                                                  const FleetLimits& limits);

}  // namespace holdfast::pool
