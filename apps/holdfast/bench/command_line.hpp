// The verb `bench` in a tree of verbs.
#pragma once

#include "bench/bench.hpp"
#include "cli/command_parser.hpp"

namespace holdfast::app {

using BenchVerb = int (*)(const Context&, const BenchRequest&);

// Requires: `into` outlives every command of `to`.
void add_bench(CommandParser& to, CLI::App& root, BenchRequest& into, BenchVerb bench);

}  // namespace holdfast::app
