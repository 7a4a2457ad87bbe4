// The end of a workflow task by its worker: with commands, or with a failure.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "history/command/command.hpp"
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

// What the worker is told beside the answer.
struct CompletionNews {
    // The workflow task is forgotten: the worker goes back to this event. 0: it is not.
    std::int64_t reset_history_event_id = 0;
    // Scheduled events of activities that the worker has from now on.
    std::vector<std::int64_t> eager{};
};

// What a completion has to do with beside the request.
struct CompletionScene {
    AttributeCheck check_attributes{};  // Nothing: search attributes are taken as they come.
    CompletionNews* news = nullptr;
};

// Runs the commands. Activities that the worker asks for are started, and are not on their queue,
// if there is somewhere to tell which. A refusal is for the worker; the transition may hold changes
// all the same, since a command that is not acceptable fails the workflow task.
[[nodiscard]] std::optional<Refusal> complete_workflow_task(
    Transition& transition,
    const TaskRef& task,
    const temporal::api::workflowservice::v1::RespondWorkflowTaskCompletedRequest& request,
    const CompletionScene& scene = {});

// The worker could not run the workflow.
[[nodiscard]] std::optional<Refusal> report_workflow_task_failed(Transition& transition,
                                                                 const TaskRef& task,
                                                                 TaskFailure failure);

}  // namespace holdfast::server::history
