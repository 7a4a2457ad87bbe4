#include "suites/sql_suite.hpp"

#include <optional>
#include <string>

#include "limits/bare_sqlite.hpp"
#include "limits/bench_table.hpp"
#include "limits/measured_server.hpp"
#include "workers.hpp"
#include <fmt/core.h>

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

// Two files on the same disk, so that neither side sees the other's pages or locks.
class SqliteBench {
public:
    explicit SqliteBench(const WaitTicket& place)
        : db_("sqlite:" + (place.directory / "ours.db").string() + "?create=1", place.database),
          bare_(place.directory / "bare.db", table_rows, table_token) {
        make_table(db_, {.stop = place.stop});
    }

    std::map<std::string, std::string> durability() { return file_durability(db_, bare_); }

    Work ours(int writers, std::chrono::nanoseconds time, const std::stop_token& stop) {
        return update_rows(db_, writers, time, stop);
    }
    Work limit(std::chrono::nanoseconds time, const std::stop_token& stop) {
        return update_bare(bare_, time, stop);
    }

private:
    Database db_;
    BareSqlite bare_;
};

class SqlSuite final : public Suite {
public:
    explicit SqlSuite(const WaitTicket& place) : place_(place) {}

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
        const bool on_server = !place_.db.empty() && !sql::parse_url(place_.db).embedded();
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
                .ours =
                    [this, clients](auto time, const auto& stop) {
                        return update_rows(postgres_->database(clients), clients, time, stop);
                    },
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

    const WaitTicket& place_;
    std::optional<MeasuredServer> postgres_;
    std::optional<SqliteBench> sqlite_;
};

}  // namespace

std::unique_ptr<Suite> make_sql_suite(const WaitTicket& place) {
    return std::make_unique<SqlSuite>(place);
}

}  // namespace holdfast::bench
