// A private PostgreSQL.
//
// The cluster lies in a temporary folder and listens on a unix socket there, so tests need neither
// root nor a port, and any number of them run side by side. Between the test and its server stands
// a watchdog process: whatever becomes of the test, the server ends and the folder goes.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include <holdfast/dsql/private_postgres.hpp>
#include <holdfast/testing/temp_dir.hpp>

namespace holdfast::test {

using dsql::PostgresAddress;

struct PostgresOptions {
    bool fsync = false;                             // On: commits survive crash() as in production.
    std::map<std::string, std::string> settings{};  // As in postgresql.conf.
};

// Runs from construction to destruction. As root, the server runs as the user `postgres`.
class PrivatePostgres {
public:
    explicit PrivatePostgres(const PostgresOptions& options = {});

    [[nodiscard]] const PostgresAddress& address() const noexcept { return server_.address(); }

    // kill -9 of the server and of all its processes at one moment.
    void crash() { server_.crash(); }
    // An orderly end, without waiting for clients.
    void stop() { server_.stop(); }
    // After crash() or stop(): the same data again. Returns when the server takes connections.
    void start() { server_.start(); }

private:
    TempDir folder_;
    dsql::PrivatePostgres server_;
};

// The server that all tests of a run share: the one that HOLDFAST_TEST_POSTGRES points to, else one
// that is started at first use and ends with the process. It does not wait for the disk.
[[nodiscard]] const PostgresAddress& shared_postgres();

// For the program that keeps one server for a whole run. `link` becomes a symbolic link to the
// server's folder. The server ends by `stop_linked`, or when the process `owner` does.
void start_linked(const std::filesystem::path& link, int owner);
void stop_linked(const std::filesystem::path& link);

}  // namespace holdfast::test
