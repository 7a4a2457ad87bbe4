#include <holdfast/server/server.hpp>

#include <algorithm>
#include <cctype>

#include "engine/engine.hpp"
#include "executor/alarm_clock.hpp"
#include "executor/keyed_pool.hpp"
#include "frontend/frontend.hpp"
#include "frontend/namespace/namespace_service.hpp"
#include "frontend/queue/queue_settings.hpp"
#include "matching/matching.hpp"
#include "metrics/server_metrics.hpp"
#include "namespaces/deletion.hpp"
#include "namespaces/namespaces.hpp"
#include "rpc/call_meter.hpp"
#include "rpc/client_version.hpp"
#include "rpc/dispatch.hpp"
#include "rpc/grpc_transport.hpp"
#include "rpc/health.hpp"
#include "rpc/http/http_api.hpp"
#include "search_attributes/names.hpp"
#include "task_queues/settings.hpp"
#include "time_skipping/test_service.hpp"
#include "workers/registry.hpp"
#include <fmt/format.h>
#include <temporal/api/enums/v1/namespace.pb.h>

#include <holdfast/base/error.hpp>
#include <holdfast/base/http.hpp>
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

history::Limits run_limits(const ServerOptions& options) {
    const ServerLimits& given = options.limits;
    history::Limits limits;
    limits.id_bytes_max = given.id_bytes.value_or(limits.id_bytes_max);
    limits.blob_bytes_max = given.blob_bytes.value_or(limits.blob_bytes_max);
    limits.history_events_max = given.history_events.value_or(limits.history_events_max);
    limits.history_bytes_max = given.history_bytes.value_or(limits.history_bytes_max);
    limits.history_events_suggest =
        given.history_events_suggest.value_or(limits.history_events_suggest);
    limits.history_bytes_suggest =
        given.history_bytes_suggest.value_or(limits.history_bytes_suggest);
    return limits;
}

matching::MatchingLimits matching_limits(const ServerOptions& options) {
    matching::MatchingLimits limits;
    limits.poll_max = options.limits.poll.value_or(
        std::chrono::duration_cast<std::chrono::milliseconds>(limits.poll_max));
    return limits;
}

search_attributes::Type attribute_type(const std::string& name, const std::string& type) {
    const auto lower = [](std::string_view text) {
        std::string letters(text);
        std::ranges::transform(letters, letters.begin(), [](unsigned char letter) {
            return static_cast<char>(std::tolower(letter));
        });
        return letters;
    };
    for (int number = 1; number <= temporal::api::enums::v1::IndexedValueType_MAX; ++number) {
        const auto known = static_cast<search_attributes::Type>(number);
        if (lower(search_attributes::short_name(known)) == lower(type)) {
            return known;
        }
    }
    throw InvalidArgument(
        fmt::format("the search attribute {} has the type '{}'; choose from Text, Keyword, Int, "
                    "Double, Bool, Datetime and KeywordList",
                    name,
                    type));
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

// The time of runs that jumps, and what decides when.
struct JumpingTime {
    JumpingTime(Alarms& alarms, TimeSkipping how)
        : clock(system_clock()), skipper(clock, alarms, how == TimeSkipping::locked ? 1 : 0) {}
    time_skipping::SkippingClock clock;
    time_skipping::Skipper skipper;
};

engine::EngineLimits limits_for(const ServerOptions& options) {
    engine::EngineLimits limits{.run = run_limits(options)};
    if (options.time_skipping != TimeSkipping::none) {
        limits.retention_min = std::chrono::years{50};
    }
    return limits;
}

}  // namespace

// In the order in which they are made; they are destroyed in the opposite one.
struct Server::Rooms {
    Rooms(sql::Database& database, Logger& logger, const ServerOptions& given)
        : db(database),
          log(logger),
          options(given),
          dispatch(logger),
          alarms(system_clock()),
          jumping(given.time_skipping != TimeSkipping::none
                      ? std::make_unique<JumpingTime>(alarms, given.time_skipping)
                      : nullptr),
          executor(given.threads != 0 ? given.threads : threads_for(database)),
          matching(system_clock(), alarms, matching_limits(given)),
          workers(system_clock()),
          settings(database, matching),
          namespaces(database),
          engine({.db = database,
                  .clock = jumping ? jumping->clock : system_clock(),
                  .executor = executor,
                  .alarms = alarms,
                  .matching = matching,
                  .namespaces = namespaces,
                  .log = logger,
                  .observer = jumping ? &jumping->skipper : nullptr,
                  .run_closed =
                      [this](const std::string& namespace_id, int status) {
                          if (metrics) {
                              metrics->count_closed(namespace_id, status);
                          }
                      }},
                 limits_for(given)),
          deletion({.db = database,
                    .namespaces = namespaces,
                    .turns = engine,
                    .matching = matching,
                    .executor = executor,
                    .alarms = alarms,
                    .clock = system_clock(),
                    .log = logger}) {}

