// Cluster metadata and membership. There is one partition of each, 0.
#pragma once

#include "locking_read.hpp"

#include <holdfast/sql/statement.hpp>

namespace holdfast::store::statements {

using sql::FencedStatement;
using sql::Statement;

inline constexpr Statement insert_cluster{
    "store.insert_cluster",
    "INSERT INTO cluster_metadata_info (metadata_partition, cluster_name, data, data_encoding, "
    "version) VALUES (0, $1, $2, $3, 1)"};
inline constexpr FencedStatement update_cluster{
    "store.update_cluster",
    "UPDATE cluster_metadata_info SET data = $3, data_encoding = $4, version = version + 1 "
    "WHERE metadata_partition = 0 AND cluster_name = $1 AND version = $2",
    "SELECT version FROM cluster_metadata_info "
    "WHERE metadata_partition = 0 AND cluster_name = $1"};
inline constexpr Statement select_cluster{
    "store.select_cluster",
    "SELECT version, data, data_encoding FROM cluster_metadata_info "
    "WHERE metadata_partition = 0 AND cluster_name = $1"};
inline constexpr LockingRead lock_cluster{
    "store.lock_cluster",
    "SELECT version FROM cluster_metadata_info "
    "WHERE metadata_partition = 0 AND cluster_name = $1 {for_update}"};
inline constexpr Statement page_of_clusters{
    "store.page_of_clusters",
    "SELECT cluster_name, version, data, data_encoding FROM cluster_metadata_info "
    "WHERE metadata_partition = 0 AND cluster_name > $1 ORDER BY cluster_name LIMIT $2"};
inline constexpr Statement delete_cluster{
    "store.delete_cluster",
    "DELETE FROM cluster_metadata_info WHERE metadata_partition = 0 AND cluster_name = $1"};

// $6 is how long the record is good for, in microseconds. The clock is read once; WHERE keeps
// SQLite from taking ON CONFLICT for a join's.
inline constexpr Statement upsert_member{
    "store.upsert_member",
    "INSERT INTO cluster_membership (membership_partition, host_id, rpc_address, rpc_port, role, "
    "session_start, heartbeat_us, expiry_us) "
    "SELECT 0, $1, $2, $3, $4, $5, n.us, n.us + $6 FROM (SELECT {now_us} AS us) n WHERE true "
    "ON CONFLICT (membership_partition, host_id) DO UPDATE SET rpc_address = excluded.rpc_address, "
    "rpc_port = excluded.rpc_port, role = excluded.role, session_start = excluded.session_start, "
    "heartbeat_us = excluded.heartbeat_us, expiry_us = excluded.expiry_us"};
// $1 after, $2 any host or $3, $4 any address or $5, $6 role or 0, $7 age or -1, $8 session start.
inline constexpr Statement page_of_members{
    "store.page_of_members",
    "SELECT host_id, rpc_address, rpc_port, role, session_start, heartbeat_us, expiry_us "
    "FROM cluster_membership WHERE membership_partition = 0 AND host_id > $1 "
    "AND ($2 OR host_id = $3) AND ($4 OR rpc_address = $5) AND ($6 = 0 OR role = $6) "
    "AND ($7 < 0 OR heartbeat_us > {now_us} - $7) AND session_start >= $8 "
    "AND expiry_us > {now_us} ORDER BY host_id LIMIT $9"};
// The expiry is compared outside, too: a host that was found and then said that it is alive, while
// this waited for its row, is looked at once more by that comparison, and by that one only.
inline constexpr Statement prune_members{
    "store.prune_members",
    "DELETE FROM cluster_membership WHERE membership_partition = 0 AND expiry_us < {now_us} "
    "AND host_id IN (SELECT host_id FROM cluster_membership WHERE membership_partition = 0 "
    "AND expiry_us < {now_us} ORDER BY expiry_us LIMIT $1)"};

}  // namespace holdfast::store::statements
