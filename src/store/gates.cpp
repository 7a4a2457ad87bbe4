#include "gates.hpp"

#include <fmt/core.h>

#include <holdfast/base/error.hpp>

namespace holdfast::store {

Gates::Turn::~Turn() {
    if (gate_ == nullptr) {
        return;
    }
    {
        const std::lock_guard lock(gate_->mutex);
        gate_->taken = false;
    }
    gate_->freed.notify_one();
}

Gates::Turn Gates::take(ShardId shard, const Call& call) {
    if (!needed_) {
        return Turn(nullptr);
    }
    Gate& gate = gates_[static_cast<std::size_t>(shard) % count];
    std::unique_lock lock(gate.mutex);
    const bool free = gate.freed.wait_until(
        lock, call.stop, call.deadline.when(), [&gate] { return !gate.taken; });
    if (!free) {
        const bool stopped = call.stop.stop_requested();
        gate.freed.notify_one();  // The turn that was offered to us is the next one's.
        throw Error(stopped ? Code::cancelled : Code::deadline,
                    Outcome::not_applied,
                    fmt::format("the write for shard {} was {} while others wrote for it",
                                static_cast<int>(shard),
                                stopped ? "cancelled" : "overtaken by its deadline"));
    }
    gate.taken = true;
    return Turn(&gate);
}

}  // namespace holdfast::store
