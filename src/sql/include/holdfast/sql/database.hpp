// A database, from a URL.
//
// The only way to a transaction is `transact`. It begins, runs the body, commits, and on a conflict
// that the database has rolled back it runs the body again after a pause. So every transaction has
// a name, a deadline, a stop token, a retry policy and metrics; none can be left out.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <holdfast/base/clock.hpp>
#include <holdfast/sql/dialect.hpp>
#include <holdfast/sql/error.hpp>
#include <holdfast/sql/retry.hpp>
#include <holdfast/sql/source.hpp>
#include <holdfast/sql/statement.hpp>
#include <holdfast/sql/tx.hpp>
#include <holdfast/sql/value.hpp>

namespace holdfast {
class Logger;
class Metrics;
}  // namespace holdfast

namespace holdfast::sql {

// Whether a commit waits until it would survive a power cut. Relaxed is for what may be lost
// without harm (a release, a heartbeat); it never weakens what others committed. SQLite always
// waits.
enum class Durability : std::uint8_t { flushed, relaxed };

// What follows a duplicate key (23505). `retry`: another transaction was faster, so the body runs
// again as after any conflict. `retry_once`: the body runs again at once, whatever the retry
// policy; a second duplicate is thrown, since the rows of the caller itself may be at fault.
enum class OnDuplicate : std::uint8_t { fail, retry, retry_once };

// For one call: the deadline counts from when the options were made.
struct TxOptions {
    Deadline deadline = Deadline::after(std::chrono::seconds{30});
    std::stop_token stop{};
    std::optional<RetryPolicy> retry{};  // Else the database's.
    bool read_only = false;              // A consistent snapshot; writing is refused.
    Durability durability = Durability::flushed;
    OnDuplicate on_duplicate = OnDuplicate::fail;
    // Served before other waiters for a connection: for the few calls that free something for
    // others, such as the release of a lock.
    bool urgent = false;
};

struct DatabaseOptions {
    std::string name{};  // The label of its metrics; by default the file's or database's name.
    std::string application = "holdfast";
    bool create = false;   // SQLite: create the file if it is missing. Same as ?create=1.
    int connections = 16;  // At most, to a server. Same as ?pool=16.
    RetryPolicy retry{};
    // Overrides per operation, by its name.
    std::map<std::string, RetryPolicy, std::less<>> retry_by_operation{};
    bool track_retry_counts = true;        // Counts retries by attempt; off saves the series.
    int alert_conflicts_per_minute = 100;  // Above it one warning a minute names the operations.
    Metrics* metrics = nullptr;
    Logger* logger = nullptr;
    const Clock* clock = nullptr;
    // Added to the database's clock and to that of leases; tests move time with it. Null means
    // zero.
    const std::atomic<std::int64_t>* clock_offset_us = nullptr;
    // Connection sources for schemes that this floor does not know, such as dsql.
    std::map<std::string, SourceFactory, std::less<>> sources{};
};

// A committed one-statement transaction.
struct Result {
    Rows rows;
    std::int64_t changed = 0;
};

// Stops listening when destroyed, which waits for a callback that is running. Requires: it is
// destroyed before its database, and not by its own callback.
class Subscription {
public:
    virtual ~Subscription() = default;
};

struct PoolStats {
    int opening = 0;
    int ready = 0;
    int in_use = 0;
    int waiting = 0;
    std::int64_t opened = 0;
    std::int64_t closed = 0;
};

// Exact counts, for benchmarks and tests.
struct DriverStats {
    std::int64_t commits = 0;      // Physical ones; a group commit counts once.
    std::int64_t statements = 0;   // Sent to the database, without BEGIN and COMMIT.
    std::int64_t round_trips = 0;  // Waits for an answer of the server; zero on SQLite.
};

// Safe to share between threads.
class Database {
public:
    // Opens at once: throws if the URL is malformed, or the database is missing, unreachable or not
    // a database; then nothing is created or left behind.
    explicit Database(std::string_view url, DatabaseOptions options = {});
    // Waits for running transactions, up to their deadlines.
    ~Database();
    Database(const Database&) = delete;
    Database& operator=(const Database&) = delete;

