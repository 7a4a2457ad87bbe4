// The verb `demo` in a tree of verbs.
#pragma once

#include "cli/command_parser.hpp"
#include "demo/demo.hpp"

namespace holdfast::app {

// What was parsed for the demo and for the process that it kills.
struct DemoRequests {
    DemoRequest demo;
    DemoWorkerRequest worker;
};

// Requires: `into` outlives every command of `to`.
void add_demo(CommandParser& to, CLI::App& root, DemoRequests& into);

}  // namespace holdfast::app
