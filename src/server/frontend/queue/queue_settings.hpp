// What operators set for task queues.
#pragma once

#include <string>

#include "executor/executor.hpp"
#include "frontend/namespace_gate.hpp"
#include "history/limits.hpp"
#include "rpc/dispatch.hpp"
#include "task_queues/settings.hpp"

#include <holdfast/base/clock.hpp>

namespace holdfast::server::frontend {

struct QueueSettingsParts {
    NamespaceGate& namespaces;
    task_queues::Settings& settings;
    Executor& executor;  // A call that stores something runs there.
    const Clock& clock;
    std::string address = "127.0.0.1:7233";  // The owner of all queues.
    history::Limits limits = {};
};

// UpdateTaskQueueConfig and ListTaskQueuePartitions. Requires: what `parts` names outlives the
// dispatch and the executor's jobs.
void add_queue_settings(rpc::Dispatch& dispatch, const QueueSettingsParts& parts);

}  // namespace holdfast::server::frontend
