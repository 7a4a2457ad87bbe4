// Positive 63-bit ids that grow with time and need no database.
//
// From the highest bit: 41 bits of milliseconds since 2020-01-01, 10 bits of node, 12 bits of
// sequence within the millisecond. They last until September 2089. Ids of one generator always
// grow, whatever the clock does; ids of two nodes are ordered only as well as their clocks agree,
// so nothing that must be right may rest on that order.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <stop_token>
#include <string_view>

#include <holdfast/base/clock.hpp>

namespace holdfast {

struct SnowflakeOptions {
    // Unique among the processes that write to one database: from the configuration or a lease.
    int node = 0;
    // How far an id's time may be ahead of the clock, because the clock went back or because more
    // than 4096 ids were made in a millisecond.
    std::chrono::milliseconds skew_max{10};
    // How long to wait for a clock that is further behind than that.
    std::chrono::milliseconds wait_max{1000};
};

// One per process, shared by all callers: two generators with one node repeat each other's
// ids. Safe to share between threads.
class Snowflake {
public:
    static constexpr int node_max = 1023;
    static constexpr Wall epoch{std::chrono::microseconds{1'577'836'800'000'000}};  // 2020-01-01.

    // Requires: `clock` outlives this object; 0 <= node <= node_max; durations from 0 to 1 h. Else
    // invalid_argument.
    Snowflake(const Clock& clock, SnowflakeOptions options);

    // Greater than every id this generator made before. Blocks only while the clock is too far
    // behind. Unavailable if it stays there, or is outside 2020 to 2089; cancelled if `stop` fires.
    [[nodiscard]] std::int64_t next(const std::stop_token& stop = {});

private:
    const Clock& clock_;
    SnowflakeOptions options_;
    std::mutex mutex_;
    std::int64_t last_ms_ = -1;  // Since the epoch; of the id made last.
    std::int64_t sequence_ = 0;  // Of the id made last.
};

// The default node: from the host's name, random for the empty name. A guess: of
// 38 hosts two share a node with even chance, and two processes of one host always do.
[[nodiscard]] int node_from_host(std::string_view name);

}  // namespace holdfast
