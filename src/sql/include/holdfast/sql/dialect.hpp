// Where databases differ.
//
// A statement is written once, in the SQL that SQLite and PostgreSQL share. Where they differ it
// has a named hole, `{for_update}`, which the dialect fills when the statement is prepared. Code
// above this floor asks for capabilities, never for a product's name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace holdfast::sql {

// Compared on this floor only.
enum class Product : std::uint8_t { sqlite, postgres, dsql };

struct Dialect {
    Product product;
    // "sqlite", "postgres" or "dsql", as in URLs, metrics and migrations.
    std::string_view name;

    // True: the data is a file that this process opens. It has one writer and no round trips, it
    // uses the clock of this machine, and its tables belong to the program that opens it.
    bool embedded;
    // True: tables may lie in a named schema.
    bool schemas;
    // Before the number of a parameter: ?1 or $1.
    char parameter_mark;
    // Largest value of a column; the maximum of the type if the database sets no limit.
    std::size_t value_bytes_max;
    // Largest primary key, with margin.
    std::size_t key_bytes_max;
    // True: rows that are written only to be searched by are kept in tables of their own.
    bool search_tables;
    // True: Durability::relaxed has an effect.
    bool relaxed_commits;
    // True: a proxy that pools connections may stand before the server.
    bool pooling_proxies;
    // True: an internal error of the server may pass, and after a commit the outcome is unknown.
    bool internal_errors_pass;
    // False: a row lock does not wait, and conflicts show at commit (DSQL).
    bool locks_block;
    // True: a waiter can be woken by a committed notification.
    bool notifies;
    // True: DDL takes part in a transaction like any other statement.
    bool transactional_ddl;
    bool advisory_locks;
    bool skip_locked;
    // False: a transaction has one time, the same for all its statements.
    bool clock_moves;
    // True: a running statement can be stopped. False: giving it up means hanging up.
    bool cancels;
};

[[nodiscard]] const Dialect& dialect_of(Product product) noexcept;

// Throws invalid_argument if there is no dialect of that name.
[[nodiscard]] const Dialect& dialect_named(std::string_view name);

[[nodiscard]] std::span<const Dialect> every_dialect() noexcept;

// The holes, and what they become:
//   {for_update}    the row lock clause; nothing on SQLite, which has one writer
//   {skip_locked}   the same, without rows that another transaction has locked; nothing on SQLite
//                   and DSQL, where reads do not wait and the write that follows must decide
//   {for_key_share} a row lock that keeps others from changing the row's keys, not its other
//                   columns; the plain row lock on DSQL, nothing on SQLite
//   {now_us}        the database's clock, as microseconds since 1970: read when it is evaluated on
//                   PostgreSQL, once per transaction on SQLite and DSQL. For times that people
//                   read and for timers.
//   {lease_us}      the clock of leases, in microseconds; compared with times of its own only.
//                   {now_us} on a server. On SQLite the time since the machine was started, after
//                   every time of earlier starts: setting the wall clock does not move it, and
//                   what was leased before a restart has expired
//   {lease_epoch_us} what to take from a {lease_us} to show it as a time; 0 on a server
//   {table.x}       the name that was chosen for a table, see table_names.hpp; {index.x.y} for its
//                   index y
// and in migrations, types and words:
//   {uuid} {bytes} {timestamp} {json} {bool} {bigint} {real}    column types
//   {strict}                         the table option that makes SQLite check types
//   {async}                          CREATE INDEX {async}: how DSQL builds indexes
//   {bytewise}                       the collation that compares text byte by byte
//   {hot}                            storage options of a table whose rows change all the time
// Empty text is a legal filling; a null data pointer means there is no such hole.
[[nodiscard]] std::string_view fill_hole(const Dialect& dialect, std::string_view hole) noexcept;

[[nodiscard]] constexpr bool is_statement_hole(std::string_view hole) noexcept {
    return hole == "for_update" || hole == "skip_locked" || hole == "for_key_share" ||
           hole == "now_us" || hole == "lease_us" || hole == "lease_epoch_us";
}

}  // namespace holdfast::sql
