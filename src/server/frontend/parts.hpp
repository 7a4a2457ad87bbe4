// What the handlers work with.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "engine/turns.hpp"
#include "executor/alarms.hpp"
#include "frontend/namespace_gate.hpp"
#include "frontend/validate.hpp"
#include "history/limits.hpp"
#include "matching/matching.hpp"

#include <holdfast/base/clock.hpp>
#include <holdfast/base/uuid.hpp>

namespace temporal::api::taskqueue::v1 {
class TaskQueueConfig;
}

namespace holdfast::server::workers {
class Registry;
}

namespace holdfast::server::frontend {

// Looks at search attributes that a request brings, and completes them: names, types, sizes.
using AttributeCheck = std::function<Problem(const ResolvedNamespace& in,
                                             temporal::api::common::v1::SearchAttributes&)>;

// What operators have set for a queue.
using QueueSettings =
    std::function<temporal::api::taskqueue::v1::TaskQueueConfig(const matching::QueueKey& queue)>;

struct FrontendParts {
    NamespaceGate& namespaces;
    engine::Turns& turns;
    matching::Matching& matching;
    workers::Registry& workers;
    Alarms& alarms;
    const Clock& clock;
    history::Limits limits = {};
    AttributeCheck check_attributes = {};  // Nothing: they are taken as they come.
    QueueSettings queue_settings = {};     // Nothing: none can be set.
    std::function<std::string()> new_id = [] { return Uuid::v4().text(); };
};

using Parts = std::shared_ptr<const FrontendParts>;

[[nodiscard]] inline std::string workflow_service(std::string_view method) {
    return "/temporal.api.workflowservice.v1.WorkflowService/" + std::string(method);
}

}  // namespace holdfast::server::frontend
