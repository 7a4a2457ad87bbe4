// A reservoir against the gateway: connections that never grow as old as the server allows, and an
// outage of the credentials that does not affect open connections.
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>

#include "fleet/test/source_fixture.hpp"
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <holdfast/base/error.hpp>
#include <holdfast/base/metrics.hpp>
#include <holdfast/dsql/gateway.hpp>
#include <holdfast/dsql/source.hpp>
#include <holdfast/sql/database.hpp>
#include <holdfast/testing/check.hpp>
#include <holdfast/testing/dsql.hpp>

namespace holdfast::dsql {
namespace {

using namespace std::chrono_literals;

constexpr sql::Statement one{"test.one", "SELECT 1 AS n"};
constexpr sql::Statement two{"test.two", "SELECT 2 AS n"};
constexpr sql::Statement make_notes{"test.make_notes",
                                    "CREATE TABLE notes (id bigint PRIMARY KEY)"};
constexpr sql::Statement add_note{"test.add_note", "INSERT INTO notes (id) VALUES ($1)"};
constexpr sql::Statement count_notes{"test.count_notes", "SELECT count(*) AS n FROM notes"};

// The keys of the tests, as long as they are not taken away.
class Keys final : public CredentialProvider {
public:
    [[nodiscard]] Credentials get(Deadline /*deadline*/, const std::stop_token& /*stop*/) override {
        if (away) {
            throw Error(Code::unavailable, Outcome::not_applied, "no credentials today");
        }
        return {.access_key_id = holdfast::test::gateway_key().access_key_id,
                .secret_access_key = holdfast::test::gateway_key().secret};
    }
    void forget() noexcept override {}
    [[nodiscard]] std::string source() const override { return "test"; }

    std::atomic<bool> away = false;
};

class ReservoirAtTheGateway : public testing::Test {
protected:
    [[nodiscard]] sql::DatabaseOptions options(const std::string& name, const FleetConfig& config) {
        sql::DatabaseOptions options;
        options.name = name;
        options.metrics = &metrics;
        options.sources["dsql"] = watched(
            dsql_source({.credentials = keys, .fleet = config, .metrics = &metrics}), openings);
        return options;
    }
    [[nodiscard]] std::unique_ptr<sql::Database> open(const std::string& name,
                                                      const FleetConfig& config,
                                                      int connections = 4) {
        return std::make_unique<sql::Database>(
            fmt::format("{}&pool={}", cluster->url(), connections), options(name, config));
    }

    [[nodiscard]] double closed(const char* pool, const char* reason) const {
        return metrics.value("dsql_reservoir_discards_total",
                             {{"pool", pool}, {"service", "unknown"}, {"reason", reason}});
    }

    void serve(const GatewayLimits& limits) {
        GatewayOptions options = holdfast::test::gateway_options();
        options.limits = limits;
        gateway = std::make_unique<Gateway>(options);
        cluster = std::make_unique<holdfast::test::DsqlCluster>(*gateway);
    }

