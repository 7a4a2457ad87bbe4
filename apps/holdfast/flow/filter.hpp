// Which workflows a command is about.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "flow/access.hpp"

#include <holdfast/flow/provider.hpp>

namespace holdfast::app {

// All conditions hold together; an empty one is none.
struct FlowFilter {
    std::string status;  // Also "suspended".
    std::string workflow;
    std::string version;
    std::string prefix;
    std::string younger_than;
    std::string older_than;
    std::vector<std::string> attributes;  // NAME=JSON
};

// NAME=VALUE and NAME=VALUE and ..., with the names of the options of `flow list`; an attribute is
// attribute.NAME=JSON. Throws InvalidArgument.
[[nodiscard]] FlowFilter parse_filter(std::string_view text);

// Ages are by the database's clock, which made the times that they are compared with. Throws
// InvalidArgument.
[[nodiscard]] flow::ListInstances listing_of(const FlowFilter& filter, FlowAccess& flows);

}  // namespace holdfast::app
