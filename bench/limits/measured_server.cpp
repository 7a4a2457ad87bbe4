#include "limits/measured_server.hpp"

#include <algorithm>
#include <utility>

#include "limits/bench_table.hpp"
#include "limits/pgbench.hpp"

#include <holdfast/base/log.hpp>

namespace holdfast::bench {

MeasuredServer::MeasuredServer(const WaitTicket& place, std::string url)
    : place_(place),
      server_(url.empty() ? start_private_server() : nullptr),
      url_(server_ ? server_->url() : std::move(url)),
      script_(write_pgbench_script(place.directory)) {
    make_table(database(1), {.stop = place.stop});
}

MeasuredServer::~MeasuredServer() {
    clean_up([](sql::Database& db) { drop_table(db); });
}

sql::Database& MeasuredServer::database(int clients) {
    if (clients != clients_) {
        db_.reset();
        clients_ = 0;
        sql::DatabaseOptions options = place_.database;
        options.connections = clients;
        db_ = std::make_unique<sql::Database>(url_, std::move(options));
        clients_ = clients;
    }
    return *db_;
}

std::map<std::string, std::string> MeasuredServer::durability() {
    return server_durability(*db_);
}

Work MeasuredServer::limit(int clients,
                           std::chrono::nanoseconds time,
                           const std::stop_token& stop) const {
    const auto allowed = static_cast<int>(
        std::clamp<std::int64_t>(free_server_connections(*db_), 1, std::int64_t{clients}));
    Work work =
        run_pgbench({.url = url_, .script = script_, .clients = allowed, .time = time}, stop);
    if (allowed < clients) {
        work.figures.push_back({"limit_clients", static_cast<double>(allowed)});
    }
    return work;
}

void MeasuredServer::warn(const std::exception& failure) const noexcept {
    if (place_.database.logger != nullptr) {
        place_.database.logger->warn("bench tables left behind", {{"error", failure.what()}});
    }
}

}  // namespace holdfast::bench
