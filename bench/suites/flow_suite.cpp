#include "suites/flow_suite.hpp"

#include <optional>
#include <string>
#include <vector>

#include "limits/bare_sqlite.hpp"
#include "limits/bench_table.hpp"
#include "limits/measured_server.hpp"
#include "suites/flow_scenarios.hpp"
#include <fmt/core.h>

#include <holdfast/base/error.hpp>
#include <holdfast/flow/sql_provider.hpp>
#include <holdfast/sql/schema.hpp>
#include <holdfast/sql/url.hpp>

namespace holdfast::bench {
namespace {

// What one of so many clients waits for a commit.
double commit_us(const Work& limit, int clients) {
    return limit.operations > 0 ? limit.seconds * 1e6 * clients / limit.operations : 0;
}

class FileBench {
public:
    explicit FileBench(const WaitTicket& place)
        : db_("sqlite:" + (place.directory / "flow.db").string() + "?create=1", place.database),
          store_(db_),
          bare_(place.directory / "bare.db", table_rows, table_token) {}

    std::map<std::string, std::string> durability() { return file_durability(db_, bare_); }
    Work ours(const Scenario& scenario,
              std::chrono::nanoseconds time,
              const std::stop_token& stop) {
        return run_scenario(scenario, {.store = store_, .commit_us = commit_us_}, time, stop);
    }
    Work limit(const Scenario&, std::chrono::nanoseconds time, const std::stop_token& stop) {
        const Work work = update_bare(bare_, time, stop);
        commit_us_ = commit_us(work, 1);
        return work;
    }

private:
    sql::Database db_;
    flow::Store store_;
    BareSqlite bare_;
    double commit_us_ = 0;
};

class ServerBench {
public:
    ServerBench(const WaitTicket& place, std::string url)
        : server_(place, std::move(url)), db_(server_.database(place.database.connections)) {
        sql::schema_apply(db_, flow::schema_part(), {.stop = place.stop});
        store_.emplace(db_);
    }

    std::map<std::string, std::string> durability() { return server_.durability(); }
    Work ours(const Scenario& scenario,
              std::chrono::nanoseconds time,
              const std::stop_token& stop) {
        return run_scenario(scenario, {.store = *store_, .commit_us = commit_us_}, time, stop);
    }
    Work limit(const Scenario& scenario,
               std::chrono::nanoseconds time,
               const std::stop_token& stop) {
        Work work = server_.limit(scenario.in_flight, time, stop);
        commit_us_ = commit_us(work, scenario.in_flight);
        return work;
    }

private:
    MeasuredServer server_;
    sql::Database& db_;
    std::optional<flow::Store> store_;
    double commit_us_ = 0;
};

class FlowSuite final : public Suite {
public:
    explicit FlowSuite(const WaitTicket& place) : place_(place), scenarios_(flow_scenarios()) {}

    std::vector<Pair> pairs() override {
        std::vector<Pair> pairs;
        const bool on_file = place_.db.empty() || is_file();
        const bool on_server = place_.db.empty() || !is_file();
        for (const Scenario& scenario : scenarios_) {
            if (on_file) {
                pairs.push_back(pair("sqlite", file_, scenario, scenario.sqlite_floor));
            }
            if (on_server) {
                pairs.push_back(pair("postgres", server_, scenario, scenario.postgres_floor));
            }
        }
        return pairs;
    }

    Durability prepare(std::span<const Pair> chosen) override {
        Durability durability;
        for (const Pair& pair : chosen) {
            if (pair.name.starts_with("postgres.") && !server_) {
                server_.emplace(place_, is_file() ? std::string{} : place_.db);
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
    [[nodiscard]] bool is_file() const {
        return !place_.db.empty() && sql::parse_url(place_.db).embedded();
    }
    template <class Bench>
    Pair pair(std::string_view db,
              std::optional<Bench>& bench,
              const Scenario& scenario,
              std::optional<double> floor) {
        return {
            .name =
                fmt::format("{}.{}.k{}{}", db, scenario.name, scenario.in_flight, scenario.variant),
            .unit = scenario.name == "longhistory" ? "turns/s" : "workflows/s",
            .ours = [&bench, &scenario](
                        auto time, const auto& stop) { return bench->ours(scenario, time, stop); },
            .limit = [&bench, &scenario](
                         auto time,
                         const auto& stop) { return bench->limit(scenario, time, stop); },
            .floor = floor};
    }

    const WaitTicket& place_;
    std::vector<Scenario> scenarios_;
    std::optional<FileBench> file_;
    std::optional<ServerBench> server_;
};

}  // namespace

std::unique_ptr<Suite> make_flow_suite(const WaitTicket& place) {
    return std::make_unique<FlowSuite>(place);
}

}  // namespace holdfast::bench
