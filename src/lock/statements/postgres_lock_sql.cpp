#include <atomic>

#include "statements/lock_sql.hpp"
#include "statements/statements.hpp"

#include <holdfast/lock/error.hpp>

namespace holdfast::lock {
namespace {

class PostgresLockSql final : public LockSql {
public:
    PostgresLockSql(sql::Database& db, const sql::TableNames& tables, LockSqlSettings settings)
        : db_(db), tables_(tables), settings_(settings) {}

    std::string check_durability(const sql::TxOptions& options, bool accept_lost_commits) override {
        const sql::Rows rows =
            db_.run("LockCheck", options, statements::durability, tables_.fill("table.fences"))
                .rows;
        const auto [commits, fsync, kept] = rows[0].as<std::string, std::string, bool>();
        if (!kept && !accept_lost_commits) {
            throw LockError(LockCode::invalid_argument,
                            "the table of fences is UNLOGGED or not an ordinary table: after a "
                            "crash it can give one fence to two holders; ALTER TABLE ... SET "
                            "LOGGED, or accept that by accept_lost_commits");
        }
        if (commits == "off" && !accept_lost_commits) {
            throw LockError(LockCode::invalid_argument,
                            "the server runs with synchronous_commit = off: after a crash it can "
                            "give one fence to two holders; set it to on (or local), or accept "
                            "that by accept_lost_commits");
        }
        return commits == "off" || fsync == "off" || !kept
                   ? "the server may lose commits in a crash: fences are not safe there"
                   : "";
    }

    void begin(sql::Tx& tx) override {
        tx.exec(statements::bound_idleness, std::to_string(settings_.idle_max.count()));
    }

    Claimed claim(const sql::TxOptions& options, const Claim& claim, bool filter) override {
        return decode(db_.run("LockAcquire",
                              options,
                              statements::take_at_once.with(tables_),
                              claim.key,
                              claim.fence_key,
                              claim.user_key,
                              claim.lock_id.reveal(),
                              claim.ttl.count(),
                              settings_.tolerance.count(),
                              filter,
                              claim.owner,
                              claim.meta,
                              claim.group_id)
                          .rows);
    }

    std::vector<Claimed> claim_all(const sql::TxOptions& options,
                                   std::span<const Claim> claims) override {
        try {
            return db_.transact("LockAcquireAll", options, [&](sql::Tx& tx) {
                begin(tx);
                return claim_in(tx, claims);
            });
        } catch (const Refused& refused) {
            return {refused.claimed};
        }
    }

    // Either statement takes one round trip when it is the right one, and falls back to the other
    // otherwise, which the next release then tries first.
    Freed free(const sql::TxOptions& options, const LockId& lock_id) override {
        if (!awaited_.load(std::memory_order_relaxed)) {
            if (const auto freed = free_unless_awaited(options, lock_id)) {
                return *freed;
            }
        }
        Freed freed = free_and_call(options, lock_id);
        awaited_.store(!freed.called.empty(), std::memory_order_relaxed);
        return freed;
    }

    Prolonged prolong(const sql::TxOptions& options,
                      const LockId& lock_id,
                      std::chrono::milliseconds ttl,
                      ExtendMode mode) override {
        const sql::Rows rows = db_.run("LockExtend",
                                       options,
                                       statements::prolong_at_once.with(tables_),
                                       lock_id.reveal(),
                                       settings_.tolerance.count(),
                                       ttl.count(),
                                       mode == ExtendMode::at_least)
                                   .rows;
        if (const auto expires = rows[0].get<std::optional<std::int64_t>>(0)) {
            return {.expires_at = server_time(*expires)};
        }
        return {.why = why_missing(rows[0].get<std::optional<std::int64_t>>(1))};
    }

