// Nodes of a history inside a transaction of the caller.
#pragma once

#include <span>

#include <holdfast/sql/tx.hpp>
#include <holdfast/store/history.hpp>

namespace holdfast::store {

// Throws InvalidPersistenceRequest or TransactionSizeLimit if the node cannot be appended.
void require_append(const sql::Dialect& dialect, const AppendRequest& request);

// When the new branches among them were recorded: the database's time, read in the round trip of
// earlier statements. Without new branches it is not read.
[[nodiscard]] sql::Timestamp birth_of_branches(sql::Tx& tx, std::span<const AppendRequest> nodes);

// Requires: require_append() passed. Does not wait.
void append_nodes(sql::Tx& tx, std::span<const AppendRequest> nodes, sql::Timestamp now);

}  // namespace holdfast::store
