// Nodes of a history inside a transaction of the caller.
#pragma once

#include <span>

#include <holdfast/sql/tx.hpp>
#include <holdfast/store/history.hpp>

namespace holdfast::store {

// Throws InvalidPersistenceRequest or TransactionSizeLimit if the node cannot be appended.
void require_append(const sql::Dialect& dialect, const AppendRequest& request);

// Appends of one transaction, in three steps that fit into its two round trips.
// Requires: require_append() passed, and the shard is locked. `nodes` outlive this object.
class Appends {
public:
    // Asks for the parents of new branches, locked, and for the time at which they are recorded.
    // Without new branches neither is asked for.
    Appends(sql::Tx& tx, ShardId shard, std::span<const AppendRequest> nodes);
    // Throws NotFound if a parent is not known or is being deleted.
    void require_parents();
    // Does not wait.
    void write(sql::Tx& tx) const;

private:
    struct Parent {
        TreeId tree;
        BranchId id;
        sql::Answer locked;
    };

    ShardId shard_;
    std::span<const AppendRequest> nodes_;
    std::vector<Parent> parents_;
    sql::Timestamp now_{};
};

}  // namespace holdfast::store