    std::int64_t purge(const sql::TxOptions& options,
                       std::chrono::milliseconds dead_for,
                       std::size_t limit) override {
        return db_
            .run("LockPurge",
                 options,
                 statements::purge_skipping.with(tables_),
                 dead_for.count(),
                 static_cast<std::int64_t>(limit))
            .changed;
    }

private:
    // Empty if the lock is live and its key may have a waiter.
    std::optional<Freed> free_unless_awaited(const sql::TxOptions& options, const LockId& lock_id) {
        const sql::Rows rows = db_.run("LockRelease",
                                       options,
                                       statements::free_unless_awaited.with(tables_),
                                       lock_id.reveal(),
                                       settings_.tolerance.count())
                                   .rows;
        const auto [key, expires, now] =
            rows[0].as<std::optional<std::string>, std::optional<std::int64_t>, std::int64_t>();
        if (key) {
            return Freed{.ok = true, .key = *key};
        }
        if (expires && is_live(server_time(*expires), server_time(now), settings_.tolerance)) {
            return std::nullopt;
        }
        return Freed{.ok = false, .why = why_missing(expires)};
    }

    Freed free_and_call(const sql::TxOptions& options, const LockId& lock_id) {
        const sql::Rows rows = db_.run("LockRelease",
                                       options,
                                       statements::free_at_once.with(tables_),
                                       lock_id.reveal(),
                                       settings_.tolerance.count(),
                                       settings_.reservation.count(),
                                       waiters_channel)
                                   .rows;
        const bool ok = rows[0].get<std::int64_t>(0) > 0;
        if (ok) {
            return {.ok = true,
                    .called = rows[0].get<std::optional<std::string>>(2).value_or(""),
                    .key = rows[0].get<std::optional<std::string>>(3).value_or("")};
        }
        return {.ok = false, .why = why_missing(rows[0].get<std::optional<std::int64_t>>(1))};
    }

    // Always in the order of the keys, so that two calls cannot wait for each other; all sent
    // together. No filter: its lock would stay taken to the end of the transaction.
    std::vector<Claimed> claim_in(sql::Tx& tx, std::span<const Claim> claims) {
        std::vector<sql::Answer> answers;
        answers.reserve(claims.size());
        for (const Claim& claim : claims) {
            answers.push_back(tx.ask(statements::take_at_once.with(tables_),
                                     claim.key,
                                     claim.fence_key,
                                     claim.user_key,
                                     claim.lock_id.reveal(),
                                     claim.ttl.count(),
                                     settings_.tolerance.count(),
                                     false,
                                     claim.owner,
                                     claim.meta,
                                     claim.group_id));
        }
        std::vector<Claimed> all;
        for (sql::Answer& answer : answers) {
            all.push_back(decode(answer.rows()));
            if (!all.back().taken) {
                throw Refused{all.back()};
            }
        }
        return all;
    }

    [[nodiscard]] Claimed decode(const sql::Rows& rows) const {
        using Number = std::optional<std::int64_t>;
        const auto [expires, fence, held_until, counter, burned, now] =
            rows[0].as<Number, std::optional<std::string>, Number, Number, Number, std::int64_t>();
        if (expires && fence) {
            return {.taken = Claimed::Taken{server_time(*expires), parse_fence(*fence)}};
        }
        const bool held =
            held_until && is_live(server_time(*held_until), server_time(now), settings_.tolerance);
        if (!held && counter.value_or(0) >= fence_max) {
            throw_overflow();
        }
        if (!held) {  // Another call is deciding about it at this moment.
            return {.burned = burned.has_value()};
        }
        return {.retry_after = until_free(*held_until, now, settings_.tolerance),
                .burned = burned.has_value()};
    }

    sql::Database& db_;
    const sql::TableNames& tables_;
    LockSqlSettings settings_;
    std::atomic<bool> awaited_ = false;  // The key of the last released lock had a waiter.
};

}  // namespace

std::unique_ptr<LockSql> make_postgres_lock_sql(sql::Database& db,
                                                const sql::TableNames& tables,
                                                LockSqlSettings settings) {
    return std::make_unique<PostgresLockSql>(db, tables, settings);
}

}  // namespace holdfast::lock
