// The configuration of a pool: its size, the life of a connection, and the handling of failures.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <limits>
#include <string>
#include <string_view>

namespace holdfast::pool {

// Why a connection could not be opened. Each class backs off on its own.
enum class FailureClass {
    transport,     // Not reachable, reset, or too slow.
    auth,          // The server refused the credentials.
    full,          // SQLSTATE 53300: the server has no room for another connection.
    rate_limited,  // SQLSTATE 53400: the server accepts no more connections this second.
    other,
};
inline constexpr std::size_t failure_classes = 5;

[[nodiscard]] std::string_view to_string(FailureClass failure) noexcept;

// The n-th failure in a row pauses openings for a random part of first * 2^(n-1), at most `most`.
struct Backoff {
    std::chrono::nanoseconds first{};
    std::chrono::nanoseconds most{};
};

// Every constant of the pool, in one value. Only tests and the simulator change it.
struct Limits {
    int opening_max = 8;  // Openings under way at a time.
    int closers_max = 2;  // Threads that close connections.
    std::chrono::nanoseconds open_timeout = std::chrono::seconds{30};  // One opening, all phases.
    std::chrono::nanoseconds nap_max = std::chrono::minutes{1};  // The longest between two ticks.
    int looks_max = 64;  // Idle connections checked together; not lent meanwhile.
    // A connection open for longer is logged as a warning: its server will end it.
    std::chrono::nanoseconds overage = std::chrono::minutes{58};

    // The first generation is opened together and must not die together: its lives are spread
    // evenly from the larger of `spread_from * life` and `guard + spread_margin` upwards.
    double spread_from = 0.4;
    std::chrono::nanoseconds spread_margin = std::chrono::minutes{2};
    // Half of the target lost within this time counts as a new first generation.
    std::chrono::nanoseconds mass_loss_window = std::chrono::seconds{10};

    std::array<Backoff, failure_classes> backoff{{
        {std::chrono::milliseconds{250}, std::chrono::seconds{10}},  // transport
        {std::chrono::seconds{1}, std::chrono::seconds{60}},         // auth
        {std::chrono::seconds{1}, std::chrono::seconds{30}},         // full
        {std::chrono::milliseconds{250}, std::chrono::seconds{10}},  // rate_limited
        {std::chrono::milliseconds{250}, std::chrono::seconds{10}},  // other
    }};
};

// What the pool's metrics are called; an empty name is not shown. Each has the label `pool_label`
// with the pool's name, and `service` with that, if there is one. Requires: constant text.
struct MeterNames {
    std::string_view opening = "holdfast_sql_pool_opening";
    std::string_view ready = "holdfast_sql_pool_ready";
    std::string_view in_use = "holdfast_sql_pool_in_use";
    std::string_view retiring = "holdfast_sql_pool_retiring";
    std::string_view waiting = "holdfast_sql_pool_waiting";
    std::string_view target = "holdfast_sql_pool_target";
    std::string_view wanted{};  // How many are kept open without demand.
    std::string_view open{};    // Ready and in use.
    std::string_view oldest_age_seconds = "holdfast_sql_pool_oldest_age_seconds";
    std::string_view warm_up_seconds = "holdfast_sql_pool_warm_up_seconds";
    std::string_view warm_up_failures = "holdfast_sql_pool_warm_up_failures_total";
    std::string_view lent = "holdfast_sql_pool_lent_total";
    std::string_view empty = "holdfast_sql_pool_empty_total";
    std::string_view opened = "holdfast_sql_pool_opened_total";
    std::string_view open_failures = "holdfast_sql_pool_open_failures_total";  // By `class`,
    bool open_failure_reasons = false;  // and by `reason`, which says how far the opening came.
    std::string_view closed = "holdfast_sql_pool_closed_total";
    std::string_view wait_seconds = "holdfast_sql_pool_wait_seconds";
    std::string_view open_seconds = "holdfast_sql_pool_open_seconds";  // By `phase`, and all.
    std::string_view age_seconds = "holdfast_sql_pool_connection_age_seconds";
    std::string_view pool_label = "db";
    std::string service{};
};

// No pool is larger: a wrong number must not become an array of that length.
inline constexpr int target_max = 100'000;

// When borrowers are refused at once though their deadline is far: there is no connection at all,
// an opening has failed, and the back-off does not allow another try yet. But not if the server was
// only `full` or `rate_limited`, which passes.
enum class FailFast {
    never,     // They wait until their deadline.
    at_first,  // Until the first connection has been opened: a wrong password need not be waited
               // for.
    always,
};

struct Config {
    int target = 10;    // The most connections open for use; 1 to target_max.
    int min_ready = 0;  // Kept open without demand. From `target` up: always full.
    int overshoot = 0;  // How many may exist beyond `target` while old ones are being replaced.
    int slots = std::numeric_limits<int>::max();  // The right to hold connections, in total.

    // A connection serves for `life` plus a random part of `life_jitter`; one with less than
    // `guard` left is not lent any more. Requires: 0 <= guard < life.
    std::chrono::nanoseconds life = std::chrono::minutes{50};
    std::chrono::nanoseconds life_jitter = std::chrono::minutes{5};
    std::chrono::nanoseconds guard = std::chrono::seconds{45};
    // Its replacement is opened so long before that moment, as far as `overshoot` allows, and it is
    // closed when the replacement is there. Zero: first closed, then replaced.
    std::chrono::nanoseconds lead = std::chrono::nanoseconds{0};

    // Connections not borrowed for so long are closed, down to `min_ready`.
    std::chrono::nanoseconds idle_max = std::chrono::minutes{10};
    // A connection idle for so long or longer is checked before it is lent.
    std::chrono::nanoseconds check_after = std::chrono::nanoseconds{0};

    // Idle connections are checked so often, and dead ones replaced even without borrowers. Zero:
    // never; dead ones are found when they are to be lent.
    std::chrono::nanoseconds look_every = std::chrono::nanoseconds{0};

    FailFast fail_fast = FailFast::never;

    // The warm-up ends when so many are open, or when this time has passed.
    int warm = 0;
    std::chrono::nanoseconds warm_up_max = std::chrono::seconds{30};

    MeterNames meters{};
    Limits limits{};
};

// A reservoir: `target` connections are open before they are needed, checked while they are idle,
// and replaced before they are too old. For a server that limits openings.
[[nodiscard]] Config reservoir(int target);

// Throws invalid_argument, naming the field, if the pool could not work with this.
void check(const Config& config);

}  // namespace holdfast::pool
