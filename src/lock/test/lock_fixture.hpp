// Databases that hold the tables of locks, for stories that must be true on each of them.
#pragma once

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <ostream>
#include <semaphore>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "hooks.hpp"
#include "test/fake_backend.hpp"
#include <gtest/gtest.h>

#include <holdfast/lock/locks.hpp>
#include <holdfast/sql/database.hpp>
#include <holdfast/sql/source.hpp>
#include <holdfast/testing/backends.hpp>
#include <holdfast/testing/check.hpp>
#include <holdfast/testing/conflicts.hpp>
#include <holdfast/testing/crowd.hpp>
#include <holdfast/testing/database.hpp>
#include <holdfast/testing/dsql.hpp>

namespace holdfast::lock::tests {

using namespace std::chrono_literals;

// A database, and which of its commits are refused with a conflict: every second one, say.
struct Setting {
    test::Backend backend = test::Backend::sqlite;
    // PostgreSQL with the statements of a server that never waits, on snapshots, although it waits:
    // for stories that need one transaction to block another at a certain moment.
    bool optimistic = false;
    int conflict_every = 0;    // 0: none.
    bool early_abort = false;  // DSQL: tells of a conflict at the statement, not at the commit.
};

[[nodiscard]] inline std::string to_string(const Setting& setting) {
    return (setting.optimistic ? "optimistic" : std::string(to_string(setting.backend))) +
           (setting.conflict_every > 0 && !setting.optimistic ? "_with_conflicts" : "") +
           (setting.early_abort ? "_early" : "");
}
inline std::ostream& operator<<(std::ostream& out, const Setting& setting) {
    return out << to_string(setting);
}
[[nodiscard]] inline std::string setting_name(const testing::TestParamInfo<Setting>& info) {
    return to_string(info.param);
}

// Every second commit: a transaction that runs alone fails once and then succeeds.
[[nodiscard]] inline auto every_setting(int conflict_every = 2) {
    return testing::Values(Setting{test::Backend::sqlite},
                           Setting{test::Backend::postgres},
                           Setting{test::Backend::postgres, false, conflict_every},
                           Setting{test::Backend::dsql, false, conflict_every},
                           Setting{test::Backend::dsql, false, 0, true});
}
// Rarer conflicts: in a crowd, one can be unlucky more often than it may try.
[[nodiscard]] inline auto every_setting_of_a_crowd() {
    return every_setting(20);
}

// The parameters of a plain server, and the dialect of one that never waits.
class OptimisticSource final : public sql::ConnectionSource {
public:
    explicit OptimisticSource(std::string database) : database_(std::move(database)) {}

    [[nodiscard]] const sql::Dialect& dialect() const noexcept override {
        return sql::dialect_named("dsql");
    }
    [[nodiscard]] sql::ConnectParams prepare(Deadline,
                                             const std::stop_token&,
                                             pool::OpenPhases&) override {
        return {{"host", test::shared_postgres().socket_folder},
                {"dbname", database_},
                {"user", "postgres"},
                {"client_encoding", "UTF8"},
                {"options", R"(-c default_transaction_isolation=repeatable\ read)"}};
    }
    bool opened(const sql::ConnectParams&, const sql::DatabaseError*) noexcept override {
        return false;
    }
    void closed() noexcept override {}

private:
    std::string database_;
};

// An empty database with the tables of locks, as the setting wants it.
class LockDatabase {
public:
    explicit LockDatabase(const Setting& setting,
                          sql::DatabaseOptions options = test::quick_options())
        : setting_(told_how_to_report(setting)),
          outside(setting.backend, schema_part(), std::move(options)) {
        if (setting.conflict_every > 0) {
            test::refuse_commits(outside, setting.conflict_every, "holdfast_");
        }
        if (setting.optimistic) {
            outside.close();
            optimistic_ = open();
        }
    }

    // NOLINTNEXTLINE(google-explicit-constructor): it stands for the database it has opened.
    operator sql::Database&() noexcept { return optimistic_ ? *optimistic_ : *outside; }
    sql::Database* operator->() noexcept { return &static_cast<sql::Database&>(*this); }

    // A second handle, as another process would have it, by the same clock.
    [[nodiscard]] std::unique_ptr<sql::Database> open(int connections = 16) const {
        sql::DatabaseOptions options = outside.options();
        options.connections = connections;
        if (!setting_.optimistic) {
            return std::make_unique<sql::Database>(outside.url(), options);
        }
        options.sources["optimistic"] = [this](const sql::Url&) {
            return std::make_unique<OptimisticSource>(outside.name());
        };
        return std::make_unique<sql::Database>("optimistic:test", options);
    }

