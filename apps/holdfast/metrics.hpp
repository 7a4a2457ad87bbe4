// Metrics and health checks while a long command runs.
#pragma once

#include <memory>

#include "command.hpp"

#include <holdfast/base/http.hpp>

namespace holdfast::app {

// Serves /metrics, /healthz and /readyz at metrics.address until it is destroyed. Null if the
// configuration names no address.
[[nodiscard]] std::unique_ptr<HttpEndpoint> serve_metrics(const Context& context);

}  // namespace holdfast::app
