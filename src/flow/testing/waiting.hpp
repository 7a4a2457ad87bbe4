// What a workflow waits for, as text for the message of a test that hangs.
#pragma once

#include <string>

#include <holdfast/flow/provider.hpp>
#include <holdfast/flow/registry.hpp>
#include <holdfast/flow_engine/execution.hpp>

namespace holdfast::flow::test {

// "waits for a message on 'decision' (event 3)". Requires: it has not ended.
[[nodiscard]] std::string waits_for(Provider& provider,
                                    const Registry& registry,
                                    const ExecutionLimits& limits,
                                    const InstanceInfo& info);

}  // namespace holdfast::flow::test
