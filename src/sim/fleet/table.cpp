#include "fleet/table.hpp"

#include <fmt/core.h>

namespace holdfast::sim {
namespace {

using std::chrono::ceil;
using std::chrono::microseconds;
using std::chrono::seconds;

constexpr std::chrono::sys_days start{std::chrono::year{2026} / std::chrono::January / 1};
constexpr std::int64_t seconds_kept = 60;  // Clocks may differ, but not by that much.

Reply conflict(const pool::LeaseAction& what) {
    constexpr auto met = pool::LeaseAnswer::conflict;
    if (const auto* acquire = std::get_if<pool::AcquireLease>(&what)) {
        return pool::LeaseEvent{pool::LeaseAcquired{.lease = acquire->lease, .answer = met}};
    }
    return pool::LeaseEvent{
        pool::LeaseReleased{.lease = std::get<pool::ReleaseLease>(what).lease, .answer = met}};
}

std::string name_of(Owner owner) {
    return fmt::format("{}.{}", owner.process, owner.life);
}

}  // namespace

Wall wall_of(Time now) noexcept {
    return start + std::chrono::floor<microseconds>(now);
}

Table::Table(const SharedTable& config, const Slots& slots, int ceiling)
    : config_(config), slots_(slots), ceiling_(ceiling) {}

std::optional<Reply> Table::ask(Time now, Owner owner, Wall said, const Ask& what) {
    if (const auto* write = std::get_if<pool::PermitWrite>(&what)) {
        Pace* const pace = pace_of(*write);
        if (pace != nullptr && too_many(now, *pace)) {
            return std::nullopt;
        }
        return std::visit([this](const auto& one) { return on(one); }, *write);
    }
    if (const auto* action = std::get_if<pool::SlotAction>(&what)) {
        return on(owner, said, *action);
    }
    const auto& action = std::get<pool::LeaseAction>(what);
    if (std::holds_alternative<pool::BeatHeart>(action)) {
        return on(owner, said, action);
    }
    if (too_many(now, lease_pace_)) {
        return std::nullopt;
    }
    return conflicts(now) ? conflict(action) : on(owner, said, action);
}

// A transaction takes its time, and one that finds another at its item is cancelled: the
// first one stays.
bool Table::conflicts(Time now) {
    if (now < lease_busy_until_) {
        ++conflicts_;
        return true;
    }
    lease_busy_until_ = now + config_.transaction;
    return false;
}

Reply Table::silence(const Ask& what, bool throttled) {
    if (std::holds_alternative<pool::PermitWrite>(what)) {
        return throttled ? pool::PermitAnswer{pool::Throttled{}}
                         : pool::PermitAnswer{pool::NoAnswer{}};
    }
    if (const auto* action = std::get_if<pool::SlotAction>(&what)) {
        if (const auto* take = std::get_if<pool::TakeBlock>(action)) {
            return pool::SlotEvent{
                pool::BlockUnanswered{.block = take->block, .throttled = throttled}};
        }
        if (const auto* renew = std::get_if<pool::RenewBlock>(action)) {
            return pool::SlotEvent{
                pool::BlockUnanswered{.block = renew->block, .throttled = throttled}};
        }
        return pool::SlotEvent{pool::SlotsTick{}};
    }
    const auto none = throttled ? pool::LeaseAnswer::throttled : pool::LeaseAnswer::unanswered;
    const auto& action = std::get<pool::LeaseAction>(what);
    if (const auto* acquire = std::get_if<pool::AcquireLease>(&action)) {
        return pool::LeaseEvent{pool::LeaseAcquired{.lease = acquire->lease, .answer = none}};
    }
    if (const auto* release = std::get_if<pool::ReleaseLease>(&action)) {
        return pool::LeaseEvent{pool::LeaseReleased{.lease = release->lease, .answer = none}};
    }
    return pool::LeaseEvent{pool::HeartAnswered{.throttled = throttled}};
}

void Table::leave(Owner owner) {
    for (auto& [number, block] : blocks_) {
        if (block.owner == owner) {
            block.owner.reset();
        }
    }
    active_ -= static_cast<std::int64_t>(
        std::erase_if(leases_, [&](const auto& entry) { return entry.second == owner; }));
    alive_until_.erase(owner);
}

std::vector<Owner> Table::lease_owners() const {
    std::vector<Owner> owners;
    owners.reserve(leases_.size());
    for (const auto& [lease, owner] : leases_) {
        owners.push_back(owner);
    }
    return owners;
}

void Table::reap(Time now, const pool::FleetLimits& limits) {
    std::vector<pool::OwnerSeen> owners;
    for (const auto& [owner, until] : alive_until_) {
        owners.push_back({.owner = name_of(owner), .alive_until = until});
    }
    std::vector<pool::LeaseSeen> leases;
    for (const auto& [lease, owner] : leases_) {
        leases.push_back({.lease = lease, .owner = name_of(owner)});
    }
    for (const pool::LeaseId& lease : leases_to_reap(owners, leases, wall_of(now), limits)) {
        active_ -= static_cast<std::int64_t>(leases_.erase(lease));
    }
    const Wall dead_before = wall_of(now) - ceil<microseconds>(limits.steal_after);
    std::erase_if(alive_until_, [&](const auto& entry) { return entry.second < dead_before; });
}

// A write that fails its condition costs as much as another.
bool Table::too_many(Time now, Pace& pace) {
    const auto second = std::chrono::floor<seconds>(now);
    if (pace.second != second) {
        pace = {.second = second};
    }
    const bool refused = ++pace.writes > config_.writes_per_item;
    throttled_ += refused ? 1 : 0;
    return refused;
}

Table::Pace* Table::pace_of(const pool::PermitWrite& what) {
    if (const auto* count = std::get_if<pool::CountPermits>(&what)) {
        counts_.erase(counts_.begin(), counts_.lower_bound(count->second - seconds_kept));
        return &counts_[count->second].pace;
    }
    return std::holds_alternative<pool::ReadBucket>(what) ? nullptr : &permit_pace_;
}

pool::PermitAnswer Table::on(const pool::CountPermits& what) {
    int& permits = counts_[what.second].permits;
    if (permits + what.n > what.limit) {
        return pool::NotWritten{};
    }
    permits += what.n;
    return pool::Written{permits};
}

pool::PermitAnswer Table::on(const pool::ReadBucket& /*what*/) const {
    return pool::BucketFound{bucket_};
}

pool::PermitAnswer Table::on(const pool::WriteBucket& what) {
    const bool same = bucket_.has_value() == what.seen.has_value() &&
                      (!bucket_ || bucket_->refilled_ms == what.seen->refilled_ms);
    if (!same) {
        return pool::NotWritten{};
    }
    bucket_ = what.next;
    return pool::Written{};
}

pool::PermitAnswer Table::on(const pool::AdvanceClock& what) {
    if (!clock_us_ || *clock_us_ < what.from_us || *clock_us_ > what.to_us) {
        return pool::NotWritten{clock_us_};
    }
    *clock_us_ += what.by_us;
    return pool::Written{*clock_us_};
}

pool::PermitAnswer Table::on(const pool::SetClock& what) {
    if (clock_us_ && *clock_us_ >= what.before_us) {
        return pool::NotWritten{clock_us_};
    }
    clock_us_ = what.to_us;
    return pool::Written{*clock_us_};
}

pool::SlotEvent Table::on(Owner owner, Wall said, const pool::SlotAction& what) {
    const auto ttl = ceil<microseconds>(slots_.ttl);
    if (const auto* take = std::get_if<pool::TakeBlock>(&what)) {
        Block& block = blocks_[take->block];
        const bool dead = block.until < said - ceil<microseconds>(limits_.steal_after);
        if (block.owner && *block.owner != owner && !dead) {
            return pool::BlockRefused{.block = take->block, .slots = slots_.block};
        }
        block = {.owner = owner, .until = said + ttl};
        return pool::BlockTaken{take->block};
    }
    if (const auto* renew = std::get_if<pool::RenewBlock>(&what)) {
        Block& block = blocks_[renew->block];
        if (block.owner != owner) {
            return pool::BlockRefused{.block = renew->block, .slots = slots_.block};
        }
        block.until = said + ttl;
        return pool::BlockRenewed{renew->block};
    }
    if (const auto* back = std::get_if<pool::GiveBlockBack>(&what)) {
        Block& block = blocks_[back->block];
        if (block.owner == owner) {
            block.owner.reset();
        }
    }
    return pool::SlotsTick{};
}

// A lease and its count change together. One that is there already was asked for twice.
pool::LeaseEvent Table::on(Owner owner, Wall said, const pool::LeaseAction& what) {
    if (const auto* acquire = std::get_if<pool::AcquireLease>(&what)) {
        if (active_ >= ceiling_ && !leases_.contains(acquire->lease)) {
            return pool::LeaseAcquired{.lease = acquire->lease, .answer = pool::LeaseAnswer::full};
        }
        active_ += leases_.emplace(acquire->lease, owner).second ? 1 : 0;
        return pool::LeaseAcquired{.lease = acquire->lease};
    }
    if (const auto* release = std::get_if<pool::ReleaseLease>(&what)) {
        active_ -= static_cast<std::int64_t>(leases_.erase(release->lease));
        return pool::LeaseReleased{.lease = release->lease};
    }
    alive_until_[owner] = said + ceil<microseconds>(limits_.owner_lease);
    return pool::HeartAnswered{.done = true};
}

}  // namespace holdfast::sim
