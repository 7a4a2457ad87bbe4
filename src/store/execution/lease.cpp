#include "execution/lease.hpp"

#include "execution/statements_shard.hpp"

namespace holdfast::store {

LeaseProof::LeaseProof(sql::Tx& tx, const ShardLease& lease)
    : lease_(lease), locked_(tx.ask(statements::read_lock_shard, number(lease.shard))) {}

void LeaseProof::require() {
    if (!locked_) {
        return;
    }
    const sql::Rows rows = locked_->rows();
    locked_.reset();
    const auto row = rows.single();
    const auto found = row ? std::optional(RangeId{row->get<std::int64_t>(0)}) : std::nullopt;
    if (found != lease_.range) {
        throw ShardOwnershipLost(lease_, found);
    }
}

}  // namespace holdfast::store
