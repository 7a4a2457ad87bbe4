// Shards and their owners.
//
// A shard is a row with a range id. A new owner writes a greater one; from then on every
// write under the former range is refused, in the same transaction that would have made it. So a
// process that was paused for an hour can do no harm when it wakes.
#pragma once

#include <memory>
#include <optional>

#include <holdfast/store/error.hpp>
#include <holdfast/store/types.hpp>

namespace holdfast::sql {
class Database;
}

namespace holdfast::store {

struct Shard {
    ShardId id{};
    RangeId range{};
    Blob info{};

    friend bool operator==(const Shard&, const Shard&) = default;
};

class ShardMutex;

// Safe to share between threads. One for all writers of a database in a process: where conflicts
// do not wait but fail, writers of one shard take turns before they reach the database, else they
// would only drive each other to repeat their work.
class Shards {
public:
    // Requires: `db` outlives this object, and its schema holds the part `store`.
    explicit Shards(sql::Database& db);
    ~Shards();
    Shards(const Shards&) = delete;
    Shards& operator=(const Shards&) = delete;

    [[nodiscard]] std::optional<Shard> find(ShardId shard, const Call& call = {}) const;
    // The stored shard, else `initial`, which is stored then. Of several calls that create one at
    // once, one does, and all see what it wrote.
    [[nodiscard]] Shard get_or_create(const Shard& initial, const Call& call = {});

    // Stores `shard` if its range is still `previous`; else throws ShardOwnershipLost. Taking a
    // shard is an update to a greater range; saving its info leaves the range.
    // Requires: shard.range >= previous, else invalid_argument: a range never shrinks.
    void update(const Shard& shard, RangeId previous, const Call& call = {});

    // Throws ShardOwnershipLost unless the lease holds. It may be lost as soon as this returns:
    // writes prove it for themselves.
    void assert_ownership(const ShardLease& lease, const Call& call = {}) const;

    [[nodiscard]] sql::Database& database() const noexcept { return db_; }
    [[nodiscard]] ShardMutex& shard_mutex() const noexcept {
        return *shard_mutex_;
    }  // For this floor.

private:
    sql::Database& db_;
    std::unique_ptr<ShardMutex> shard_mutex_;
};

}  // namespace holdfast::store
