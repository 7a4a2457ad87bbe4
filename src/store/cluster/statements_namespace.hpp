// Namespaces. There is one partition, 54321.
#pragma once

#include "locking_read.hpp"

#include <holdfast/sql/statement.hpp>

namespace holdfast::store::statements {

using sql::FencedStatement;
using sql::Statement;

inline constexpr Statement insert_namespace{
    "store.insert_namespace",
    "INSERT INTO namespaces (partition_id, id, name_digest, name, notification_version, data, "
    "data_encoding, is_global) VALUES (54321, $1, $2, $3, $4, $5, $6, $7)"};
inline constexpr Statement update_namespace{
    "store.update_namespace",
    "UPDATE namespaces SET name_digest = $2, name = $3, notification_version = $4, data = $5, "
    "data_encoding = $6, is_global = $7 WHERE partition_id = 54321 AND id = $1"};
inline constexpr Statement select_namespace{
    "store.select_namespace",
    "SELECT id, name, notification_version, data, data_encoding, is_global FROM namespaces "
    "WHERE partition_id = 54321 AND id = $1"};
inline constexpr Statement select_namespace_by_name{
    "store.select_namespace_by_name",
    "SELECT id, name, notification_version, data, data_encoding, is_global FROM namespaces "
    "WHERE name_digest = $1"};
inline constexpr Statement page_of_namespaces{
    "store.page_of_namespaces",
    "SELECT id, name, notification_version, data, data_encoding, is_global FROM namespaces "
    "WHERE partition_id = 54321 AND id > $1 ORDER BY id LIMIT $2"};
inline constexpr Statement delete_namespace{
    "store.delete_namespace", "DELETE FROM namespaces WHERE partition_id = 54321 AND id = $1"};
inline constexpr Statement delete_namespace_by_name{
    "store.delete_namespace_by_name",
    "DELETE FROM namespaces WHERE name_digest = $1 AND name = $2"};
inline constexpr Statement select_namespace_metadata{
    "store.select_namespace_metadata",
    "SELECT notification_version FROM namespace_metadata WHERE partition_id = 54321"};
inline constexpr LockingRead lock_namespace_metadata{
    "store.lock_namespace_metadata",
    "SELECT notification_version FROM namespace_metadata WHERE partition_id = $1 {for_update}"};
inline constexpr FencedStatement update_namespace_metadata{
    "store.update_namespace_metadata",
    "UPDATE namespace_metadata SET notification_version = notification_version + 1 "
    "WHERE partition_id = $1 AND notification_version = $2",
    "SELECT notification_version FROM namespace_metadata WHERE partition_id = $1"};

}  // namespace holdfast::store::statements
