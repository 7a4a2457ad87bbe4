#include "history/start/first_run.hpp"

#include <utility>

#include "history/retry.hpp"
#include "history/start/cron.hpp"
#include "history/workflow_task.hpp"
#include <temporal/api/workflowservice/v1/request_response.pb.h>

#include <holdfast/base/assert.hpp>

namespace holdfast::server::history {

namespace {

using namespace temporal::api::enums::v1;  // NOLINT(google-build-using-namespace): 50 names of it.
using temporal::api::history::v1::HistoryEvent;
using temporal::api::workflowservice::v1::SignalWithStartWorkflowExecutionRequest;
using temporal::api::workflowservice::v1::StartWorkflowExecutionRequest;

// Both kinds of request name these fields alike.
template <class Request>
Started requested(const Request& request) {
    Started started;
    started.set_workflow_id(request.workflow_id());
    *started.mutable_workflow_type() = request.workflow_type();
    started.mutable_task_queue()->set_name(request.task_queue().name());
    started.mutable_task_queue()->set_kind(TASK_QUEUE_KIND_NORMAL);
    if (request.has_input()) {
        *started.mutable_input() = request.input();
    }
    if (request.has_header()) {
        *started.mutable_header() = request.header();
    }
    if (request.has_workflow_execution_timeout()) {
        *started.mutable_workflow_execution_timeout() = request.workflow_execution_timeout();
    }
    if (request.has_workflow_run_timeout()) {
        *started.mutable_workflow_run_timeout() = request.workflow_run_timeout();
    }
    *started.mutable_workflow_task_timeout() = request.workflow_task_timeout();
    started.set_identity(request.identity());
    if (request.has_retry_policy()) {
        *started.mutable_retry_policy() = request.retry_policy();
        fill_defaults(*started.mutable_retry_policy());
    }
    started.set_cron_schedule(request.cron_schedule());
    *started.mutable_memo() = request.memo();
    *started.mutable_search_attributes() = request.search_attributes();
    if (request.has_versioning_override()) {
        *started.mutable_versioning_override() = request.versioning_override();
    }
    if (request.has_priority()) {
        *started.mutable_priority() = request.priority();
    }
    return started;
}

template <class Request>
Or<Started> first_of_chain(const Request& request, Time now, const Limits& limits) {
    const Span delay = span_of(request.workflow_start_delay());
    if (!request.cron_schedule().empty()) {
        if (delay > Span::zero()) {
            return Refusal{Refused::invalid_argument,
                           "CronSchedule and WorkflowStartDelay may not be used together."};
        }
        if (!valid_cron(request.cron_schedule())) {
            return Refusal{Refused::invalid_argument, "invalid CronSchedule."};
        }
    }
    Started started = requested(request);
    normalise_timeouts(started, limits);
    *started.mutable_first_workflow_task_backoff() = to_duration(delay);
    wait_for_slot(started, now);
    return started;
}

// Fields of the child win over those of its parent.
temporal::api::common::v1::Priority inherited(const temporal::api::common::v1::Priority& parent,
                                              const temporal::api::common::v1::Priority& child) {
    temporal::api::common::v1::Priority merged = parent;
    merged.MergeFrom(child);
    return merged;
}

void set_parent(Started& started,
                const state::Run& parent,
                const std::string& parent_namespace,
                const HistoryEvent& initiated) {
    started.set_parent_workflow_namespace(parent_namespace);
    started.set_parent_workflow_namespace_id(parent.namespace_id());
    started.mutable_parent_workflow_execution()->set_workflow_id(parent.workflow_id());
    started.mutable_parent_workflow_execution()->set_run_id(parent.run_id());
    started.set_parent_initiated_event_id(initiated.event_id());
    *started.mutable_root_workflow_execution() = parent.started().has_root_workflow_execution()
                                                     ? parent.started().root_workflow_execution()
                                                     : started.parent_workflow_execution();
}

}  // namespace

Or<Started> first_run(const StartWorkflowExecutionRequest& request,
                      Time now,
                      const Limits& limits) {
    Or<Started> made = first_of_chain(request, now, limits);
    if (auto* started = std::get_if<Started>(&made)) {
        *started->mutable_completion_callbacks() = request.completion_callbacks();
        if (request.has_continued_failure()) {
            *started->mutable_continued_failure() = request.continued_failure();
        }
        if (request.has_last_completion_result()) {
            *started->mutable_last_completion_result() = request.last_completion_result();
        }
    }
    return made;
}

Or<Started> first_run(const SignalWithStartWorkflowExecutionRequest& request,
                      Time now,
                      const Limits& limits) {
    return first_of_chain(request, now, limits);
}

Started child_run(const state::Run& parent,
                  const std::string& parent_namespace,
                  const HistoryEvent& initiated,
                  Time now) {
    const auto& asked = initiated.start_child_workflow_execution_initiated_event_attributes();
    Started started;
    started.set_workflow_id(asked.workflow_id());
    *started.mutable_workflow_type() = asked.workflow_type();
    *started.mutable_task_queue() = asked.task_queue();
    if (asked.has_input()) {
        *started.mutable_input() = asked.input();
    }
    if (asked.has_header()) {
        *started.mutable_header() = asked.header();
    }
    if (span_of(asked.workflow_execution_timeout()) > Span::zero()) {
        *started.mutable_workflow_execution_timeout() = asked.workflow_execution_timeout();
    }
    *started.mutable_workflow_run_timeout() = asked.workflow_run_timeout();
    *started.mutable_workflow_task_timeout() = asked.workflow_task_timeout();
    if (asked.has_retry_policy()) {
        *started.mutable_retry_policy() = asked.retry_policy();
    }
    started.set_cron_schedule(asked.cron_schedule());
    *started.mutable_memo() = asked.memo();
    *started.mutable_search_attributes() = asked.search_attributes();
    if (parent.has_priority() || asked.has_priority()) {
        *started.mutable_priority() = inherited(parent.priority(), asked.priority());
    }
    set_parent(started, parent, parent_namespace, initiated);
    *started.mutable_first_workflow_task_backoff() = to_duration(Span::zero());
    wait_for_slot(started, now);
    return started;
}

bool start_run_eagerly(Transition& transition,
                       Started started,
                       const std::string& request_id,
                       const StartExtras& extras) {
    const bool accepted = span_of(started.first_workflow_task_backoff()) == Span::zero() &&
                          started.task_queue().kind() != TASK_QUEUE_KIND_STICKY;
    started.set_eager_execution_accepted(accepted);
    const Poll poll{.scheduled_event_id = 2,
                    .stamp = 0,
                    .request_id = request_id,
                    .identity = started.identity(),
                    .queue = started.task_queue().name()};
    start_run(transition, std::move(started), request_id, extras);
    if (!accepted) {
        return false;
    }
    schedule_workflow_task(transition);
    transition.withdraw_task(Task::Kind::workflow_task, poll.scheduled_event_id);
    const auto refusal = start_workflow_task(transition, poll);
    HOLDFAST_ASSERT(!refusal);
    return true;
}

bool eager_task_stands(const state::Run& run, const std::string& request_id) {
    const state::WorkflowTask& task = run.workflow_task();
    return run.started().eager_execution_accepted() && task.scheduled_event_id() == 2 &&
           task.started_event_id() == 3 && task.attempt() == 1 && task.request_id() == request_id;
}

}  // namespace holdfast::server::history
