// Shared by the commands that serve a cluster: local and gateway.
#pragma once

#include <memory>
#include <string>

#include "dsql/gateway.hpp"

#include <holdfast/dsql/gateway.hpp>
#include <holdfast/dsql/gateway_control.hpp>

namespace holdfast::app {

[[nodiscard]] dsql::GatewayOptions gateway_options(const Context& context,
                                                   const DsqlBehaviour& behaviour);

// Null if `address` is empty.
[[nodiscard]] std::unique_ptr<dsql::GatewayControl> serve_control(dsql::Gateway& gateway,
                                                                  const std::string& address);

}  // namespace holdfast::app
