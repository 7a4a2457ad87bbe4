// The tables and statements of this floor, for migrations and for the checks that read them all.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include <holdfast/sql/schema.hpp>
#include <holdfast/sql/statement.hpp>

namespace holdfast::store {

[[nodiscard]] sql::SchemaPart schema_part();
[[nodiscard]] const sql::Catalogue& catalogue() noexcept;

// Why a transaction is right on a database that checks at its commit nothing but the rows it wrote
// or locked. On such a database a plain read proves nothing: what was read may have changed.
enum class Isolation : std::uint8_t {
    locks_what_it_reads,  // Every row that decides is locked FOR UPDATE, or written.
    one_statement,        // It decides and writes in one statement, by the key of one row.
    idempotent,           // It decides nothing, and is idempotent.
    read_only,            // A snapshot; it writes nothing.
};

struct Operation {
    std::string_view name;  // Labels metrics and errors.
    Isolation isolation;
    std::string_view proof;  // The rows that decide, in the order in which they are locked.
};

// All transactions of the store. A test runs every one, and fails at one that is not among them.
[[nodiscard]] std::span<const Operation* const> operations() noexcept;

}  // namespace holdfast::store
