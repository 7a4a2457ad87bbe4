#include <algorithm>
#include <cerrno>
#include <initializer_list>

#include <fmt/core.h>

#include <holdfast/base/error.hpp>
#include <holdfast/base/units.hpp>
#include <holdfast/dsql/credentials.hpp>
#include <holdfast/dsql/fleet.hpp>

namespace holdfast::dsql {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
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

// Parses any number; a number that is not a valid limit is refused later, with the other checks.
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
    append(all,
           {flag("strict",
                 "false",
                 "DSQL_CONFIG_STRICT",
                 "refusal of values in the environment that are not understood"),
            word("region",
                 "REGION",
                 "region of cluster and DynamoDB, if the endpoint's name has none; if empty "
                 "AWS_REGION"),
            word("endpoint", "CLUSTER_ENDPOINT", "host name of the cluster, for dsql leases"),
            time("token_duration", "15m", "DSQL_TOKEN_DURATION", "lifetime of a token"),
            number("rate",
                   "10",
                   "DSQL_CONNECTION_RATE_LIMIT",
                   "new connections per second of this process"),
            number("burst",
                   "100",
                   "DSQL_CONNECTION_BURST_LIMIT",
                   "new connections at once of this process"),
            flag("stagger",
                 "true",
                 "DSQL_STAGGERED_STARTUP",
                 "random delay before the first connection, unless the rate is shared"),
            time("stagger_max", "5s", "DSQL_STAGGERED_STARTUP_MAX_DELAY", "longest such delay"),
            number("fleet_size",
                   "10",
                   "DSQL_FLEET_SIZE_HINT",
                   "processes that divide the limits while DynamoDB does not answer"),
            word("service",
                 "DSQL_SERVICE_NAME",
                 "name in leases and metrics; if empty SERVICES, else the executable's"),
            word("dynamodb_endpoint",
                 "DSQL_DYNAMODB_ENDPOINT",
                 "URL of an emulator, http://host:port, for tests")});
}

void add_pool_settings(Settings& all) {
    append(all,
           {flag("reservoir.enabled",
                 "true",
                 "DSQL_RESERVOIR_ENABLED",
                 "connections that are opened before they are needed"),
            number("reservoir.target_ready",
                   "0",
                   "DSQL_RESERVOIR_TARGET_READY",
                   "number of ready connections; 0: as many as the pool may have"),
            number("reservoir.low_watermark",
                   "-1",
                   "DSQL_RESERVOIR_LOW_WATERMARK",
                   "ready connections awaited at the start; -1: target_ready"),
            time("reservoir.initial_fill_timeout",
                 "30s",
                 "DSQL_RESERVOIR_INITIAL_FILL_TIMEOUT",
                 "longest wait for them"),
            time("reservoir.base_lifetime",
                 "50m",
                 "DSQL_RESERVOIR_BASE_LIFETIME",
                 "shortest lifetime of a connection"),
            time("reservoir.lifetime_jitter",
                 "5m",
                 "DSQL_RESERVOIR_LIFETIME_JITTER",
                 "most that is added to it at random"),
            time("reservoir.guard_window",
                 "45s",
                 "DSQL_RESERVOIR_GUARD_WINDOW",
                 "remaining life below which a connection is not lent"),
            time("reservoir.prefetch_lead",
                 "30s",
                 "DSQL_RESERVOIR_PREFETCH_LEAD",
                 "time before that at which its replacement is opened"),
            number("reservoir.inflight_limit",
                   "8",
                   "DSQL_RESERVOIR_INFLIGHT_LIMIT",
                   "concurrent openings"),
            time("pool.keeper_tick",
                 "1s",
                 "DSQL_POOL_KEEPER_TICK_INTERVAL",
                 "interval between checks of idle connections"),
            number("pool.keeper_max",
                   "0",
                   "DSQL_POOL_KEEPER_MAX_CONNS_PER_TICK",
                   "upper bound of reservoir.inflight_limit; 0: none"),
            time("pool.warmup_stagger",
                 "0s",
                 "DSQL_POOL_WARMUP_STAGGER_DURATION",
                 "without effect, logged as a warning: lives are spread, not openings"),
            time("connect_timeout", "10s", "DSQL_CONNECT_TIMEOUT", "time for TCP, TLS and login"),
            time("open_timeout",
                 "30s",
                 "DSQL_OPEN_TIMEOUT",
                 "time for an opening with all its phases")});
}

