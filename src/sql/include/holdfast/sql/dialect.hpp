// Where databases differ.
//
// A statement is written once, in the SQL that SQLite and PostgreSQL share. Where they differ it
// has a named hole, `{for_update}`, which the dialect fills when the statement is prepared. Code
// above this floor asks for capabilities, never for a product's name.
#pragma once

#include <cstdint>
#include <string_view>

namespace holdfast::sql {

enum class Product : std::uint8_t { sqlite, postgres, dsql };

[[nodiscard]] std::string_view to_string(Product product) noexcept;

struct Dialect {
    Product product;

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

// The holes, and what they become:
//   {for_update}    the row lock clause; nothing on SQLite, which has one writer
//   {skip_locked}   the same, passing over rows that somebody else has locked; nothing on SQLite
//                   and DSQL, where nobody waits and the write that follows must decide
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
[[nodiscard]] std::string_view fill_hole(Product product, std::string_view hole) noexcept;

[[nodiscard]] constexpr bool is_statement_hole(std::string_view hole) noexcept {
    return hole == "for_update" || hole == "skip_locked" || hole == "for_key_share" ||
           hole == "now_us" || hole == "lease_us" || hole == "lease_epoch_us";
}

}  // namespace holdfast::sql
