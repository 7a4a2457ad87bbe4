// A reservoir against the gateway: connections that never grow as old as the server allows, and an
// outage of the credentials that nobody notices who has a connection.
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>

#include "watched_source.hpp"
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
    [[nodiscard]] std::unique_ptr<sql::Database> open(const std::string& name,
                                                      const FleetConfig& config) {
        sql::DatabaseOptions options;
        options.name = name;
        options.metrics = &metrics;
        options.sources["dsql"] = watched(
            dsql_source({.credentials = keys, .fleet = config, .metrics = &metrics}), openings);
        return std::make_unique<sql::Database>(cluster->url() + "&pool=4", options);
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
// one pool knows of that limit. (That nobody finds it empty meanwhile is shown by machine_day_test,
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
    while (closed("old", "dead") + closed("old", "bad") < 4) {  // All of them were cut.
        (void)young->run("One", {}, one);
        try {
            (void)old->run("One", {}, one);
        } catch (const Error&) {
            ++failures;  // It may have been sent into a connection that was just being cut.
        }
    }
    EXPECT_LE(failures, 4);
    EXPECT_GE(closed("young", "expired"), 4);
    EXPECT_EQ(closed("young", "dead"), 0);
    EXPECT_EQ(closed("young", "bad"), 0);
}

// Connections are used for as long as the outage lasts. A minute of it is a fifteenth of the life
// of a usual token, so the token that is there outlives it. Here the outage lasts for two lives:
// all tokens have run out, and nobody who has a connection is worse off. `./run soak` takes the
// minute. (With lives that end meanwhile, for hours, it is shown by machine_day_test.)
TEST_F(ReservoirAtTheGateway, AnOutageOfTheCredentialsHurtsNobodyWhoHasAConnection) {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): nobody here changes the environment.
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

}  // namespace
}  // namespace holdfast::dsql
