// A server that workers and clients of the Temporal SDKs talk to, inside a program.
//
// It speaks the gRPC API on one port, the same API in JSON over HTTP on another one, and keeps
// everything in one database: what a caller was told is committed. One process serves a database;
// another that is started on it takes it over. The first one then finds out at its next write, and
// refuses every call from there on.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <holdfast/base/clock.hpp>

namespace holdfast {
class Logger;
class Metrics;
struct Health;
}  // namespace holdfast

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

// Whether the time of runs jumps to the next moment at which one of them is due, as soon as nothing
// else is to be done. For tests, on a database of its own: nothing that is stored says what time it
// is. Closed runs are kept, for days pass quickly.
enum class TimeSkipping : std::uint8_t {
    none,      // Time is real.
    locked,    // Until a client unlocks it, by the TestService of the API.
    unlocked,  // From the start.
};

// In place of the defaults, which are those of the API's reference server.
struct ServerLimits {
    std::optional<std::size_t> id_bytes{};         // Of a workflow id, a type, a signal's name ...
    std::optional<std::size_t> blob_bytes{};       // Of one payload, one failure or one memo.
    std::optional<std::int64_t> history_events{};  // A run with more is ended.
    std::optional<std::int64_t> history_bytes{};
    std::optional<std::int64_t> history_events_suggest{};  // Above it a worker is told to continue
    std::optional<std::int64_t> history_bytes_suggest{};   // as new.
    std::optional<std::chrono::milliseconds> poll{};       // A poll without a task ends after this.
};

// The API in JSON, and /healthz and /readyz; without TLS.
struct ServerHttp {
    std::string address = "127.0.0.1";
    std::uint16_t port = 7243;         // 0: a free one.
    std::vector<std::string> hosts{};  // By which it is called, beside localhost and addresses.
};

struct ServerOptions {
    std::string address = "127.0.0.1";
    std::uint16_t port = 7233;  // 0: a free one.
    std::optional<ServerTls> tls{};
    std::optional<ServerHttp> http{};
    std::vector<std::string> namespaces{};                    // Made at start, beside `default`.
    std::map<std::string, std::chrono::seconds> retention{};  // Of those; else a day.
    // In `default` and in those namespaces, by name: a type such as Keyword, in any case.
    std::map<std::string, std::string> search_attributes{};
    ServerLimits limits{};
    Metrics* metrics = nullptr;  // Null, or it outlives the server.
    TimeSkipping time_skipping = TimeSkipping::none;
    std::size_t threads = 0;  // That run transitions; 0: as the database suits.
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
    [[nodiscard]] std::uint16_t http_port() const noexcept;  // 0 without HTTP.

    // Whether calls are served now: it does not stop, has its shard, and the database answers.
    // Blocks for a second at most.
    [[nodiscard]] Health health() const;
    [[nodiscard]] ServerCounts counts() const;

    // Answers the calls that wait, lets the others end, and stops. Blocks for the time of the drain
    // at most, and a little more. A repeat does nothing.
    void stop();

private:
    struct Rooms;
    std::unique_ptr<Rooms> rooms_;
};

}  // namespace holdfast::server