    void advance_clock(std::chrono::microseconds by) noexcept { outside.advance_clock(by); }
    [[nodiscard]] std::int64_t number(std::string_view query) const {
        return outside.number(query);
    }
    // Changes rows past the code under test, and past the conflicts.
    void tamper(const std::string& script) const {
        const bool as_superuser =
            setting_.backend == test::Backend::dsql && setting_.conflict_every > 0;
        outside.execute((as_superuser ? "SET ROLE postgres;" : "") +
                        std::string(setting_.conflict_every > 0 ? test::past_conflicts : "") +
                        script);
    }
    // True once a transaction waits for another's row, or for the file.
    [[nodiscard]] bool wait_until_blocked(Deadline deadline = Deadline::after(20s)) {
        const auto blocked = [&] {
            return setting_.backend == test::Backend::sqlite
                       ? outside->pool_stats().waiting > 0
                       : number(
                             "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = "
                             "'Lock' AND datname = current_database()") > 0;
        };
        while (!deadline.passed()) {
            if (blocked()) {
                return true;
            }
        }
        return false;
    }

private:
    static Setting told_how_to_report(const Setting& setting) {
        if (setting.backend == test::Backend::dsql) {
            test::shared_gateway().set_early_abort(setting.early_abort);
        }
        return setting;
    }

    Setting setting_;

public:
    test::Database outside;

private:
    std::unique_ptr<sql::Database> optimistic_;
};

// Another client's transaction, which has done its work and stays open until it is let go.
class OpenTransaction {
public:
    OpenTransaction(std::unique_ptr<sql::Database> db, std::function<void(sql::Tx&)> work)
        : db_(std::move(db)), thread_([this, work = std::move(work)] {
              db_->transact("Stay", {}, [&](sql::Tx& tx) {
                  work(tx);
                  entered_.release();
                  left_.wait();
              });
          }) {
        entered_.acquire();
    }
    OpenTransaction(std::unique_ptr<sql::Database> db, const sql::Statement& statement)
        : OpenTransaction(std::move(db), [statement](sql::Tx& tx) { (void)tx.query(statement); }) {}
    ~OpenTransaction() { let_go(); }
    OpenTransaction(const OpenTransaction&) = delete;
    OpenTransaction& operator=(const OpenTransaction&) = delete;

    // Commits.
    void let_go() {
        if (thread_.joinable()) {
            leave_.set_value();
            thread_.join();
        }
    }

private:
    std::unique_ptr<sql::Database> db_;
    std::counting_semaphore<> entered_{0};  // Once more for each repeat after a conflict.
    std::promise<void> leave_;
    std::shared_future<void> left_ = leave_.get_future().share();
    std::jthread thread_;
};

using tests::lock_error_of;

template <class Body>
[[nodiscard]] std::optional<LockCode> lock_code_of(Body&& body) {
    const auto error = lock_error_of(std::forward<Body>(body));
    return error ? std::optional(error->lock_code()) : std::nullopt;
}

[[nodiscard]] inline bool is_busy(const Acquired& acquired) {
    return std::holds_alternative<Busy>(acquired);
}
[[nodiscard]] inline bool is_granted(const Acquired& acquired) {
    return std::holds_alternative<Grant>(acquired);
}

using test::all_at_once;

// For stories about whose turn it is: a turn is kept for a quarter of a second, and a busy machine
// may need that for the next line of the story.
inline constexpr Locks::Hooks unhurried{.reservation = 20s, .neighbourly = 20s};

class LockStory : public testing::TestWithParam<Setting> {
protected:
    explicit LockStory(const Locks::Hooks& hooks = {}) : locks(db, {}, hooks) {}

    // Ten seconds are more than a busy machine needs to answer: no grant is refused as over. What
    // has to end, ends by the hand.
    Grant take(std::string_view key, std::chrono::milliseconds ttl = 10s) {
        return std::get<Grant>(locks.acquire(key, ttl));
    }
    // The lease that `take` gives, and the grace after it.
    void let_the_lease_end() { db.advance_clock(11'500ms); }

    LockDatabase db{GetParam()};
    Locks locks;
};

}  // namespace holdfast::lock::tests
