// What a reset does to an execution: which of its events the next one begins with, and what it has
// to wait for again.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <holdfast/flow/client.hpp>
#include <holdfast/flow/provider.hpp>

namespace holdfast::flow {

// Whether the child of this id has not ended.
using ChildRuns = std::function<bool(const std::string& instance)>;

// Pure. `history` is all that the execution has. Throws InvalidArgument if the point lies outside
// of it, and Error condition_failed if there is no such point.
[[nodiscard]] ResetPlan plan_reset(std::string instance,
                                   ExecutionId execution,
                                   std::vector<Event> history,
                                   const ResetOptions& options,
                                   const ChildRuns& runs,
                                   Moment now);

}  // namespace holdfast::flow
