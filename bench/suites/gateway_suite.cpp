#include "suites/gateway_suite.hpp"

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "limits/bench_table.hpp"
#include "limits/measured_gateway.hpp"
#include "limits/pgbench.hpp"
#include "limits/private_server.hpp"
#include <fmt/core.h>
#include <libpq-fe.h>

#include <holdfast/base/error.hpp>
#include <holdfast/sql/url.hpp>

namespace holdfast::bench {
namespace {

// Two clients may meet on one row of the thousand; the one that loses tries again, as any client of
// the service has to.
constexpr int tries_max = 100;

// The benchmark's table belongs to the role that creates it, and `admin` must be able to write it;
// so it is created through the gateway.
class GatewayBench {
public:
    explicit GatewayBench(const WaitTicket& place) : url_(place.db) {
        if (url_.empty()) {
            server_ = start_private_server();
            url_ = server_->url();
        }
        const sql::Url parsed = sql::parse_url(url_);
        if (parsed.embedded()) {
            throw InvalidArgument(
                "a gateway needs a PostgreSQL; name one with --db postgres://...");
        }
        durability_ = durability_of(place);
        gateway_ = std::make_unique<MeasuredGateway>(place, url_);
        script_ = write_pgbench_script(place.directory);
        run("DROP TABLE IF EXISTS holdfast_bench");
        run("CREATE TABLE holdfast_bench (id bigint PRIMARY KEY, token bigint NOT NULL, "
            "value bigint NOT NULL)");
        run(fmt::format(
            "INSERT INTO holdfast_bench SELECT id, {}, 0 FROM generate_series(1, {}) id",
            table_token,
            table_rows));
    }
    ~GatewayBench() {
        try {
            run("DROP TABLE IF EXISTS holdfast_bench");
        } catch (const Error&) {  // NOLINT(bugprone-empty-catch): the table is out of reach.
        }
    }
    GatewayBench(const GatewayBench&) = delete;
    GatewayBench& operator=(const GatewayBench&) = delete;

    [[nodiscard]] const std::map<std::string, std::string>& durability() const {
        return durability_;
    }

    [[nodiscard]] Work ours(int clients,
                            std::chrono::nanoseconds time,
                            const std::stop_token& stop) const {
        return measure(gateway_->postgres_url(), gateway_->token(), clients, time, stop);
    }
    [[nodiscard]] Work limit(int clients,
                             std::chrono::nanoseconds time,
                             const std::stop_token& stop) const {
        return measure(url_, {}, clients, time, stop);
    }

private:
    [[nodiscard]] Work measure(std::string url,
                               std::string password,
                               int clients,
                               std::chrono::nanoseconds time,
                               const std::stop_token& stop) const {
        return run_pgbench({.url = std::move(url),
                            .script = script_,
                            .clients = clients,
                            .time = time,
                            .password = std::move(password),
                            .tries_max = tries_max},
                           stop);
    }

    [[nodiscard]] std::map<std::string, std::string> durability_of(const WaitTicket& place) const {
        sql::DatabaseOptions options = place.database;
        options.connections = 1;
        sql::Database db(url_, std::move(options));
        return server_durability(db);
    }

    void run(const std::string& statement) const {
        const std::string url = gateway_->postgres_url();
        const std::string password = gateway_->token();
        const std::array names{"dbname", "password", static_cast<const char*>(nullptr)};
        const std::array values{url.c_str(), password.c_str(), static_cast<const char*>(nullptr)};
        const std::unique_ptr<PGconn, decltype(&PQfinish)> connection(
            PQconnectdbParams(names.data(), values.data(), 1), &PQfinish);
        // Hides the notice that there was no table to drop.
        PQsetNoticeProcessor(connection.get(), [](void*, const char*) {}, nullptr);
        const std::unique_ptr<PGresult, decltype(&PQclear)> result(
            PQexec(connection.get(), statement.c_str()), &PQclear);
        if (PQresultStatus(result.get()) != PGRES_COMMAND_OK) {
            throw Error(Code::unavailable,
                        Outcome::unknown,
                        fmt::format("the gateway refuses the benchmark's table: {}",
                                    PQerrorMessage(connection.get())));
        }
    }

    std::string url_;
    std::unique_ptr<PrivateServer> server_;
    std::map<std::string, std::string> durability_;
    std::filesystem::path script_;
    std::unique_ptr<MeasuredGateway> gateway_;
};

class GatewaySuite final : public Suite {
public:
    explicit GatewaySuite(const WaitTicket& place) : place_(place) {}

    std::vector<Pair> pairs() override {
        std::vector<Pair> pairs;
        pairs.push_back(pair(1, {}));
        pairs.push_back(pair(8, 0.5));
        return pairs;
    }

    Durability prepare(std::span<const Pair>) override {
        bench_.emplace(place_);
        return {{"postgres", bench_->durability()}};
    }

private:
    Pair pair(int clients, std::optional<double> floor) {
        return {
            .name = fmt::format("gateway.update.c{}", clients),
            .unit = "tx/s",
            .ours = [this, clients](auto time,
                                    const auto& stop) { return bench_->ours(clients, time, stop); },
            .limit = [this, clients](
                         auto time,
                         const auto& stop) { return bench_->limit(clients, time, stop); },
            .floor = floor};
    }

    const WaitTicket& place_;
    std::optional<GatewayBench> bench_;
};

}  // namespace

std::unique_ptr<Suite> make_gateway_suite(const WaitTicket& place) {
    return std::make_unique<GatewaySuite>(place);
}

}  // namespace holdfast::bench
