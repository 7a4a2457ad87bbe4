// The noun `server` in a tree of verbs.
#pragma once

#include "cli/command_parser.hpp"
#include "server/server.hpp"

namespace holdfast::app {

using ServerVerb = int (*)(const Context&, const ServerRequest&);

struct ServerVerbs {
    ServerVerb start_dev;
    ServerVerb start_test;
    ServerVerb run;
    ServerVerb check;
};

// Requires: `into` outlives every command of `to`.
void add_server(CommandParser& to, CLI::App& root, ServerRequest& into, const ServerVerbs& verbs);

}  // namespace holdfast::app