void add_rate_settings(Settings& all) {
    append(
        all,
        {flag("limiter.enabled",
              "false",
              "DSQL_DISTRIBUTED_RATE_LIMITER_ENABLED",
              "rate of new connections shared with the fleet"),
         word("limiter.table",
              "DSQL_DISTRIBUTED_RATE_LIMITER_TABLE",
              "table in DynamoDB for the rate"),
         setting("limiter.algorithm",
                 ChoiceKind{{"counter", "bucket", "reserve"}},
                 "reserve",
                 "DSQL_DISTRIBUTED_RATE_LIMITER_ALGORITHM",
                 "how the fleet counts openings; the same for all processes"),
         number("limiter.limit",
                "100",
                "DSQL_DISTRIBUTED_RATE_LIMITER_LIMIT",
                "new connections per second of the fleet"),
         number("limiter.burst", "200", "DSQL_RATE_BURST", "new connections at once of the fleet"),
         time("limiter.max_wait",
              "30s",
              "DSQL_DISTRIBUTED_RATE_LIMITER_MAX_WAIT",
              "longest wait for a permit"),
         flag("bucket.enabled",
              "false",
              "DSQL_TOKEN_BUCKET_ENABLED",
              "the algorithm `bucket`, with the limits below"),
         number("bucket.rate", "100", "DSQL_TOKEN_BUCKET_RATE", "permits per second of the bucket"),
         number("bucket.capacity",
                "1000",
                "DSQL_TOKEN_BUCKET_CAPACITY",
                "permits that the bucket holds"),
         time("bucket.max_wait", "30s", "DSQL_TOKEN_BUCKET_MAX_WAIT", "as limiter.max_wait")});
}

void add_lease_settings(Settings& all) {
    append(all,
           {flag("leases.enabled",
                 "false",
                 "DSQL_DISTRIBUTED_CONN_LEASE_ENABLED",
                 "number of connections shared with the fleet"),
            word("leases.table",
                 "DSQL_DISTRIBUTED_CONN_LEASE_TABLE",
                 "table in DynamoDB for the leases"),
            setting("leases.mode",
                    ChoiceKind{{"blocks", "counter", "off"}},
                    "blocks",
                    "DSQL_CONN_LEASE_MODE",
                    "how the fleet counts connections; the same for all processes"),
            setting("leases.failure",
                    ChoiceKind{{"local", "block"}},
                    "local",
                    "DSQL_CONN_LEASE_FAILURE",
                    "while DynamoDB does not answer: a local cap, or no new connections"),
            number("leases.limit",
                   "10000",
                   "DSQL_DISTRIBUTED_CONN_LIMIT",
                   "connections of the whole fleet"),
            number("leases.block_size", "25", "DSQL_SLOT_BLOCK_SIZE", "slots in a block"),
            number("leases.block_count",
                   "0",
                   "DSQL_SLOT_BLOCK_COUNT",
                   "number of blocks; 0: as many as the limit allows"),
            time("leases.block_ttl", "3m", "DSQL_SLOT_BLOCK_TTL", "lease of a block"),
            time("leases.block_renew",
                 "1m",
                 "DSQL_SLOT_BLOCK_RENEW_INTERVAL",
                 "interval between renewals of a block")});
}

void require(bool fine, const std::string& sentence) {
    if (!fine) {
        throw InvalidArgument(sentence);
    }
}

int positive(const Config& config, const char* key) {
    const std::int64_t value = config.integer(key);
    require(value >= 1, fmt::format("{} is {}; give 1 or more", key, value));
    return static_cast<int>(value);
}

nanoseconds longer_than_zero(const Config& config, const char* key) {
    const nanoseconds value = config.duration(key);
    require(value > nanoseconds{0}, fmt::format("{} must be longer than zero", key));
    return value;
}

