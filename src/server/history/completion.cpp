#include "history/completion.hpp"

#include <utility>

#include "history/activity.hpp"
#include "history/outside.hpp"
#include "history/update/messages.hpp"
#include <fmt/format.h>

#include <holdfast/base/assert.hpp>

namespace holdfast::server::history {

namespace {

using namespace temporal::api::enums::v1;  // NOLINT(google-build-using-namespace): 50 names of it.
using temporal::api::history::v1::HistoryEvent;
using Request = temporal::api::workflowservice::v1::RespondWorkflowTaskCompletedRequest;

std::optional<Refusal> refuse_task(const Transition& transition, const TaskRef& ref) {
    const state::WorkflowTask& task = transition.run().workflow_task();
    const bool same =
        task.started_event_id() != 0 && task.scheduled_event_id() == ref.scheduled_event_id &&
        task.started_event_id() == ref.started_event_id && task.attempt() == ref.attempt &&
        (!ref.started_time || time_of(task.started_time()) == *ref.started_time);
    if (!same) {
        return Refusal{Refused::not_found, "Workflow task not found."};
    }
    return std::nullopt;
}

bool is_heartbeat(const Request& request) {
    return request.force_create_new_workflow_task() && request.commands().empty() &&
           request.messages().empty();
}

std::int64_t write_completed(Transition& transition, const Request& request) {
    write_transient(transition);
    const state::WorkflowTask& task = transition.run().workflow_task();
    HistoryEvent event = transition.event(EVENT_TYPE_WORKFLOW_TASK_COMPLETED);
    auto& attributes = *event.mutable_workflow_task_completed_event_attributes();
    attributes.set_scheduled_event_id(task.scheduled_event_id());
    attributes.set_started_event_id(task.started_event_id());
    attributes.set_identity(request.identity());
    attributes.set_binary_checksum(request.binary_checksum());
    if (request.has_worker_version_stamp()) {
        *attributes.mutable_worker_version() = request.worker_version_stamp();
    }
    if (request.has_sdk_metadata()) {
        *attributes.mutable_sdk_metadata() = request.sdk_metadata();
    }
    if (request.has_metering_metadata()) {
        *attributes.mutable_metering_metadata() = request.metering_metadata();
    }
    return transition.add(std::move(event));
}

void set_sticky(Transition& transition, const Request& request, bool forgotten) {
    const auto& attributes = request.sticky_attributes();
    const std::string& queue = attributes.worker_task_queue().name();
    if (queue.empty() && transition.run().sticky_queue().empty()) {
        return;
    }
    const note::Sticky sticky{
        .queue = queue,
        .schedule_to_start_timeout = span_of(attributes.schedule_to_start_timeout())};
    forgotten ? transition.touch(sticky) : transition.note(sticky);
}

// A speculative workflow task whose worker rejected all its updates is forgotten, and its worker
// goes back to the event before it. Not if it has brought the worker too many events for that.
bool is_forgotten(const Transition& transition, const Request& request) {
    const state::Run& run = transition.run();
    constexpr std::int64_t no_events = 2;  // Event 6 of the last one, and its event 7.
    constexpr std::int64_t few_events = no_events + 10;
    const bool may_drop_events =
        request.capabilities().discard_speculative_workflow_task_with_events();
    return run.workflow_task().speculative() && request.commands().empty() &&
           !request.force_create_new_workflow_task() && only_rejections(request.messages()) &&
           run.next_event_id() <=
               run.last_completed_started_event_id() + (may_drop_events ? few_events : no_events);
}

// A worker that asks for more time again and again is taken for lost.
Refusal end_heartbeats(Transition& transition) {
    time_out_workflow_task(transition, TIMEOUT_TYPE_START_TO_CLOSE);
    return {Refused::not_found, "workflow task heartbeat timeout"};
}

void terminate_after(Transition& transition, const std::string& reason) {
    temporal::api::history::v1::WorkflowExecutionTerminatedEventAttributes attributes;
    attributes.set_reason(reason);
    attributes.set_identity("history-service");
    // Refused only if it is closed, and then its task would not be found.
    static_cast<void>(terminate_run(transition, attributes));
}

// The failed task without a next attempt, then the end of the run.
void fail_and_terminate(Transition& transition,
                        const TaskFailure& failure,
                        const std::string& reason) {
    fail_workflow_task_for_good(transition, failure);
    terminate_after(transition, reason);
}

Refusal fail_by_command(Transition& transition,
                        const CommandFailure& command,
                        const std::string& identity) {
    transition.restart();
    const bool unhandled = command.cause == WORKFLOW_TASK_FAILED_CAUSE_UNHANDLED_COMMAND;
    if (!unhandled) {  // Else they go with the next one: the worker has done nothing wrong.
        abort_updates(transition);
    }
    if (transition.run().workflow_task().attempt() > 1 && !unhandled && !command.terminate) {
        return {Refused::invalid_argument, command.text};  // The task stays until its timeout.
    }
    const std::string text = unhandled
                                 ? cause_name(command.cause)
                                 : fmt::format("{}: {}", cause_name(command.cause), command.text);
    TaskFailure failure;
    failure.cause = command.cause;
    failure.identity = identity;
    failure.failure.set_message(text);
    failure.failure.mutable_server_failure_info();
    if (command.terminate) {
        fail_and_terminate(transition, failure, command.text);
        return {Refused::invalid_argument, text};
    }
    if (unhandled) {
        transition.note(note::CloseAttempted{true});
    }
    fail_workflow_task(transition, failure);
    return {Refused::invalid_argument, text};
}

// What the completion itself cancelled, or left behind in a closed run, is not started.
void start_eager_activities(Transition& transition,
                            const Completing& completing,
                            std::vector<std::int64_t>& started) {
    for (const std::int64_t id : completing.eager) {
        const auto found = transition.run().activities().find(id);
        if (!transition.open() || found == transition.run().activities().end()) {
            continue;
        }
        transition.withdraw_task(Task::Kind::activity, id);
        const auto refusal = start_activity(
            transition, id, found->second.stamp(), completing.identity, transition.source().uuid());
        HOLDFAST_ASSERT(!refusal);
        started.push_back(id);
    }
}

// Another workflow task follows if the worker asks for one, or has not seen everything.
void go_on(Transition& transition, const Request& request, Time heartbeat_since) {
    if (!transition.open()) {
        return;
    }
    if (is_heartbeat(request)) {
        return schedule_heartbeat(transition, heartbeat_since);
    }
    if (request.force_create_new_workflow_task() || !transition.run().buffered().empty()) {
        schedule_workflow_task(transition);
    }
}

}  // namespace

std::optional<Refusal> complete_workflow_task(Transition& transition,
                                              const TaskRef& task,
                                              const Request& request,
                                              const CompletionScene& scene) {
    if (auto refusal = refuse_task(transition, task)) {
        return refusal;
    }
    if (auto problem = command_list_problem(request.commands())) {
        return Refusal{Refused::invalid_argument, *std::move(problem)};
    }
    const Time since = time_of(transition.run().workflow_task().original_scheduled_time());
    if (is_heartbeat(request) && transition.now() >= since + transition.limits().heartbeats_max) {
        return end_heartbeats(transition);
    }
    MessageInbox messages(request.messages());
    Completing completing{.transition = transition,
                          .identity = request.identity(),
                          .unseen_events = !transition.run().buffered().empty(),
                          .messages = &messages,
                          .check_attributes = scene.check_attributes};
    const bool forgotten = is_forgotten(transition, request);
    if (transition.run().close_attempted()) {
        transition.touch(note::CloseAttempted{false});
    }
    if (forgotten) {
        transition.touch(note::TransientEnded{});
    } else {
        completing.completed_event_id = write_completed(transition, request);
    }
    set_sticky(transition, request, forgotten);
    for (const auto& command : request.commands()) {
        if (const auto failure = run_command(completing, command)) {
            return fail_by_command(transition, *failure, request.identity());
        }
    }
    if (const auto failure = run_rest_of_messages(completing)) {
        return fail_by_command(transition, *failure, request.identity());
    }
    if (transition.open() && !is_heartbeat(request)) {
        reject_unanswered(transition);
    }
    if (scene.news != nullptr) {
        if (forgotten) {
            scene.news->reset_history_event_id = transition.run().last_completed_started_event_id();
        }
        start_eager_activities(transition, completing, scene.news->eager);
    }
    go_on(transition, request, since);
    return std::nullopt;
}

std::optional<Refusal> report_workflow_task_failed(Transition& transition,
                                                   const TaskRef& task,
                                                   TaskFailure failure) {
    if (!transition.open()) {
        return already_completed();
    }
    if (auto refusal = refuse_task(transition, task)) {
        return refusal;
    }
    if (failure.failure.ByteSizeLong() > transition.limits().blob_bytes_max) {
        temporal::api::failure::v1::Failure replacement;
        replacement.set_message("Failure exceeds size limit.");
        replacement.set_source("Server");
        replacement.mutable_server_failure_info();
        constexpr std::size_t kept = 512;
        replacement.mutable_cause()->set_message(failure.failure.message().substr(0, kept));
        failure.failure = replacement;
    }
    if (failure.cause == WORKFLOW_TASK_FAILED_CAUSE_GRPC_MESSAGE_TOO_LARGE) {
        fail_and_terminate(transition, failure, cause_name(failure.cause));
        return std::nullopt;
    }
    fail_workflow_task(transition, failure);
    return std::nullopt;
}

}  // namespace holdfast::server::history
