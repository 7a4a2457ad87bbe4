// History: HistoryNode, HistoryTree.
//
// `txn_id` is stored with its sign turned; the statements take and give the stored one.
#pragma once

#include "locking_read.hpp"

#include <holdfast/sql/statement.hpp>

namespace holdfast::store::statements {

using sql::Statement;

// ---- Nodes ------------------------------------------------------------------------------------

inline constexpr Statement insert_node{
    "store.insert_node",
    "INSERT INTO history_node (shard_id, tree_id, branch_id, node_id, txn_id, prev_txn_id, data, "
    "data_encoding) VALUES ($1, $2, $3, $4, $5, $6, $7, $8) "
    "ON CONFLICT (shard_id, tree_id, branch_id, node_id, txn_id) DO UPDATE SET "
    "prev_txn_id = excluded.prev_txn_id, data = excluded.data, "
    "data_encoding = excluded.data_encoding"};
inline constexpr Statement delete_node{
    "store.delete_node",
    "DELETE FROM history_node WHERE shard_id = $1 AND tree_id = $2 AND branch_id = $3 "
    "AND node_id = $4 AND txn_id = $5"};
// From after ($4, $5) up to before node $6.
inline constexpr Statement range_nodes{
    "store.range_nodes",
    "SELECT node_id, txn_id, prev_txn_id, data, data_encoding FROM history_node "
    "WHERE shard_id = $1 AND tree_id = $2 AND branch_id = $3 AND (node_id, txn_id) > ($4, $5) "
    "AND node_id < $6 ORDER BY node_id, txn_id LIMIT $7"};
inline constexpr Statement range_node_metadata{
    "store.range_node_metadata",
    "SELECT node_id, txn_id, prev_txn_id FROM history_node "
    "WHERE shard_id = $1 AND tree_id = $2 AND branch_id = $3 AND (node_id, txn_id) > ($4, $5) "
    "AND node_id < $6 ORDER BY node_id, txn_id LIMIT $7"};
// From before ($4, $5) down to node $6.
inline constexpr Statement range_nodes_back{
    "store.range_nodes_back",
    "SELECT node_id, txn_id, prev_txn_id, data, data_encoding FROM history_node "
    "WHERE shard_id = $1 AND tree_id = $2 AND branch_id = $3 AND (node_id, txn_id) < ($4, $5) "
    "AND node_id >= $6 ORDER BY node_id DESC, txn_id DESC LIMIT $7"};
// The newest transaction before node $5, from node $4 on; null if there is none.
inline constexpr Statement newest_before{
    "store.newest_before",
    "SELECT min(txn_id) FROM history_node WHERE shard_id = $1 AND tree_id = $2 "
    "AND branch_id = $3 AND node_id >= $4 AND node_id < $5"};
// $5 of them at most, the first first.
inline constexpr Statement delete_nodes{
    "store.delete_nodes",
    "DELETE FROM history_node WHERE shard_id = $1 AND tree_id = $2 AND branch_id = $3 "
    "AND node_id >= $4 AND (node_id, txn_id) <= (coalesce("
    "(SELECT node_id FROM history_node WHERE shard_id = $1 AND tree_id = $2 AND branch_id = $3 "
    "AND node_id >= $4 ORDER BY node_id, txn_id LIMIT 1 OFFSET $5 - 1)"
    ", 9223372036854775807), coalesce("
    "(SELECT txn_id FROM history_node WHERE shard_id = $1 AND tree_id = $2 AND branch_id = $3 "
    "AND node_id >= $4 ORDER BY node_id, txn_id LIMIT 1 OFFSET $5 - 1)"
    ", 9223372036854775807))"};

// ---- Trees ------------------------------------------------------------------------------------

inline constexpr Statement insert_tree{
    "store.insert_tree",
    "INSERT INTO history_tree (shard_id, tree_id, branch_id, data, data_encoding) "
    "VALUES ($1, $2, $3, $4, $5) ON CONFLICT (shard_id, tree_id, branch_id) DO UPDATE SET "
    "data = excluded.data, data_encoding = excluded.data_encoding"};
inline constexpr Statement select_tree{"store.select_tree",
                                       "SELECT branch_id, data, data_encoding FROM history_tree "
                                       "WHERE shard_id = $1 AND tree_id = $2"};
inline constexpr LockingRead lock_branch{
    "store.lock_branch",
    "SELECT data, data_encoding FROM history_tree "
    "WHERE shard_id = $1 AND tree_id = $2 AND branch_id = $3 {for_update}"};
inline constexpr Statement page_of_trees{
    "store.page_of_trees",
    "SELECT shard_id, tree_id, branch_id, data, data_encoding FROM history_tree "
    "WHERE (shard_id, tree_id, branch_id) > ($1, $2, $3) "
    "ORDER BY shard_id, tree_id, branch_id LIMIT $4"};
inline constexpr Statement delete_tree{
    "store.delete_tree",
    "DELETE FROM history_tree WHERE shard_id = $1 AND tree_id = $2 AND branch_id = $3"};

}  // namespace holdfast::store::statements
