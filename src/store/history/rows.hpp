// Nodes of a history inside a transaction of the caller.
#pragma once

#include <span>

#include <holdfast/sql/tx.hpp>
#include <holdfast/store/history.hpp>

namespace holdfast::store {

// Throws InvalidPersistenceRequest or TransactionSizeLimit if the node cannot be appended.
void require_append(const sql::Dialect& dialect, const AppendRequest& request);

// When the branches among them that are new were made known: the database's time, which travels
// with what was asked before. Nobody is asked if there is none.
[[nodiscard]] sql::Timestamp birth_of_branches(sql::Tx& tx, std::span<const AppendRequest> nodes);

// Requires: require_append() was content. Nothing is waited for.
void append_nodes(sql::Tx& tx, std::span<const AppendRequest> nodes, sql::Timestamp now);

}  // namespace holdfast::store
