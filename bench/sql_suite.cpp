#include "sql_suite.hpp"

#include <optional>
#include <string>

#include "bare_sqlite.hpp"
#include "bench_table.hpp"
#include "pgbench.hpp"
#include "private_server.hpp"
#include "workers.hpp"
#include <fmt/core.h>

#include <holdfast/base/error.hpp>
#include <holdfast/base/log.hpp>
#include <holdfast/sql/url.hpp>

namespace holdfast::bench {
namespace {

using sql::Database;

// Our side of every pair: the fenced update, by a number of threads.
Work update_rows(Database& db,
                 int workers,
                 std::chrono::nanoseconds time,
                 const std::stop_token& stop) {
    const sql::DriverStats before = db.driver_stats();
    Work work = run_workers(workers, time, stop, [&db, &stop](Random& random) {
        update_row(db, random_row(random), {.stop = stop});
    });
    const sql::DriverStats after = db.driver_stats();
    const auto grown = [](std::int64_t from, std::int64_t to) {
        return static_cast<double>(to - from);
    };
    work.counts = {{"commits_per_tx", grown(before.commits, after.commits)},
                   {"statements_per_tx", grown(before.statements, after.statements)},
                   {"round_trips_per_tx", grown(before.round_trips, after.round_trips)}};
    return work;
}

// The server's side. Its table is dropped in the end.
class PostgresBench {
public:
    PostgresBench(const Place& place, std::string url) : place_(place), url_(std::move(url)) {
        if (url_.empty()) {
            server_ = start_private_server();
            url_ = server_->url();
        }
        script_ = write_pgbench_script(place.directory);
        make_table(database(1), {.stop = place.stop});
    }
    ~PostgresBench() {
        try {
            drop_table(database(1));
        } catch (const std::exception& failure) {  // The server is out of reach; so is the table.
            if (place_.database.logger != nullptr) {
                place_.database.logger->warn("bench table left behind",
                                             {{"error", failure.what()}});
            }
        }
    }
    PostgresBench(const PostgresBench&) = delete;
    PostgresBench& operator=(const PostgresBench&) = delete;

    std::map<std::string, std::string> durability() { return server_durability(database(1)); }

    Work ours(int clients, std::chrono::nanoseconds time, const std::stop_token& stop) {
        return update_rows(database(clients), clients, time, stop);
    }
    [[nodiscard]] Work limit(int clients,
                             std::chrono::nanoseconds time,
                             const std::stop_token& stop) const {
        return run_pgbench({.url = url_, .script = script_, .clients = clients, .time = time},
                           stop);
    }

private:
    // One handle per number of clients: idle connections of another one would burden both sides.
    Database& database(int clients) {
        if (clients != clients_) {
            db_.reset();
            clients_ = 0;
            sql::DatabaseOptions options = place_.database;
            options.connections = clients;
            db_ = std::make_unique<Database>(url_, std::move(options));
            clients_ = clients;
        }
        return *db_;
    }

    const Place& place_;
    std::string url_;
    std::unique_ptr<PrivateServer> server_;
    std::filesystem::path script_;
    std::unique_ptr<Database> db_;
    int clients_ = 0;
};

// Two files on the same disk, so that neither side sees the other's pages or locks.
class SqliteBench {
public:
    explicit SqliteBench(const Place& place)
        : db_("sqlite:" + (place.directory / "ours.db").string() + "?create=1", place.database),
          bare_(place.directory / "bare.db", table_rows, table_token) {
        make_table(db_, {.stop = place.stop});
    }

    std::map<std::string, std::string> durability() { return file_durability(db_, bare_); }

    Work ours(int writers, std::chrono::nanoseconds time, const std::stop_token& stop) {
        return update_rows(db_, writers, time, stop);
    }
    Work limit(std::chrono::nanoseconds time, const std::stop_token& stop) {
        return run_workers(1, time, stop, [this](Random& random) {
            bare_.update(random_row(random), table_token, table_step);
        });
    }

private:
    Database db_;
    BareSqlite bare_;
};

class SqlSuite final : public Suite {
public:
    explicit SqlSuite(const Place& place) : place_(place) {}

    std::vector<Pair> pairs() override {
        std::vector<Pair> pairs;
        pairs.push_back(postgres_pair(1, {}));
        pairs.push_back(postgres_pair(8, 0.85));
        pairs.push_back(postgres_pair(32, {}));
        pairs.push_back(sqlite_pair(1, 0.85));
        pairs.push_back(sqlite_pair(8, 2.5));
        pairs.push_back(sqlite_pair(64, 5.0));
        return pairs;
    }

    Durability prepare(std::span<const Pair> chosen) override {
        const bool on_server = !place_.db.empty() && sql::parse_url(place_.db).scheme != "sqlite";
        Durability durability;
        for (const Pair& pair : chosen) {
            if (pair.name.starts_with("pg.") && !postgres_) {
                postgres_.emplace(place_, on_server ? place_.db : std::string{});
                durability["postgres"] = postgres_->durability();
            }
            if (pair.name.starts_with("sqlite.") && !sqlite_) {
                sqlite_.emplace(place_);
                durability["sqlite"] = sqlite_->durability();
            }
        }
        return durability;
    }

private:
    Pair postgres_pair(int clients, std::optional<double> floor) {
        return {.name = fmt::format("pg.update.c{}", clients),
                .unit = "tx/s",
                .ours = [this, clients](
                            auto time,
                            const auto& stop) { return postgres_->ours(clients, time, stop); },
                .limit = [this, clients](
                             auto time,
                             const auto& stop) { return postgres_->limit(clients, time, stop); },
                .floor = floor};
    }
    Pair sqlite_pair(int writers, std::optional<double> floor) {
        return {
            .name = fmt::format("sqlite.commit.w{}", writers),
            .unit = "tx/s",
            .ours = [this, writers](
                        auto time, const auto& stop) { return sqlite_->ours(writers, time, stop); },
            .limit = [this](auto time, const auto& stop) { return sqlite_->limit(time, stop); },
            .floor = floor};
    }

    const Place& place_;
    std::optional<PostgresBench> postgres_;
    std::optional<SqliteBench> sqlite_;
};

}  // namespace

std::unique_ptr<Suite> make_sql_suite(const Place& place) {
    return std::make_unique<SqlSuite>(place);
}

}  // namespace holdfast::bench
