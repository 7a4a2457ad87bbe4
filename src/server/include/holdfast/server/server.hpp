// A server that workers and clients of the Temporal SDKs talk to, inside a program.
//
// It speaks the gRPC API on one port and keeps everything in one database: what a caller was told
// is committed. One process serves a database; another that is started on it takes it over. The
// first one then finds out at its next write, and refuses every call from there on.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <holdfast/base/clock.hpp>

namespace holdfast {
class Logger;
}

namespace holdfast::sql {
class Database;
}

namespace holdfast::server {

// Of the API, as clients read it: they decide by it what they may ask for.
inline constexpr const char* api_version = "1.32.0";

// PEM texts.
struct ServerTls {
    std::string certificate;
    std::string key;                   // A secret. Never logged.
    std::string client_authorities{};  // If not empty, clients must show a certificate of them.
};

struct ServerOptions {
    std::string address = "127.0.0.1";
    std::uint16_t port = 7233;  // 0: a free one.
    std::optional<ServerTls> tls{};
    std::vector<std::string> namespaces{};  // Made at start, beside `default`.
    std::size_t threads = 0;                // That run transitions; 0: as the database suits.
    // Calls that wait are answered at once when the server stops; others may end within this time.
    std::chrono::milliseconds drain = std::chrono::seconds{1};
};

// Counted since the start.
struct ServerCounts {
    std::uint64_t run_commits = 0;    // Transactions that wrote a run.
    std::uint64_t other_commits = 0;  // Moved wake-ups and deleted rows.
};

class Server {
public:
    // Listens, brings the schema up to date, takes the database over and serves. Blocks until it is
    // ready; a caller that is faster is told that the server is not ready yet. Throws Error if the
    // port or the database is not to be had.
    // Requires: `db` and `log` outlive this object.
    Server(sql::Database& db, Logger& log, const ServerOptions& options = {});
    ~Server();  // stop()
    Server(const Server&) = delete;
    Server& operator=(const Server&) = delete;

    [[nodiscard]] std::uint16_t port() const noexcept;
    [[nodiscard]] ServerCounts counts() const noexcept;

    // Answers the calls that wait, lets the others end, and stops. Blocks for the time of the drain
    // at most, and a little more. A repeat does nothing.
    void stop();

private:
    struct Rooms;
    std::unique_ptr<Rooms> rooms_;
};

}  // namespace holdfast::server
