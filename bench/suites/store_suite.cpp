#include "suites/store_suite.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "limits/bare_sqlite.hpp"
#include "limits/bench_table.hpp"
#include "limits/measured_gateway.hpp"
#include "limits/measured_server.hpp"
#include "limits/own_database.hpp"
#include "suites/store_load.hpp"
#include <fmt/core.h>

#include <holdfast/base/error.hpp>
#include <holdfast/dsql/source.hpp>
#include <holdfast/sql/url.hpp>

namespace holdfast::bench {
namespace {

constexpr OwnDatabase direct{
    "holdfast_bench_store",
    {"bench.create_store", "CREATE DATABASE holdfast_bench_store"},
    {"bench.drop_store", "DROP DATABASE IF EXISTS holdfast_bench_store WITH (FORCE)"}};
constexpr OwnDatabase cluster{
    "holdfast_bench_cluster",
    {"bench.create_cluster", "CREATE DATABASE holdfast_bench_cluster"},
    {"bench.drop_cluster", "DROP DATABASE IF EXISTS holdfast_bench_cluster WITH (FORCE)"}};

class ServerStore {
public:
    ServerStore(const WaitTicket& place, std::string url)
        : place_(place), server_(place, std::move(url)) {
        recreate(direct);
        load_ = std::make_unique<StoreLoad>(
            url_of_database(server_.url(), direct.name), place.database, place.stop);
    }
    ~ServerStore() {
        load_.reset();
        cluster_load_.reset();
        gateway_.reset();
        server_.clean_up([](sql::Database& db) {
            (void)db.run("bench.clean", {}, direct.drop);
            (void)db.run("bench.clean", {}, cluster.drop);
        });
    }
    ServerStore(const ServerStore&) = delete;
    ServerStore& operator=(const ServerStore&) = delete;

    std::map<std::string, std::string> durability() { return server_.durability(); }

    void open_gateway() {
        if (gateway_) {
            return;
        }
        recreate(cluster);
        gateway_ =
            std::make_unique<MeasuredGateway>(place_, url_of_database(server_.url(), cluster.name));
        sql::DatabaseOptions options = place_.database;
        options.sources[std::string(dsql::url_scheme)] = gateway_->source();
        cluster_load_ =
            std::make_unique<StoreLoad>(gateway_->dsql_url(), std::move(options), place_.stop);
    }

    StoreLoad& load() { return *load_; }
    StoreLoad& behind_gateway() { return *cluster_load_; }
    [[nodiscard]] Work limit(int clients,
                             std::chrono::nanoseconds time,
                             const std::stop_token& stop) const {
        return server_.limit(clients, time, stop);
    }

private:
    void recreate(const OwnDatabase& own) {
        (void)server_.database(1).run("bench.prepare", {}, own.drop);
        (void)server_.database(1).run("bench.prepare", {}, own.create);
    }

    const WaitTicket& place_;
    MeasuredServer server_;
    std::unique_ptr<StoreLoad> load_;
    std::unique_ptr<MeasuredGateway> gateway_;
    std::unique_ptr<StoreLoad> cluster_load_;
};

// Two files on the same disk, so that neither side sees the other's pages or locks.
class FileStore {
public:
    explicit FileStore(const WaitTicket& place)
        : load_("sqlite:" + (place.directory / "store.db").string() + "?create=1",
                place.database,
                place.stop),
          bare_(place.directory / "bare_store.db", table_rows, table_token) {}

    std::map<std::string, std::string> durability() {
        return file_durability(load_.database(), bare_);
    }

    StoreLoad& load() { return load_; }
    Work limit(std::chrono::nanoseconds time, const std::stop_token& stop) {
        return update_bare(bare_, time, stop);
    }

private:
    StoreLoad load_;
    BareSqlite bare_;
};

// The least that each may be of its limit; the others are measured in less time.
constexpr std::array<std::pair<std::string_view, double>, 4> floors{{{"pg.update.c8", 0.25},
                                                                     {"pg.add_task.c8", 0.5},
                                                                     {"sqlite.update.w32", 1.5},
                                                                     {"dsql.update.c8", 0.4}}};
constexpr double brief_share = 0.4;

std::optional<double> floor_of(std::string_view name) {
    const auto* const found =
        std::ranges::find(floors, name, &std::pair<std::string_view, double>::first);
    return found == floors.end() ? std::nullopt : std::optional(found->second);
}

class StoreSuite final : public Suite {
public:
    explicit StoreSuite(const WaitTicket& place) : place_(place) {}

