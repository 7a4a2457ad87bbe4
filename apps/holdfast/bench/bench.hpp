// holdfast bench: how fast, as a ratio to the limit.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "command.hpp"

namespace holdfast::app {

struct BenchRequest {
    std::string name;               // Empty: all of them.
    std::string scenario{};         // Of flow: chain1, parallel0, ... on every database.
    std::vector<std::string> only;  // Names of single benchmarks, or beginnings of names.
    std::string keys{};             // Of locks: distinct or one.
    int clients = 0;                // Of locks and server: how many at once; 0: their own numbers.
    std::vector<std::string> targets{};  // Of server: HOST:PORT, or ours; two are compared.
    std::vector<std::int64_t> pids{};    // Of server: of the targets with an address.
    std::string name_space = "default";  // Of server.
    std::int64_t open = 2'000;           // Of server: workflows of `backlog` and `idle`.
    int rounds = 9;
    double seconds = 1;  // For each side of a round.
    std::string folder;  // Folder of the files; empty: chosen here.
    std::string report;  // The page to write; empty: none.
};

// The suite that is a program of its own, holdfast-server-bench: it loads gRPC.
inline constexpr const char* server_suite = "server";

// All other suites; for server it becomes that program.
int bench(const Context& context, const BenchRequest& request);

// In the program holdfast-server-bench.
int bench_server(const Context& context, const BenchRequest& request);

}  // namespace holdfast::app
