// holdfast dsql lint FILE...: what Aurora DSQL would refuse, and what to write instead.
#pragma once

#include <string>
#include <vector>

#include "command.hpp"

namespace holdfast::app {

struct DsqlLintRequest {
    std::vector<std::string> files;  // "-" is standard input.
    bool fix = false;
};

int dsql_lint(const Context& context, const DsqlLintRequest& request);

}  // namespace holdfast::app
