#include <holdfast/server/server.hpp>

#include <algorithm>

#include "engine/engine.hpp"
#include "executor/alarm_clock.hpp"
#include "executor/keyed_pool.hpp"
#include "frontend/frontend.hpp"
#include "frontend/namespace/namespace_service.hpp"
#include "matching/matching.hpp"
#include "namespaces/namespaces.hpp"
#include "rpc/client_version.hpp"
#include "rpc/dispatch.hpp"
#include "rpc/grpc_transport.hpp"
#include "rpc/health.hpp"
#include <fmt/format.h>

#include <holdfast/base/log.hpp>
#include <holdfast/sql/database.hpp>
#include <holdfast/sql/schema.hpp>
#include <holdfast/store/catalogue.hpp>
#include <holdfast/store/namespace.hpp>

namespace holdfast::server {

namespace {

// Threads wait for the database most of the time. In a file those that wait share a commit; a
// server has as many connections as it is given.
std::size_t threads_for(const sql::Database& db) {
    constexpr std::size_t on_a_file = 64;
    constexpr std::size_t on_a_server = 32;
    return db.dialect().embedded ? on_a_file : on_a_server;
}

rpc::GrpcTransportOptions transport_options(const ServerOptions& options) {
    rpc::GrpcTransportOptions transport{
        .address = options.address, .port = options.port, .drain = options.drain};
    if (options.tls) {
        transport.tls =
            rpc::GrpcTls{.certificate = options.tls->certificate,
                         .key = options.tls->key,
                         .client_authorities = options.tls->client_authorities,
                         .require_client_certificate = !options.tls->client_authorities.empty()};
    }
    return transport;
}

}  // namespace

// In the order in which they are made; they are destroyed in the opposite one.
struct Server::Rooms {
    Rooms(sql::Database& database, Logger& logger, const ServerOptions& given)
        : db(database),
          log(logger),
          options(given),
          dispatch(logger),
          executor(given.threads != 0 ? given.threads : threads_for(database)),
          alarms(system_clock()),
          matching(system_clock(), alarms),
          namespaces(database),
          engine({.db = database,
                  .clock = system_clock(),
                  .executor = executor,
                  .alarms = alarms,
                  .matching = matching,
                  .namespaces = namespaces,
                  .log = logger}) {}

    ~Rooms() { stop(); }
    Rooms(const Rooms&) = delete;
    Rooms& operator=(const Rooms&) = delete;

    void add_calls();
    void open();
    void make_namespaces();
    void stop();

    sql::Database& db;
    Logger& log;
    const ServerOptions options;
    rpc::Dispatch dispatch;
    rpc::Health health;
    KeyedPool executor;
    AlarmClock alarms;
    matching::Matching matching;
    namespaces::Registry namespaces;
    engine::Engine engine;
    std::optional<rpc::GrpcTransport> transport;  // Last: it calls all of the above.
    bool stopped = false;
};

void Server::Rooms::add_calls() {
    health.add_to(dispatch);
    dispatch.add_check(rpc::client_version_check(api_version));
    frontend::add_namespace_service(
        dispatch,
        {.db = db, .namespaces = namespaces, .executor = executor, .clock = system_clock()},
        {.server_version = api_version,
         .address = fmt::format("{}:{}", options.address, options.port)});
    frontend::add_workflow_service(dispatch,
                                   {.namespaces = namespaces,
                                    .turns = engine,
                                    .matching = matching,
                                    .alarms = alarms,
                                    .clock = system_clock(),
                                    .check_attributes = frontend::attribute_check(namespaces)});
    frontend::add_unbuilt(dispatch);
}

void Server::Rooms::make_namespaces() {
    for (const std::string& name : options.namespaces) {
        if (namespaces.find(name)) {
            continue;
        }
        namespaces::stored::Info info;
        info.mutable_retention()->set_seconds(
            std::chrono::seconds(namespaces::default_retention).count());
        try {
            namespaces.create(name, info);
        } catch (const store::NamespaceAlreadyExists&) {  // Another process was faster.
            namespaces.refresh();
        }
    }
}

void Server::Rooms::open() {
    sql::schema_apply(db, store::schema_part(), {});
    namespaces.open();
    make_namespaces();
    matching.connect(engine);
    engine.start();
    dispatch.open();
    health.set_serving(true);
}

// Callers first, then what works for them.
void Server::Rooms::stop() {
    if (std::exchange(stopped, true)) {
        return;
    }
    const Deadline deadline = Deadline::after(options.drain);
    matching.stop();
    if (transport) {
        transport->stop(deadline);
    }
    engine.stop();
    alarms.stop();
    executor.stop(deadline);
}

Server::Server(sql::Database& db, Logger& log, const ServerOptions& options)
    : rooms_(std::make_unique<Rooms>(db, log, options)) {
    rooms_->add_calls();
    rooms_->transport.emplace(rooms_->dispatch, rooms_->health, transport_options(options));
    rooms_->open();
}

Server::~Server() = default;  // Rooms stops.

std::uint16_t Server::port() const noexcept {
    return rooms_->transport->port();
}

ServerCounts Server::counts() const noexcept {
    const engine::EngineCounts counts = rooms_->engine.counts();
    return {.run_commits = counts.run_commits, .other_commits = counts.other_commits};
}

void Server::stop() {
    rooms_->stop();
}

}  // namespace holdfast::server
