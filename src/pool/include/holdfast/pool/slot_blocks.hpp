// The right to have connections exist, in blocks that processes take from a shared store.
//
// The fleet's limit is cut into blocks of slots. A process owns a block while it renews it; each
// of its connections occupies a slot. Nothing but taking, renewing and giving back blocks goes to
// the store: a slot is taken and released in memory.
//
//     free -> taken, renewed, renewed, ... -> given back
//                    \-> lost: not renewed in time, or another owner found there
//
// A block counts only while no other process can have taken it, by our own steady clock. After that
// the capacity shrinks at once, and excess connections must be closed. A pure state machine: it
// takes events with their times and returns what to ask the store.
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include <holdfast/base/clock.hpp>
#include <holdfast/base/random.hpp>
#include <holdfast/pool/fleet_limits.hpp>

namespace holdfast::pool {

struct SlotBlocksConfig {
    int size = 25;    // Slots in a block. All processes of a fleet must agree.
    int count = 400;  // Blocks in all.
    std::chrono::nanoseconds ttl = std::chrono::minutes{3};
    std::chrono::nanoseconds renew_every = std::chrono::minutes{1};
    // The most connections while the store does not answer and the owned blocks have run out. Zero:
    // none.
    int local_cap = 0;
};

// Throws invalid_argument, naming the field.
void check(const SlotBlocksConfig& config);

// Never repeats. The right to one connection, until it is released.
enum class SlotId : std::uint64_t {};

// --- What happened ---

// The number of slots that could be used: the targets of all pools.
struct WantSlots {
    int n = 0;
};
struct BlockTaken {
    int block = 0;
    std::int64_t epoch = 0;  // How often it has been taken, with this time.
};
struct BlockRefused {  // To a take or a renewal: another process has it.
    int block = 0;
    std::optional<int> slots{};  // The stored size.
    // When it can be taken from its owner, unless it is renewed. Empty: not known.
    std::optional<std::chrono::nanoseconds> free_in{};
};
struct BlockUnanswered {  // To a take or a renewal: the outcome is unknown.
    int block = 0;
    bool throttled = false;  // The store is reachable, but throttles: the local cap does not apply.
};
struct BlockRenewed {
    int block = 0;
};
struct SlotsTick {};
// Gives everything back. Requires: all slots were released.
struct StopSlots {};

using SlotEvent = std::variant<WantSlots,
                               BlockTaken,
                               BlockRefused,
                               BlockUnanswered,
                               BlockRenewed,
                               SlotsTick,
                               StopSlots>;

// --- What to do ---

// To be answered by BlockTaken, BlockRefused or BlockUnanswered.
struct TakeBlock {
    int block = 0;
};
// To be answered by BlockRenewed, BlockRefused or BlockUnanswered.
struct RenewBlock {
    int block = 0;
};
// Needs no answer: if it is lost, the block's time runs out. It applies only to the taking with
// this epoch: arriving late, it must not undo a later taking. Empty: it is unknown whether the
// block was taken, and it is not taken again.
struct GiveBlockBack {
    int block = 0;
    std::optional<std::int64_t> epoch{};
};

// For logs and metrics.
enum class BlockLoss { refused, not_renewed };
[[nodiscard]] std::string_view to_string(BlockLoss why) noexcept;
struct BlockLost {
    int block = 0;
    BlockLoss why = BlockLoss::refused;
};
struct BlockMismatch {  // Others cut the limit differently.
    int block = 0;
    int slots = 0;
};
struct SlotsShort {};  // Every block that was asked for has an owner; at first those are all.

using SlotAction =
    std::variant<TakeBlock, RenewBlock, GiveBlockBack, BlockLost, BlockMismatch, SlotsShort>;
using SlotActions = std::vector<SlotAction>;

// Not safe to share between threads. Requires of all calls: `now` never goes back.
class SlotBlocks {
public:
    SlotBlocks(const SlotBlocksConfig& config, const FleetLimits& limits, std::uint64_t seed);

