#include "execution/shard_mutex.hpp"

#include <fmt/core.h>

#include <holdfast/base/error.hpp>

namespace holdfast::store {

ShardMutex::Hold::~Hold() {
    if (stripe_ == nullptr) {
        return;
    }
    {
        const std::lock_guard lock(stripe_->mutex);
        stripe_->taken = false;
    }
    stripe_->freed.notify_one();
}

ShardMutex::Hold ShardMutex::take(ShardId shard, const Call& call) {
    if (!needed_) {
        return Hold(nullptr);
    }
    Stripe& stripe = stripes_[static_cast<std::size_t>(shard) % count];
    std::unique_lock lock(stripe.mutex);
    const bool free = stripe.freed.wait_until(
        lock, call.stop, call.deadline.when(), [&stripe] { return !stripe.taken; });
    if (!free) {
        const bool stopped = call.stop.stop_requested();
        stripe.freed.notify_one();  // Passes the turn that was offered to us to the next.
        throw Error(stopped ? Code::cancelled : Code::deadline,
                    Outcome::not_applied,
                    fmt::format("the write for shard {} was {} while others wrote for it",
                                static_cast<int>(shard),
                                stopped ? "cancelled" : "overtaken by its deadline"));
    }
    stripe.taken = true;
    return Hold(&stripe);
}

}  // namespace holdfast::store
