// holdfast dsql gateway: a cluster of Aurora DSQL in front of a PostgreSQL.
#pragma once

#include <string>
#include <vector>

#include "command.hpp"

#include <holdfast/dsql/gateway.hpp>

namespace holdfast::app {

// Options of a gateway's behaviour.
struct DsqlBehaviour {
    bool early_abort = false;
    bool documented_for_update = false;
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

// The keys in a file of lines ID:SECRET[:ARN], or without a file those of HOLDFAST_GATEWAY_KEYS;
// empty if neither is given.
std::vector<dsql::GatewayKey> given_keys(const std::string& file);

// Serves until SIGINT or SIGTERM.
int dsql_gateway(const Context& context, const DsqlGatewayRequest& request);

}  // namespace holdfast::app
