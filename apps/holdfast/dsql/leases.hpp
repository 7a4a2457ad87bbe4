// holdfast dsql leases setup|show|reap: the tables of a fleet in DynamoDB.
#pragma once

#include <string>

#include "command.hpp"

namespace holdfast::app {

// What is empty comes from the settings.
struct DsqlLeasesRequest {
    std::string endpoint;       // The cluster's host name; also from --db dsql://...
    std::string region;         // Else as the endpoint's name says.
    std::string leases_table;   // dsql.leases.table
    std::string limiter_table;  // dsql.limiter.table
    std::string profile;        // Of the AWS files.
};

int dsql_leases_setup(const Context& context, const DsqlLeasesRequest& request);
int dsql_leases_show(const Context& context, const DsqlLeasesRequest& request);
int dsql_leases_reap(const Context& context, const DsqlLeasesRequest& request);

}  // namespace holdfast::app
