// A local cluster: PostgreSQL's protocol as Aurora DSQL speaks it, over a real PostgreSQL 15.
//
// It demands TLS, SNI and a signed token, refuses what the service refuses, and checks conflicts at
// commit: clients do not wait for each other, the first to commit wins, and a stalled client does
// not stop others. docs/dsql-gateway.md describes how that works over a server with row locks.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <holdfast/base/clock.hpp>

namespace holdfast {
class Logger;
}  // namespace holdfast

namespace holdfast::dsql {

// A key with which tokens may be signed.
struct GatewayKey {
    std::string access_key_id;
    std::string secret;
    std::string session_token{};
    std::string arn = "arn:aws:iam::123456789012:user/test";
};

// The service's own limits, and ours for connections that have not logged in. Tests make them
// smaller.
struct GatewayLimits {
    std::int64_t rows = 3000;                           // Changed by one transaction.
    std::int64_t bytes = std::int64_t{10} << 20U;       // Written by one transaction.
    std::int64_t value_bytes = std::int64_t{1} << 20U;  // In one column.
    std::size_t message_bytes = std::size_t{10} << 20U;
    std::chrono::seconds transaction_age{300};
    std::chrono::seconds connection_age{3600};
    int connections = 10'000;
    double openings_per_second = 100;
    double openings_burst = 1000;
    std::size_t startup_bytes = 10'000;  // Of one message before the login, as in PostgreSQL.
    std::chrono::milliseconds login_time{10'000};
    // Connections before their login; fewer where the process may open few files. One more closes
    // the oldest of them.
    std::size_t strangers = 100;
};

// Which transactions fail because the schema has changed.
enum class SchemaConflicts : std::uint8_t { off, changed_tables, any_table };

struct GatewayOptions {
    std::string host = "127.0.0.1";
    int port = 0;  // 0: any free one.
    // A PostgreSQL 15, as libpq understands it; its user must be a superuser, and only prepares
    // databases. Sessions log in as their own roles, which the server must allow, by password or by
    // trust; the gateway sets their passwords if it is asked for one. If the upstream names a
    // database, every cluster is that one; else a cluster's database is called by the cluster's id.
    std::string upstream;
    std::filesystem::path certificate;  // PEM, with its chain.
    std::filesystem::path certificate_key;
    std::vector<GatewayKey> keys;
    std::string region = "us-east-1";  // If an endpoint's name does not contain it.
    GatewayLimits limits{};
    SchemaConflicts schema_conflicts = SchemaConflicts::changed_tables;
    bool early_abort = false;  // Report a conflict at the statement that meets it.
    // Refuse FOR UPDATE without equality on the whole key, and over joins, as the guide says.
    bool documented_for_update = false;
    std::chrono::milliseconds job_duration{0};  // How long an ASYNC job is reported as running.
    Logger* logger = nullptr;
    const Clock* clock = nullptr;
    // Makes the thread of a connection; may throw std::system_error. Empty: a plain thread.
    using ThreadMaker = std::function<std::jthread(std::function<void()>)>;
    ThreadMaker make_thread{};
};

// Injected faults, for tests of how a program handles them.
enum class GatewayFault : std::uint8_t {
    data_conflict,      // OC000.
    schema_conflict,    // OC001.
    unavailable,        // XX000, and nothing was done.
    unavailable_after,  // XX000, although it was done.
    hang_up,            // The connection ends, and nothing was done.
    hang_up_after,      // The connection ends, although it was done.
    too_many,           // 53300.
    rate_exceeded,      // 53400.
};
enum class FaultPoint : std::uint8_t { connect, statement, commit };

struct FaultRule {
    FaultPoint point = FaultPoint::commit;
    GatewayFault fault = GatewayFault::data_conflict;
    int nth = 1;            // Counted from the arming of the rule.
    int times = 1;          // Consecutive faults from there.
    std::string cluster{};  // An id, or any cluster.
};

struct GatewayStats {
    std::int64_t connections = 0;  // Open now.
    std::int64_t strangers = 0;    // Connected now, and not logged in.
    std::int64_t opened = 0;
    std::int64_t commits = 0;  // Of explicit and of wrapped transactions.
    std::int64_t conflicts = 0;
    std::int64_t detached = 0;  // Transactions rolled back to let others pass.
    std::int64_t replayed = 0;
    std::int64_t exchanges = 0;  // With the PostgreSQL below, for clients.
};

// Serves from construction to stop(), on threads of its own. Safe to share between threads. From
// the first one on, the process ignores SIGPIPE.
class Gateway {
public:
    // Unavailable if the PostgreSQL below cannot be reached, the address is taken or the
    // certificate unusable; invalid_argument if the upstream's user is not a superuser.
    explicit Gateway(GatewayOptions options);
    ~Gateway();
    Gateway(const Gateway&) = delete;
    Gateway& operator=(const Gateway&) = delete;

    [[nodiscard]] int port() const noexcept;
    [[nodiscard]] GatewayStats stats() const;

    void arm(const FaultRule& rule);
    void disarm();
    // Ends every connection of a cluster, or of all, at once.
    void hang_up(std::string_view cluster = {});
    // Selects when a conflict is reported, for connections opened from now on.
    void set_early_abort(bool early);

    // Closes all connections and returns when all threads have ended. May be repeated.
    void stop();

private:
    class Listener;
    std::unique_ptr<Listener> listener_;
};

}  // namespace holdfast::dsql