    Metrics metrics;
    Openings openings;  // Of all pools.
    std::shared_ptr<Keys> keys = std::make_shared<Keys>();
    std::unique_ptr<Gateway> gateway;
    std::unique_ptr<holdfast::test::DsqlCluster> cluster;
};

// Two pools at one gateway, which ends connections after three seconds, when they have answered:
// one pool knows of that limit. (That it is never empty meanwhile is shown by machine_day_test,
// whose clock does not depend on how busy the machine is.)
TEST_F(ReservoirAtTheGateway, ReplacesConnectionsBeforeTheServerEndsThem) {
    serve({.connection_age = 3s});
    FleetConfig careful{.rate = 1000, .burst = 1000};
    careful.reservoir.life = 600ms;
    careful.reservoir.life_jitter = 200ms;
    careful.reservoir.guard = 100ms;
    careful.reservoir.lead = 150ms;
    careful.reservoir.look_every = 50ms;
    careful.pool_limits.spread_margin = 200ms;
    FleetConfig careless = careful;
    careless.reservoir.life = 50min;

    const auto young = open("young", careful);
    const auto old = open("old", careless);
    int failures = 0;
    while (closed("old", "server_closed") + closed("old", "bad") < 4) {  // All of them were cut.
        (void)young->run("One", {}, one);
        try {
            (void)old->run("One", {}, one);
        } catch (const Error&) {
            ++failures;  // It may have been sent into a connection that was just being cut.
        }
    }
    EXPECT_LE(failures, 4);
    EXPECT_GE(closed("young", "expired"), 4);
    EXPECT_EQ(closed("young", "server_closed"), 0);
    EXPECT_EQ(closed("young", "bad"), 0);
}

// Connections are used for as long as the outage lasts, which here is two lives of a token: all
// tokens have run out, and open connections are not affected. `./run soak` takes a minute
// for it; outage_threads_test takes the minute by the hand clock, at its worst moment and with the
// usual tokens. (With lives that end meanwhile, for a day, it is shown by machine_day_test.)
TEST_F(ReservoirAtTheGateway, AnOutageOfTheCredentialsHurtsNobodyWhoHasAConnection) {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): nothing here changes the environment.
    const bool soak = std::getenv("HOLDFAST_SOAK") != nullptr;
    const std::chrono::seconds outage = soak ? 60s : 4s;
    serve({});
    FleetConfig config{.rate = 1000, .burst = 1000};
    config.token_life = outage / 2;
    const auto db = open("orders", config);
    keys->away = true;
    const Deadline over = Deadline::after(outage);
    while (!over.passed()) {
        (void)db->run("One", {}, one);
    }
    EXPECT_EQ(db->pool_stats().ready, 4) << "nothing was closed";
    EXPECT_EQ(openings.counts().closed, 0);

    gateway->hang_up(cluster->id());  // Now the outage is felt, but not for ever.
    openings.wait([](const auto& so_far) { return so_far.closed >= 4; });
    EXPECT_EQ(holdfast::test::code_of(
                  [&] { (void)db->run("One", {.deadline = Deadline::after(200ms)}, one); }),
              Code::deadline);
    keys->away = false;
    (void)db->run("One", {}, one);
}

// Both say "unable to accept connection". A client that takes that for a broken pool and rebuilds
// it makes the storm worse.
TEST_F(ReservoirAtTheGateway, AStormOfRefusalsClosesNothingAndPassesByItself) {
    HOLDFAST_CHECK("connections +err.53400");
    HOLDFAST_CHECK("connections +err.53300");
    constexpr int refusals = 20;
    const std::map<GatewayFault, std::string> storms{{GatewayFault::rate_exceeded, "rate_limited"},
                                                     {GatewayFault::too_many, "full"}};
    FleetConfig config{.rate = 10'000, .burst = 10'000};
    config.reservoir.warm = 1;
    config.pool_limits.backoff.fill({.first = 1ms, .most = 5ms});
    for (const auto& [fault, kind] : storms) {
        SCOPED_TRACE(kind);
        serve({});
        const Openings::Counts before = openings.counts();
        gateway->arm({.point = FaultPoint::connect,
                      .fault = fault,
                      .nth = 2,
                      .times = refusals,
                      .cluster = cluster->id()});
        const auto db = open(kind, config);
        while (openings.counts().opened < before.opened + 4) {
            (void)db->run("One", {}, one);  // Open connections are not affected.
        }
        EXPECT_EQ(openings.counts().closed, before.closed);
        EXPECT_EQ(metrics.value("dsql_reservoir_refill_failures_total",
                                {{"pool", kind},
                                 {"service", "unknown"},
                                 {"class", kind},
                                 {"reason", "connection_open"}}),
                  refusals);
    }
}

// --- What a loan hands out ---

class LoansAtTheGateway : public ReservoirAtTheGateway {
protected:
    void SetUp() override {
        serve({});
        db = open("orders", {.rate = 1000, .burst = 1000}, 1);
        (void)db->run("Make", {}, make_notes);
    }

