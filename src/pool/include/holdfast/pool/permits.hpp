// Permits to open connections, out of a store that the whole fleet shares.
//
// Three ways to count: the permits of each second, a bucket of tokens, and a clock of reservations.
// Each says which conditional write to try next and what its answer means; it has no clock, no
// store and does no I/O. A driver carries out what it answers: with DynamoDB, or with a fake.
//
// The reservation clock is the one to use. One number says when the bucket will be full again; a
// request for a permit moves it on and waits, once, for its place. One write per permit, no
// polling, first come first served. The other two are for fleets that have them already.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <variant>

#include <holdfast/base/clock.hpp>
#include <holdfast/base/random.hpp>
#include <holdfast/pool/fleet_limits.hpp>

namespace holdfast::pool {

struct Moment {
    Steady steady{};
    Wall wall{};  // Corrected by what we know of the store's clock.
};

enum class PermitAlgorithm { counter, bucket, reserve };
[[nodiscard]] std::string_view to_string(PermitAlgorithm algorithm) noexcept;

struct PermitConfig {
    PermitAlgorithm algorithm = PermitAlgorithm::reserve;
    int per_second = 100;
    int burst = 200;  // Not of the counter.
    std::chrono::nanoseconds wait_max = std::chrono::seconds{30};
};

// Throws invalid_argument for a limit out of range.
void check(const PermitConfig& config);

// --- What the store is asked ---

// Adds `n` to the count of a second, if it stays within `limit`.
struct CountPermits {
    std::int64_t second = 0;
    int n = 1;
    int limit = 0;
};

struct BucketState {
    std::int64_t tokens_milli = 0;
    std::int64_t refilled_ms = 0;  // Also detects concurrent writes.

    friend bool operator==(const BucketState&, const BucketState&) = default;
};

struct ReadBucket {};

// Writes `next`, if the bucket is as it was `seen`.
struct WriteBucket {
    BucketState next;
    std::optional<BucketState> seen{};  // Empty: there was none.
};

// Moves the clock on by `by_us`, if it shows `from_us` to `to_us`.
struct AdvanceClock {
    std::int64_t by_us = 0;
    std::int64_t from_us = 0;
    std::int64_t to_us = 0;
};

// Sets the clock, if it shows less than `before_us` or there is none.
struct SetClock {
    std::int64_t to_us = 0;
    std::int64_t before_us = 0;
};

using PermitWrite = std::variant<CountPermits, ReadBucket, WriteBucket, AdvanceClock, SetClock>;

// --- What the store answers ---

struct Written {
    std::int64_t value = 0;  // The stored value now: the count, or the clock.
};
struct NotWritten {                       // The condition did not hold.
    std::optional<std::int64_t> value{};  // Of the clock; empty if there is none.
};
struct BucketFound {
    std::optional<BucketState> state{};
};
struct Throttled {};  // The store throttles. Nothing was written.
struct NoAnswer {};   // The outcome is unknown.

using PermitAnswer = std::variant<Written, NotWritten, BucketFound, Throttled, NoAnswer>;

// Whether the store is reachable, for the breaker. A store that throttles is: it gives the fleet's
// permits to others meanwhile, and a share on top would be too many.
[[nodiscard]] inline bool is_heard(const PermitAnswer& answer) noexcept {
    return !std::holds_alternative<NoAnswer>(answer);
}

// --- What to do next ---

struct PauseUntil {
    Steady when{};
};

// The k-th of `n` permits can be used from `first + k * apart` on; the first may be in the past.
struct Permits {
    int n = 1;
    Steady first{};
    std::chrono::nanoseconds apart{};
};

struct NoPermit {};  // Not by the deadline.

using PermitStep = std::variant<PermitWrite, PauseUntil, Permits, NoPermit>;

// One request for permits. Not safe to share between threads.
class PermitRequest {
public:
    virtual ~PermitRequest() = default;

    // At the beginning, and after each pause.
    [[nodiscard]] virtual PermitStep next(const Moment& now) = 0;
    // To the write that was asked for.
    [[nodiscard]] virtual PermitStep answered(const Moment& now, const PermitAnswer& answer) = 0;
};

// What one request learns for the next, e.g. the clock as it was last seen.
struct PermitMemory {
    std::optional<std::int64_t> clock_us{};
};

// Requires: what is referred to outlives the request. Invalid_argument if `n` is more than the
// limit can ever give; zero or less is granted without asking.
[[nodiscard]] std::unique_ptr<PermitRequest> request_permits(const PermitConfig& config,
                                                             const FleetLimits& limits,
                                                             int n,
                                                             Steady deadline,
                                                             PermitMemory& memory,
                                                             Random& random);

// How far our wall clock is ahead of the store's, from the dates in its answers. They are in whole
// seconds, so each says only a range; what all of them allow is taken, and zero if that is among
// it. Not safe to share between threads.
class ClockSkew {
public:
    void observe(Wall sent, Wall received, std::chrono::sys_seconds date);
    [[nodiscard]] std::chrono::microseconds ahead() const noexcept;

private:
    std::optional<std::chrono::microseconds> least_;
    std::optional<std::chrono::microseconds> most_;
};

}  // namespace holdfast::pool
