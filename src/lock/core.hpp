// What the parts of Locks share: settings, checks, and how calls are made and their failures
// reported.
#pragma once

#include <atomic>
#include <limits>
#include <mutex>
#include <thread>

#include "handle/live_locks.hpp"
#include "handle/orphans.hpp"
#include "hooks.hpp"
#include "statements/lock_sql.hpp"
#include "wait_queue/wait_queue.hpp"

#include <holdfast/base/metrics.hpp>

namespace holdfast::lock {

// Never later than the true expiry, whatever the two clocks say: the database read its clock after
// `sent`. The margin is for clocks that run at different speeds.
[[nodiscard]] Steady safe_until(Steady sent, std::chrono::milliseconds ttl);

class Locks::Core {
public:
    Core(sql::Database& db, LocksOptions options, const Hooks& hooks);

    [[nodiscard]] sql::Database& db() noexcept { return db_; }
    [[nodiscard]] const sql::TableNames& tables() const noexcept { return schema_.tables(); }
    [[nodiscard]] const LocksOptions& options() const noexcept { return options_; }
    [[nodiscard]] const Hooks& hooks() const noexcept { return hooks_; }
    [[nodiscard]] LockSqlSettings settings() const noexcept {
        return {hooks_.tolerance, hooks_.reservation, hooks_.idle_max};
    }
    [[nodiscard]] const Clock& clock() const noexcept { return clock_; }
    [[nodiscard]] const Capabilities& capabilities() const noexcept { return capabilities_; }
    [[nodiscard]] LockSql& lock_sql() noexcept { return *lock_sql_; }
    [[nodiscard]] WaitQueue& line() noexcept { return line_; }
    [[nodiscard]] Orphans& orphans() noexcept { return orphans_; }

    [[nodiscard]] std::size_t storage_key_bytes() const;
    [[nodiscard]] std::string storage_key_of(std::string_view key) const;
    void check_ttl(std::chrono::milliseconds ttl) const;
    [[nodiscard]] Claim claim_of(std::string_view key,
                                 std::chrono::milliseconds ttl,
                                 const AcquireOptions& options) const;
    [[nodiscard]] bool is_live_at(std::int64_t expires_ms, std::int64_t now_ms) const;
    [[nodiscard]] std::optional<RawLockInfo> to_info(const sql::Rows& rows) const;

    // `own_id`: the claim's id was made here, so no caller will repeat the attempt with it.
    [[nodiscard]] Acquired acquire(const Claim& claim, const CallOptions& options, bool own_id);
    // A grant whose lease is over when its answer arrives is useless, and must not be left behind.
    void refuse_born_expired(std::span<const Grant> grants);
    [[nodiscard]] bool is_born_expired(Steady safe_until) const {
        return hooks_.refuse_born_expired && clock_.steady_now() >= safe_until;
    }
    [[noreturn]] void throw_born_expired() const;
    // After a failure of unknown outcome: these ids will never be used again.
    void abandon(std::span<const Claim> claims, const LockError& failure);
    [[nodiscard]] Grant to_grant(const Claim& claim, const Claimed::Taken& taken, Steady sent);
    void clean_up(const std::string& storage_key, std::int64_t expires_ms, std::int64_t now_ms);

    // Logs why a holder lost its lock.
    void tell_forced(std::string_view key, Fence fence) const;
    void count_contended() const { contended_.add(); }
    void count_grant(const Grant& grant);
    void count_release(const LockId& lock_id, bool ok);
    void count_release_failure() const { release_failed_.add(); }
    // Empty if the lock is lost.
    void count_extend(const LockId& lock_id, std::optional<Steady> safe_until);

    [[nodiscard]] sql::TxOptions tx_options(const CallOptions& options) const;
    // For work on the side, independent of the caller's deadline.
    [[nodiscard]] sql::TxOptions brief() const;

    // A transaction of several round trips.
    template <class Body>
    auto transact(std::string_view operation, const sql::TxOptions& options, Body body)
        -> std::invoke_result_t<Body, sql::Tx&> {
        return db_.transact(operation, options, [&](sql::Tx& tx) {
            lock_sql_->begin(tx);
            return body(tx);
        });
    }

    // The same for calls that may be repeated: if the answer is lost, the call is made once more.
    // `repeated` says whether it was.
    template <class Work>
    auto call_twice(const LockError::Context& context,
                    const CallOptions& options,
                    bool& repeated,
                    Work&& work) -> decltype(work(sql::TxOptions{})) {
        const CallOptions within{options.stop, tx_options(options).deadline};  // For both tries.
        try {
            return call(context, within, work);
        } catch (const LockError& error) {
            if (!error.indeterminate() || error.lock_code() == LockCode::aborted) {
                throw;
            }
        }
        repeated = true;
        repeated_.add();
        try {
            return call(context, within, work);
        } catch (const LockError& second) {
            throw unknown(second);
        }
    }

    // Makes a call and reports its failure as LockError. Requires: arguments are checked.
    template <class Work>
    auto call(const LockError::Context& context, const CallOptions& options, Work&& work)
        -> decltype(work(sql::TxOptions{})) {
        refuse_if_stopped(options);
        try {
            sql::TxOptions tx = tx_options(options);
            tx.urgent = true;
            return work(tx);
        } catch (const sql::DatabaseError& error) {
            if (error.state().text() == "23514") {  // Only the counters have a CHECK.
                throw_overflow();
            }
            throw to_lock_error(std::current_exception(), context);
        } catch (const std::exception&) {
            throw to_lock_error(std::current_exception(), context);
        }
    }

    template <class... A>
    sql::Rows read(const LockError::Context& context,
                   std::string_view operation,
                   const CallOptions& options,
                   const sql::Statement& statement,
                   const A&... args) {
        sql::Rows rows = call(context, options, [&](sql::TxOptions tx) {
            tx.read_only = true;
            tx.urgent = false;
            return db_.run(operation, tx, statement.with(tables()), args...).rows;
        });
        refuse_if_stopped(options);
        return rows;
    }

    static void refuse_if_stopped(const CallOptions& options);

private:
    // Whatever the second try reports, the outcome of the first is unknown.
    [[nodiscard]] static LockError unknown(const LockError& second);
    void warn_of_overflow(const Claim& claim, Fence fence);

    sql::Database& db_;
    LocksOptions options_;
    Hooks hooks_;
    Schema schema_;
    Logger& logger_;
    const Clock& clock_;
    Capabilities capabilities_;
    std::unique_ptr<LockSql> lock_sql_;
    LiveLocks live_;
    Orphans orphans_;
    WaitQueue line_;

    std::atomic<std::int64_t> warned_at_s_{std::numeric_limits<std::int64_t>::min() / 2};
    std::atomic<std::int64_t> cleaned_at_s_{std::numeric_limits<std::int64_t>::min() / 2};
    Counter granted_;
    Counter contended_;
    Counter released_;
    Counter extended_;
    Counter lost_;
    Counter born_expired_;
    Counter repeated_;
    Counter release_failed_;
    Counter burned_;
};

}  // namespace holdfast::lock
