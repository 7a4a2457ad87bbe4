#include "engine/shard.hpp"

#include <algorithm>
#include <utility>

#include <holdfast/base/error.hpp>
#include <holdfast/base/log.hpp>

namespace holdfast::server::engine {

namespace {

constexpr std::int64_t ids_per_range = std::int64_t{1} << 24;

}  // namespace

Shard::Shard(store::Shards& shards, store::ShardId id, Logger& log)
    : shards_(shards), id_(id), log_(log) {}

void Shard::take() {
    const std::lock_guard gate(gate_);
    const std::unique_lock lock(writes_);
    take_locked();
}

// A range that was written by a call whose answer was lost is taken over by the next one.
void Shard::take_locked() {
    require_owned_locked();
    store::Shard kept =
        shards_.get_or_create({.id = id_, .range = store::RangeId{0}, .info = {{}, "none"}});
    const store::RangeId previous = kept.range;
    const bool first_take = range_ == store::RangeId{};
    if (!first_take && !is_ours(kept)) {
        lost_ = true;
        require_owned_locked();
    }
    kept.range = store::RangeId{static_cast<std::int64_t>(previous) + 1};
    kept.info = {.data = {owner_.bytes.begin(), owner_.bytes.end()}, .encoding = "owner"};
    shards_.update(kept, previous);
    range_ = kept.range;

    const std::lock_guard ids(ids_mutex_);
    next_ = static_cast<std::int64_t>(range_) * ids_per_range;
    end_ = next_ + ids_per_range;
}

std::int64_t Shard::next_id() {
    while (true) {
        {
            const std::lock_guard lock(ids_mutex_);
            if (next_ < end_) {
                return next_++;
            }
        }
        const std::lock_guard gate(gate_);
        const std::unique_lock lock(writes_);
        const bool used_up = [&] {
            const std::lock_guard ids(ids_mutex_);
            return next_ >= end_;
        }();
        if (used_up) {
            take_locked();
        }
    }
}

Shard::Write Shard::write() {
    std::unique_lock gate(gate_);
    std::shared_lock lock(writes_);
    gate.unlock();
    require_owned_locked();
    return {std::move(lock), {.shard = id_, .range = range_}};
}

void Shard::retake(const store::ShardLease& lease) {
    const std::lock_guard gate(gate_);
    const std::unique_lock lock(writes_);
    if (lease.range == range_) {
        log_.warn("shard taken again after a write without an answer",
                  {{"shard", static_cast<int>(id_)}, {"range", static_cast<std::int64_t>(range_)}});
        take_locked();
    }
}

void Shard::refused(const store::ShardLease& lease) {
    const std::lock_guard gate(gate_);
    const std::unique_lock lock(writes_);
    if (lease.range != range_ || lost_) {
        return;
    }
    const std::optional<store::Shard> kept = shards_.find(id_);
    if (kept && is_ours(*kept)) {
        take_locked();
        return;
    }
    lost_ = true;
    log_.error("shard lost to another process", {{"shard", static_cast<int>(id_)}});
}

bool Shard::is_ours(const store::Shard& kept) const {
    return std::ranges::equal(kept.info.data, owner_.bytes);
}

void Shard::require_owned() const {
    const std::shared_lock lock(writes_);
    require_owned_locked();
}

void Shard::require_owned_locked() const {
    if (lost_) {
        throw Error(Code::unavailable,
                    Outcome::not_applied,
                    "another process serves this database now; restart this one to take it back");
    }
}

}  // namespace holdfast::server::engine
