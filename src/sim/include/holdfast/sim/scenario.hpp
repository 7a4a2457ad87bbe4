// What is simulated: a fleet of processes, the limits they share, and faults.
//
// A scenario is read from YAML or JSON. The profile selects the model: `standard` is the current
// pool, `compat_r` and `compat_s` are two older models, simulated exactly; their tests record
// the figures that they give.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <holdfast/pool/slot_blocks.hpp>

namespace holdfast::sim {

// Since the start of the simulation.
using Time = std::chrono::nanoseconds;

enum class Profile {
    standard,  // "default": the production pool machine under a simulated clock.
    compat_r,  // "compat": a reservoir with a refiller and an expiry scanner.
    compat_s,  // "compat-s": a warm-up and a keeper.
};

[[nodiscard]] std::string_view to_string(Profile profile) noexcept;
// Requires: "default", "compat" or "compat-s". Else invalid_argument.
[[nodiscard]] Profile parse_profile(std::string_view text);

// How long something takes.
struct Latency {
    enum class Kind { constant, uniform, lognormal, listed };

    Kind kind = Kind::constant;
    Time low{};                  // The constant, the shortest, or the median.
    Time high{};                 // The longest, or the 99th percentile.
    std::vector<Time> listed{};  // Each as likely as the others.
};

enum class Arrivals {
    closed,   // Every `every`, up to `burst` of those that `in_use_max` allows.
    poisson,  // `rate` per second, at random moments.
    steady,   // `rate` per second, evenly.
    bursts,   // As poisson for `on`, then nothing for `off`.
    trace,    // As listed.
};

// So many requests at a moment.
struct Arrival {
    Time at{};
    int count = 1;
};

// Work that borrows connections.
struct Workload {
    bool enabled = false;
    Arrivals arrivals = Arrivals::closed;
    double rate = 0;
    Time on = std::chrono::seconds{1};
    Time off = std::chrono::seconds{1};
    std::vector<Arrival> trace{};
    int retries = 0;                                    // After a wait without success,
    Time retry_after = std::chrono::milliseconds{100};  // and so much later.
    int in_use_max = 0;
    std::optional<Latency> held{};  // How long a connection is kept; else `hold` and its jitter.
    Time hold = std::chrono::milliseconds{10};
    Time hold_jitter{};
    Time every = std::chrono::milliseconds{200};
    int burst = 5;
    Time wait_max = std::chrono::seconds{10};
};

// One pool of a process, which has more of them only if it says so. The pools of a process follow
// each other; they start and end together, and share its part of the fleet's limits.
struct Service {
    std::string name;       // Of the pool: "a", or "a/1" and "a/2".
    std::string process{};  // Its process: "a".
    int target = 50;
    // The older models' values. In a scenario of the current pool, those of the product.
    Time guard = std::chrono::seconds{45};
    Time life = std::chrono::minutes{11};
    Time life_jitter = std::chrono::minutes{2};
    Time start_delay{};
    Workload workload{};

    // Of the current pool.
    int in_flight = 8;   // Openings under way at a time.
    Time lead{};         // Replacements are opened so long before the old ones must go,
    int overshoot = 0;   // so many at a time. Without a lead: first closed, then replaced.
    bool spread = true;  // The lives of the first generation are spread, not only jittered.
    Time poll_every{};   // A full pool looks so often whether it still is; 0: it notices at once.
    bool count_lent = true;  // Else what is lent is replaced, as the older models do.
    Time probe_every{};      // Looks at every idle connection so often; 0: only when it is lent.

