// A server in this process, from its start until a signal.
#pragma once

#include <optional>
#include <string>

#include "command.hpp"

#include <holdfast/base/http.hpp>
#include <holdfast/server/server.hpp>

namespace holdfast::app {

struct Serving {
    std::string database;  // Its URL.
    server::ServerOptions options;
    std::optional<HttpAddress> metrics;  // Of /metrics, /healthz and /readyz.
    std::string metrics_setting;         // Where another address is chosen.
    bool shows_http = true;
};

inline constexpr const char* memory_url = "sqlite::memory:";

// Prints where it serves once it does, and blocks until SIGINT or SIGTERM. Returns exit_done.
int serve(const Context& context, const Serving& serving);

}  // namespace holdfast::app
