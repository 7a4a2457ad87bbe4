// holdfast dsql token: a password for one cluster, signed here.
#pragma once

#include <string>

#include "command.hpp"

namespace holdfast::app {

struct DsqlTokenRequest {
    std::string endpoint;
    std::string region;  // Empty: from the endpoint's name, else AWS_REGION.
    bool admin = false;
    std::string expires = "900";
    std::string profile;
    std::string now;  // Empty: now.
};

// Prints the token and a newline, and nothing else.
int dsql_token(const Context& context, const DsqlTokenRequest& request);

}  // namespace holdfast::app
