#include <algorithm>
#include <initializer_list>

#include <fmt/core.h>

#include <holdfast/base/error.hpp>
#include <holdfast/base/units.hpp>
#include <holdfast/dsql/fleet.hpp>

namespace holdfast::dsql {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::nanoseconds;
using std::chrono::seconds;

constexpr std::int64_t million = 1'000'000;

Setting setting(const char* key,
                SettingKind kind,
                const char* fallback,
                const char* environment,
                const char* description) {
    return {.key = fmt::format("dsql.{}", key),
            .kind = std::move(kind),
            .fallback = fallback,
            .description = description,
            .environment = environment,
            .lenient = true};
}

// Any number is understood; one that is no limit is refused together with the rest.
Setting number(const char* key, const char* fallback, const char* environment, const char* text) {
    return setting(key, IntegerKind{-million, million}, fallback, environment, text);
}

Setting flag(const char* key, const char* fallback, const char* environment, const char* text) {
    return setting(key, BoolKind{}, fallback, environment, text);
}

Setting time(const char* key, const char* fallback, const char* environment, const char* text) {
    return setting(key, DurationKind{}, fallback, environment, text);
}

Setting word(const char* key, const char* environment, const char* text) {
    return setting(key, TextKind{}, "", environment, text);
}

void append(Settings& to, std::initializer_list<Setting> some) {
    to.insert(to.end(), some.begin(), some.end());
}

void add_process_settings(Settings& all) {
    append(
        all,
        {flag("strict",
              "false",
              "DSQL_CONFIG_STRICT",
              "refuse values in the environment that are not understood"),
         word("region", "REGION", "the cluster's and DynamoDB's; AWS_REGION if empty"),
         word("endpoint", "CLUSTER_ENDPOINT", "the cluster's host name, for dsql leases"),
         time("token_duration", "15m", "DSQL_TOKEN_DURATION", "how long a token is good"),
         number("rate", "10", "DSQL_CONNECTION_RATE_LIMIT", "connections a second, alone"),
         number("burst", "100", "DSQL_CONNECTION_BURST_LIMIT", "connections at once, alone"),
         flag("stagger",
              "false",
              "DSQL_STAGGERED_STARTUP",
              "wait a random time before the first connection"),
         time("stagger_max", "5s", "DSQL_STAGGERED_STARTUP_MAX_DELAY", "that time, at most"),
         number("fleet_size",
                "10",
                "DSQL_FLEET_SIZE_HINT",
                "processes that divide the limits while DynamoDB is away"),
         word("service", "DSQL_SERVICE_NAME", "our name in leases and metrics; SERVICES if empty"),
         word("dynamodb_endpoint",
              "DSQL_DYNAMODB_ENDPOINT",
              "http://host:port of an emulator, for tests")});
}

void add_rate_settings(Settings& all) {
    append(all,
           {flag("limiter.enabled",
                 "false",
                 "DSQL_DISTRIBUTED_RATE_LIMITER_ENABLED",
                 "share the rate of new connections with the fleet"),
            word("limiter.table",
                 "DSQL_DISTRIBUTED_RATE_LIMITER_TABLE",
                 "the table in DynamoDB for that"),
            setting("limiter.algorithm",
                    ChoiceKind{{"counter", "bucket", "reserve"}},
                    "reserve",
                    "DSQL_DISTRIBUTED_RATE_LIMITER_ALGORITHM",
                    "how the fleet counts; all processes must agree"),
            number("limiter.limit",
                   "100",
                   "DSQL_DISTRIBUTED_RATE_LIMITER_LIMIT",
                   "connections a second, of the fleet"),
            number("limiter.burst", "200", "DSQL_RATE_BURST", "connections at once, of the fleet"),
            time("limiter.max_wait",
                 "30s",
                 "DSQL_DISTRIBUTED_RATE_LIMITER_MAX_WAIT",
                 "how long a permit may be away"),
            flag("bucket.enabled",
                 "false",
                 "DSQL_TOKEN_BUCKET_ENABLED",
                 "the algorithm `bucket`, with the limits below"),
            number("bucket.rate", "100", "DSQL_TOKEN_BUCKET_RATE", "its tokens a second"),
            number("bucket.capacity", "1000", "DSQL_TOKEN_BUCKET_CAPACITY", "what it holds"),
            time("bucket.max_wait", "30s", "DSQL_TOKEN_BUCKET_MAX_WAIT", "as limiter.max_wait")});
}

void add_lease_settings(Settings& all) {
    append(
        all,
        {flag("leases.enabled",
              "false",
              "DSQL_DISTRIBUTED_CONN_LEASE_ENABLED",
              "share the number of connections with the fleet"),
         word(
             "leases.table", "DSQL_DISTRIBUTED_CONN_LEASE_TABLE", "the table in DynamoDB for that"),
         setting("leases.mode",
                 ChoiceKind{{"blocks", "off"}},
                 "blocks",
                 "DSQL_CONN_LEASE_MODE",
                 "how the fleet counts connections; all processes must agree"),
         setting("leases.failure",
                 ChoiceKind{{"local", "block"}},
                 "local",
                 "DSQL_CONN_LEASE_FAILURE",
                 "while DynamoDB is away: a local cap, or no new connections"),
         number("leases.limit", "10000", "DSQL_DISTRIBUTED_CONN_LIMIT", "connections of the fleet"),
         number("leases.block_size", "25", "DSQL_SLOT_BLOCK_SIZE", "slots in a block"),
         number("leases.block_count",
                "0",
                "DSQL_SLOT_BLOCK_COUNT",
                "blocks; 0: as many as the limit allows"),
         time("leases.block_ttl", "3m", "DSQL_SLOT_BLOCK_TTL", "how long a block is ours"),
         time("leases.block_renew",
              "1m",
              "DSQL_SLOT_BLOCK_RENEW_INTERVAL",
              "how often a block is renewed")});
}

void require(bool fine, const std::string& sentence) {
    if (!fine) {
        throw InvalidArgument(sentence);
    }
}

int positive(const Config& config, const char* key) {
    const std::int64_t value = config.integer(key);
    require(value >= 1, fmt::format("{} is {}, which is no limit; give 1 or more", key, value));
    return static_cast<int>(value);
}

nanoseconds longer_than_zero(const Config& config, const char* key) {
    const nanoseconds value = config.duration(key);
    require(value > nanoseconds{0}, fmt::format("{} must be longer than zero", key));
    return value;
}

void read_rate(const Config& config, FleetConfig& fleet) {
    const std::string& algorithm = config.text("dsql.limiter.algorithm");
    const bool bucket = config.boolean("dsql.bucket.enabled") || algorithm == "bucket";
    fleet.permits.algorithm = bucket                   ? pool::PermitAlgorithm::bucket
                              : algorithm == "counter" ? pool::PermitAlgorithm::counter
                                                       : pool::PermitAlgorithm::reserve;
    const bool enabled = config.boolean("dsql.limiter.enabled");
    require(enabled || !config.boolean("dsql.bucket.enabled"),
            "dsql.bucket.enabled needs dsql.limiter.enabled too");
    const std::string group = config.boolean("dsql.bucket.enabled") ? "bucket" : "limiter";
    const auto key = [&](const char* name) { return fmt::format("dsql.{}.{}", group, name); };
    fleet.permits.per_second = positive(config, key(group == "bucket" ? "rate" : "limit").c_str());
    fleet.permits.burst = positive(config, key(group == "bucket" ? "capacity" : "burst").c_str());
    fleet.permits.wait_max = longer_than_zero(config, key("max_wait").c_str());
    if (enabled) {
        fleet.rate_table = config.text("dsql.limiter.table");
        require(!fleet.rate_table.empty(),
                "dsql.limiter.enabled needs dsql.limiter.table, the name of a table in DynamoDB; "
                "make it with `holdfast dsql leases setup`");
    }
}

void read_leases(const Config& config, FleetConfig& fleet) {
    const int limit = positive(config, "dsql.leases.limit");
    fleet.blocks.size = positive(config, "dsql.leases.block_size");
    const auto count = static_cast<int>(config.integer("dsql.leases.block_count"));
    require(count >= 0, fmt::format("dsql.leases.block_count is {}; give 0 or more", count));
    require(fleet.blocks.size <= limit,
            fmt::format("a block of {} slots (dsql.leases.block_size) is more than the limit of {} "
                        "connections (dsql.leases.limit)",
                        fleet.blocks.size,
                        limit));
    fleet.blocks.count = count == 0 ? limit / fleet.blocks.size : count;
    require(static_cast<std::int64_t>(fleet.blocks.count) * fleet.blocks.size <= limit,
            fmt::format("{} blocks of {} slots (dsql.leases.block_count, block_size) are more than "
                        "the limit of {} connections (dsql.leases.limit)",
                        fleet.blocks.count,
                        fleet.blocks.size,
                        limit));
    fleet.blocks.ttl = config.duration("dsql.leases.block_ttl");
    fleet.blocks.renew_every = longer_than_zero(config, "dsql.leases.block_renew");
    require(fleet.blocks.ttl >= 3 * fleet.blocks.renew_every,
            fmt::format("dsql.leases.block_ttl ({}) must be at least three times "
                        "dsql.leases.block_renew ({})",
                        format_duration(fleet.blocks.ttl),
                        format_duration(fleet.blocks.renew_every)));
    if (config.text("dsql.leases.failure") == "local") {
        fleet.blocks.local_cap = std::max(limit / fleet.fleet_size, 1);
    }
    if (config.boolean("dsql.leases.enabled") && config.text("dsql.leases.mode") != "off") {
        fleet.lease_table = config.text("dsql.leases.table");
        require(!fleet.lease_table.empty(),
                "dsql.leases.enabled needs dsql.leases.table, the name of a table in DynamoDB; "
                "make it with `holdfast dsql leases setup`");
    }
    check(fleet.blocks);
}

}  // namespace

