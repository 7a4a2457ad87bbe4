// The statements of the sql floor itself.
#pragma once

#include <holdfast/sql/statement.hpp>

namespace holdfast::sql::statements {

// The table of schema versions, before there is any schema.
inline constexpr const char* create_schema_table =
    "CREATE TABLE IF NOT EXISTS holdfast_schema ("
    "part VARCHAR(100) PRIMARY KEY, version BIGINT NOT NULL, step BIGINT NOT NULL)";

inline constexpr Statement now{"sql.now", "SELECT {now_us}"};

// Whether it is there. Asked for before it is read, because on a fresh database it is
// missing; the two databases keep their catalogues in different places.
inline constexpr Statement schema_table_sqlite{
    "sql.schema_table_sqlite", "SELECT count(*) FROM sqlite_schema WHERE name = 'holdfast_schema'"};
inline constexpr Statement schema_table_postgres{
    "sql.schema_table_postgres",
    "SELECT count(*) FROM pg_catalog.pg_class WHERE relname = 'holdfast_schema' "
    "AND pg_catalog.pg_table_is_visible(oid)"};
// Where indexes are built in the background: whether one is done, and whether its job runs.
inline constexpr Statement schema_index{
    "sql.schema_index",
    "SELECT i.indisvalid FROM pg_catalog.pg_index i "
    "JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid "
    "WHERE c.relname = $1 AND pg_catalog.pg_table_is_visible(c.oid)"};
inline constexpr Statement schema_index_jobs{
    "sql.schema_index_jobs",
    "SELECT count(*) FROM sys.jobs WHERE status IN ('submitted', 'processing') "
    "AND object_name LIKE '%' || $1"};
inline constexpr Statement schema_read{"sql.schema_read",
                                       "SELECT version, step FROM holdfast_schema WHERE part = $1"};
inline constexpr Statement schema_insert{
    "sql.schema_insert",
    "INSERT INTO holdfast_schema (part, version, step) VALUES ($1, 0, 0) "
    "ON CONFLICT (part) DO NOTHING"};
inline constexpr FencedStatement schema_advance{
    "sql.schema_advance",
    "UPDATE holdfast_schema SET version = $4, step = $5 "
    "WHERE part = $1 AND version = $2 AND step = $3",
    "SELECT version, step FROM holdfast_schema WHERE part = $1"};

}  // namespace holdfast::sql::statements