    // Of the older model with a keeper.
    int open_max = 0;
    Time stagger{};
    Time keeper_tick = std::chrono::seconds{1};
    int opens_per_tick = 1;
};

enum class FaultKind {
    cold_start,
    rolling_restart,  // Processes end and start again, `batch` at a time, every `every`.
    mass_drop,        // The server closes a fraction of the connections.
    crash,            // The named processes end at once and start again after `down`.
    outage,           // Nothing can be opened.
    rejects,          // The server refuses a fraction of the openings as too many.
    slow,             // Openings take `value` times as long.
    credentials,      // Every login is refused.
    partition,        // The named processes cannot reach the cluster, and lose what they have.
    limit,            // The client's limit becomes `value` per second.
    scale,            // The named processes want `value` connections each.
    load,             // Work comes `value` times as often.
    table_outage,     // "dynamodb_outage": the table that the processes share does not answer.
    clock_jump,       // The clocks of the named processes jump ahead by `value` seconds.
};

[[nodiscard]] std::string_view to_string(FaultKind kind) noexcept;

enum class Which { oldest, newest, random };
enum class Order { listed, random };

struct Fault {
    FaultKind kind = FaultKind::cold_start;
    Time at = std::chrono::minutes{5};
    Time lasts = std::chrono::minutes{1};   // Of those that end by themselves.
    Time every = std::chrono::seconds{60};  // Of a rolling restart,
    Time down{};                            // also of a crash,
    Time stagger{};                         // and up to so much longer, by chance;
    int batch = 1;
    Order order = Order::listed;
    double fraction = 0.3;
    bool include_lent = true;
    Time over{};  // How long a change of scale takes.
    Which which = Which::oldest;
    double value = 0;
    std::string services{};  // A beginning of names; empty: all.
};

// The cluster, which knows nothing of the limits that clients set themselves.
struct Cluster {
    double rate = 100;  // New connections per second, once the burst is spent,
    int burst = 1'000;
    int ceiling = 10'000;                      // connections at a time,
    Time age_max = std::chrono::minutes{60};   // and none older,
    Time age_grace = std::chrono::minutes{5};  // or only for as long as it is lent, and so much.
    Latency connect{.kind = Latency::Kind::lognormal,
                    .low = std::chrono::milliseconds{80},
                    .high = std::chrono::milliseconds{300}};
    // The share of openings that fail,
    double failures = 0;          // on the way,
    double login_failures = 0;    // at the login,
    double session_failures = 0;  // or once they were let in.
};

enum class LimiterKind {
    none,
    ideal,  // One reservation clock for all, which costs nothing to ask.
    local,  // A bucket in each process, with its share of the rate and of the burst.

