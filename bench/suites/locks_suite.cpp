#include "suites/locks_suite.hpp"

#include <array>
#include <atomic>
#include <optional>
#include <string>
#include <variant>

#include "limits/bare_sqlite.hpp"
#include "limits/bench_table.hpp"
#include "limits/measured_server.hpp"
#include "workers.hpp"
#include <fmt/core.h>

#include <holdfast/base/error.hpp>
#include <holdfast/bench/latencies.hpp>
#include <holdfast/lock/locks.hpp>
#include <holdfast/lock/with_lock.hpp>
#include <holdfast/sql/url.hpp>

namespace holdfast::bench {
namespace {

using std::chrono::steady_clock;

constexpr std::chrono::seconds lease{30};

// A schema of the benchmark's own, so that real locks are neither seen nor touched.
const lock::Names& bench_names() {
    static const lock::Names names{
        .schema = {}, .locks = "holdfast_bench_locks", .fences = "holdfast_bench_fences"};
    return names;
}

constexpr std::array drops{
    sql::Statement{"bench.drop_locks", "DROP TABLE IF EXISTS {table.locks}"},
    sql::Statement{"bench.drop_fences", "DROP TABLE IF EXISTS {table.fences}"},
    sql::Statement{"bench.drop_waiters", "DROP TABLE IF EXISTS {table.waiters}"},
    sql::Statement{"bench.drop_permits", "DROP TABLE IF EXISTS {table.permits}"},
    sql::Statement{"bench.drop_resources", "DROP TABLE IF EXISTS {table.resources}"}};
constexpr sql::Statement forget{"bench.forget", "DELETE FROM holdfast_schema WHERE part = $1"};

enum class Keys : std::uint8_t { distinct, one };

// Takes a lock and gives it back; how many calls of the database's protocol that is made of is
// counted outside.
void cycle(lock::Locks& locks, const std::string& key, Keys keys) {
    if (keys == Keys::distinct) {
        const lock::Acquired answer = locks.acquire(key, lease);
        if (const auto* grant = std::get_if<lock::Grant>(&answer)) {
            locks.release(grant->lock_id);
            return;
        }
        throw Error(Code::internal, Outcome::not_applied, "a lock without another client is busy");
    }
    const lock::Acquired answer =
        lock::acquire_waiting(locks, key, lease, {.timeout = std::chrono::seconds{60}});
    locks.release(std::get<lock::Grant>(answer).lock_id);
}

Work run_cycles(sql::Database& db,
                lock::Locks& locks,
                int clients,
                Keys keys,
                std::chrono::nanoseconds time,
                const std::stop_token& stop) {
    Latencies latencies;
    std::atomic<int> next_client = 0;
    const sql::DriverStats before = db.driver_stats();
    Work work = run_workers(clients, time, stop, [&](Random&) {
        thread_local int client = -1;
        if (client < 0) {
            client = ++next_client;
        }
        const auto began = steady_clock::now();
        cycle(locks, keys == Keys::one ? "one" : fmt::format("client-{}", client), keys);
        latencies.add(steady_clock::now() - began);
    });
    const sql::DriverStats after = db.driver_stats();
    const auto grown = [](std::int64_t from, std::int64_t to) {
        return static_cast<double>(to - from);
    };
    // A pair is two operations of a lock.
    work.counts = {{"round_trips", grown(before.round_trips, after.round_trips) / 2},
                   {"statements", grown(before.statements, after.statements) / 2},
                   {"commits", grown(before.commits, after.commits) / 2}};
    latencies.add_to(work.figures);
    work.figures.push_back({"longest_us", latencies.at(1.0)});
    return work;
}

// The server's side. Its tables are dropped in the end.
class ServerLocks {
public:
    ServerLocks(const WaitTicket& place, std::string url) : server_(place, std::move(url)) {
        sql::schema_apply(server_.database(1), schema_.part(), {.stop = place.stop});
    }
    ~ServerLocks() {
        locks_.reset();
        server_.clean_up([this](sql::Database& db) {
            for (const sql::Statement& drop : drops) {
                (void)db.run("bench.clean", {}, drop.with(schema_.tables()));
            }
            (void)db.run("bench.clean", {}, forget, schema_.part().name);
        });
    }
    ServerLocks(const ServerLocks&) = delete;
    ServerLocks& operator=(const ServerLocks&) = delete;

    std::map<std::string, std::string> durability() { return server_.durability(); }

