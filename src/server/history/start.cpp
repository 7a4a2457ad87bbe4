#include "history/start.hpp"

#include <algorithm>
#include <utility>

#include "history/payloads.hpp"
#include "history/retry.hpp"
#include "history/workflow_task.hpp"

#include <holdfast/base/assert.hpp>

namespace holdfast::server::history {

namespace {

using namespace temporal::api::enums::v1;  // NOLINT(google-build-using-namespace): 50 names of it.
using temporal::api::history::v1::HistoryEvent;

std::optional<Time> execution_expiration(const state::Run& run) {
    if (!run.started().has_workflow_execution_expiration_time()) {
        return std::nullopt;
    }
    return time_of(run.started().workflow_execution_expiration_time());
}

}  // namespace

void normalise_timeouts(Started& started, const Limits& limits) {
    const Span execution = span_of(started.workflow_execution_timeout());
    Span run = span_of(started.workflow_run_timeout());
    if (execution > Span::zero() && (run == Span::zero() || run > execution)) {
        run = execution;
        *started.mutable_workflow_run_timeout() = to_duration(run);
    }
    Span task = span_of(started.workflow_task_timeout());
    if (task == Span::zero()) {
        task = limits.workflow_task_timeout;
    }
    task = std::min(task, limits.workflow_task_timeout_max);
    if (run > Span::zero()) {
        task = std::min(task, run);
    }
    *started.mutable_workflow_task_timeout() = to_duration(task);
}

void start_run(Transition& transition,
               Started started,
               const std::string& request_id,
               const StartExtras& extras) {
    HOLDFAST_ASSERT(transition.run().next_event_id() == 1);
    const std::string& run_id = transition.run().run_id();
    started.set_original_execution_run_id(run_id);
    if (started.first_execution_run_id().empty()) {
        started.set_first_execution_run_id(run_id);
    }
    started.set_attempt(std::max(started.attempt(), 1));
    const Span execution = span_of(started.workflow_execution_timeout());
    if (execution > Span::zero() && !started.has_workflow_execution_expiration_time()) {
        *started.mutable_workflow_execution_expiration_time() = to_timestamp(
            std::chrono::floor<std::chrono::milliseconds>(transition.now() + execution));
    }
    drop_nulls(*started.mutable_memo()->mutable_fields());
    drop_nulls(*started.mutable_search_attributes()->mutable_indexed_fields());
    if (started.memo().fields().empty()) {
        started.clear_memo();
    }
    if (started.search_attributes().indexed_fields().empty()) {
        started.clear_search_attributes();
    }
    HistoryEvent event = transition.event(EVENT_TYPE_WORKFLOW_EXECUTION_STARTED);
    *event.mutable_workflow_execution_started_event_attributes() = std::move(started);
    if (extras.user_metadata) {
        *event.mutable_user_metadata() = *extras.user_metadata;
    }
    *event.mutable_links() = extras.links;
    transition.add(std::move(event));
    transition.note(note::RequestId{.request_id = request_id,
                                    .event_type = EVENT_TYPE_WORKFLOW_EXECUTION_STARTED,
                                    .event_id = 1});
    if (!in_first_backoff(transition.run()) && !extras.withhold_first_task) {
        transition.wake();
    }
}

void schedule_first_task(Transition& transition) {
    if (transition.run().phase() == state::PHASE_CREATED && !in_first_backoff(transition.run())) {
        transition.wake();
    }
}

void end_first_backoff(Transition& transition) {
    HOLDFAST_ASSERT(in_first_backoff(transition.run()));
    transition.wake();
}

Continuation continuation(Transition& transition, ContinueAsNewInitiator initiator, Span backoff) {
    const state::Run& run = transition.run();
    const Span lifetime = transition.now() - time_of(run.execution_time());
    backoff = std::max(backoff, transition.limits().run_interval_min - lifetime);

    Continuation next{.run_id = transition.source().uuid(), .started = run.started()};
    next.started.set_continued_execution_run_id(run.run_id());
    next.started.set_initiator(initiator);
    next.started.clear_identity();
    next.started.clear_original_execution_run_id();
    next.started.clear_eager_execution_accepted();
    next.started.clear_continued_failure();
    if (backoff > Span::zero()) {
        *next.started.mutable_first_workflow_task_backoff() = to_duration(backoff);
    } else {
        next.started.clear_first_workflow_task_backoff();
    }
    return next;
}

RunRetry retry_run(Transition& transition, const temporal::api::failure::v1::Failure& failure) {
    const Started& started = transition.run().started();
    if (!started.has_retry_policy()) {
        return {.state = RETRY_STATE_RETRY_POLICY_NOT_SET, .next = std::nullopt};
    }
    const RetryDecision decision = decide_retry(started.retry_policy(),
                                                failure,
                                                started.attempt(),
                                                transition.now(),
                                                execution_expiration(transition.run()));
    if (decision.state != RETRY_STATE_IN_PROGRESS) {
        return {.state = decision.state, .next = std::nullopt};
    }
    Continuation next = continuation(transition, CONTINUE_AS_NEW_INITIATOR_RETRY, decision.delay);
    next.started.set_attempt(started.attempt() + 1);
    *next.started.mutable_continued_failure() = failure;
    return {.state = decision.state, .next = std::move(next)};
}

Continuation continue_as_new(
    Transition& transition,
    const temporal::api::command::v1::ContinueAsNewWorkflowExecutionCommandAttributes& command) {
    const ContinueAsNewInitiator initiator =
        command.initiator() == CONTINUE_AS_NEW_INITIATOR_UNSPECIFIED
            ? CONTINUE_AS_NEW_INITIATOR_WORKFLOW
            : command.initiator();
    Continuation next =
        continuation(transition, initiator, span_of(command.backoff_start_interval()));
    Started& started = next.started;
    started.set_attempt(1);
    if (transition.run().has_priority()) {
        *started.mutable_priority() = transition.run().priority();
    }
    if (!command.workflow_type().name().empty()) {
        *started.mutable_workflow_type() = command.workflow_type();
    }
    if (!command.task_queue().name().empty()) {
        *started.mutable_task_queue() = command.task_queue();
        started.mutable_task_queue()->set_kind(TASK_QUEUE_KIND_NORMAL);
    }
    if (span_of(command.workflow_run_timeout()) > Span::zero()) {
        *started.mutable_workflow_run_timeout() = command.workflow_run_timeout();
    }
    if (span_of(command.workflow_task_timeout()) > Span::zero()) {
        *started.mutable_workflow_task_timeout() = command.workflow_task_timeout();
    }
    normalise_timeouts(started, transition.limits());
    started.mutable_workflow_run_timeout();  // Said also if there is none.
    // Nothing of the following is inherited: what the command does not have, the new run has not.
    *started.mutable_input() = command.input();
    *started.mutable_header() = command.header();
    *started.mutable_memo() = command.memo();
    *started.mutable_search_attributes() = command.search_attributes();
    *started.mutable_retry_policy() = command.retry_policy();
    *started.mutable_last_completion_result() = command.last_completion_result();
    *started.mutable_continued_failure() = command.failure();
    started.set_cron_schedule(command.cron_schedule());
    if (!command.has_input()) {
        started.clear_input();
    }
    if (!command.has_header()) {
        started.clear_header();
    }
    if (!command.has_retry_policy()) {
        started.clear_retry_policy();
    }
    if (!command.has_last_completion_result()) {
        started.clear_last_completion_result();
    }
    if (!command.has_failure()) {
        started.clear_continued_failure();
    }
    return next;
}

}  // namespace holdfast::server::history
