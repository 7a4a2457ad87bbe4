// A private PostgreSQL server.
//
// It listens on a unix socket in a folder of its own, so it needs neither root nor a port, and any
// number of them run side by side. A watchdog process between the program and its server
// ends the server and removes the folder, however the program ends.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>

namespace holdfast::dsql {

// Where a server listens.
struct PostgresAddress {
    std::filesystem::path socket_folder;

    // For sql::Database, and for libpq.
    [[nodiscard]] std::string url(std::string_view database = "postgres") const;
    [[nodiscard]] std::string conninfo(std::string_view database = "postgres") const;
    // True if a server takes connections here now.
    [[nodiscard]] bool answers() const;
};

struct PostgresPlan {
    // Must exist, with a short name: the path of a unix socket has at most 107 characters. Holds
    // the socket and the log, and is removed at the end.
    std::filesystem::path folder;
    // Where the data are, and stay; created if it does not exist. Empty: in `folder`, removed with
    // it.
    std::filesystem::path data{};
    bool fsync = false;  // On: committed data survive a crash of the machine.
    std::map<std::string, std::string> settings{};  // As in postgresql.conf.
    int owner = 0;           // The process at whose end the server ends; 0: this one.
    std::stop_token stop{};  // Ends the wait for a start, which then throws cancelled.
};

class Watchdog;

// Runs from construction to destruction, which kills the server: a stop() before it spares the next
// start a recovery. As root, the server runs as the user `postgres`. Unavailable if
// there is no PostgreSQL on this machine or it does not start.
class PrivatePostgres {
public:
    explicit PrivatePostgres(const PostgresPlan& plan);
    ~PrivatePostgres();
    PrivatePostgres(const PrivatePostgres&) = delete;
    PrivatePostgres& operator=(const PrivatePostgres&) = delete;

    [[nodiscard]] const PostgresAddress& address() const noexcept { return address_; }

    // kill -9 of the server and of all its processes at one moment.
    void crash();
    // An orderly end, without waiting for clients.
    void stop();
    // After crash() or stop(): the same data again. Returns when the server takes connections.
    void start();

private:
    PostgresAddress address_;
    std::stop_token stop_;
    std::unique_ptr<Watchdog> watchdog_;
};

// Starts a server that runs until its owner ends, or end_left(). Requires: no `data`.
void start_and_leave(const PostgresPlan& plan);
// Ends such a server, whose watchdog then removes the folder; waits for that.
void end_left(const std::filesystem::path& folder);

}  // namespace holdfast::dsql
