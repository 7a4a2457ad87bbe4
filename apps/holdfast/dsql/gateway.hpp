// holdfast dsql gateway: a cluster of Aurora DSQL in front of a PostgreSQL.
#pragma once

#include <string>

#include "command.hpp"

namespace holdfast::app {

// What can be told to a gateway about how to behave.
struct DsqlBehaviour {
    bool early_abort = false;
    bool any_for_update = false;
    std::string schema_conflicts = "changed";  // off, changed, any.
    int job_duration_ms = 0;
};

struct DsqlGatewayRequest {
    std::string listen = "127.0.0.1:5432";
    std::string upstream;
    std::string certificate;
    std::string key;
    std::string credentials;  // A file; empty: HOLDFAST_GATEWAY_KEYS.
    std::string region = "us-east-1";
    std::string control;  // Empty: none.
    DsqlBehaviour behaviour;
};

// Serves until SIGINT or SIGTERM.
int dsql_gateway(const Context& context, const DsqlGatewayRequest& request);

}  // namespace holdfast::app