    // The three of the product, through the shared table; without it, as `local`.
    counter,
    bucket,
    reserve,
};

struct Limiter {
    LimiterKind kind = LimiterKind::ideal;
    int burst = 1;                             // Of all processes together.
    Time wait_max = std::chrono::seconds{30};  // How far ahead permits can be reserved.
    // What a process that the cluster refused as too quick allows itself for a while, beyond its
    // permits; and the most that its share can be.
    double own_per_second = 10;
    int own_burst = 100;
};

// The table in DynamoDB that the processes share.
struct SharedTable {
    Latency latency{.kind = Latency::Kind::lognormal,  // There and back.
                    .low = std::chrono::milliseconds{5},
                    .high = std::chrono::milliseconds{30}};
    // A transaction is at its items for so long; another that comes meanwhile is in conflict.
    Time transaction = std::chrono::milliseconds{2};
    int writes_per_item = 1'000;             // In a second; what is more is refused,
    int retries = 2;                         // and tried again, so often,
    Time timeout = std::chrono::seconds{1};  // as is what was not answered for so long.
    Time skew{};                 // The clocks of the processes are off by up to this, either way.
    bool skew_corrected = true;  // They learn it from the dates in its answers.
};

enum class SlotsKind {
    none,
    share,   // Each process may hold its part of the ceiling, by its target.
    blocks,  // Processes own blocks of slots in the shared table, for as long as they renew them.
    leases,  // A lease for each connection in the shared table, and a counter of them all.
};

struct Slots {
    SlotsKind kind = SlotsKind::none;
    // As the product has them, unless told otherwise.
    int block = pool::SlotBlocksConfig{}.size;                // So many are in a block,
    Time ttl = pool::SlotBlocksConfig{}.ttl;                  // which is lost so long after it
    Time renew_every = pool::SlotBlocksConfig{}.renew_every;  // was renewed last.
    int local_cap = 0;  // Connections a process may hold while the table does not answer.
    bool reap = true;   // The leases of dead processes are given back, once a minute.
};

enum class AssertionKind {
    min_owned_fraction,         // From `after` to `until` the fleet has `value` of its target.
    recover_within,             // `limit` after each fault it has `value` of its target again.
    max_open_rate_sliding,      // In no `window` more than `value` connections are opened.
    max_server_rejects,         // The cluster refuses at most `value` openings.
    max_total_connections,      // Never more than `value`.
    max_wait,                   // The `quantile` of all waits is at most `limit`.
    max_empty_rate,             // In no `window` more than `value` requests are not served at once.
    max_discard_full_fraction,  // Of what was opened, at most this share was one too many.
    max_closures_per_sec,       // In no second more than `value` are closed.
    max_wasted_opens,           // At most `value` are closed without ever having been lent or aged.
    no_leak,                    // At the end the cluster holds what the processes think they hold.
    steady_open_rate,           // From `after` on, on average at most `value` a second.
    converge_within,            // Each process has its target within `limit` of its start,
    stable_for,                 // and keeps it for `limit`.
    zero_empty,                 // Every request is served at once.
};

[[nodiscard]] std::string_view to_string(AssertionKind kind) noexcept;

struct Assertion {
    AssertionKind kind{};
    std::string name{};                // Empty: that of its kind.
    std::optional<FaultKind> event{};  // Of a recovery: only after such a fault.
    Time after{};
    Time until = Time::max();
    double value = 0;
    Time limit{};
    Time window = std::chrono::seconds{1};
    double quantile = 1;
};

struct Scenario {
    std::string name{};  // The file, or the built-in scenario.
    Profile profile = Profile::standard;
    std::uint64_t seed = 42;
    std::string endpoint = "cluster.dsql.eu-west-1.on.aws";
    Time duration = std::chrono::minutes{20};
    Time sample_every = std::chrono::seconds{1};
    int limit_per_second = 100;
    Time idle_check = std::chrono::seconds{1};  // Of compat_r: how often a full reservoir looks.

    // The assertions of the older models. Negative: not asserted.
    int opens_per_second_max = 100;
    Time converge_within = std::chrono::seconds{60};
    Time stable_for = std::chrono::seconds{5};
    int closures_per_second_max = 200;
    bool zero_empty = false;

    // Of the current pool.
    Cluster cluster{};
    Limiter limiter{};
    SharedTable table{};
    Slots slots{};
    std::vector<Assertion> assertions{};

    std::vector<Service> services{};
    std::vector<Fault> faults{};

    [[nodiscard]] int target() const noexcept;  // Of all services.
};

// Puts another value in the place of a key before the file is understood:
// "services[*].jitter" = "30s".
struct Override {
    std::string key;
    std::string value;
    std::string option = "--set";  // The option that set it, for messages.
};

struct LoadOptions {
    std::optional<Profile> profile{};  // Else the file's own, else standard.
    bool strict = false;  // Refuses what the older models overlook: unknown keys and dead ones.
    std::vector<Override> overrides{};
};

struct Loaded {
    Scenario scenario;
    std::vector<std::string> warnings;  // What was overlooked or means something else, with places.
};

// A file, or the name of a built-in scenario. A file of that name wins. Invalid_argument if neither
// is there, and, with file, line and key, for what cannot be simulated.
[[nodiscard]] Loaded load_scenario(const std::string& path, const LoadOptions& options = {});

// The same from text. `name` is for messages; `read` gives the text of an included file.
[[nodiscard]] Loaded parse_scenario(
    const std::string& name,
    const std::string& text,
    const LoadOptions& options = {},
    const std::function<std::string(const std::string& path)>& read = {});

}  // namespace holdfast::sim
