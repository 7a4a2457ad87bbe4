#include <holdfast/store/shard.hpp>

#include "execution/shard_mutex.hpp"
#include "execution/statements_shard.hpp"
#include "transaction.hpp"
#include <fmt/core.h>

namespace holdfast::store {
namespace {

std::optional<Shard> read_shard(sql::Database& db,
                                const Operation& operation,
                                ShardId id,
                                const Call& call) {
    const sql::Result found = run(db, operation, call, statements::select_shard, number(id));
    if (const auto row = found.rows.single()) {
        auto [range, data, encoding] = row->as<std::int64_t, sql::Bytes, std::string>();
        return Shard{.id = id,
                     .range = RangeId{range},
                     .info = {.data = std::move(data), .encoding = std::move(encoding)}};
    }
    return std::nullopt;
}

}  // namespace

Shards::Shards(sql::Database& db)
    : db_(db), shard_mutex_(std::make_unique<ShardMutex>(db.dialect())) {}

Shards::~Shards() = default;

std::optional<Shard> Shards::find(ShardId shard, const Call& call) const {
    return read_shard(db_, operation::get_shard, shard, call);
}

Shard Shards::get_or_create(const Shard& initial, const Call& call) {
    if (auto found = find(initial.id, call)) {
        return *std::move(found);
    }
    require_blob(db_.dialect(), initial.info);
    (void)run(db_,
              operation::create_shard,
              call,
              statements::insert_shard_once,
              number(initial.id),
              number(initial.range),
              initial.info.data,
              initial.info.encoding);
    if (auto found = find(initial.id, call)) {  // Ours, or that of a faster process.
        return *std::move(found);
    }
    throw NotFound(fmt::format("shard {} was deleted while it was created; shards stay for ever",
                               number(initial.id)));
}

void Shards::update(const Shard& shard, RangeId previous, const Call& call) {
    if (shard.range < previous) {
        throw InvalidArgument(
            fmt::format("shard {} cannot go back from range {} to {}; ranges grow",
                        number(shard.id),
                        number(previous),
                        number(shard.range)));
    }
    require_blob(db_.dialect(), shard.info);
    const ShardMutex::Hold turn = shard_mutex_->take(shard.id, call);
    transact(db_, operation::update_shard, call, [&](sql::Tx& tx) {
        sql::LockedRow locked = tx.ask_locked(fmt::format("shard {}", number(shard.id)),
                                              {std::int64_t{number(shard.id)}},
                                              statements::write_lock_shard);
        const auto row = locked.rows().single();
        const auto found = row ? std::optional(RangeId{row->get<std::int64_t>(0)}) : std::nullopt;
        if (found != previous) {
            throw ShardOwnershipLost({.shard = shard.id, .range = previous}, found);
        }
        tx.fenced(locked.verify({number(previous)}),
                  statements::update_shard,
                  number(shard.range),
                  shard.info.data,
                  shard.info.encoding);
    });
}

void Shards::assert_ownership(const ShardLease& lease, const Call& call) const {
    const auto found = read_shard(db_, operation::assert_shard, lease.shard, call);
    if (!found || found->range != lease.range) {
        throw ShardOwnershipLost(lease, found ? std::optional(found->range) : std::nullopt);
    }
}

}  // namespace holdfast::store
