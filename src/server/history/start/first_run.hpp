// The first run of a chain: what a request, or the event of a parent, makes of event 1.
#pragma once

#include <optional>
#include <string>

#include "history/refusal.hpp"
#include "history/start.hpp"
#include "history/transition.hpp"

namespace temporal::api::workflowservice::v1 {
class StartWorkflowExecutionRequest;
class SignalWithStartWorkflowExecutionRequest;
}  // namespace temporal::api::workflowservice::v1

namespace holdfast::server::history {

// Event 1 as the request wants it, with defaults filled. Refused if the cron schedule does not
// parse, or comes with a delay. Requires: everything else of the request is valid.
[[nodiscard]] Or<Started> first_run(
    const temporal::api::workflowservice::v1::StartWorkflowExecutionRequest& request,
    Time now,
    const Limits& limits);
[[nodiscard]] Or<Started> first_run(
    const temporal::api::workflowservice::v1::SignalWithStartWorkflowExecutionRequest& request,
    Time now,
    const Limits& limits);

// Event 1 of the child that `initiated`, event 29 of `parent`, asks for.
// Requires: its cron schedule parses, as that of a command which was accepted.
[[nodiscard]] Started child_run(const state::Run& parent,
                                const std::string& parent_namespace,
                                const temporal::api::history::v1::HistoryEvent& initiated,
                                Time now);

// Starts the run and gives its first workflow task to the client that started it: events 1 to 3,
// and no task on the queue. False, and an ordinary start, if the first workflow task has to wait or
// the queue belongs to one worker.
bool start_run_eagerly(Transition& transition,
                       Started started,
                       const std::string& request_id,
                       const StartExtras& extras = {});

// Whether the client that repeats an eager start gets the workflow task again.
[[nodiscard]] bool eager_task_stands(const state::Run& run, const std::string& request_id);

}  // namespace holdfast::server::history
