// The life of a workflow task: scheduled, started by a poll, ended by a completion, a failure or a
// timeout.
//
// At most one is pending. A second or later attempt is transient: it leaves no events until it
// completes, so that a worker that fails again and again does not fill the history. One that only
// carries updates is speculative: it is not even stored.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "history/refusal.hpp"
#include "history/transition.hpp"
#include <temporal/api/common/v1/message.pb.h>
#include <temporal/api/enums/v1/failed_cause.pb.h>
#include <temporal/api/enums/v1/workflow.pb.h>
#include <temporal/api/failure/v1/message.pb.h>

namespace holdfast::server::history {

// Schedules a workflow task on the queue of the sticky worker, or on the run's own. What waits in
// the buffer goes into the history before it, and makes it a first attempt. Requires: the run is
// open and no workflow task is pending.
void schedule_workflow_task(Transition& transition);

// As schedule_workflow_task, for a worker that only asked for more time: how long it has been
// asking counts from `since`.
void schedule_heartbeat(Transition& transition, Time since);

// A workflow task in memory only, for updates: without a commit it is offered and started, and it
// leaves nothing if its worker rejects them. Requires: as above, and an empty buffer.
void schedule_speculative_task(Transition& transition);

// Whatever else is committed writes the events of a speculative task, which is a normal one then.
// Nothing if there is none.
void make_speculative_normal(Transition& transition);

struct Poll {
    std::int64_t scheduled_event_id = 0;
    std::int32_t stamp = 0;
    std::string request_id;  // The same one again gets the same answer.
    std::string identity;
    std::string queue;
    std::optional<temporal::api::common::v1::WorkerVersionStamp> worker_version{};
};

// Gives the pending workflow task to a worker. Refused if it is not pending any more, is another
// attempt, or another poll has it; the queue then drops its task.
[[nodiscard]] std::optional<Refusal> start_workflow_task(Transition& transition, const Poll& poll);

struct TaskFailure {
    temporal::api::enums::v1::WorkflowTaskFailedCause cause{};
    temporal::api::failure::v1::Failure failure;
    std::string identity;
    std::string binary_checksum;
};

// Ends the started workflow task and schedules the next attempt.
void fail_workflow_task(Transition& transition, const TaskFailure& failure);

// As fail_workflow_task, but the run is about to be closed: no attempt follows.
void fail_workflow_task_for_good(Transition& transition, const TaskFailure& failure);

// Ends the started workflow task because the server closes the run, and schedules none.
void abandon_workflow_task(Transition& transition);

// The pending workflow task was not started, or not answered, in time. Schedules the next one.
void time_out_workflow_task(Transition& transition,
                            temporal::api::enums::v1::TimeoutType timeout_type);

// Writes events 5 and 6 of a task that is transient or speculative, as the worker saw them, so that
// its end can follow.
void write_transient(Transition& transition);

// Both events of a started or scheduled task that the history does not have; what a reader is shown
// at the end of it. Empty for a task that is neither transient nor speculative.
[[nodiscard]] temporal::api::history::v1::History transient_events(const state::Run& run);

// When the pending workflow task times out; nothing if it waits without a limit.
struct TaskDeadline {
    Time at;
    temporal::api::enums::v1::TimeoutType timeout_type{};
};
[[nodiscard]] std::optional<TaskDeadline> workflow_task_deadline(const state::Run& run);

}  // namespace holdfast::server::history
