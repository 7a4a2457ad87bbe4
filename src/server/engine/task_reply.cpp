// What a worker gets with a task.
#include <algorithm>
#include <string_view>
#include <utility>

#include "engine/store_turn.hpp"
#include "history/workflow_task.hpp"
#include <server/engine/token.pb.h>
#include <temporal/api/workflowservice/v1/request_response.pb.h>

#include <holdfast/base/assert.hpp>
#include <holdfast/base/log.hpp>

namespace holdfast::server::engine {

namespace {

namespace state = history::state;
using temporal::api::history::v1::History;
using temporal::api::history::v1::HistoryEvent;
using WorkflowTask = temporal::api::workflowservice::v1::PollWorkflowTaskQueueResponse;
using ActivityTask = temporal::api::workflowservice::v1::PollActivityTaskQueueResponse;

constexpr int batches_of_a_reply = 256;

std::string token_of(const state::Run& run) {
    token::Task token;
    token::WorkflowTask& task = *token.mutable_workflow_task();
    task.set_namespace_id(run.namespace_id());
    task.set_workflow_id(run.workflow_id());
    task.set_run_id(run.run_id());
    task.set_scheduled_event_id(run.workflow_task().scheduled_event_id());
    task.set_started_event_id(run.workflow_task().started_event_id());
    task.set_attempt(run.workflow_task().attempt());
    *task.mutable_started_time() = run.workflow_task().started_time();
    return token.SerializeAsString();
}

std::string token_of(const state::Run& run, const state::Activity& activity) {
    token::Task token;
    token::Activity& task = *token.mutable_activity();
    task.set_namespace_id(run.namespace_id());
    task.set_workflow_id(run.workflow_id());
    task.set_run_id(run.run_id());
    task.set_scheduled_event_id(activity.scheduled_event_id());
    task.set_attempt(activity.attempt());
    task.set_activity_id(activity.scheduled().activity_id());
    return token.SerializeAsString();
}

}  // namespace

std::string page_token_of(const std::string& run_id, std::int64_t next_event_id) {
    token::HistoryPage page;
    page.set_run_id(run_id);
    page.set_next_event_id(next_event_id);
    return page.SerializeAsString();
}

// A poll of the sticky queue has the history up to the last workflow task that it completed.
void StoreTurn::fill_workflow_task(CachedRun& cached,
                                   const std::string& queue,
                                   WorkflowTask& task) {
    const state::Run& run = cached.run;
    const state::WorkflowTask& pending = run.workflow_task();
    HOLDFAST_ASSERT(pending.started_event_id() != 0);
    const bool from_the_start = queue == run.started().task_queue().name();
    const std::int64_t first = from_the_start ? 1 : run.last_completed_started_event_id() + 1;

    task.set_task_token(token_of(run));
    task.mutable_workflow_execution()->set_workflow_id(run.workflow_id());
    task.mutable_workflow_execution()->set_run_id(run.run_id());
    *task.mutable_workflow_type() = run.started().workflow_type();
    task.set_previous_started_event_id(run.last_completed_started_event_id());
    task.set_started_event_id(pending.started_event_id());
    task.set_attempt(pending.attempt());
    *task.mutable_scheduled_time() = pending.scheduled_time();
    *task.mutable_started_time() = pending.started_time();
    task.mutable_workflow_execution_task_queue()->set_name(run.started().task_queue().name());
    task.mutable_workflow_execution_task_queue()->set_kind(
        temporal::api::enums::v1::TASK_QUEUE_KIND_NORMAL);
    cached.queries.ride(task);

    add_update_messages(run, task);
    if (first < run.next_event_id()) {
        HistoryPage page = read_run(cached, first, batches_of_a_reply);
        task.mutable_history()->Swap(&page.history);
        if (page.next_event_id != 0) {
            task.set_next_page_token(page_token_of(run.run_id(), page.next_event_id));
            return;
        }
    }
    History transient = history::transient_events(run);
    if (transient.events_size() == 2) {  // Its own worker is told who has it.
        transient.mutable_events(1)->mutable_workflow_task_started_event_attributes()->set_identity(
            pending.identity());
    }
    task.mutable_history()->MergeFrom(transient);
}

void StoreTurn::fill_activity(CachedRun& cached,
                              std::int64_t scheduled_event_id,
                              ActivityTask& task) {
    const state::Run& run = cached.run;
    const state::Activity& activity = run.activities().at(scheduled_event_id);
    const auto& scheduled = activity.scheduled();
    const HistoryPage page = read_run(cached, activity.scheduled_batch_event_id(), 1);
    const auto event =
        std::ranges::find(page.history.events(), scheduled_event_id, &HistoryEvent::event_id);
    HOLDFAST_ASSERT(event != page.history.events().end());
    const auto& attributes = event->activity_task_scheduled_event_attributes();

    task.set_task_token(token_of(run, activity));
    task.set_workflow_namespace(engine_.parts.namespaces.name_of(run.namespace_id()));
    *task.mutable_workflow_type() = run.started().workflow_type();
    task.mutable_workflow_execution()->set_workflow_id(run.workflow_id());
    task.mutable_workflow_execution()->set_run_id(run.run_id());
    *task.mutable_activity_type() = scheduled.activity_type();
    task.set_activity_id(scheduled.activity_id());
    if (attributes.has_header()) {
        *task.mutable_header() = attributes.header();
    }
    if (attributes.has_input()) {
        *task.mutable_input() = attributes.input();
    }
    if (activity.has_last_heartbeat_details()) {
        *task.mutable_heartbeat_details() = activity.last_heartbeat_details();
    }
    *task.mutable_scheduled_time() = activity.first_scheduled_time();
    *task.mutable_current_attempt_scheduled_time() = activity.scheduled_time();
    *task.mutable_started_time() = activity.started_time();
    task.set_attempt(activity.attempt());
    *task.mutable_schedule_to_close_timeout() = scheduled.schedule_to_close_timeout();
    *task.mutable_start_to_close_timeout() = scheduled.start_to_close_timeout();
    *task.mutable_heartbeat_timeout() = scheduled.heartbeat_timeout();
    *task.mutable_retry_policy() = scheduled.retry_policy();
    if (scheduled.has_priority()) {
        *task.mutable_priority() = scheduled.priority();
    }
}

void StoreTurn::activity_of(const std::string& run_id,
                            std::int64_t scheduled_event_id,
                            ActivityTask& task) {
    const Or<CachedRun*> loaded = load(run_id);
    if (CachedRun* const* found = std::get_if<CachedRun*>(&loaded)) {
        fill_activity(**found, scheduled_event_id, task);
    }
}

// The task is started and committed: what goes wrong now is for the poll alone, and the task comes
// again when its time is over.
void StoreTurn::deliver(CachedRun& cached, Match match) {
    const std::string queue = match.poll.queue().name;
    matching::Poll poll = std::move(match.poll).take();
    try {
        if (auto* reply = std::get_if<matching::WorkflowReply>(&poll.reply)) {
            fill_workflow_task(cached, queue, reply->message());
            (void)std::move(*reply).send();
        } else if (auto* activity = std::get_if<matching::ActivityReply>(&poll.reply)) {
            fill_activity(cached, match.task.event_id, activity->message());
            (void)std::move(*activity).send();
        }
    } catch (const std::exception& error) {
        engine_.parts.log.warn("task not delivered",
                               {{"workflow", key_.workflow_id}, {"error", error.what()}});
        std::visit(
            [](auto& reply) { std::move(reply).refuse(rpc::refusal_of(std::current_exception())); },
            poll.reply);
    }
}

}  // namespace holdfast::server::engine
