#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include <holdfast/base/error.hpp>
#include <holdfast/dsql/fleet.hpp>
#include <holdfast/testing/check.hpp>

namespace holdfast::dsql {
namespace {

using namespace std::chrono_literals;
using holdfast::test::code_of;

class FleetConfigStory : public testing::Test {
protected:
    [[nodiscard]] Config load() const {
        return Config::load(fleet_settings(), {.environment = [this](const std::string& name) {
                                const auto found = environment.find(name);
                                return found == environment.end() ? std::nullopt
                                                                  : std::optional(found->second);
                            }});
    }
    [[nodiscard]] FleetConfig read() const { return fleet_config(load()); }
    [[nodiscard]] std::string refusal() const {
        try {
            (void)read();
            return "";
        } catch (const Error& error) {
            return error.what();
        }
    }

    std::map<std::string, std::string> environment;
};

TEST_F(FleetConfigStory, AServiceWithoutANameIsCalledAsItsExecutable) {
    const std::string self = std::filesystem::read_symlink("/proc/self/exe").filename();
    // NOLINTNEXTLINE(concurrency-mt-unsafe): nothing here changes the environment.
    if (std::getenv("SERVICES") == nullptr) {
        EXPECT_EQ(service_name(read()), self);
    }
    environment["DSQL_SERVICE_NAME"] = "billing";
    EXPECT_EQ(service_name(read()), "billing");
}

TEST_F(FleetConfigStory, WithoutAnythingAProcessIsAlone) {
    HOLDFAST_CHECK("connections lease.env");
    HOLDFAST_CHECK("connections lease.limit_default");
    HOLDFAST_CHECK("connections pool.defaults");
    const FleetConfig usual = read();
    EXPECT_EQ(usual.rate, 10);
    EXPECT_EQ(usual.burst, 100);
    EXPECT_EQ(usual.rate_table, "");
    EXPECT_EQ(usual.lease_table, "");
    EXPECT_EQ(usual.permits.algorithm, pool::PermitAlgorithm::reserve);
    EXPECT_EQ(usual.permits.per_second, 100);
    EXPECT_EQ(usual.permits.burst, 200);
    EXPECT_EQ(usual.blocks.size, 25);
    EXPECT_EQ(usual.blocks.count, 400);
    EXPECT_EQ(usual.blocks.local_cap, 1000);
    EXPECT_EQ(usual.token_life, 15min);
    EXPECT_EQ(usual.leases.limit, 10'000);
    const pool::Config pool = pool_config(usual, 16);
    EXPECT_EQ(pool.life, 50min);
    EXPECT_EQ(pool.target, 16);
    EXPECT_EQ(pool.min_ready, 16) << "one size: it never shrinks when idle";
}

TEST_F(FleetConfigStory, AFirstFillingIsNotStretchedAndThatIsSaid) {
    EXPECT_TRUE(overruled(load()).empty());
    environment["DSQL_POOL_WARMUP_STAGGER_DURATION"] = "0s";
    EXPECT_TRUE(overruled(load()).empty());
    environment["DSQL_POOL_WARMUP_STAGGER_DURATION"] = "2m";
    ASSERT_EQ(overruled(load()).size(), 1U);
    EXPECT_EQ(overruled(load())[0].key, "dsql.pool.warmup_stagger");
    EXPECT_NE(overruled(load())[0].why.find("dsql.pool.warmup_stagger (2m"), std::string::npos);
    EXPECT_EQ(refusal(), "");
    environment["DSQL_CONFIG_STRICT"] = "true";
    EXPECT_NE(refusal().find("has no effect"), std::string::npos);
}

TEST_F(FleetConfigStory, ATokenLivesAsLongAsTheServiceAllowsAndThatIsSaid) {
    const std::map<std::string, std::pair<std::chrono::seconds, std::size_t>> lives{
        {"15m", {15min, 0}},
        {"15s", {15s, 0}},
        {"14s", {15s, 1}},
        {"0s", {15s, 1}},
        {"168h", {168h, 0}},
        {"200h", {168h, 1}}};
    for (const auto& [text, expected] : lives) {
        environment["DSQL_TOKEN_DURATION"] = text;
        EXPECT_EQ(read().token_life, expected.first) << text;
        EXPECT_EQ(overruled(load()).size(), expected.second) << text;
    }
}

TEST_F(FleetConfigStory, ConnectionsAreCountedInBlocksOrOneByOne) {
    environment["DSQL_DISTRIBUTED_CONN_LEASE_ENABLED"] = "true";
    environment["DSQL_DISTRIBUTED_CONN_LEASE_TABLE"] = "leases";
    environment["DSQL_DISTRIBUTED_CONN_LIMIT"] = "500";
    EXPECT_EQ(read().lease_mode, LeaseMode::blocks);
    environment["DSQL_CONN_LEASE_MODE"] = "counter";
    EXPECT_EQ(read().lease_mode, LeaseMode::counter);
    EXPECT_EQ(read().lease_table, "leases");
    EXPECT_EQ(read().leases.limit, 500);
    EXPECT_EQ(read().leases.local_cap, 50);
    environment["DSQL_CONN_LEASE_FAILURE"] = "block";
    EXPECT_EQ(read().leases.local_cap, 0);
    environment["DSQL_DISTRIBUTED_CONN_LIMIT"] = "10";
    EXPECT_EQ(read().leases.limit, 10) << "less than a block, but there are no blocks";
}

TEST_F(FleetConfigStory, NumbersThatAreNoneAreIgnoredAndThoseThatAreNoLimitRefused) {
    HOLDFAST_CHECK("connections env.int");
    environment["DSQL_CONNECTION_RATE_LIMIT"] = "";
    EXPECT_EQ(read().rate, 10);
    environment["DSQL_CONNECTION_RATE_LIMIT"] = "100";
    EXPECT_EQ(read().rate, 100);
    environment["DSQL_CONNECTION_RATE_LIMIT"] = "many";
    EXPECT_EQ(read().rate, 10);
    ASSERT_EQ(load().warnings().size(), 1U);
    EXPECT_NE(load().warnings()[0].find("DSQL_CONNECTION_RATE_LIMIT"), std::string::npos);
    environment["DSQL_CONFIG_STRICT"] = "true";
    EXPECT_NE(refusal().find("dsql.strict forbids"), std::string::npos);
    environment.erase("DSQL_CONFIG_STRICT");
    for (const char* none : {"0", "-5"}) {
        environment["DSQL_CONNECTION_RATE_LIMIT"] = none;
        EXPECT_NE(refusal().find("dsql.rate"), std::string::npos) << none;
    }
}

TEST_F(FleetConfigStory, DurationsHaveUnits) {
    HOLDFAST_CHECK("connections env.duration");
    environment["DSQL_SLOT_BLOCK_TTL"] = "";
    EXPECT_EQ(read().blocks.ttl, 3min);
    environment["DSQL_SLOT_BLOCK_RENEW_INTERVAL"] = "500ms";
    environment["DSQL_SLOT_BLOCK_TTL"] = "10s";
    EXPECT_EQ(read().blocks.ttl, 10s);
    EXPECT_EQ(read().blocks.renew_every, 500ms);
    environment["DSQL_SLOT_BLOCK_TTL"] = "soon";
    EXPECT_EQ(read().blocks.ttl, 3min);
}

TEST_F(FleetConfigStory, FlagsAreWrittenAsInOtherPrograms) {
    for (const char* yes : {"1", "t", "T", "true", "TRUE", "True"}) {
        environment = {{"DSQL_RESERVOIR_ENABLED", yes}, {"DSQL_CONFIG_STRICT", yes}};
        EXPECT_TRUE(read().reservoir.enabled) << yes;
    }
    for (const char* no : {"0", "f", "F", "false", "FALSE", "False"}) {
        environment = {{"DSQL_RESERVOIR_ENABLED", no}, {"DSQL_CONFIG_STRICT", "True"}};
        EXPECT_FALSE(read().reservoir.enabled) << no;
    }
    environment = {{"DSQL_RESERVOIR_ENABLED", "tRuE"}};
    EXPECT_EQ(load().warnings().size(), 1U);
}

TEST_F(FleetConfigStory, TheBucketHasLimitsOfItsOwn) {
    HOLDFAST_CHECK("connections bucket.flag");
    HOLDFAST_CHECK("connections bucket.defaults");
    HOLDFAST_CHECK("connections bucket.overrides");
    environment["DSQL_DISTRIBUTED_RATE_LIMITER_ENABLED"] = "true";
    environment["DSQL_DISTRIBUTED_RATE_LIMITER_TABLE"] = "rates";
    const std::map<std::string, bool> flags{
        {"", false}, {"true", true}, {"false", false}, {"1", true}, {"0", false}, {"x", false}};
    for (const auto& [text, on] : flags) {
        environment["DSQL_TOKEN_BUCKET_ENABLED"] = text;
        EXPECT_EQ(read().permits.algorithm == pool::PermitAlgorithm::bucket, on) << text;
    }
    environment["DSQL_TOKEN_BUCKET_ENABLED"] = "true";
    EXPECT_EQ(read().permits.per_second, 100);
    EXPECT_EQ(read().permits.burst, 1000);
    EXPECT_EQ(read().permits.wait_max, 30s);
    environment["DSQL_TOKEN_BUCKET_RATE"] = "50";
    environment["DSQL_TOKEN_BUCKET_CAPACITY"] = "500";
    environment["DSQL_TOKEN_BUCKET_MAX_WAIT"] = "10s";
    EXPECT_EQ(read().permits.per_second, 50);
    EXPECT_EQ(read().permits.burst, 500);
    EXPECT_EQ(read().permits.wait_max, 10s);
    for (const char* none : {"DSQL_TOKEN_BUCKET_RATE", "DSQL_TOKEN_BUCKET_CAPACITY"}) {
        auto before = environment;
        environment[none] = "0";
        EXPECT_NE(refusal(), "") << none;
        environment = before;
    }
}

TEST_F(FleetConfigStory, ContradictionsAreRefusedWithTheReason) {
    HOLDFAST_CHECK("connections lease.empty_table");
    const std::map<std::map<std::string, std::string>, std::string> broken{
        {{{"DSQL_DISTRIBUTED_RATE_LIMITER_ENABLED", "true"}}, "needs dsql.limiter.table"},
        {{{"DSQL_TOKEN_BUCKET_ENABLED", "true"}}, "needs dsql.limiter.enabled"},
        {{{"DSQL_DISTRIBUTED_RATE_LIMITER_LIMIT", "0"}}, "dsql.limiter.limit is 0"},
        {{{"DSQL_RATE_BURST", "-1"}}, "dsql.limiter.burst is -1"},
        {{{"DSQL_DISTRIBUTED_CONN_LEASE_ENABLED", "true"}}, "needs dsql.leases.table"},
        {{{"DSQL_DISTRIBUTED_CONN_LIMIT", "0"}}, "dsql.leases.limit is 0"},
        {{{"DSQL_DISTRIBUTED_CONN_LIMIT", "10"}}, "more than the limit of 10"},
        {{{"DSQL_SLOT_BLOCK_COUNT", "401"}}, "more than the limit of 10000"},
        {{{"DSQL_SLOT_BLOCK_TTL", "2m"}}, "three times"},
        {{{"DSQL_SLOT_BLOCK_RENEW_INTERVAL", "0s"}}, "longer than zero"},
        {{{"DSQL_FLEET_SIZE_HINT", "0"}}, "dsql.fleet_size is 0"},
        {{{"DSQL_STAGGERED_STARTUP_MAX_DELAY", "11m"}}, "ten minutes"},
        {{{"DSQL_TOKEN_DURATION", "10s"}, {"DSQL_CONFIG_STRICT", "true"}}, "15 seconds to 7 days"},
        {{{"DSQL_DISTRIBUTED_RATE_LIMITER_ENABLED", "true"},
          {"DSQL_DISTRIBUTED_RATE_LIMITER_TABLE", "rates"},
          {"DSQL_DISTRIBUTED_RATE_LIMITER_ALGORITHM", "counter"},
          {"DSQL_TOKEN_BUCKET_ENABLED", "true"}},
         "contradicts dsql.limiter.algorithm (counter)"},
        {{{"DSQL_RESERVOIR_TARGET_READY", "-1"}}, "target_ready is -1"},
        {{{"DSQL_RESERVOIR_TARGET_READY", "5"}, {"DSQL_RESERVOIR_LOW_WATERMARK", "6"}},
         "low_watermark (6) is more than target_ready (5)"},
        {{{"DSQL_RESERVOIR_LOW_WATERMARK", "-2"}}, "low_watermark is -2"},
        {{{"DSQL_RESERVOIR_BASE_LIFETIME", "55m"}}, "leave five minutes of the hour"},
        {{{"DSQL_RESERVOIR_BASE_LIFETIME", "0s"}}, "longer than zero"},
        {{{"DSQL_RESERVOIR_LIFETIME_JITTER", "300h"}}, "leave five minutes of the hour"},
        {{{"DSQL_RESERVOIR_GUARD_WINDOW", "26m"}}, "half of base_lifetime"},
        {{{"DSQL_RESERVOIR_PREFETCH_LEAD", "50m"}}, "prefetch_lead (50m)"},
        {{{"DSQL_RESERVOIR_INFLIGHT_LIMIT", "0"}}, "inflight_limit is 0"},
        {{{"DSQL_RESERVOIR_INFLIGHT_LIMIT", "65"}}, "inflight_limit is 65"},
        {{{"DSQL_POOL_KEEPER_TICK_INTERVAL", "0s"}}, "less than 50 ms"},
        {{{"DSQL_POOL_KEEPER_MAX_CONNS_PER_TICK", "-3"}}, "keeper_max is -3"},
        {{{"DSQL_CONNECT_TIMEOUT", "10ms"}}, "from one second"},
        {{{"DSQL_OPEN_TIMEOUT", "5s"}}, "dsql.connect_timeout (10s)"}};
    for (const auto& [variables, reason] : broken) {
        environment = variables;
        EXPECT_NE(refusal().find(reason), std::string::npos) << reason << " / " << refusal();
    }
}

TEST_F(FleetConfigStory, APoolIsKeptFullUnlessItIsToldOtherwise) {
    const pool::Config full = pool_config(read(), 50);
    EXPECT_EQ(full.min_ready, 50);
    EXPECT_EQ(full.warm, 50);
    EXPECT_EQ(full.warm_up_max, 30s);
    EXPECT_EQ(full.overshoot, 1);
    EXPECT_EQ(full.life, 50min);
    EXPECT_EQ(full.life_jitter, 5min);
    EXPECT_EQ(full.guard, 45s);
    EXPECT_EQ(full.lead, 30s);
    EXPECT_EQ(full.look_every, 1s);
    EXPECT_EQ(full.limits.opening_max, 8);
    EXPECT_EQ(full.limits.open_timeout, 30s);

    environment = {{"DSQL_RESERVOIR_TARGET_READY", "20"},
                   {"DSQL_RESERVOIR_LOW_WATERMARK", "0"},
                   {"DSQL_RESERVOIR_BASE_LIFETIME", "11m"},
                   {"DSQL_RESERVOIR_LIFETIME_JITTER", "2m"},
                   {"DSQL_POOL_KEEPER_MAX_CONNS_PER_TICK", "3"},
                   {"DSQL_OPEN_TIMEOUT", "20s"}};
    const pool::Config less = pool_config(read(), 50);
    EXPECT_EQ(less.min_ready, 20);
    EXPECT_EQ(less.warm, 0);
    EXPECT_EQ(less.life, 11min);
    EXPECT_EQ(less.limits.opening_max, 3);
    EXPECT_EQ(less.limits.open_timeout, 20s);
    EXPECT_EQ(code_of([&] { (void)pool_config(read(), 10); }), Code::invalid_argument)
        << "20 of 10 cannot be ready";

    environment["DSQL_RESERVOIR_ENABLED"] = "false";
    for (const FleetConfig& fleet : {read(), for_one_command(FleetConfig{})}) {
        const pool::Config needed = pool_config(fleet, 10);
        EXPECT_EQ(needed.min_ready, 0);
        EXPECT_EQ(needed.warm, 0);
    }
}

TEST_F(FleetConfigStory, NoGarbageInAVariableDoesHarm) {
    Random random(20261116);
    int ignored = 0;
    for (const Setting& setting : fleet_settings()) {
        for (int i = 0; i < 50; ++i) {
            std::string garbage;
            for (std::uint64_t length = random.below(12); length > 0; --length) {
                garbage += static_cast<char>(1 + random.below(255));
            }
            environment = {{setting.environment, garbage}};
            (void)refusal();  // Refused or ignored, and nothing else.
            const Config config = load();
            ASSERT_LE(config.warnings().size(), 1U);
            for (const std::string& warning : config.warnings()) {
                ++ignored;
                EXPECT_NE(warning.find(setting.environment), std::string::npos);
                EXPECT_NE(warning.find("'" + setting.fallback + "' is in force"), std::string::npos)
                    << warning;
            }
        }
    }
    EXPECT_GT(ignored, 1000) << "else garbage was rare";
}

TEST_F(FleetConfigStory, TheFirstConnectionWaitsForARandomTimeIfToldTo) {
    HOLDFAST_CHECK("connections stagger.random");
    HOLDFAST_CHECK("connections stagger.off");
    HOLDFAST_CHECK("connections stagger.max");
    Random random(1);
    environment["DSQL_STAGGERED_STARTUP"] = "false";
    EXPECT_EQ(startup_delay(read(), random), 0s);
    environment.erase("DSQL_STAGGERED_STARTUP");
    EXPECT_EQ(startup_delay(for_one_command(read()), random), 0s) << "nobody waits for a command";
    std::set<std::chrono::nanoseconds> delays;
    for (int i = 0; i < 10; ++i) {
        const auto delay = startup_delay(read(), random);
        EXPECT_LE(delay, 5s);
        delays.insert(delay);
    }
    EXPECT_GT(delays.size(), 1U);
    environment["DSQL_STAGGERED_STARTUP_MAX_DELAY"] = "100ms";
    for (int i = 0; i < 10; ++i) {
        EXPECT_LE(startup_delay(read(), random), 100ms);
    }
}

}  // namespace
}  // namespace holdfast::dsql
