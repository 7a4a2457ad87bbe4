// What workflows cost on a server of the Temporal API, against the bare database or another server.
//
// Clients, a worker and the measuring are one thread of this process. A server that we start is a
// process of its own, so its processor time and memory can be told from those of the driver.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <holdfast/bench/suite.hpp>

namespace holdfast::server_bench {

// The word for a server that the benchmark starts itself.
inline constexpr const char* our_target = "ours";
inline constexpr std::size_t targets_max = 2;

// The first word of the program when it is to be such a server; the second one is the database.
inline constexpr const char* measured_word = "measured-server";

struct ServerSuiteOptions {
    std::vector<std::string> targets;    // HOST:PORT or "ours". Empty: ours, on every database.
    std::vector<std::int64_t> pids;      // Of the targets with an address, in this order.
    std::string name_space = "default";  // Registered where it is missing.
    std::int64_t open = 2'000;           // Workflows of a whole round of `backlog` and `idle`.
    std::filesystem::path program;       // Becomes a server by serve_measured().
    std::chrono::nanoseconds round_time{};
};

// <db or "target">.<scenario>.k<in flight>, with 64 in flight unless the place says otherwise.
//   hello            one workflow task and no activity, from the start to the result
//   chain1, chain5   that many activities in a row
//   fanout           10 activities at once
//   signals          10 signals, one after another
//   timers           one timer of 50 ms
//   updates          one update, which ends the workflow; only where the server has updates
//   backlog          starts without a worker; the rate is that of the worker that comes then
//   idle             starts of workflows that wait for a signal: memory while they are open
// With two targets the limit is the second one, and the names begin with "versus".
// Requires: `place` outlives the suite; at most targets_max targets. Else invalid_argument.
[[nodiscard]] std::unique_ptr<bench::Suite> make_server_suite(const bench::WaitTicket& place,
                                                              ServerSuiteOptions options);

// A server on the database until SIGTERM, or until the parent ends. Prints its port, and at
// each SIGUSR1 what it has counted. Returns the exit code.
[[nodiscard]] int serve_measured(const std::string& url);

}  // namespace holdfast::server_bench
