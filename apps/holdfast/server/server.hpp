// `holdfast server`: what workers and clients of the Temporal SDKs talk to.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "command.hpp"

namespace holdfast::app {

// Options that are only accepted are here too: the launchers of the SDKs pass them.
struct ServerRequest {
    std::string db_filename;
    std::vector<std::string> namespaces;
    std::string ip = "localhost";
    std::uint16_t port = 7233;
    std::uint16_t http_port = 0;
    std::uint16_t metrics_port = 0;
    std::uint16_t ui_port = 0;
    bool headless = false;
    std::vector<std::string> dynamic_values;
    std::vector<std::string> sqlite_pragmas;
};

// In the program holdfast-server.
int server_start_dev(const Context& context, const ServerRequest& request);

// In every other program: becomes holdfast-server, which lies beside it. Returns only by throwing.
int hand_over_to_server(const Context& context, const ServerRequest& request);

}  // namespace holdfast::app