    ~Rooms() { stop(); }
    Rooms(const Rooms&) = delete;
    Rooms& operator=(const Rooms&) = delete;

    void add_calls();
    void open();
    void make_namespaces();
    void make_search_attributes();
    void measure();
    void listen();
    [[nodiscard]] ServerLevels levels() const;
    [[nodiscard]] Health health_now();
    void open_settings();
    void stop();

    sql::Database& db;
    Logger& log;
    const ServerOptions options;
    rpc::Dispatch dispatch;
    rpc::Health health;
    AlarmClock alarms;
    std::unique_ptr<JumpingTime> jumping;  // Null: time is real.
    KeyedPool executor;
    matching::Matching matching;
    workers::Registry workers;
    task_queues::Settings settings;
    namespaces::Registry namespaces;
    engine::Engine engine;
    namespaces::Deletion deletion;
    std::optional<rpc::CallMeter> meter;
    std::optional<rpc::HttpApi> http_api;
    std::optional<ServerMetrics> metrics;  // Reads all of the above.
    // Last: they call all of the above.
    std::optional<rpc::GrpcTransport> transport;
    std::optional<HttpServer> http;
    bool stopped = false;
};

void Server::Rooms::add_calls() {
    health.add_to(dispatch);
    dispatch.add_check(rpc::client_version_check(api_version));
    frontend::add_namespace_service(
        dispatch,
        {.db = db,
         .namespaces = namespaces,
         .executor = executor,
         .clock = system_clock(),
         .begin_deletion = [this](const std::string& id) { deletion.begin(id); }},
        {.switches = {.eager_workflow_start = true},
         .server_version = api_version,
         .address = fmt::format("{}:{}", options.address, options.port),
         .blob_bytes_max = run_limits(options).blob_bytes_max,
         .memo_bytes_max = run_limits(options).blob_bytes_max});
    frontend::add_workflow_service(dispatch,
                                   {.namespaces = namespaces,
                                    .turns = engine,
                                    .matching = matching,
                                    .workers = workers,
                                    .alarms = alarms,
                                    .clock = system_clock(),
                                    .limits = run_limits(options),
                                    .check_attributes = frontend::attribute_check(namespaces),
                                    .queue_settings = [this](const matching::QueueKey& queue) {
                                        return settings.find(queue);
                                    }});
    if (jumping) {
        time_skipping::add_test_service(dispatch, jumping->skipper, alarms);
    }
    frontend::add_queue_settings(dispatch,
                                 {.namespaces = namespaces,
                                  .settings = settings,
                                  .executor = executor,
                                  .clock = system_clock(),
                                  .address = fmt::format("{}:{}", options.address, options.port)});
    frontend::add_unbuilt(dispatch);
}

void Server::Rooms::make_namespaces() {
    for (const std::string& name : options.namespaces) {
        if (namespaces.find(name)) {
            continue;
        }
        namespaces::stored::Info info;
        info.set_state(temporal::api::enums::v1::NAMESPACE_STATE_REGISTERED);
        const auto wanted = options.retention.find(name);
        const std::chrono::seconds retention =
            wanted == options.retention.end() ? namespaces::default_retention : wanted->second;
        info.mutable_retention()->set_seconds(retention.count());
        try {
            namespaces.create(name, info);
        } catch (const store::NamespaceAlreadyExists&) {  // Another process was faster.
            namespaces.refresh();
        }
    }
}

void Server::Rooms::make_search_attributes() {
    if (options.search_attributes.empty()) {
        return;
    }
    std::vector<std::string> names = options.namespaces;
    names.emplace_back(namespaces::default_name);
    for (const std::string& name : names) {
        const auto found = namespaces.find(name);
        if (!found) {
            continue;  // Deleted by another process meanwhile.
        }
        namespaces.change(found->id, [&](namespaces::Namespace& made) {
            bool added = false;
            for (const auto& [attribute, type] : options.search_attributes) {
                if (search_attributes::is_reserved(attribute)) {
                    throw InvalidArgument(
                        fmt::format("search attribute {} is reserved by the system", attribute));
                }
                added =
                    search_attributes::add(made.info, attribute, attribute_type(attribute, type)) ||
                    added;
            }
            return added;
        });
    }
}

