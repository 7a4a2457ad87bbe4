// How a dialect acquires, releases and extends a lock.
//
// PostgreSQL does each in one statement. The others do it in a short transaction; SQLite because it
// has no writing WITH and never waits for a row, DSQL because conflicts on the counter's row
// replace waiting. Both decide by the database's clock and touch the counter before the lock.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <holdfast/lock/backend.hpp>
#include <holdfast/sql/database.hpp>
#include <holdfast/sql/table_names.hpp>

namespace holdfast::lock {

// A request for one key.
struct Claim {
    std::string key;  // The storage key.
    std::string fence_key;
    std::string user_key;
    LockId lock_id;
    std::chrono::milliseconds ttl{};
    std::string owner;
    std::string meta;
    std::optional<std::string> group_id{};
};

struct Claimed {
    struct Taken {
        ServerTime expires_at;
        Fence fence;
    };
    std::optional<Taken> taken{};
    std::optional<std::chrono::milliseconds> retry_after{};  // Not taken: a hint.
    bool burned = false;  // Not taken, but counted: a fence that is never granted.
};

struct Freed {
    bool ok = false;
    std::optional<Missing> why{};
    std::string called{};  // The waiter for whom the key is kept now.
    std::string key{};     // The storage key that is free now, if it is not kept for a waiter.
};

struct Prolonged {
    std::optional<ServerTime> expires_at{};
    std::optional<Missing> why{};
};

struct LockSqlSettings {
    std::chrono::milliseconds tolerance{};
    std::chrono::milliseconds reservation{};
    std::chrono::milliseconds idle_max{};
};

// Safe to share between threads.
class LockSql {
public:
    virtual ~LockSql() = default;

    // Throws unless commits are durable. Returns an empty text, or a warning to log.
    [[nodiscard]] virtual std::string check_durability(const sql::TxOptions& options,
                                                       bool accept_lost_commits) = 0;

    // The beginning of a transaction of several round trips. A client that is stopped between two
    // of them would keep its rows locked for ever; a server that locks rows ends the transaction
    // after `idle_max`. A SQLite file has no server to do that.
    virtual void begin(sql::Tx& tx) = 0;

    // `filter` answers "busy" at once while another call decides about the same key.
    [[nodiscard]] virtual Claimed claim(const sql::TxOptions& options,
                                        const Claim& claim,
                                        bool filter) = 0;
    // All or none. If one is refused, only that one is in the answer.
    [[nodiscard]] virtual std::vector<Claimed> claim_all(const sql::TxOptions& options,
                                                         std::span<const Claim> claims) = 0;
    virtual Freed free(const sql::TxOptions& options, const LockId& lock_id) = 0;
    virtual Prolonged prolong(const sql::TxOptions& options,
                              const LockId& lock_id,
                              std::chrono::milliseconds ttl,
                              ExtendMode mode) = 0;
    virtual std::int64_t purge(const sql::TxOptions& options,
                               std::chrono::milliseconds dead_for,
                               std::size_t limit) = 0;
};

// The channel of notifications for waiters; the payload is the waiter's name, never a lock id.
inline constexpr std::string_view waiters_channel = "holdfast_locks";

// Requires: `db` and `tables` outlive it.
[[nodiscard]] std::unique_ptr<LockSql> make_postgres_lock_sql(sql::Database& db,
                                                              const sql::TableNames& tables,
                                                              LockSqlSettings settings);
[[nodiscard]] std::unique_ptr<LockSql> make_portable_lock_sql(sql::Database& db,
                                                              const sql::TableNames& tables,
                                                              LockSqlSettings settings);
[[nodiscard]] inline std::unique_ptr<LockSql> make_lock_sql(sql::Database& db,
                                                            const sql::TableNames& tables,
                                                            LockSqlSettings settings) {
    return db.dialect().advisory_locks ? make_postgres_lock_sql(db, tables, settings)
                                       : make_portable_lock_sql(db, tables, settings);
}

// ---- Shared by the lock_sql
// ------------------------------------------------------------------------

// Replaces a live lock by a reservation for the first waiter, and notifies that waiter. Returns its
// name; empty if there is no waiter, or this id no longer holds a live lock.
[[nodiscard]] std::string reserve_for_first(sql::Tx& tx,
                                            const sql::TableNames& tables,
                                            LockSqlSettings settings,
                                            const std::string& key,
                                            const std::string& lock_id);

// Thrown out of a transaction to undo it because a claim was refused; never leaves this floor.
struct Refused {
    Claimed claimed;
};

[[nodiscard]] inline ServerTime server_time(std::int64_t milliseconds) {
    return ServerTime{std::chrono::milliseconds{milliseconds}};
}
// The existence of the row comes first, then its liveness.
[[nodiscard]] Missing why_missing(std::optional<std::int64_t> expires_at_ms);
[[nodiscard]] std::chrono::milliseconds until_free(std::int64_t held_until_ms,
                                                   std::int64_t now_ms,
                                                   std::chrono::milliseconds tolerance);
[[noreturn]] void throw_overflow();

}  // namespace holdfast::lock
