#include <holdfast/pool/slot_blocks.hpp>

#include <algorithm>

#include "durations.hpp"
#include <fmt/core.h>

#include <holdfast/base/assert.hpp>
#include <holdfast/base/error.hpp>

namespace holdfast::pool {
namespace {

using std::chrono::nanoseconds;

}  // namespace

void check(const SlotBlocksConfig& config) {
    constexpr int size_max = 1000;
    constexpr int count_max = 10'000;
    if (config.size < 1 || config.size > size_max) {
        throw InvalidArgument(
            fmt::format("a block of {} slots is not valid; give 1 to {}", config.size, size_max));
    }
    if (config.count < 1 || config.count > count_max) {
        throw InvalidArgument(
            fmt::format("{} blocks of slots are not valid; give 1 to {}", config.count, count_max));
    }
    if (config.renew_every <= nanoseconds{0} || config.ttl < 3 * config.renew_every) {
        throw InvalidArgument(
            "a block of slots must live three times as long as the pause between two renewals");
    }
    if (config.local_cap < 0) {
        throw InvalidArgument("the local cap on connections is negative; give 0 or more");
    }
}

std::string_view to_string(BlockLoss why) noexcept {
    return why == BlockLoss::refused ? "refused" : "not_renewed";
}

SlotBlocks::SlotBlocks(const SlotBlocksConfig& config,
                       const FleetLimits& limits,
                       std::uint64_t seed)
    : config_(config), limits_(limits), random_(seed), walk_left_(config.count) {
    check(config);
    free_from_.assign(static_cast<std::size_t>(config.count), Steady::max());
    candidate_ = static_cast<int>(random_.below(static_cast<std::uint64_t>(config.count)));
}

void SlotBlocks::step(Steady now, const SlotEvent& event, SlotActions& out) {
    std::visit([&](const auto& what) { on(now, what, out); }, event);
    if (!stopped_) {
        expire(now, out);
        house_the_homeless(now);
        recover(now);
        renew(now, out);
        give_back(now, out);
        take_more(now, out);
    }
    plan_wake(now);
}

// --- Events ---

void SlotBlocks::on(Steady /*now*/, const WantSlots& want, SlotActions& /*out*/) {
    wanted_ = std::max(want.n, 0);
}

void SlotBlocks::on(Steady now, const BlockTaken& taken, SlotActions& out) {
    Block& block = pending(taken.block, Pending::take);
    --takes_;
    doubtful_.erase(taken.block);
    away_ = false;
    if (stopped_) {
        out.push_back(GiveBlockBack{.block = taken.block, .epoch = taken.epoch});
        blocks_.erase(taken.block);
        return;
    }
    own(block, block.asked);
    block.epoch = taken.epoch;
    block.empty_since = now;
    walk_anew(now);
    denied_ = false;
}

void SlotBlocks::on(Steady now, const BlockRefused& refused, SlotActions& out) {
    away_ = false;
    const auto found = blocks_.find(refused.block);
    if (found == blocks_.end()) {
        return;
    }
    if (found->second.pending == Pending::renewal) {
        found->second.pending = Pending::none;
        if (found->second.owned) {
            return lose(now, refused.block, BlockLoss::refused, out);
        }
        blocks_.erase(found);  // It was lost before the answer came.
        return;
    }
    --takes_;
    doubtful_.erase(refused.block);
    blocks_.erase(found);
    if (refused.free_in) {
        free_from_[static_cast<std::size_t>(refused.block)] =
            now + std::max(*refused.free_in, limits_.block_short_first / 2);
    }
    if (refused.slots && *refused.slots != config_.size) {
        out.push_back(BlockMismatch{.block = refused.block, .slots = *refused.slots});
    }
}

void SlotBlocks::on(Steady now, const BlockUnanswered& unanswered, SlotActions& /*out*/) {
    away_ = !unanswered.throttled;
    const auto found = blocks_.find(unanswered.block);
    if (found == blocks_.end()) {
        return;
    }
    const nanoseconds nap =
        limits_.store_retry / 2 + part_of(limits_.store_retry / 2, random_.unit());
    if (found->second.pending == Pending::renewal) {
        found->second.pending = Pending::none;
        found->second.renew_at = now + std::min(nap, config_.renew_every / 4);
        if (!found->second.owned) {
            blocks_.erase(found);
        }
        return;
    }
    // The block may be owned already; asking for the same one again finds that out.
    --takes_;
    blocks_.erase(found);
    doubtful_.insert(unanswered.block);
    take_from_ = now + nap;
    free_from_[static_cast<std::size_t>(unanswered.block)] = take_from_;
    if (away_) {  // Other blocks may have become free meanwhile.
        walk_anew(now);
    }
    degraded_ = degraded_ || (away_ && config_.local_cap > 0);
}

void SlotBlocks::on(Steady now, const BlockRenewed& renewed, SlotActions& /*out*/) {
    away_ = false;
    const auto found = blocks_.find(renewed.block);
    if (found == blocks_.end() || found->second.pending != Pending::renewal) {
        return;  // Given up meanwhile. Its time runs out.
    }
    const bool was_owned = found->second.owned;
    own(found->second, found->second.asked);  // Also if it was lost: it is owned again.
    if (!was_owned) {
        found->second.empty_since = now;
        if (!valid(found->second, now)) {
            blocks_.erase(found);
        }
    }
}

void SlotBlocks::on(Steady /*now*/, const SlotsTick& /*tick*/, SlotActions& /*out*/) {}

void SlotBlocks::on(Steady /*now*/, const StopSlots& /*stop*/, SlotActions& out) {
    HOLDFAST_ASSERT(slots_.empty());
    stopped_ = true;
    std::erase_if(blocks_, [&](const auto& entry) {
        if (entry.second.owned) {
            out.push_back(GiveBlockBack{.block = entry.first, .epoch = entry.second.epoch});
        }
        return entry.second.pending != Pending::take;  // Those are given back on their answer.
    });
    for (const int block : doubtful_) {
        out.push_back(GiveBlockBack{.block = block});
    }
    doubtful_.clear();
}

// --- Slots ---

std::optional<SlotId> SlotBlocks::acquire(Steady now) {
    if (stopped_) {
        return std::nullopt;
    }
    if (used() >= capacity(now)) {
        denied_ = true;
        return std::nullopt;
    }
    Block* fullest = nullptr;
    std::optional<int> home;
    for (auto& [number, block] : blocks_) {
        const bool room = valid(block, now) && block.used < config_.size;
        if (room && (fullest == nullptr || block.used > fullest->used)) {
            fullest = &block;
            home = number;
        }
    }
    if (fullest != nullptr) {
        ++fullest->used;
    }
    const SlotId slot{++births_};
    slots_.emplace(slot, home);
    return slot;
}

void SlotBlocks::release(Steady now, SlotId slot) {
    const auto found = slots_.find(slot);
    HOLDFAST_ASSERT(found != slots_.end());
    if (const auto home = found->second) {
        Block& block = blocks_.at(*home);
        HOLDFAST_ASSERT(block.used > 0);
        if (--block.used == 0) {
            block.empty_since = now;
        }
    }
    slots_.erase(found);
}

int SlotBlocks::capacity(Steady now) const noexcept {
    const int blocks = block_capacity(now);
    return degraded_ ? std::max(blocks, std::min(config_.local_cap, std::max(wanted_, 1))) : blocks;
}

int SlotBlocks::excess(Steady now) const noexcept {
    return std::max(used() - capacity(now), 0);
}

int SlotBlocks::blocks_owned(Steady now) const noexcept {
    return static_cast<int>(std::count_if(blocks_.begin(), blocks_.end(), [&](const auto& entry) {
        return valid(entry.second, now);
    }));
}

// --- Blocks ---

SlotBlocks::Block& SlotBlocks::pending(int block, Pending kind) {
    const auto found = blocks_.find(block);
    HOLDFAST_ASSERT(found != blocks_.end());
    HOLDFAST_ASSERT(found->second.pending == kind);
    return found->second;
}

bool SlotBlocks::valid(const Block& block, Steady now) const noexcept {
    return block.owned && now < block.valid_until;
}

int SlotBlocks::block_capacity(Steady now) const noexcept {
    return blocks_owned(now) * config_.size;
}

// `since` is when the write was sent: the store's time for it cannot have begun earlier.
void SlotBlocks::own(Block& block, Steady since) {
    const nanoseconds safety = std::max(limits_.block_safety_min, config_.ttl / 6);
    block.owned = true;
    block.pending = Pending::none;
    block.valid_until = since + config_.ttl - safety;
    // A little early, and not all blocks and processes together.
    block.renew_at = since + part_of(config_.renew_every, 0.9 + 0.1 * random_.unit());
}

void SlotBlocks::lose(Steady now, int number, BlockLoss why, SlotActions& out) {
    for (auto& [slot, home] : slots_) {
        if (home == number) {
            home.reset();
        }
    }
    Block& block = blocks_.at(number);
    if (block.pending == Pending::renewal) {  // Its answer must not be taken for another's.
        block.owned = false;
        block.used = 0;
    } else {
        blocks_.erase(number);
    }
    out.push_back(BlockLost{.block = number, .why = why});
    take_from_ = std::min(take_from_, now);
    walk_anew(now);  // In the store it may still be owned by this process.
}

void SlotBlocks::house_the_homeless(Steady now) {
    for (auto& [slot, home] : slots_) {
        if (home) {
            continue;
        }
        const auto room = std::find_if(blocks_.begin(), blocks_.end(), [&](const auto& entry) {
            return valid(entry.second, now) && entry.second.used < config_.size;
        });
        if (room == blocks_.end()) {
            return;
        }
        home = room->first;
        ++room->second.used;
    }
}

void SlotBlocks::expire(Steady now, SlotActions& out) {
    std::vector<int> ended;
    for (const auto& [number, block] : blocks_) {
        if (block.owned && now >= block.valid_until) {
            ended.push_back(number);
        }
    }
    for (const int number : ended) {
        degraded_ = degraded_ || (away_ && config_.local_cap > 0);
        lose(now, number, BlockLoss::not_renewed, out);
    }
}

void SlotBlocks::renew(Steady now, SlotActions& out) {
    for (auto& [number, block] : blocks_) {
        if (!block.owned || block.pending != Pending::none || now < block.renew_at) {
            continue;
        }
        block.pending = Pending::renewal;
        block.asked = now;
        out.push_back(RenewBlock{number});
    }
}

// One at a time, and only if that is not the beginning of fetching it again.
void SlotBlocks::give_back(Steady now, SlotActions& out) {
    for (const auto& [key, block] : blocks_) {
        const bool idle = valid(block, now) && block.pending == Pending::none && block.used == 0 &&
                          now - block.empty_since >= limits_.block_empty_max;
        const int left = block_capacity(now) - config_.size;
        if (!idle || left - used() < limits_.block_free_min * left || (left == 0 && wanted_ > 0)) {
            continue;
        }
        const GiveBlockBack back{.block = key, .epoch = block.epoch};
        blocks_.erase(back.block);
        out.push_back(back);
        return;
    }
}

void SlotBlocks::take_more(Steady now, SlotActions& out) {
    while (takes_ < limits_.block_takes_max && now >= take_from_ && wants_more(now)) {
        const auto number = next_candidate(now);
        if (!number) {
            break;
        }
        ++takes_;
        free_from_[static_cast<std::size_t>(*number)] = Steady::max();
        blocks_[*number] = {.pending = Pending::take, .asked = now};
        out.push_back(TakeBlock{*number});
    }
    if (walk_left_ == 0 && takes_ == 0) {
        end_walk(now, out);
    }
}

// Through all blocks, and without a pause before.
void SlotBlocks::walk_anew(Steady now) noexcept {
    walk_left_ = config_.count;
    walks_short_ = 0;
    walk_from_ = std::min(walk_from_, now);
}

// Every block has an owner, so the local cap does not apply. From now on only a part of them is
// asked for at a time: a fleet that wants more than there is would slow the store down for
// renewals.
void SlotBlocks::end_walk(Steady now, SlotActions& out) {
    walk_left_ = (config_.count + limits_.block_walk_parts - 1) / limits_.block_walk_parts;
    degraded_ = false;
    nanoseconds longest = limits_.block_short_first;
    for (int i = 0; i < walks_short_ && longest < limits_.block_short_most; ++i) {
        longest *= 2;
    }
    ++walks_short_;
    longest = std::min(longest, limits_.block_short_most);
    walk_from_ = now + longest / 2 + part_of(longest / 2, random_.unit());
    out.push_back(SlotsShort{});
}

bool SlotBlocks::wants_more(Steady now) const noexcept {
    const int coming = block_capacity(now) + takes_ * config_.size;
    const bool need = wanted_ > coming || (denied_ && takes_ == 0) || used() > coming;
    return need && coming - used() < std::max(limits_.block_free_min * coming, 1.0);
}

// A dead process's block as soon as it can be taken; else the next of the walk.
std::optional<int> SlotBlocks::next_candidate(Steady now) noexcept {
    if (next_free() <= now) {
        const auto first = std::min_element(free_from_.begin(), free_from_.end());
        return static_cast<int>(first - free_from_.begin());
    }
    while (walk_left_ > 0 && now >= walk_from_) {
        const int number = candidate_;
        candidate_ = (candidate_ + 1) % config_.count;
        --walk_left_;
        if (!blocks_.contains(number)) {
            return number;
        }
    }
    return std::nullopt;
}

Steady SlotBlocks::next_free() const noexcept {
    return *std::min_element(free_from_.begin(), free_from_.end());
}

// The local cap stays in force until our blocks can replace it.
void SlotBlocks::recover(Steady now) noexcept {
    const int blocks = block_capacity(now);
    if (degraded_ && !away_ && blocks > 0 && blocks >= used()) {
        degraded_ = false;
    }
}

void SlotBlocks::plan_wake(Steady now) noexcept {
    wake_ = Steady::max();
    if (stopped_) {
        return;
    }
    for (const auto& [number, block] : blocks_) {
        if (!block.owned) {
            continue;
        }
        wake_ = std::min(wake_, block.valid_until);
        if (block.pending == Pending::none) {
            wake_ = std::min(wake_, block.renew_at);
        }
        if (block.used == 0 && block.empty_since + limits_.block_empty_max > now) {
            wake_ = std::min(wake_, block.empty_since + limits_.block_empty_max);
        }
    }
    const Steady ask_from = std::max(take_from_, std::min(walk_from_, next_free()));
    if (ask_from > now && wants_more(now)) {
        wake_ = std::min(wake_, ask_from);
    }
}

}  // namespace holdfast::pool
