// holdfast dsql local: a local cluster with everything it needs.
#pragma once

#include <string>

#include "dsql/gateway.hpp"

namespace holdfast::app {

struct DsqlLocalRequest {
    // A folder that keeps tables, certificates and keys; empty: they are removed at the end.
    std::string data;
    std::string credentials;  // A file; empty: HOLDFAST_GATEWAY_KEYS, or keys made at the start.
    int port = 0;             // 0: any free one.
    std::string control;
    DsqlBehaviour behaviour;
};

// Serves until SIGINT or SIGTERM. Leaves no process running, however it ends.
int dsql_local(const Context& context, const DsqlLocalRequest& request);

}  // namespace holdfast::app
