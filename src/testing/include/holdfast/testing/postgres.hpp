// A PostgreSQL of one's own.
//
// The cluster lies in a temporary folder and listens on a unix socket there, so tests need neither
// root nor a port, and any number of them run side by side. Between the test and its server stands
// a watchdog process: whatever becomes of the test, the server ends and the folder goes.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include <holdfast/testing/temp_dir.hpp>

namespace holdfast::test {

// Where a server listens.
struct PostgresAddress {
    std::filesystem::path socket_folder;

    // For sql::Database, and for libpq.
    [[nodiscard]] std::string url(std::string_view database = "postgres") const;
    [[nodiscard]] std::string conninfo(std::string_view database = "postgres") const;
    // True if a server takes connections here now.
    [[nodiscard]] bool answers() const;
};

struct PostgresOptions {
    bool fsync = false;  // On: what was committed survives crash() by the same means as in life.
    std::map<std::string, std::string> settings{};  // As in postgresql.conf.
};

class Watchdog;

// Runs from construction to destruction. As root, the server runs as the user `postgres`.
class PrivatePostgres {
public:
    explicit PrivatePostgres(PostgresOptions options = {});
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
    TempDir folder_;
    PostgresAddress address_;
    std::unique_ptr<Watchdog> watchdog_;
};

// The server that all tests of a run share: the one that HOLDFAST_TEST_POSTGRES points to, else one
// that is started at first use and ends with the process. It does not wait for the disk.
[[nodiscard]] const PostgresAddress& shared_postgres();

// For the program that keeps one server for a whole run. `link` becomes a symbolic link to the
// server's folder. The server ends by `stop_linked`, or when the process `owner` does.
void start_linked(const std::filesystem::path& link, int owner);
void stop_linked(const std::filesystem::path& link);

}  // namespace holdfast::test