    void step(Steady now, const SlotEvent& event, SlotActions& out);
    // When a SlotsTick is wanted if nothing happens before; Steady::max() if never.
    [[nodiscard]] Steady next_wake() const noexcept { return wake_; }

    // A slot of the fullest block. Empty if all are used; then step(SlotsTick) looks for more.
    [[nodiscard]] std::optional<SlotId> acquire(Steady now);
    // Requires: it was acquired and not released yet. Else a broken invariant.
    void release(Steady now, SlotId slot);

    // The connections that may exist now.
    [[nodiscard]] int capacity(Steady now) const noexcept;
    [[nodiscard]] int used() const noexcept { return static_cast<int>(slots_.size()); }
    // The number of connections to close.
    [[nodiscard]] int excess(Steady now) const noexcept;
    [[nodiscard]] int blocks_owned(Steady now) const noexcept;
    // Whether the local cap is in force.
    [[nodiscard]] bool degraded() const noexcept { return degraded_; }

private:
    enum class Pending : std::uint8_t { none, take, renewal };

    struct Block {
        bool owned = false;
        Pending pending = Pending::none;
        Steady asked{};        // When what is pending was sent.
        Steady valid_until{};  // Of one that is owned.
        Steady renew_at{};
        Steady empty_since{};
        std::int64_t epoch = 0;
        int used = 0;
    };

    void on(Steady now, const WantSlots& want, SlotActions& out);
    void on(Steady now, const BlockTaken& taken, SlotActions& out);
    void on(Steady now, const BlockRefused& refused, SlotActions& out);
    void on(Steady now, const BlockUnanswered& unanswered, SlotActions& out);
    void on(Steady now, const BlockRenewed& renewed, SlotActions& out);
    void on(Steady now, const SlotsTick& tick, SlotActions& out);
    void on(Steady now, const StopSlots& stop, SlotActions& out);

    [[nodiscard]] Block& pending(int block, Pending kind);
    [[nodiscard]] bool valid(const Block& block, Steady now) const noexcept;
    [[nodiscard]] int block_capacity(Steady now) const noexcept;
    void own(Block& block, Steady now);
    void lose(Steady now, int number, BlockLoss why, SlotActions& out);
    void house_the_homeless(Steady now);
    void expire(Steady now, SlotActions& out);
    void renew(Steady now, SlotActions& out);
    void give_back(Steady now, SlotActions& out);
    void take_more(Steady now, SlotActions& out);
    [[nodiscard]] bool wants_more(Steady now) const noexcept;
    [[nodiscard]] std::optional<int> next_candidate(Steady now) noexcept;
    [[nodiscard]] Steady next_free() const noexcept;
    void walk_anew(Steady now) noexcept;
    void end_walk(Steady now, SlotActions& out);
    void recover(Steady now) noexcept;
    void plan_wake(Steady now) noexcept;

    const SlotBlocksConfig config_;
    const FleetLimits limits_;
    Random random_;
    bool stopped_ = false;

    std::map<int, Block> blocks_;  // Those owned, or asked about.
    // The block of each slot; slots of a lost block have none until there is room.
    std::unordered_map<SlotId, std::optional<int>> slots_;
    std::uint64_t births_ = 0;
    int wanted_ = 0;
    bool denied_ = false;  // A request was refused since the last block came.

    int takes_ = 0;                  // Under way.
    std::set<int> doubtful_;         // Takes of unknown outcome: they may be owned.
    int candidate_ = 0;              // The block where the walk goes on,
    int walk_left_;                  // and how many are asked for before it pauses.
    int walks_short_ = 0;            // In a row.
    Steady walk_from_{};             // It goes on then.
    std::vector<Steady> free_from_;  // By block: can be taken from its owner then.
    Steady take_from_{};             // Nothing is asked for before this.
    bool away_ = false;              // The latest call was not answered.
    bool degraded_ = false;
    Steady wake_ = Steady::max();
};

}  // namespace holdfast::pool