void Server::Rooms::measure() {
    if (options.metrics == nullptr) {
        return;
    }
    metrics.emplace(
        *options.metrics,
        [this] { return levels(); },
        [this](const std::string& id) { return namespaces.name_of(id); });
    meter.emplace(*options.metrics,
                  [this](const std::string& name) { return namespaces.find(name) != nullptr; });
}

ServerLevels Server::Rooms::levels() const {
    const engine::EngineCounts counts = engine.counts();
    const matching::MatchingTotals totals = matching.totals();
    return {.run_commits = counts.run_commits,
            .other_commits = counts.other_commits,
            .cached_workflows = counts.cached_workflows,
            .cached_bytes = counts.cached_bytes,
            .queues = totals.queues,
            .parked_polls = totals.polls,
            .backlog = totals.backlog,
            .backlog_age_s = std::chrono::duration<double>(totals.backlog_age).count(),
            .long_http_calls = http_api ? http_api->long_calls() : 0};
}

// Before anything answers: a port that is taken is found out at once.
void Server::Rooms::listen() {
    rpc::CallMeter* const counted = meter ? &*meter : nullptr;
    rpc::GrpcTransportOptions grpc = transport_options(options);
    grpc.meter = counted;
    transport.emplace(dispatch, health, std::move(grpc));
    if (!options.http) {
        return;
    }
    constexpr std::chrono::seconds time_for_a_request{30};
    http_api.emplace(dispatch, alarms, system_clock(), counted);
    HttpOptions http_options{.same_origin_only = true, .hosts = options.http->hosts};
    http_options.limits.request = time_for_a_request;
    http_options.limits.body_bytes = dispatch.limits().request_bytes;
    http.emplace(HttpAddress{.host = options.http->address, .port = options.http->port},
                 health_routes([this] { return health_now(); }),
                 "the HTTP port",
                 http_options,
                 [this](const ReceivedRequest& request, const HttpRespond& respond) {
                     http_api->answer(request, respond);
                 });
}

Health Server::Rooms::health_now() {
    if (health.status("") != rpc::HealthStatus::serving) {
        return {.ready = false, .reason = "the server is starting or stopping"};
    }
    try {
        engine.require_owned();
        constexpr std::chrono::seconds patience{1};
        (void)store::Namespaces(db).notification_version({.deadline = Deadline::after(patience)});
    } catch (const Error&) {
        return {.ready = false,
                .reason = "the database does not answer, or another process has taken it over"};
    }
    return {};
}

void Server::Rooms::open_settings() {
    constexpr std::size_t at_once = 100;
    std::string last;
    for (;;) {
        const std::vector<namespaces::NamespacePtr> some = namespaces.list(at_once, last);
        if (some.empty()) {
            return;
        }
        for (const namespaces::NamespacePtr& held : some) {
            settings.open(held->id);
            last = held->id;
        }
    }
}

void Server::Rooms::open() {
    sql::schema_apply(db, store::schema_part(), {});
    namespaces.open();
    make_namespaces();
    make_search_attributes();
    matching.connect(engine);
    if (jumping) {
        jumping->skipper.connect([this] { engine.look_at_clock(); });
    }
    open_settings();
    engine.start();
    deletion.start();
    dispatch.open();
    health.set_serving(true);
}

// Callers first, then what works for them.
void Server::Rooms::stop() {
    if (std::exchange(stopped, true)) {
        return;
    }
    const Deadline deadline = Deadline::after(options.drain);
    deletion.stop();
    matching.stop();
    if (http) {  // Its calls are not among those for which the transport waits.
        health.set_serving(false);
        dispatch.stop();
        http->stop(deadline);
    }
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
    rooms_->measure();
    rooms_->listen();
    rooms_->open();
}

Server::~Server() = default;  // Rooms stops.

std::uint16_t Server::port() const noexcept {
    return rooms_->transport->port();
}

std::uint16_t Server::http_port() const noexcept {
    return rooms_->http ? static_cast<std::uint16_t>(rooms_->http->port()) : std::uint16_t{0};
}

Health Server::health() const {
    return rooms_->health_now();
}

ServerCounts Server::counts() const {
    const engine::EngineCounts counts = rooms_->engine.counts();
    return {.run_commits = counts.run_commits, .other_commits = counts.other_commits};
}

void Server::stop() {
    rooms_->stop();
}

}  // namespace holdfast::server
