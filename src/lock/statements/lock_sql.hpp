// How a dialect takes, frees and prolongs a lock.
//
// PostgreSQL does each in one statement. The others do it in a short transaction; SQLite because it
// has no writing WITH and waits for nobody, DSQL because conflicts on the counter's row take the
// place of waiting. Both decide by the database's clock and touch the counter before the lock.
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

// One key that somebody wants.
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
    bool burned = false;  // Not taken, but counted: a fence that nobody gets.
};

struct Freed {
    bool ok = false;
    std::optional<Missing> why{};
    std::string called{};  // The waiter for whom the key is kept now.
    std::string key{};     // The storage key that is free now, if it is kept for nobody.
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

    // Throws unless the database keeps what it has committed. Empty, or a warning to log.
    [[nodiscard]] virtual std::string check_durability(const sql::TxOptions& options,
                                                       bool accept_lost_commits) = 0;

    // What a transaction of several round trips begins with. A client that is stopped between two
    // of them would keep its rows, and everybody else from them, for ever; where rows are locked by
    // a server, the server ends it after `idle_max`. A SQLite file has nobody to do that.
    virtual void begin(sql::Tx& tx) = 0;

    // `filter` answers "busy" at once while somebody else decides about the same key.
    [[nodiscard]] virtual Claimed claim(const sql::TxOptions& options,
                                        const Claim& claim,
                                        bool filter) = 0;
    // All or, if one is refused, none; then only the refused one is in the answer.
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

// Where waiters are called; the payload is the waiter's name, never a lock id.
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

// Keeps the key of a live lock free for the first in line, in the holder's place, and calls them.
// The waiter who was called; empty if there is nobody, or the lock is no longer live and this id's.
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
