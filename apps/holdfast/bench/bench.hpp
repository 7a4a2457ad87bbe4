// holdfast bench: how fast, as a ratio to the limit.
#pragma once

#include <string>
#include <vector>

#include "command.hpp"

namespace holdfast::app {

struct BenchRequest {
    std::string name;               // Empty: all of them.
    std::string scenario{};         // Of flow: chain1, parallel0, ... on every database.
    std::vector<std::string> only;  // Names of single benchmarks, or beginnings of names.
    std::string keys{};             // Of locks: distinct or one.
    int clients = 0;                // Of locks: how many at once; 0: its own numbers.
    int rounds = 9;
    double seconds = 1;  // For each side of a round.
    std::string folder;  // Folder of the files; empty: chosen here.
    std::string report;  // The page to write; empty: none.
};

// The names of `bench NAME`, for help and completion.
[[nodiscard]] std::vector<std::string> bench_names();

int bench(const Context& context, const BenchRequest& request);

}  // namespace holdfast::app
