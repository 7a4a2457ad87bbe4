// Nexus endpoints and the version of their table, which is the row of id 0.
#pragma once

#include "locking_read.hpp"

#include <holdfast/sql/statement.hpp>

namespace holdfast::store::statements {

using sql::FencedStatement;
using sql::Statement;

inline constexpr Statement insert_endpoints_version{
    "store.insert_endpoints_version",
    "INSERT INTO nexus_endpoints_partition_status (id, version) VALUES (0, 1)"};
inline constexpr FencedStatement update_endpoints_version{
    "store.update_endpoints_version",
    "UPDATE nexus_endpoints_partition_status SET version = version + 1 "
    "WHERE id = $1 AND version = $2",
    "SELECT version FROM nexus_endpoints_partition_status WHERE id = $1"};
inline constexpr Statement select_endpoints_version{
    "store.select_endpoints_version",
    "SELECT version FROM nexus_endpoints_partition_status WHERE id = 0"};
inline constexpr LockingRead lock_endpoints_version{
    "store.lock_endpoints_version",
    "SELECT version FROM nexus_endpoints_partition_status WHERE id = $1 {for_update}"};
inline constexpr Statement insert_endpoint{
    "store.insert_endpoint",
    "INSERT INTO nexus_endpoints (id, data, data_encoding, version) VALUES ($1, $2, $3, 1)"};
inline constexpr FencedStatement update_endpoint{
    "store.update_endpoint",
    "UPDATE nexus_endpoints SET data = $3, data_encoding = $4, version = version + 1 "
    "WHERE id = $1 AND version = $2",
    "SELECT version FROM nexus_endpoints WHERE id = $1"};
inline constexpr LockingRead lock_endpoint{
    "store.lock_endpoint", "SELECT version FROM nexus_endpoints WHERE id = $1 {for_update}"};
inline constexpr Statement select_endpoint{
    "store.select_endpoint",
    "SELECT id, version, data, data_encoding FROM nexus_endpoints WHERE id = $1"};
inline constexpr Statement page_of_endpoints{
    "store.page_of_endpoints",
    "SELECT id, version, data, data_encoding FROM nexus_endpoints "
    "WHERE id > $1 ORDER BY id LIMIT $2"};
inline constexpr FencedStatement delete_endpoint{
    "store.delete_endpoint",
    "DELETE FROM nexus_endpoints WHERE id = $1 AND version = $2",
    "SELECT version FROM nexus_endpoints WHERE id = $1"};

}  // namespace holdfast::store::statements
