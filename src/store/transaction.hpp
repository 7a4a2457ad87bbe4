// The one way from this floor to a transaction: by an operation that is classified.
#pragma once

#include <algorithm>
#include <limits>
#include <span>
#include <string_view>

#include "locking_read.hpp"
#include "operations.hpp"

#include <holdfast/sql/database.hpp>
#include <holdfast/sql/error.hpp>
#include <holdfast/store/types.hpp>

namespace holdfast::store {

[[nodiscard]] inline sql::TxOptions options_of(const Operation& operation, const Call& call) {
    return {.deadline = call.deadline,
            .stop = call.stop,
            .read_only = operation.isolation == Isolation::read_only};
}

// Turns what the database says of a write that is too large into TransactionSizeLimit; does nothing
// about other errors.
void rethrow_if_too_large(const Operation& operation, const sql::DatabaseError& error);

template <class Work>
auto perform(const Operation& operation, const Work& work) {
    try {
        return work();
    } catch (const sql::DatabaseError& error) {
        rethrow_if_too_large(operation, error);
        throw;
    }
}

template <class Body>
auto transact(sql::Database& db,
              const Operation& operation,
              const sql::TxOptions& options,
              const Body& body) {
    return perform(operation, [&] { return db.transact(operation.name, options, body); });
}
template <class Body>
auto transact(sql::Database& db, const Operation& operation, const Call& call, const Body& body) {
    return transact(db, operation, options_of(operation, call), body);
}

// One statement as a transaction of its own.
template <class... A>
sql::Result run(sql::Database& db,
                const Operation& operation,
                const Call& call,
                const sql::Statement& statement,
                const A&... args) {
    return perform(operation, [&] {
        return db.run(operation.name, options_of(operation, call), statement, args...);
    });
}

// The same under a guard; false if the guard is lost.
template <class... A>
[[nodiscard]] bool try_run(sql::Database& db,
                           const Operation& operation,
                           const Call& call,
                           const sql::Guard& guard,
                           const sql::FencedStatement& statement,
                           const A&... args) {
    return perform(operation, [&] {
        return db.try_run(operation.name, options_of(operation, call), guard, statement, args...);
    });
}

// A lock would end with the statement that takes it.
template <class... A>
sql::Result run(sql::Database& db,
                const Operation& operation,
                const Call& call,
                const LockingRead& statement,
                const A&... args) = delete;

// One query that was built.
inline sql::Result run(sql::Database& db,
                       const Operation& operation,
                       const Call& call,
                       const sql::BuiltQuery& query) {
    return db.run(operation.name, options_of(operation, call), query);
}

// ---- Validation of arguments ------------------------------------------------------------------

[[nodiscard]] std::int32_t number(ShardId shard);  // Requires: from 1. Else invalid_argument.
[[nodiscard]] constexpr std::int64_t number(RangeId range) noexcept {
    return static_cast<std::int64_t>(range);
}
// Requires: 1 to `bytes_max` bytes of UTF-8 without a zero among them. Else invalid_argument.
void require_name(std::string_view what, std::string_view name, std::size_t bytes_max);
// Requires: from 1 to page_size_max. Else InvalidPersistenceRequest.
[[nodiscard]] std::int64_t require_page_size(std::int64_t size);
inline constexpr std::int64_t page_size_max = 100'000;

// A database takes no value above a limit of its own; said before a round trip was made for it.
void require_size(const sql::Dialect& dialect, std::size_t bytes);
// The same for a blob, whose encoding is a name of up to name_bytes_max bytes, or empty.
void require_blob(const sql::Dialect& dialect, const Blob& blob);
// Requires: between the earliest and the latest time that is kept. Else invalid_argument.
void require_time(std::string_view what, sql::Timestamp time);

// Rows that one statement deletes at most: databases bound what a transaction may change.
inline constexpr std::int64_t chunk_rows = 1'000;

// Runs `chunk`, which deletes up to so many rows and counts them, until none are left or `limit` is
// reached.
template <class Chunk>
std::int64_t in_chunks(std::int64_t limit, const Chunk& chunk) {
    std::int64_t total = 0;
    for (;;) {
        const std::int64_t rows = std::min(chunk_rows, limit - total);
        const std::int64_t deleted = chunk(rows);
        total += deleted;
        if (deleted < rows || total == limit) {
            return total;
        }
    }
}
// The same without a limit.
template <class Chunk>
std::int64_t in_chunks(const Chunk& chunk) {
    return in_chunks(std::numeric_limits<std::int64_t>::max(),
                     [&](std::int64_t) { return chunk(); });
}

}  // namespace holdfast::store
