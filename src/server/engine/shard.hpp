// A shard that this process owns: the lease under which it writes, and the ids that it gives.
//
// A write whose outcome is unknown may still land. So before its run is read again the shard is
// taken once more under the next range, when no other write is under way: then a late commit of the
// lost write is refused by the store.
#pragma once

#include <cstdint>
#include <mutex>
#include <shared_mutex>

#include <holdfast/base/uuid.hpp>
#include <holdfast/store/shard.hpp>

namespace holdfast {
class Logger;
}

namespace holdfast::server::engine {

// Safe to share between threads.
class Shard {
public:
    // Requires: `shards` and `log` outlive this object.
    Shard(store::Shards& shards, store::ShardId id, Logger& log);

    [[nodiscard]] store::ShardId id() const noexcept { return id_; }

    // Takes the shard from whichever process had it. Blocks.
    void take();

    // Unique among all owners of the shard, and greater than all before it.
    [[nodiscard]] std::int64_t next_id();

    // A write under the lease; while it lives the shard is not taken again. Throws unavailable once
    // another process has the shard.
    class Write {
    public:
        [[nodiscard]] const store::ShardLease& lease() const noexcept { return lease_; }

    private:
        friend class Shard;
        Write(std::shared_lock<std::shared_mutex> lock, store::ShardLease lease)
            : lock_(std::move(lock)), lease_(lease) {}
        std::shared_lock<std::shared_mutex> lock_;
        store::ShardLease lease_;
    };
    [[nodiscard]] Write write();

    // After a write under `lease` whose outcome is unknown. Of several callers one takes the shard
    // again; all return when it is taken. Requires: the caller's own Write is gone.
    void retake(const store::ShardLease& lease);

    // After a write under `lease` that was refused because the range is another one: it may be this
    // process that wrote it, by a call whose answer was lost. Otherwise the shard is lost.
    void refused(const store::ShardLease& lease);

    // Throws unavailable if another process has the shard, as far as this one knows.
    void require_owned() const;

private:
    void take_locked();
    void require_owned_locked() const;
    [[nodiscard]] bool is_ours(const store::Shard& kept) const;

    store::Shards& shards_;
    const store::ShardId id_;
    const Uuid owner_ = Uuid::v4();  // Kept beside the range, to know our own.
    Logger& log_;

    // Locked in this order. The gate lets the taking of a shard in before new writes.
    mutable std::mutex gate_;
    mutable std::shared_mutex writes_;  // Shared by writes; held alone while the shard is taken.
    store::RangeId range_{};
    bool lost_ = false;

    std::mutex ids_mutex_;
    std::int64_t next_ = 0;
    std::int64_t end_ = 0;
};

}  // namespace holdfast::server::engine