// Within the service's bounds.
nanoseconds token_life_of(const Config& config) {
    return std::clamp<nanoseconds>(
        config.duration("dsql.token_duration"), seconds{15}, hours{24 * 7});
}

// A cluster ends a connection after an hour; the pool closes it before that.
constexpr minutes age_max{60};
constexpr minutes age_margin{5};

void read_lives(const Config& config, ReservoirConfig& reservoir) {
    reservoir.life = longer_than_zero(config, "dsql.reservoir.base_lifetime");
    reservoir.life_jitter = config.duration("dsql.reservoir.lifetime_jitter");
    reservoir.guard = config.duration("dsql.reservoir.guard_window");
    reservoir.lead = config.duration("dsql.reservoir.prefetch_lead");
    require(
        reservoir.life <= age_max && reservoir.life_jitter <= age_max &&
            reservoir.life + reservoir.life_jitter + age_margin <= age_max,
        fmt::format("dsql.reservoir.base_lifetime ({}) and lifetime_jitter ({}) must leave five "
                    "minutes of the hour after which the cluster ends a connection",
                    format_duration(reservoir.life),
                    format_duration(reservoir.life_jitter)));
    require(
        reservoir.guard <= reservoir.life / 2,
        fmt::format("dsql.reservoir.guard_window ({}) must be at most half of base_lifetime ({})",
                    format_duration(reservoir.guard),
                    format_duration(reservoir.life)));
    require(reservoir.lead < reservoir.life - reservoir.guard,
            fmt::format("dsql.reservoir.prefetch_lead ({}) must be shorter than base_lifetime "
                        "without guard_window ({})",
                        format_duration(reservoir.lead),
                        format_duration(reservoir.life - reservoir.guard)));
}

void read_reservoir(const Config& config, FleetConfig& fleet) {
    constexpr int low_is_target = -1;
    constexpr int opening_most = 64;
    ReservoirConfig& reservoir = fleet.reservoir;
    reservoir.enabled = config.boolean("dsql.reservoir.enabled");
    reservoir.ready = static_cast<int>(config.integer("dsql.reservoir.target_ready"));
    const auto low = static_cast<int>(config.integer("dsql.reservoir.low_watermark"));
    require(reservoir.ready >= 0,
            fmt::format("dsql.reservoir.target_ready is {}; give 0 or more", reservoir.ready));
    require(low >= low_is_target,
            fmt::format("dsql.reservoir.low_watermark is {}; give 0 or more", low));
    require(reservoir.ready == 0 || low <= reservoir.ready,
            fmt::format("dsql.reservoir.low_watermark ({}) is more than target_ready ({})",
                        low,
                        reservoir.ready));
    if (low != low_is_target) {
        reservoir.warm = low;
    }
    reservoir.warm_up_max = config.duration("dsql.reservoir.initial_fill_timeout");
    read_lives(config, reservoir);

    const std::int64_t in_flight = config.integer("dsql.reservoir.inflight_limit");
    require(in_flight >= 1 && in_flight <= opening_most,
            fmt::format("dsql.reservoir.inflight_limit is {}; give 1 to 64", in_flight));
    const std::int64_t keeper = config.integer("dsql.pool.keeper_max");
    require(keeper >= 0, fmt::format("dsql.pool.keeper_max is {}; give 0 or more", keeper));
    fleet.opening_max = static_cast<int>(keeper == 0 ? in_flight : std::min(in_flight, keeper));
    reservoir.look_every = config.duration("dsql.pool.keeper_tick");
    require(reservoir.look_every >= milliseconds{50},
            "dsql.pool.keeper_tick is less than 50 ms; give more");
}

