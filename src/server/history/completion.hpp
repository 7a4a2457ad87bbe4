// The end of a workflow task by its worker: with commands, or with a failure.
#pragma once

#include <cstdint>
#include <optional>

#include "history/refusal.hpp"
#include "history/transition.hpp"
#include "history/workflow_task.hpp"
#include <temporal/api/workflowservice/v1/request_response.pb.h>

namespace holdfast::server::history {

// A workflow task as its worker names it.
struct TaskRef {
    std::int64_t scheduled_event_id = 0;
    std::int64_t started_event_id = 0;
    std::int32_t attempt = 0;
    std::optional<Time> started_time;
};

// Runs the commands. A refusal is for the worker; the transition may hold changes all the same,
// since a command that is not acceptable fails the workflow task.
[[nodiscard]] std::optional<Refusal> complete_workflow_task(
    Transition& transition,
    const TaskRef& task,
    const temporal::api::workflowservice::v1::RespondWorkflowTaskCompletedRequest& request);

// The worker could not run the workflow.
[[nodiscard]] std::optional<Refusal> report_workflow_task_failed(Transition& transition,
                                                                 const TaskRef& task,
                                                                 TaskFailure failure);

}  // namespace holdfast::server::history
