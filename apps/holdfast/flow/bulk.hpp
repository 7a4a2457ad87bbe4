// One command for all workflows that a filter names.
#pragma once

#include <functional>
#include <string_view>

#include "command.hpp"
#include "flow/access.hpp"
#include "flow/flow.hpp"

namespace holdfast::app {

struct BulkAction {
    std::string_view verb;                                    // "cancel"
    std::function<bool(const flow::InstanceInfo&)> concerns;  // Others are skipped.
    // Throws Error. False: it was too late, which does not count as a failure.
    std::function<bool(FlowAccess&, const flow::InstanceInfo&)> apply;
};

// Counts, asks for confirmation unless --yes was given, then works through the matches page by
// page. Those that are created meanwhile are left alone. Returns an exit code: refused if some
// failed.
int run_bulk(const Context& context, const FlowRequest& request, const BulkAction& action);

}  // namespace holdfast::app