    [[nodiscard]] std::int64_t notes() {
        return db->run("Count", {}, count_notes).rows[0].get<std::int64_t>(0);
    }
    // The one connection of the pool is cut at its next statement, or at the next COMMIT.
    void cut_at(FaultPoint point) {
        gateway->arm({.point = point, .fault = GatewayFault::hang_up, .cluster = cluster->id()});
    }
    // Whatever the caller was told: what was cut is gone, and the next has another connection.
    template <class Body>
    void expect_replaced(const char* what, Body&& body) {
        SCOPED_TRACE(what);
        const int closed = openings.counts().closed;
        (void)holdfast::test::code_of(body);
        openings.wait([&](const auto& so_far) { return so_far.closed > closed; });
        gateway->disarm();
        (void)db->run("One", {}, one);
        EXPECT_EQ(openings.counts().closed, closed + 1);
        EXPECT_EQ(openings.counts().opened, closed + 2);
    }

    std::unique_ptr<sql::Database> db;
};

// A loan is the connection itself, so nothing that it can do gets lost on the way.
TEST_F(LoansAtTheGateway, RunStatements) {
    HOLDFAST_CHECK("connections wrap.prepare");
    HOLDFAST_CHECK("connections wrap.exec");
    HOLDFAST_CHECK("connections wrap.query");
    HOLDFAST_CHECK("connections wrap.ping");
    HOLDFAST_CHECK("connections wrap.valid");
    for (std::int64_t id = 1; id <= 3; ++id) {  // Prepared once, then used again.
        (void)db->run("Add", {}, add_note, id);
        EXPECT_EQ(notes(), id);
    }
    EXPECT_EQ(db->pool_stats().ready, 1);
    EXPECT_EQ(openings.counts().opened, 1) << "all of it by one connection, alive at each borrow";
}

TEST_F(LoansAtTheGateway, RunTransactionsThatLeaveNothingBehind) {
    HOLDFAST_CHECK("connections wrap.begin");
    HOLDFAST_CHECK("connections wrap.begin_tx");
    HOLDFAST_CHECK("connections wrap.begin_tx_options");
    HOLDFAST_CHECK("connections wrap.reset");
    HOLDFAST_CHECK("connections wrap.sequence");
    for (std::int64_t id = 1; id <= 3; ++id) {
        (void)db->run("Add", {}, add_note, id);
    }
    db->transact("AddTwo", {}, [](sql::Tx& tx) {
        tx.exec(add_note, std::int64_t{4});
        tx.exec(add_note, std::int64_t{5});
        EXPECT_EQ(tx.query(count_notes)[0].get<std::int64_t>(0), 5);
    });
    sql::TxOptions reading;
    reading.read_only = true;
    EXPECT_NE(holdfast::test::code_of([&] {
                  db->transact(
                      "Write", reading, [](sql::Tx& tx) { tx.exec(add_note, std::int64_t{6}); });
              }),
              std::nullopt)
        << "a transaction that only reads";
    EXPECT_THROW(db->transact("Undo",
                              {},
                              [](sql::Tx& tx) {
                                  tx.exec(add_note, std::int64_t{7});
                                  (void)tx.query(count_notes);
                                  throw std::runtime_error("not this one");
                              }),
                 std::runtime_error);
    EXPECT_EQ(notes(), 5) << "the next borrower finds nothing of it";
    EXPECT_EQ(db->pool_stats().ready, 1);
    EXPECT_EQ(openings.counts().opened, 1) << "all of it by one connection, alive at each borrow";
}

TEST_F(LoansAtTheGateway, AStopTokenReachesTheDriver) {
    HOLDFAST_CHECK("connections wrap.cancelled");
    std::stop_source stop;
    sql::TxOptions options;
    options.stop = stop.get_token();
    EXPECT_EQ(holdfast::test::code_of([&] {
                  db->transact("Stopped", options, [&](sql::Tx& tx) {
                      tx.exec(add_note, std::int64_t{1});
                      stop.request_stop();
                      (void)tx.query(count_notes);
                  });
              }),
              Code::cancelled);
    EXPECT_EQ(notes(), 0);
}

TEST_F(LoansAtTheGateway, WhatBreaksIsReplacedWhereverItBreaks) {
    HOLDFAST_CHECK("connections wrap.bad_prepare");
    HOLDFAST_CHECK("connections wrap.bad_exec");
    HOLDFAST_CHECK("connections wrap.bad_query");
    HOLDFAST_CHECK("connections wrap.bad_begin");
    HOLDFAST_CHECK("connections wrap.bad_begin_tx");
    HOLDFAST_CHECK("connections wrap.bad_reset");
    HOLDFAST_CHECK("connections wrap.bad_ping");
    HOLDFAST_CHECK("connections wrap.valid_when_bad");
    cut_at(FaultPoint::statement);
    expect_replaced("a statement that is prepared first", [&] { (void)db->run("Two", {}, two); });
    cut_at(FaultPoint::statement);
    expect_replaced("a query", [&] { (void)db->run("One", {}, one); });
    cut_at(FaultPoint::statement);
    expect_replaced("a write", [&] { (void)db->run("Add", {}, add_note, std::int64_t{1}); });
    cut_at(FaultPoint::statement);
    expect_replaced("the beginning of a transaction",
                    [&] { db->transact("Begin", {}, [](sql::Tx& tx) { (void)tx.query(one); }); });
    cut_at(FaultPoint::commit);
    expect_replaced("its end", [&] {
        db->transact("Commit", {}, [](sql::Tx& tx) { tx.exec(add_note, std::int64_t{2}); });
    });
    expect_replaced("its roll-back", [&] {
        db->transact("Undo", {}, [&](sql::Tx& tx) {
            (void)tx.query(one);
            gateway->hang_up(cluster->id());
            throw InvalidArgument("not this one");
        });
    });
    expect_replaced("an idle moment", [&] { gateway->hang_up(cluster->id()); });
}

TEST_F(LoansAtTheGateway, AnErrorThatIsNotTheConnectionsLeavesItInService) {
    HOLDFAST_CHECK("connections wrap.other_error");
    constexpr sql::Statement nowhere{"test.nowhere", "SELECT 1 FROM nowhere"};
    (void)db->run("Add", {}, add_note, std::int64_t{1});
    EXPECT_NE(
        holdfast::test::code_of([&] { (void)db->run("Again", {}, add_note, std::int64_t{1}); }),
        std::nullopt)
        << "it is there already";
    EXPECT_NE(holdfast::test::code_of([&] { (void)db->run("Nowhere", {}, nowhere); }),
              std::nullopt);
    EXPECT_EQ(notes(), 1);
    EXPECT_EQ(openings.counts().opened, 1);
    EXPECT_EQ(openings.counts().closed, 0);
}

// There is no connection string to put together; parameters that libpq cannot use are refused by
// it.
TEST_F(LoansAtTheGateway, ParametersThatCannotWorkStoreNothingAndAreCounted) {
    HOLDFAST_CHECK("connections fill.dsn_error");
    const std::string url =
        fmt::format("dsql://admin@{}?hostaddr=127.0.0.1&port={}&sslrootcert=/nowhere/ca.pem&pool=1",
                    cluster->endpoint(),
                    gateway->port());
    const int opened = openings.counts().opened;
    EXPECT_NE(holdfast::test::code_of(
                  [&] { const sql::Database broken(url, options("broken", {.rate = 1000})); }),
              std::nullopt);
    EXPECT_EQ(openings.counts().opened, opened);
    double failures = 0;
    for (const char* failure : {"transport", "other"}) {
        failures += metrics.value("dsql_reservoir_refill_failures_total",
                                  {{"pool", "broken"},
                                   {"service", "unknown"},
                                   {"class", failure},
                                   {"reason", "connection_open"}});
    }
    EXPECT_GE(failures, 1);
}

}  // namespace
}  // namespace holdfast::dsql
