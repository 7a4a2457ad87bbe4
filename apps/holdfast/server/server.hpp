// `holdfast server`: what workers and clients of the Temporal SDKs talk to.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "command.hpp"

namespace holdfast::app {

// Options that are only accepted are here too: the launchers of the SDKs pass them.
struct ServerRequest {
    // start-dev
    std::string db_filename;
    std::vector<std::string> namespaces;
    std::vector<std::string> search_attributes;  // Name=Type
    std::string ip = "localhost";
    std::uint16_t port = 7233;
    std::optional<std::uint16_t> http_port;     // Nothing: a free one, which is not printed.
    std::optional<std::uint16_t> metrics_port;  // Nothing: a free one.
    std::uint16_t ui_port = 0;
    bool headless = false;
    bool log_config = false;
    std::vector<std::string> dynamic_values;  // Key=JSON
    std::vector<std::string> sqlite_pragmas;
    std::vector<std::string> ignored;
    bool ignores = false;
    // start-test
    bool time_skipping = false;
    // check
    std::int64_t problems_max = 100;
};

// In the program holdfast-server.
int server_start_dev(const Context& context, const ServerRequest& request);
int server_start_test(const Context& context, const ServerRequest& request);
int server_run(const Context& context, const ServerRequest& request);
int server_check(const Context& context, const ServerRequest& request);

// Runs the program of this name, which lies beside this one, with the same words in its place.
// Returns only by throwing.
[[noreturn]] void become(const char* name);

// In every other program: becomes holdfast-server.
int hand_over_to_server(const Context& context, const ServerRequest& request);

}  // namespace holdfast::app