    [[nodiscard]] const Dialect& dialect() const noexcept;
    [[nodiscard]] const std::string& name() const noexcept;

    // Runs `body(Tx&)` as one transaction and returns what its last run returned.
    // Requires: `operation` is a short constant name ("CreateOrder"); it labels metrics and errors.
    // Throws ConditionFailed, Exhausted, or the Error of what went wrong; outcome() says whether
    // the work can be in the database. An exception of the body rolls back and comes out unchanged.
    template <class Body>
    auto transact(std::string_view operation, const TxOptions& options, Body&& body)
        -> std::invoke_result_t<Body&, Tx&> {
        using R = std::invoke_result_t<Body&, Tx&>;
        if constexpr (std::is_void_v<R>) {
            transact_erased(operation, options, [&body](Tx& tx) { body(tx); });
        } else {
            std::optional<R> result;
            transact_erased(operation, options, [&body, &result](Tx& tx) {
                result.reset();
                result.emplace(body(tx));
            });
            return std::move(*result);  // NOLINT(bugprone-unchecked-optional-access): committed.
        }
    }

    // One statement as a transaction of its own, in one round trip. A connection that breaks after
    // it was sent leaves the outcome unknown.
    template <class... A>
    Result run(std::string_view operation,
               const TxOptions& options,
               const Statement& statement,
               const A&... args) {
        const std::array<Param, sizeof...(A)> params{Param(args)...};
        return run_erased(operation, options, statement, params);
    }
    // The same for a query that was built. Requires: it is a SELECT. Else invalid_argument.
    Result run(std::string_view operation, const TxOptions& options, const BuiltQuery& query);
    // The same under a guard: throws ConditionFailed if the guard is lost.
    template <class... A>
    Result run(std::string_view operation,
               const TxOptions& options,
               const Guard& guard,
               const FencedStatement& statement,
               const A&... args) {
        const std::array<Param, sizeof...(A)> params{Param(args)...};
        return run_fenced(operation, options, guard, statement, params);
    }
    // The same, as an answer: false if the guard is lost.
    template <class... A>
    [[nodiscard]] bool try_run(std::string_view operation,
                               const TxOptions& options,
                               const Guard& guard,
                               const FencedStatement& statement,
                               const A&... args) {
        const std::array<Param, sizeof...(A)> params{Param(args)...};
        return try_fenced(operation, options, guard, statement, params);
    }

    // Calls `wake(payload)` after transactions that notified `channel` have committed, in this
    // process or, where the dialect notifies, in any. A hint: also called with an empty payload
    // when something may have been missed (a lost connection). What it throws is logged. Null if
    // the dialect cannot notify at all.
    [[nodiscard]] std::unique_ptr<Subscription> subscribe(
        std::string_view channel, std::function<void(std::string_view payload)> wake);

    [[nodiscard]] PoolStats pool_stats() const;
    [[nodiscard]] DriverStats driver_stats() const;

    // Refuses new transactions, waits for running ones until `deadline`, closes everything.
    // Idempotent.
    void stop(Deadline deadline);

private:
    friend class SchemaSteps;

    void transact_erased(std::string_view operation,
                         const TxOptions& options,
                         const std::function<void(Tx&)>& body);
    Result run_erased(std::string_view operation,
                      const TxOptions& options,
                      const Statement& statement,
                      std::span<const Param> args);
    Result run_fenced(std::string_view operation,
                      const TxOptions& options,
                      const Guard& guard,
                      const FencedStatement& statement,
                      std::span<const Param> args);
    bool try_fenced(std::string_view operation,
                    const TxOptions& options,
                    const Guard& guard,
                    const FencedStatement& statement,
                    std::span<const Param> args);

    std::unique_ptr<Engine> engine_;
};

}  // namespace holdfast::sql
