// The table in DynamoDB that the processes share: conditional writes to single items, each of
// which takes only so many in a second. It says what a write does; how long the way there takes,
// and whether it gets there, is up to the fleet.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <variant>
#include <vector>

#include <holdfast/base/clock.hpp>
#include <holdfast/pool/leases.hpp>
#include <holdfast/pool/permits.hpp>
#include <holdfast/pool/slot_blocks.hpp>
#include <holdfast/sim/scenario.hpp>

namespace holdfast::sim {

// A process that starts again is another owner.
struct Owner {
    std::uint32_t process = 0;
    std::uint32_t life = 0;

    friend auto operator<=>(const Owner&, const Owner&) = default;
};

// In the words of the machines that ask.
using Ask = std::variant<pool::PermitWrite, pool::SlotAction, pool::LeaseAction>;
using Reply = std::variant<pool::PermitAnswer, pool::SlotEvent, pool::LeaseEvent>;

// The time by the table's own clock.
[[nodiscard]] Wall wall_of(Time now) noexcept;

class Table {
public:
    Table(const SharedTable& config, const Slots& slots, int ceiling);

    // How many transactions met another one at the counter of leases.
    [[nodiscard]] std::int64_t conflicts() const noexcept { return conflicts_; }

    // Nothing, if the item was asked too often. `said` is the time that the owner wrote into it.
    [[nodiscard]] std::optional<Reply> ask(Time now, Owner owner, Wall said, const Ask& what);
    // What an owner makes of no reply: the table is away, or says that it is asked too often.
    [[nodiscard]] static Reply silence(const Ask& what, bool throttled);

    // The owner ends in order and gives everything back.
    void leave(Owner owner);
    // Frees the leases of owners without a heartbeat.
    void reap(Time now, const pool::FleetLimits& limits);

    // Connections that the table takes for open.
    [[nodiscard]] std::int64_t counted() const noexcept { return active_; }
    [[nodiscard]] std::int64_t throttled() const noexcept { return throttled_; }
    // Of each lease.
    [[nodiscard]] std::vector<Owner> lease_owners() const;

private:
    // The writes to an item in the present second.
    struct Pace {
        std::chrono::seconds second{-1};
        int writes = 0;
    };
    struct Count {
        int permits = 0;
        Pace pace{};
    };
    struct Block {
        std::optional<Owner> owner{};
        Wall until{};
    };

    [[nodiscard]] bool too_many(Time now, Pace& pace);
    [[nodiscard]] bool conflicts(Time now);
    [[nodiscard]] Pace* pace_of(const pool::PermitWrite& what);

    [[nodiscard]] pool::PermitAnswer on(const pool::CountPermits& what);
    [[nodiscard]] pool::PermitAnswer on(const pool::ReadBucket& what) const;
    [[nodiscard]] pool::PermitAnswer on(const pool::WriteBucket& what);
    [[nodiscard]] pool::PermitAnswer on(const pool::AdvanceClock& what);
    [[nodiscard]] pool::PermitAnswer on(const pool::SetClock& what);
    [[nodiscard]] pool::SlotEvent on(Owner owner, Wall said, const pool::SlotAction& what);
    [[nodiscard]] pool::LeaseEvent on(Owner owner, Wall said, const pool::LeaseAction& what);

    const SharedTable& config_;
    const Slots& slots_;
    const std::int64_t ceiling_;
    const pool::FleetLimits limits_{};

    std::map<std::int64_t, Count> counts_;  // By second; those long past are forgotten.
    std::optional<pool::BucketState> bucket_;
    std::optional<std::int64_t> clock_us_;
    Pace permit_pace_;  // Of the bucket or the clock.

    std::map<int, Block> blocks_;

    std::int64_t active_ = 0;
    Pace lease_pace_;
    Time lease_busy_until_{};  // A transaction is at the counter.
    std::int64_t conflicts_ = 0;
    std::map<pool::LeaseId, Owner> leases_;
    std::map<Owner, Wall> alive_until_;
    std::int64_t throttled_ = 0;
};

}  // namespace holdfast::sim
