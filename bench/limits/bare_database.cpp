#include <holdfast/bench/bare_database.hpp>

#include <filesystem>
#include <system_error>
#include <utility>

#include "limits/bare_sqlite.hpp"
#include "limits/bench_table.hpp"
#include "limits/measured_server.hpp"
#include "limits/own_database.hpp"

#include <holdfast/sql/database.hpp>

namespace holdfast::bench {
namespace {

constexpr OwnDatabase served{
    "holdfast_bench_server",
    {"bench.create_server", "CREATE DATABASE holdfast_bench_server"},
    {"bench.drop_server", "DROP DATABASE IF EXISTS holdfast_bench_server WITH (FORCE)"}};
constexpr sql::Statement size_of_served{
    "bench.size_server", "SELECT CAST(pg_database_size('holdfast_bench_server') AS bigint)"};

// Two files on the same disk.
class BareFile final : public BareDatabase {
public:
    explicit BareFile(const WaitTicket& place)
        : file_(place.directory / "server.db"),
          bare_(place.directory / "bare_server.db", table_rows, table_token) {
        sql::Database db(url(), place.database);
        durability_ = file_durability(db, bare_);
    }

    Work limit(int /*clients*/,
               std::chrono::nanoseconds time,
               const std::stop_token& stop) override {
        return update_bare(bare_, time, stop);
    }
    std::string make_empty() override { return url(); }
    double disk_bytes() override {
        double bytes = 0;
        for (const char* suffix : {"", "-wal"}) {
            std::error_code missing;
            const auto size = std::filesystem::file_size(file_.string() + suffix, missing);
            bytes += missing ? 0 : static_cast<double>(size);
        }
        return bytes;
    }
    std::map<std::string, std::string> durability() override { return durability_; }

private:
    [[nodiscard]] std::string url() const { return "sqlite:" + file_.string() + "?create=1"; }

    std::filesystem::path file_;
    BareSqlite bare_;
    std::map<std::string, std::string> durability_;
};

class BareServer final : public BareDatabase {
public:
    BareServer(const WaitTicket& place, std::string url)
        : server_(place, std::move(url)), durability_(server_.durability()) {}
    ~BareServer() override {
        server_.clean_up([](sql::Database& db) { (void)db.run("bench.clean", {}, served.drop); });
    }
    BareServer(const BareServer&) = delete;
    BareServer& operator=(const BareServer&) = delete;

    Work limit(int clients, std::chrono::nanoseconds time, const std::stop_token& stop) override {
        return server_.limit(clients, time, stop);
    }
    std::string make_empty() override {
        (void)server_.database(1).run("bench.prepare", {}, served.drop);
        (void)server_.database(1).run("bench.prepare", {}, served.create);
        return url_of_database(server_.url(), served.name);
    }
    double disk_bytes() override {
        return static_cast<double>(
            server_.database(1).run("bench.size", {}, size_of_served).rows[0].get<std::int64_t>(0));
    }
    std::map<std::string, std::string> durability() override { return durability_; }

private:
    MeasuredServer server_;
    std::map<std::string, std::string> durability_;
};

}  // namespace

std::unique_ptr<BareDatabase> bare_file(const WaitTicket& place) {
    return std::make_unique<BareFile>(place);
}

std::unique_ptr<BareDatabase> bare_server(const WaitTicket& place, std::string url) {
    return std::make_unique<BareServer>(place, std::move(url));
}

}  // namespace holdfast::bench