void read_timeouts(const Config& config, FleetConfig& fleet) {
    const nanoseconds connect = config.duration("dsql.connect_timeout");
    fleet.open_timeout = config.duration("dsql.open_timeout");
    require(
        connect >= seconds{1} && connect <= fleet.open_timeout,
        fmt::format("dsql.connect_timeout ({}) must be from one second to dsql.open_timeout ({})",
                    format_duration(connect),
                    format_duration(fleet.open_timeout)));
    fleet.connect_timeout = std::chrono::ceil<seconds>(connect);
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
    require(!config.boolean("dsql.bucket.enabled") || algorithm != "counter",
            "dsql.bucket.enabled contradicts dsql.limiter.algorithm (counter); all processes of a "
            "fleet must count in one way");
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

void read_blocks(const Config& config, int limit, pool::SlotBlocksConfig& blocks) {
    blocks.size = positive(config, "dsql.leases.block_size");
    const auto count = static_cast<int>(config.integer("dsql.leases.block_count"));
    require(count >= 0, fmt::format("dsql.leases.block_count is {}; give 0 or more", count));
    require(blocks.size <= limit,
            fmt::format("a block of {} slots (dsql.leases.block_size) is more than the limit of {} "
                        "connections (dsql.leases.limit)",
                        blocks.size,
                        limit));
    blocks.count = count == 0 ? limit / blocks.size : count;
    require(static_cast<std::int64_t>(blocks.count) * blocks.size <= limit,
            fmt::format("{} blocks of {} slots (dsql.leases.block_count, block_size) are more than "
                        "the limit of {} connections (dsql.leases.limit)",
                        blocks.count,
                        blocks.size,
                        limit));
    blocks.ttl = config.duration("dsql.leases.block_ttl");
    blocks.renew_every = longer_than_zero(config, "dsql.leases.block_renew");
    require(blocks.ttl >= 3 * blocks.renew_every,
            fmt::format("dsql.leases.block_ttl ({}) must be at least three times "
                        "dsql.leases.block_renew ({})",
                        format_duration(blocks.ttl),
                        format_duration(blocks.renew_every)));
    check(blocks);
}

void read_leases(const Config& config, FleetConfig& fleet) {
    const int limit = positive(config, "dsql.leases.limit");
    if (config.text("dsql.leases.mode") == "counter") {  // The counter does not use blocks.
        fleet.lease_mode = LeaseMode::counter;
    } else {
        read_blocks(config, limit, fleet.blocks);
    }
    if (config.text("dsql.leases.failure") == "local") {
        fleet.blocks.local_cap = std::max(limit / fleet.fleet_size, 1);
    }
    fleet.leases = {.limit = limit, .local_cap = fleet.blocks.local_cap};
    if (config.boolean("dsql.leases.enabled") && config.text("dsql.leases.mode") != "off") {
        fleet.lease_table = config.text("dsql.leases.table");
        require(!fleet.lease_table.empty(),
                "dsql.leases.enabled needs dsql.leases.table, the name of a table in DynamoDB; "
                "make it with `holdfast dsql leases setup`");
    }
}

// The names that existing dashboards use.
pool::MeterNames meter_names(const std::string& service) {
    return {.opening = "dsql_pool_opening",
            .ready = "dsql_reservoir_size",
            .in_use = "dsql_pool_in_use",
            .retiring = "dsql_pool_retiring",
            .waiting = "dsql_pool_waiters",
            .target = "dsql_pool_max_open",
            .wanted = "dsql_reservoir_target",
            .open = "dsql_pool_open",
            .oldest_age_seconds = "dsql_pool_oldest_age_seconds",
            .warm_up_seconds = "dsql_pool_warmup_seconds",
            .warm_up_failures = "dsql_pool_warmup_failures_total",
            .lent = "dsql_reservoir_checkouts_total",
            .empty = "dsql_reservoir_empty_total",
            .opened = "dsql_reservoir_refills_total",
            .open_failures = "dsql_reservoir_refill_failures_total",
            .open_failure_reasons = true,
            .closed = "dsql_reservoir_discards_total",
            .wait_seconds = "dsql_pool_wait_seconds",
            .open_seconds = "dsql_pool_open_seconds",
            .age_seconds = "dsql_pool_connection_age_seconds",
            .pool_label = "pool",
            .service = service};
}

}  // namespace

Settings fleet_settings() {
    Settings all;
    add_process_settings(all);
    add_pool_settings(all);
    add_rate_settings(all);
    add_lease_settings(all);
    return all;
}

