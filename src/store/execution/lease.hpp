// The one way from this floor to a transaction that writes for a shard: under its lease.
#pragma once

#include <optional>
#include <type_traits>

#include "execution/shard_mutex.hpp"
#include "transaction.hpp"

#include <holdfast/sql/tx.hpp>
#include <holdfast/store/shard.hpp>

namespace holdfast::store {

// Locks the shard's row, in the round trip of what the transaction reads or writes next.
class LeaseProof {
public:
    LeaseProof(sql::Tx& tx, const ShardLease& lease);

    // Throws ShardOwnershipLost unless the lease holds, and so keeps all that the transaction has
    // queued from being committed. The first call waits for the answer.
    void require();

private:
    ShardLease lease_;
    std::optional<sql::Answer> locked_;
};

// Runs `body(tx, proof)`. The lease is proved at the latest when the body has ended; a body that
// decides by what it reads asks for the proof before.
template <class Body>
auto transact_under(Shards& shards,
                    const ShardLease& lease,
                    const Operation& operation,
                    const sql::TxOptions& options,
                    const Call& call,
                    const Body& body) {
    using Made = std::invoke_result_t<const Body&, sql::Tx&, LeaseProof&>;
    const ShardMutex::Hold turn = shards.shard_mutex().take(lease.shard, call);
    return transact(shards.database(), operation, options, [&](sql::Tx& tx) -> Made {
        LeaseProof proof(tx, lease);
        if constexpr (std::is_void_v<Made>) {
            body(tx, proof);
            proof.require();
        } else {
            Made made = body(tx, proof);
            proof.require();
            return made;
        }
    });
}
template <class Body>
auto transact_under(Shards& shards,
                    const ShardLease& lease,
                    const Operation& operation,
                    const Call& call,
                    const Body& body) {
    return transact_under(shards, lease, operation, options_of(operation, call), call, body);
}

}  // namespace holdfast::store