Settings fleet_settings() {
    Settings all;
    add_process_settings(all);
    add_rate_settings(all);
    add_lease_settings(all);
    return all;
}

FleetConfig fleet_config(const Config& config) {
    if (config.boolean("dsql.strict") && !config.warnings().empty()) {
        throw InvalidArgument(config.warnings().front() + ", which dsql.strict forbids");
    }
    FleetConfig fleet;
    fleet.rate = positive(config, "dsql.rate");
    fleet.burst = positive(config, "dsql.burst");
    fleet.fleet_size = positive(config, "dsql.fleet_size");
    const nanoseconds delay = config.duration("dsql.stagger_max");
    require(delay <= minutes{10}, "dsql.stagger_max is more than ten minutes; give less");
    fleet.stagger_max = config.boolean("dsql.stagger") ? delay : nanoseconds{0};
    const nanoseconds life = config.duration("dsql.token_duration");
    require(life >= seconds{15} && life <= hours{24 * 7},
            "dsql.token_duration must be from 15 seconds to 7 days");
    fleet.token_life = std::chrono::floor<seconds>(life);
    fleet.region = config.text("dsql.region");
    fleet.dynamodb_endpoint = config.text("dsql.dynamodb_endpoint");
    fleet.service = config.text("dsql.service");
    read_rate(config, fleet);
    read_leases(config, fleet);
    return fleet;
}

nanoseconds startup_delay(const FleetConfig& config, Random& random) {
    return nanoseconds{
        static_cast<std::int64_t>(static_cast<double>(config.stagger_max.count()) * random.unit())};
}

}  // namespace holdfast::dsql