    Work ours(int clients, Keys keys, std::chrono::nanoseconds time, const std::stop_token& stop) {
        if (!locks_ || !server_.serves(clients)) {
            locks_.reset();
            locks_.emplace(server_.database(clients), lock::LocksOptions{.names = bench_names()});
        }
        return run_cycles(server_.database(clients), *locks_, clients, keys, time, stop);
    }
    [[nodiscard]] Work limit(int clients,
                             std::chrono::nanoseconds time,
                             const std::stop_token& stop) const {
        return server_.limit(clients, time, stop);
    }

private:
    lock::Schema schema_{bench_names()};
    MeasuredServer server_;
    std::optional<lock::Locks> locks_;
};

// Two files on the same disk, so that neither side sees the other's pages or locks.
class FileLocks {
public:
    explicit FileLocks(const WaitTicket& place)
        : db_("sqlite:" + (place.directory / "locks.db").string() + "?create=1", place.database),
          bare_(place.directory / "bare_locks.db", table_rows, table_token) {
        sql::schema_apply(db_, schema_.part(), {.stop = place.stop});
        locks_.emplace(db_, lock::LocksOptions{.names = bench_names()});
    }

    std::map<std::string, std::string> durability() { return file_durability(db_, bare_); }

    Work ours(int clients, Keys keys, std::chrono::nanoseconds time, const std::stop_token& stop) {
        return run_cycles(db_, *locks_, clients, keys, time, stop);
    }
    Work limit(std::chrono::nanoseconds time, const std::stop_token& stop) {
        return update_bare(bare_, time, stop);
    }

private:
    lock::Schema schema_{bench_names()};
    sql::Database db_;
    BareSqlite bare_;
    std::optional<lock::Locks> locks_;
};

class LocksSuite final : public Suite {
public:
    explicit LocksSuite(const WaitTicket& place) : place_(place) {}

    std::vector<Pair> pairs() override {
        if (place_.clients > 0) {
            return {server_pair(place_.clients, Keys::distinct, {}),
                    server_pair(place_.clients, Keys::one, {}),
                    file_pair(place_.clients, Keys::distinct, {}),
                    file_pair(place_.clients, Keys::one, {})};
        }
        return {server_pair(1, Keys::distinct, {}),
                server_pair(8, Keys::distinct, 0.27),
                server_pair(32, Keys::distinct, 0.20),
                server_pair(8, Keys::one, 0.07),
                server_pair(32, Keys::one, 0.055),
                file_pair(8, Keys::distinct, 1.0),
                file_pair(8, Keys::one, {})};
    }

    Durability prepare(std::span<const Pair> chosen) override {
        const bool on_server = !place_.db.empty() && !sql::parse_url(place_.db).embedded();
        Durability durability;
        for (const Pair& pair : chosen) {
            if (pair.name.starts_with("pg.") && !server_) {
                server_.emplace(place_, on_server ? place_.db : std::string{});
                durability["postgres"] = server_->durability();
            }
            if (pair.name.starts_with("sqlite.") && !file_) {
                file_.emplace(place_);
                durability["sqlite"] = file_->durability();
            }
        }
        return durability;
    }

private:
    static std::string_view to_string(Keys keys) {
        return keys == Keys::distinct ? "distinct" : "one";
    }

    Pair server_pair(int clients, Keys keys, std::optional<double> floor) {
        return {.name = fmt::format("pg.cycle.{}.c{}", to_string(keys), clients),
                .unit = "pairs/s",
                .ours = [this, clients, keys](
                            auto time,
                            const auto& stop) { return server_->ours(clients, keys, time, stop); },
                .limit = [this, clients](
                             auto time,
                             const auto& stop) { return server_->limit(clients, time, stop); },
                .floor = floor};
    }
    Pair file_pair(int clients, Keys keys, std::optional<double> floor) {
        return {.name = fmt::format("sqlite.cycle.{}.c{}", to_string(keys), clients),
                .unit = "pairs/s",
                .ours = [this, clients, keys](
                            auto time,
                            const auto& stop) { return file_->ours(clients, keys, time, stop); },
                .limit = [this](auto time, const auto& stop) { return file_->limit(time, stop); },
                .floor = floor};
    }

    const WaitTicket& place_;
    std::optional<ServerLocks> server_;
    std::optional<FileLocks> file_;
};

}  // namespace

std::unique_ptr<Suite> make_locks_suite(const WaitTicket& place) {
    return std::make_unique<LocksSuite>(place);
}

}  // namespace holdfast::bench
