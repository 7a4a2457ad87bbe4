#include <algorithm>
#include <exception>

#include "statements/lock_sql.hpp"
#include "statements/statements.hpp"

#include <holdfast/lock/error.hpp>

namespace holdfast::lock {
namespace {

class PortableLockSql final : public LockSql {
public:
    PortableLockSql(sql::Database& db, const sql::TableNames& tables, LockSqlSettings settings)
        : db_(db), tables_(tables), settings_(settings) {}

    std::string check_durability(const sql::TxOptions& options, bool accept_lost_commits) override {
        if (!db_.dialect().embedded) {
            return {};  // DSQL commits are always durable.
        }
        constexpr int full = 2;
        sql::TxOptions reading = options;
        reading.read_only = true;
        const sql::Rows rows = db_.run("LockCheck", reading, statements::synchronous).rows;
        if (rows[0].get<int>(0) >= full) {
            return {};
        }
        if (!accept_lost_commits) {
            throw LockError(LockCode::invalid_argument,
                            "the file is opened with synchronous=normal or off: after a power cut "
                            "it can give one fence to two holders; leave that out of its URL, or "
                            "accept that by accept_lost_commits");
        }
        return "the file may lose commits in a power cut: fences are not safe there";
    }

    void begin(sql::Tx& /*tx*/) override {}

    Claimed claim(const sql::TxOptions& options, const Claim& claim, bool /*filter*/) override {
        if (const auto busy = look_first(options, claim)) {
            return *busy;
        }
        std::vector<Claimed> one = claim_all(options, std::span(&claim, 1));
        return one.front();
    }

    std::vector<Claimed> claim_all(const sql::TxOptions& options,
                                   std::span<const Claim> claims) override {
        sql::TxOptions writing = options;
        // Two transactions may insert the first row of a key, unless writers wait for each other.
        writing.on_duplicate =
            db_.dialect().locks_block ? sql::OnDuplicate::fail : sql::OnDuplicate::retry;
        try {
            return db_.transact("LockAcquire", writing, [&](sql::Tx& tx) {
                std::vector<Claimed> all;
                for (const Claim& claim : claims) {
                    all.push_back(claim_in(tx, claim));
                }
                return all;
            });
        } catch (const Refused& refused) {
            return {refused.claimed};
        } catch (const sql::DatabaseError& error) {
            if (error.state().text() == "23514") {
                throw_overflow();
            }
            throw;
        } catch (const sql::Exhausted& exhausted) {
            if (hold_other_keys(options, claims)) {
                std::rethrow_exception(exhausted.cause());
            }
            throw;
        }
    }

    Freed free(const sql::TxOptions& options, const LockId& lock_id) override {
        sql::TxOptions relaxed = options;
        relaxed.durability = sql::Durability::relaxed;
        return db_.transact("LockRelease", relaxed, [&](sql::Tx& tx) {
            const auto found = tx.query(statements::by_id.with(tables_), lock_id.reveal());
            const auto row = found.single();
            if (!row) {
                return Freed{.why = Missing::not_found};
            }
            const auto [key, expires, now] = row->as<std::string, std::int64_t, std::int64_t>();
            if (!is_live(server_time(expires), server_time(now), settings_.tolerance)) {
                return Freed{.why = Missing::expired};
            }
            std::string called = reserve_for_first(tx, tables_, settings_, key, lock_id.reveal());
            if (!called.empty()) {
                return Freed{.ok = true, .called = std::move(called)};
            }
            tx.exec(statements::free.with(tables_), lock_id.reveal(), settings_.tolerance.count());
            return Freed{.ok = true, .key = key};
        });
    }

    Prolonged prolong(const sql::TxOptions& options,
                      const LockId& lock_id,
                      std::chrono::milliseconds ttl,
                      ExtendMode mode) override {
        return db_.transact("LockExtend", options, [&](sql::Tx& tx) {
            const sql::Rows rows = tx.query(statements::prolong.with(tables_),
                                            lock_id.reveal(),
                                            settings_.tolerance.count(),
                                            ttl.count(),
                                            mode == ExtendMode::at_least);
            if (const auto row = rows.single()) {
                return Prolonged{.expires_at = server_time(row->get<std::int64_t>(0))};
            }
            const bool there = !tx.query(statements::by_id.with(tables_), lock_id.reveal()).empty();
            return Prolonged{.why = there ? Missing::expired : Missing::not_found};
        });
    }

    std::int64_t purge(const sql::TxOptions& options,
                       std::chrono::milliseconds dead_for,
                       std::size_t limit) override {
        return db_
            .run("LockPurge",
                 options,
                 statements::purge.with(tables_),
                 dead_for.count(),
                 static_cast<std::int64_t>(limit))
            .changed;
    }

private:
    // An id that holds another key looks like a conflict that does not end.
    bool hold_other_keys(const sql::TxOptions& options, std::span<const Claim> claims) {
        sql::TxOptions reading = options;
        reading.read_only = true;
        return std::ranges::any_of(claims, [&](const Claim& claim) {
            const sql::Rows rows =
                db_.run(
                       "LockLook", reading, statements::by_id.with(tables_), claim.lock_id.reveal())
                    .rows;
            return !rows.empty() && rows[0].get<std::string>(0) != claim.key;
        });
    }

    // Where a transaction that writes makes others wait, a refusal must not cost one.
    std::optional<Claimed> look_first(const sql::TxOptions& options, const Claim& claim) {
        if (!db_.dialect().locks_block) {
            return std::nullopt;
        }
        sql::TxOptions reading = options;
        reading.read_only = true;
        const sql::Rows rows = db_.run("LockLook",
                                       reading,
                                       statements::live_rival.with(tables_),
                                       claim.key,
                                       claim.lock_id.reveal(),
                                       settings_.tolerance.count())
                                   .rows;
        if (const auto row = rows.single()) {
            return busy(row->get<std::int64_t>(0), row->get<std::int64_t>(1));
        }
        return std::nullopt;
    }

    // One reading of the clock serves all three statements. If it moved between them, one could
    // find the old lock alive and keep the counter, and the next find it dead and take its fence.
    Claimed claim_in(sql::Tx& tx, const Claim& claim) {
        const std::string& lock_id = claim.lock_id.reveal();
        const std::int64_t tolerance = settings_.tolerance.count();
        tx.exec(statements::count_up.with(tables_),
                claim.fence_key,
                claim.user_key,
                claim.key,
                lock_id,
                tolerance);
        tx.exec(statements::take.with(tables_),
                claim.key,
                claim.fence_key,
                claim.user_key,
                lock_id,
                claim.ttl.count(),
                tolerance,
                claim.owner,
                claim.meta,
                claim.group_id);
        const sql::Rows rows = tx.query(statements::holder.with(tables_), claim.key);
        const auto [holder, expires, fence, now] =
            rows[0].as<std::string, std::int64_t, std::string, std::int64_t>();
        if (holder != lock_id) {
            throw Refused{busy(expires, now)};
        }
        return {.taken = Claimed::Taken{server_time(expires), parse_fence(fence)}};
    }

    [[nodiscard]] Claimed busy(std::int64_t held_until_ms, std::int64_t now_ms) const {
        return {.retry_after = until_free(held_until_ms, now_ms, settings_.tolerance)};
    }

    sql::Database& db_;
    const sql::TableNames& tables_;
    LockSqlSettings settings_;
};

}  // namespace

std::unique_ptr<LockSql> make_portable_lock_sql(sql::Database& db,
                                                const sql::TableNames& tables,
                                                LockSqlSettings settings) {
    return std::make_unique<PortableLockSql>(db, tables, settings);
}

}  // namespace holdfast::lock
