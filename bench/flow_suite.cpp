#include "flow_suite.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "bare_sqlite.hpp"
#include "bench_table.hpp"
#include "flow_workloads.hpp"
#include "latencies.hpp"
#include "pgbench.hpp"
#include "private_server.hpp"
#include "workers.hpp"
#include <fmt/core.h>

#include <holdfast/base/error.hpp>
#include <holdfast/flow/sql_provider.hpp>
#include <holdfast/sql/schema.hpp>
#include <holdfast/sql/url.hpp>

namespace holdfast::bench {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds patience{120'000};
constexpr std::int64_t long_history = 5'000;

// One thing that is done over and over.
struct Scenario {
    std::string_view name;
    int in_flight;
    flow::RuntimeOptions options;
    // One whole workflow, by its id; how many activities it ran.
    std::function<int(flow::Client&, const std::string& id)> run;
    std::optional<double> sqlite_floor;
    std::optional<double> postgres_floor;
};

template <auto W, class... A>
int run_one(flow::Client& client, const std::string& id, int activities, A... args) {
    client.start<W>(id, args...);
    if (!client.result<W>(id, patience)) {
        throw Error(Code::internal, Outcome::not_applied, "a measured workflow failed");
    }
    return activities;
}

// Wakes one instance with a long history again and again.
int poke(flow::Client& client, const std::string&) {
    static constexpr std::string_view id = "bench-endless";
    const auto before = client.info(id);
    if (!before) {
        client.start<&endless>(std::string(id));
        for (std::int64_t i = 0; i < long_history / 2; ++i) {
            client.signal(id, pokes, std::int64_t{1});
        }
    }
    const auto events = client.info(id)->last_event;
    client.signal(id, pokes, std::int64_t{1});
    while (client.info(id)->last_event == events) {
        std::this_thread::yield();
    }
    return 0;
}

flow::RuntimeOptions threads(int workflows, int activities) {
    flow::RuntimeOptions options;
    options.workflow_threads = workflows;
    options.activity_threads = activities;
    return options;
}

std::vector<Scenario> scenarios() {
    std::vector<Scenario> all;
    const auto chain_of = [](std::int64_t steps) {
        return [steps](flow::Client& client, const std::string& id) {
            return run_one<&chain>(client, id, static_cast<int>(steps), steps);
        };
    };
    all.push_back({"chain1", 1, threads(2, 8), chain_of(1), {}, {}});
    all.push_back({"chain1", 16, threads(2, 8), chain_of(1), {}, 0.10});
    all.push_back({"chain1", 64, threads(2, 8), chain_of(1), 0.6, {}});
    all.push_back({"chain5", 16, threads(2, 8), chain_of(5), {}, 0.035});
    all.push_back({"chain5", 64, threads(2, 8), chain_of(5), 0.2, {}});
    all.push_back({"parallel",
                   20,
                   threads(2, 2),
                   [](flow::Client& client, const std::string& id) {
                       return run_one<&parallel_slow>(client, id, 5, std::int64_t{5});
                   },
                   {},
                   {}});
    all.push_back({"parallel0",
                   200,
                   threads(8, 32),
                   [](flow::Client& client, const std::string& id) {
                       return run_one<&parallel>(client, id, 5, std::int64_t{5});
                   },
                   0.25,
                   {}});
    all.push_back({"fanout",
                   1,
                   threads(2, 8),
                   [](flow::Client& client, const std::string& id) {
                       return run_one<&fanout>(client, id, 900, std::int64_t{900});
                   },
                   {},
                   {}});
    all.push_back({"timers",
                   64,
                   threads(2, 8),
                   [](flow::Client& client, const std::string& id) {
                       return run_one<&nap>(client, id, 0, std::int64_t{10});
                   },
                   {},
                   {}});
    all.push_back({"longhistory", 1, threads(2, 8), poke, {}, {}});
    all.push_back({"largepayload",
                   5,
                   threads(1, 1),
                   [](flow::Client& client, const std::string& id) {
                       return run_one<&large>(client, id, 40);
                   },
                   {},
                   {}});
    return all;
}

// Our side: k clients start workflows and wait for them, in one process with their runtime.
Work run_scenario(flow::Store& store,
                  const Scenario& scenario,
                  std::chrono::nanoseconds time,
                  const std::stop_token& stop) {
    static std::atomic<std::int64_t> next_id = 0;
    flow::Runtime runtime(store, workloads(), scenario.options);
    flow::Client client(store);
    const std::string run = make_token();
    Latencies latencies;
    std::atomic<std::int64_t> activities = 0;
    const sql::DriverStats before = store.database().driver_stats();
    Work work = run_workers(scenario.in_flight, time, stop, [&](Random&) {
        const Steady began = steady_clock::now();
        activities += scenario.run(client, fmt::format("{}-{}", run, ++next_id));
        latencies.add(steady_clock::now() - began);
    });
    const sql::DriverStats after = store.database().driver_stats();
    runtime.drain(milliseconds{10'000});
    const auto grown = [](std::int64_t from, std::int64_t to) {
        return static_cast<double>(to - from);
    };
    // Averages over the rounds: what the driver divides by the operations is multiplied by them
    // here.
    work.counts = {{"activities", static_cast<double>(activities)},
                   {"p50_us", latencies.at(0.5) * work.operations},
                   {"p99_us", latencies.at(0.99) * work.operations},
                   {"commits", grown(before.commits, after.commits)},
                   {"statements", grown(before.statements, after.statements)},
                   {"round_trips", grown(before.round_trips, after.round_trips)},
                   {"events_replayed", static_cast<double>(runtime.stats().events_replayed)}};
    return work;
}

class FileBench {
public:
    explicit FileBench(const Place& place)
        : db_("sqlite:" + (place.directory / "flow.db").string() + "?create=1", place.database),
          store_(db_),
          bare_(place.directory / "bare.db", table_rows, table_token) {}

    std::map<std::string, std::string> durability() { return file_durability(db_, bare_); }
    Work ours(const Scenario& scenario,
              std::chrono::nanoseconds time,
              const std::stop_token& stop) {
        return run_scenario(store_, scenario, time, stop);
    }
    Work limit(const Scenario&, std::chrono::nanoseconds time, const std::stop_token& stop) {
        return run_workers(1, time, stop, [this](Random& random) {
            bare_.update(random_row(random), table_token, table_step);
        });
    }

private:
    sql::Database db_;
    flow::Store store_;
    BareSqlite bare_;
};

class ServerBench {
public:
    ServerBench(const Place& place, std::string url)
        : server_(url.empty() ? start_private_server() : nullptr),
          url_(server_ ? server_->url() : std::move(url)),
          db_(url_, place.database),
          script_(write_pgbench_script(place.directory)) {
        sql::schema_apply(db_, flow::schema_part(), {.stop = place.stop});
        store_.emplace(db_);
        make_table(db_, {.stop = place.stop});
    }

    std::map<std::string, std::string> durability() { return server_durability(db_); }
    Work ours(const Scenario& scenario,
              std::chrono::nanoseconds time,
              const std::stop_token& stop) {
        return run_scenario(*store_, scenario, time, stop);
    }
    Work limit(const Scenario& scenario,
               std::chrono::nanoseconds time,
               const std::stop_token& stop) const {
        return run_pgbench(
            {.url = url_, .script = script_, .clients = scenario.in_flight, .time = time}, stop);
    }

private:
    std::unique_ptr<PrivateServer> server_;
    std::string url_;
    sql::Database db_;
    std::optional<flow::Store> store_;
    std::filesystem::path script_;
};

class FlowSuite final : public Suite {
public:
    explicit FlowSuite(const Place& place) : place_(place), scenarios_(scenarios()) {}

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
        return !place_.db.empty() && sql::parse_url(place_.db).scheme == "sqlite";
    }
    template <class Bench>
    Pair pair(std::string_view db,
              std::optional<Bench>& bench,
              const Scenario& scenario,
              std::optional<double> floor) {
        return {
            .name = fmt::format("{}.{}.k{}", db, scenario.name, scenario.in_flight),
            .unit = scenario.name == "longhistory" ? "turns/s" : "workflows/s",
            .ours = [&bench, &scenario](
                        auto time, const auto& stop) { return bench->ours(scenario, time, stop); },
            .limit = [&bench, &scenario](
                         auto time,
                         const auto& stop) { return bench->limit(scenario, time, stop); },
            .floor = floor};
    }

    const Place& place_;
    std::vector<Scenario> scenarios_;
    std::optional<FileBench> file_;
    std::optional<ServerBench> server_;
};

}  // namespace

std::unique_ptr<Suite> make_flow_suite(const Place& place) {
    return std::make_unique<FlowSuite>(place);
}

}  // namespace holdfast::bench
