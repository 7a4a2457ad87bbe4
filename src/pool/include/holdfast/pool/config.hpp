// What a pool is told: its size, how long a connection serves, and how it takes failures.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <limits>
#include <string_view>

namespace holdfast::pool {

// Why a connection could not be opened. Each class backs off on its own.
enum class FailureClass {
    transport,     // Not reachable, reset, or too slow.
    auth,          // The server refused who we are.
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
    std::chrono::nanoseconds open_timeout = std::chrono::seconds{30};  // One opening, all stages.
    std::chrono::nanoseconds nap_max = std::chrono::minutes{1};  // The longest between two ticks.

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

// No pool is larger: a wrong number must not become an array of that length.
inline constexpr int target_max = 100'000;

struct Config {
    int target = 10;    // The most connections open for use; 1 to target_max.
    int min_ready = 0;  // So many are kept open though nobody asks. From `target` up: always full.
    int overshoot = 0;  // So many beyond `target` may exist while old ones are being replaced.
    int slots = std::numeric_limits<int>::max();  // So many we have the right to hold at all.

    // A connection serves for `life` plus a random part of `life_jitter`; one with less than
    // `guard` left is not lent any more. Requires: 0 <= guard < life.
    std::chrono::nanoseconds life = std::chrono::minutes{50};
    std::chrono::nanoseconds life_jitter = std::chrono::minutes{5};
    std::chrono::nanoseconds guard = std::chrono::seconds{45};

    // What nobody borrowed for so long is closed, down to `min_ready`.
    std::chrono::nanoseconds idle_max = std::chrono::minutes{10};
    // A connection idle for so long or longer is asked whether it still lives before it is lent.
    std::chrono::nanoseconds check_after = std::chrono::nanoseconds{0};

    // With no connection at all and an opening that failed, borrowers are refused at once, until
    // the back-off allows another try; but not if the server was only `full` or `rate_limited`,
    // which passes. Otherwise they wait for better times until their deadline.
    bool fail_fast = false;

    Limits limits{};
};

// Throws invalid_argument, naming the field, if the pool could not work with this.
void check(const Config& config);

}  // namespace holdfast::pool
