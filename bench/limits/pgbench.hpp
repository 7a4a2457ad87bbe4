// PostgreSQL's own benchmark program, which is the limit for everything that talks to a server.
#pragma once

#include <chrono>
#include <filesystem>
#include <stop_token>
#include <string>

#include <holdfast/bench/driver.hpp>

namespace holdfast::bench {

struct PgbenchRun {
    std::string url;               // postgres://..., as for sql::Database.
    std::filesystem::path script;  // One transaction, in pgbench's language.
    int clients = 1;
    std::chrono::nanoseconds time{};  // pgbench counts whole seconds: rounded up.
    std::string password{};           // If the URL has none.
    int tries_max = 1;                // Of a transaction that met a serialization failure.
};

// Runs it with prepared statements and says how many transactions it made. Killed when the token
// fires. Unavailable if pgbench is not installed or fails.
[[nodiscard]] Work run_pgbench(const PgbenchRun& run, const std::stop_token& stop);

}  // namespace holdfast::bench