std::vector<Overruled> overruled(const Config& config) {
    std::vector<Overruled> all;
    const nanoseconds stagger = config.duration("dsql.pool.warmup_stagger");
    if (stagger != nanoseconds{0}) {
        all.push_back(
            {.key = "dsql.pool.warmup_stagger",
             .why = fmt::format("dsql.pool.warmup_stagger ({}) has no effect: lives are spread "
                                "instead of the first openings",
                                format_duration(stagger))});
    }
    const nanoseconds life = config.duration("dsql.token_duration");
    if (life != token_life_of(config)) {
        all.push_back({.key = "dsql.token_duration",
                       .why = fmt::format("dsql.token_duration ({}) must be from 15 seconds to 7 "
                                          "days; {} is in force",
                                          format_duration(life),
                                          format_duration(token_life_of(config)))});
    }
    return all;
}

FleetConfig fleet_config(const Config& config) {
    if (config.boolean("dsql.strict") && !config.warnings().empty()) {
        throw InvalidArgument(config.warnings().front() + ", and dsql.strict forbids that");
    }
    for (const Overruled& setting : overruled(config)) {
        require(!config.boolean("dsql.strict"), setting.why + ", and dsql.strict forbids that");
    }
    FleetConfig fleet;
    fleet.rate = positive(config, "dsql.rate");
    fleet.burst = positive(config, "dsql.burst");
    fleet.fleet_size = positive(config, "dsql.fleet_size");
    const nanoseconds delay = config.duration("dsql.stagger_max");
    require(delay <= minutes{10}, "dsql.stagger_max is more than ten minutes; give less");
    fleet.stagger_max = config.boolean("dsql.stagger") ? delay : nanoseconds{0};
    fleet.token_life = std::chrono::floor<seconds>(token_life_of(config));
    fleet.region = config.text("dsql.region");
    fleet.dynamodb_endpoint = config.text("dsql.dynamodb_endpoint");
    fleet.service = config.text("dsql.service");
    read_reservoir(config, fleet);
    read_timeouts(config, fleet);
    read_rate(config, fleet);
    read_leases(config, fleet);
    return fleet;
}

pool::Config pool_config(const FleetConfig& fleet, int target) {
    const ReservoirConfig& reservoir = fleet.reservoir;
    pool::Config config;
    config.target = target;
    config.fail_fast = pool::FailFast::always;
    if (reservoir.enabled) {
        require(reservoir.ready <= target,
                fmt::format("dsql.reservoir.target_ready ({}) is more than the pool may have ({}); "
                            "make the pool larger with ?pool={}",
                            reservoir.ready,
                            target,
                            reservoir.ready));
        config = pool::reservoir(target);
        config.min_ready = reservoir.ready == 0 ? target : reservoir.ready;
        config.warm = reservoir.warm.value_or(config.min_ready);
        require(config.warm <= config.min_ready,
                fmt::format("dsql.reservoir.low_watermark ({}) is more than are kept ready ({})",
                            config.warm,
                            config.min_ready));
        config.warm_up_max = reservoir.warm_up_max;
        config.lead = reservoir.lead;
        config.look_every = reservoir.look_every;
    }
    config.life = reservoir.life;
    config.life_jitter = reservoir.life_jitter;
    config.guard = reservoir.guard;
    config.meters = meter_names(service_name(fleet));
    config.limits = fleet.pool_limits;
    config.limits.opening_max = fleet.opening_max;
    config.limits.open_timeout = fleet.open_timeout;
    return config;
}

std::string service_name(const FleetConfig& fleet) {
    if (!fleet.service.empty()) {
        return fleet.service;
    }
    const std::string services = process_variable("SERVICES").value_or("");
    return services.empty() ? program_invocation_short_name : services;
}

FleetConfig for_one_command(FleetConfig fleet) {
    fleet.reservoir.enabled = false;
    fleet.stagger_max = nanoseconds{0};
    return fleet;
}

nanoseconds startup_delay(const FleetConfig& config, Random& random) {
    return nanoseconds{
        static_cast<std::int64_t>(static_cast<double>(config.stagger_max.count()) * random.unit())};
}

}  // namespace holdfast::dsql