    std::vector<Pair> pairs() override {
        using enum StoreWork;
        using enum Sharing;
        std::vector<Pair> all;
        const auto add_all = [&](const auto& pair_of) {
            for (const StoreWork work : {create, update, add_task, get_tasks}) {
                for (const int clients : {1, 8, 32}) {
                    all.push_back(pair_of(work, clients));
                }
            }
        };
        add_all([this](StoreWork work, int clients) { return server_pair(work, clients); });
        all.push_back(server_pair(update, 8, one_shard));
        add_all([this](StoreWork work, int writers) { return file_pair(work, writers); });
        add_all([this](StoreWork work, int clients) { return gateway_pair(work, clients); });
        all.push_back(gateway_pair(update, 8, one_shard));
        for (Pair& pair : all) {
            pair.floor = floor_of(pair.name);
            pair.time_share = pair.floor ? 1 : brief_share;
        }
        return all;
    }

    Durability prepare(std::span<const Pair> chosen) override {
        const bool on_server = !place_.db.empty() && !sql::parse_url(place_.db).embedded();
        if (on_server && sql::parse_url(place_.db).scheme == dsql::url_scheme) {
            throw InvalidArgument(
                "the gateway is started by the benchmark; name the PostgreSQL below it with --db "
                "postgres://...");
        }
        Durability durability;
        for (const Pair& pair : chosen) {
            if (pair.name.starts_with("sqlite.")) {
                if (!file_) {
                    file_ = std::make_unique<FileStore>(place_);
                    durability["sqlite"] = file_->durability();
                }
                continue;
            }
            if (!server_) {
                server_ =
                    std::make_unique<ServerStore>(place_, on_server ? place_.db : std::string{});
                durability["postgres"] = server_->durability();
            }
            if (pair.name.starts_with("dsql.")) {
                server_->open_gateway();
            }
        }
        return durability;
    }

private:
    static std::string name_of(StoreWork work, Sharing sharing) {
        return fmt::format(
            "{}{}", to_string(work), sharing == Sharing::own_shards ? "" : ".one_shard");
    }

    Pair server_pair(StoreWork work, int clients, Sharing sharing = Sharing::own_shards) {
        return {.name = fmt::format("pg.{}.c{}", name_of(work, sharing), clients),
                .unit = "ops/s",
                .ours =
                    [=, this](auto time, const auto& stop) {
                        return server_->load().run(work, sharing, clients, time, stop);
                    },
                .limit = [this, clients](
                             auto time,
                             const auto& stop) { return server_->limit(clients, time, stop); },
                .floor = {}};
    }
    Pair file_pair(StoreWork work, int writers) {
        return {.name = fmt::format("sqlite.{}.w{}", to_string(work), writers),
                .unit = "ops/s",
                .ours =
                    [=, this](auto time, const auto& stop) {
                        return file_->load().run(work, Sharing::own_shards, writers, time, stop);
                    },
                .limit = [this](auto time, const auto& stop) { return file_->limit(time, stop); },
                .floor = {}};
    }
    // Its limit is the store on the PostgreSQL below.
    Pair gateway_pair(StoreWork work, int clients, Sharing sharing = Sharing::own_shards) {
        return {.name = fmt::format("dsql.{}.c{}", name_of(work, sharing), clients),
                .unit = "ops/s",
                .ours =
                    [=, this](auto time, const auto& stop) {
                        return server_->behind_gateway().run(work, sharing, clients, time, stop);
                    },
                .limit =
                    [=, this](auto time, const auto& stop) {
                        return server_->load().run(work, sharing, clients, time, stop);
                    },
                .floor = {}};
    }

    const WaitTicket& place_;
    std::unique_ptr<ServerStore> server_;
    std::unique_ptr<FileStore> file_;
};

}  // namespace

std::unique_ptr<Suite> make_store_suite(const WaitTicket& place) {
    return std::make_unique<StoreSuite>(place);
}

}  // namespace holdfast::bench
