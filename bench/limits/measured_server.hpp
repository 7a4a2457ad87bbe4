// The server that a suite measures, and the table on it that the limit is measured on.
#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <stop_token>
#include <string>

#include "limits/private_server.hpp"

#include <holdfast/bench/driver.hpp>
#include <holdfast/bench/suite.hpp>
#include <holdfast/sql/database.hpp>

namespace holdfast::bench {

class MeasuredServer {
public:
    // An empty `url` starts a private server. Requires: `place` outlives this object.
    MeasuredServer(const WaitTicket& place, std::string url);
    // Drops the table.
    ~MeasuredServer();
    MeasuredServer(const MeasuredServer&) = delete;
    MeasuredServer& operator=(const MeasuredServer&) = delete;

    // One handle per number of clients: idle connections of another one would burden both sides.
    // The one before is closed, so nothing may use it any more.
    sql::Database& database(int clients);
    // Whether the handle of so many clients is the one that is open.
    [[nodiscard]] bool serves(int clients) const noexcept { return clients == clients_; }
    [[nodiscard]] const std::string& url() const noexcept { return url_; }
    std::map<std::string, std::string> durability();
    // By so many clients, or as many as the server lets in: then limit_clients says how many.
    [[nodiscard]] Work limit(int clients,
                             std::chrono::nanoseconds time,
                             const std::stop_token& stop) const;

    // Runs a clean-up; a server that is out of reach is a warning, and nothing more.
    template <class CleanUp>
    void clean_up(CleanUp clean) noexcept {
        try {
            clean(database(1));
        } catch (const std::exception& failure) {
            warn(failure);
        }
    }

private:
    void warn(const std::exception& failure) const noexcept;

    const WaitTicket& place_;
    std::unique_ptr<PrivateServer> server_;
    std::string url_;
    std::filesystem::path script_;
    std::unique_ptr<sql::Database> db_;
    int clients_ = 0;
};

}  // namespace holdfast::bench
