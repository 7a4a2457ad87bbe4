#include "outside.hpp"

#include <chrono>
#include <memory>

#include <fmt/core.h>
#include <libpq-fe.h>
#include <sqlite3.h>

#include <holdfast/base/clock.hpp>
#include <holdfast/base/error.hpp>

namespace holdfast::test {

namespace {

[[noreturn]] void fail(std::string_view what, const char* why) {
    throw Error(Code::internal, Outcome::unknown, fmt::format("{}: {}", what, why));
}

int append_row(void* table, int columns, char** values, char**) {
    auto& row = static_cast<Table*>(table)->emplace_back();
    for (int i = 0; i < columns; ++i) {
        row.push_back(values[i] == nullptr ? std::nullopt : std::optional<std::string>(values[i]));
    }
    return 0;
}

}  // namespace

Table run_on_postgres(const std::string& conninfo, const std::string& script) {
    const std::unique_ptr<PGconn, decltype(&PQfinish)> connection(PQconnectdb(conninfo.c_str()),
                                                                  &PQfinish);
    if (PQstatus(connection.get()) != CONNECTION_OK) {
        fail(conninfo, PQerrorMessage(connection.get()));
    }
    // Notices of DROP ... IF EXISTS do not belong in a test's output.
    PQsetNoticeProcessor(connection.get(), [](void*, const char*) {}, nullptr);
    const std::unique_ptr<PGresult, decltype(&PQclear)> result(
        PQexec(connection.get(), script.c_str()), &PQclear);
    const ExecStatusType status = PQresultStatus(result.get());
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) {
        fail(script, PQresultErrorMessage(result.get()));
    }
    Table table(static_cast<std::size_t>(PQntuples(result.get())));
    for (std::size_t row = 0; row < table.size(); ++row) {
        for (int column = 0; column < PQnfields(result.get()); ++column) {
            const int at = static_cast<int>(row);
            table[row].push_back(
                PQgetisnull(result.get(), at, column) == 1
                    ? std::nullopt
                    : std::optional<std::string>(PQgetvalue(result.get(), at, column)));
        }
    }
    return table;
}

Table run_on_sqlite(const std::string& file, const std::string& script) {
    sqlite3* opened = nullptr;
    const int status = sqlite3_open_v2(file.c_str(), &opened, SQLITE_OPEN_READWRITE, nullptr);
    const std::unique_ptr<sqlite3, decltype(&sqlite3_close)> connection(opened, &sqlite3_close);
    if (status != SQLITE_OK) {
        fail(file, sqlite3_errmsg(connection.get()));
    }
    constexpr int patience_ms = 10'000;
    sqlite3_busy_timeout(connection.get(), patience_ms);
    Table table;
    if (sqlite3_exec(connection.get(), script.c_str(), &append_row, &table, nullptr) != SQLITE_OK) {
        fail(script, sqlite3_errmsg(connection.get()));
    }
    return table;
}

void copy_database(const PostgresAddress& server,
                   const std::string& original,
                   const std::string& name) {
    // Copying files is the fastest way where nothing waits for the disk.
    run_on_postgres(
        server.conninfo(),
        fmt::format("CREATE DATABASE {} TEMPLATE {} STRATEGY FILE_COPY", name, original));
}

void rename_database(const PostgresAddress& server,
                     const std::string& from,
                     const std::string& to) {
    const std::string there = fmt::format("SELECT 1 FROM pg_database WHERE datname = '{}'", to);
    const std::string sent_away = fmt::format(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{}'", from);
    const Deadline patience = Deadline::after(std::chrono::seconds{30});
    while (run_on_postgres(server.conninfo(), there).empty()) {
        if (patience.passed()) {
            fail(from, "it has open connections, so it cannot be renamed");
        }
        run_on_postgres(server.conninfo(), sent_away);
        try {
            run_on_postgres(server.conninfo(),
                            fmt::format("ALTER DATABASE {} RENAME TO {}", from, to));
        } catch (const Error&) {
            continue;  // A client is still disconnecting, or another test was faster.
        }
    }
}

void drop_database(const PostgresAddress& server, const std::string& name) noexcept {
    try {
        run_on_postgres(server.conninfo(),
                        fmt::format("DROP DATABASE IF EXISTS {} WITH (FORCE)", name));
    } catch (const Error&) {
        return;  // The test has ended its server.
    }
}

}  // namespace holdfast::test
