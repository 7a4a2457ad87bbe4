#include <algorithm>
#include <utility>

#include "history/activity.hpp"
#include "history/command/activity_options.hpp"
#include "history/command/command.hpp"
#include "history/retry.hpp"
#include <fmt/format.h>

namespace holdfast::server::history {

namespace {

using namespace temporal::api::enums::v1;  // NOLINT(google-build-using-namespace): 50 names of it.
using temporal::api::command::v1::Command;
using temporal::api::command::v1::ScheduleActivityTaskCommandAttributes;
using temporal::api::history::v1::ActivityTaskScheduledEventAttributes;
using temporal::api::history::v1::HistoryEvent;

std::optional<std::string> activity_problem(
    const Completing& completing, const ScheduleActivityTaskCommandAttributes& attributes) {
    if (auto problem = id_problem(completing, attributes.activity_id(), "activityId is not set")) {
        return problem;
    }
    if (auto problem =
            id_problem(completing, attributes.activity_type().name(), "activityType is not set")) {
        return problem;
    }
    const std::string& queue = attributes.task_queue().name();
    if (auto problem = id_problem(completing, queue, "missing task queue name")) {
        return problem;
    }
    return activity_options_problem(attributes);
}

std::int64_t ended_activity(const HistoryEvent& event) {
    switch (event.event_type()) {
        case EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
            return event.activity_task_completed_event_attributes().scheduled_event_id();
        case EVENT_TYPE_ACTIVITY_TASK_FAILED:
            return event.activity_task_failed_event_attributes().scheduled_event_id();
        case EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT:
            return event.activity_task_timed_out_event_attributes().scheduled_event_id();
        case EVENT_TYPE_ACTIVITY_TASK_CANCELED:
            return event.activity_task_canceled_event_attributes().scheduled_event_id();
        default:
            return 0;
    }
}

bool end_is_unseen(const state::Run& run, std::int64_t scheduled_event_id) {
    return scheduled_event_id != 0 &&
           std::any_of(run.buffered().begin(), run.buffered().end(), [&](const auto& event) {
               return ended_activity(event) == scheduled_event_id;
           });
}

ActivityTaskScheduledEventAttributes scheduled_attributes(
    const Completing& completing, const ScheduleActivityTaskCommandAttributes& attributes) {
    ActivityTaskScheduledEventAttributes scheduled;
    scheduled.set_activity_id(attributes.activity_id());
    *scheduled.mutable_activity_type() = attributes.activity_type();
    scheduled.mutable_task_queue()->set_name(attributes.task_queue().name());
    scheduled.mutable_task_queue()->set_kind(TASK_QUEUE_KIND_NORMAL);
    if (attributes.has_header()) {
        *scheduled.mutable_header() = attributes.header();
    }
    if (attributes.has_input()) {
        *scheduled.mutable_input() = attributes.input();
    }
    *scheduled.mutable_schedule_to_close_timeout() = attributes.schedule_to_close_timeout();
    *scheduled.mutable_schedule_to_start_timeout() = attributes.schedule_to_start_timeout();
    *scheduled.mutable_start_to_close_timeout() = attributes.start_to_close_timeout();
    *scheduled.mutable_heartbeat_timeout() = attributes.heartbeat_timeout();
    normalise_activity_timeouts(
        scheduled, span_of(completing.transition.run().started().workflow_run_timeout()));
    *scheduled.mutable_retry_policy() = attributes.retry_policy();
    fill_defaults(*scheduled.mutable_retry_policy());
    if (attributes.has_priority()) {
        *scheduled.mutable_priority() = attributes.priority();
    }
    scheduled.set_use_workflow_build_id(attributes.use_workflow_build_id());
    scheduled.set_workflow_task_completed_event_id(completing.completed_event_id);
    return scheduled;
}

}  // namespace

CommandResult schedule_activity(Completing& completing, const Command& command) {
    constexpr auto cause = WORKFLOW_TASK_FAILED_CAUSE_BAD_SCHEDULE_ACTIVITY_ATTRIBUTES;
    const auto& attributes = command.schedule_activity_task_command_attributes();
    Transition& transition = completing.transition;
    if (const auto problem = activity_problem(completing, attributes)) {
        return CommandFailure{cause, *problem};
    }
    ActivityTaskScheduledEventAttributes scheduled = scheduled_attributes(completing, attributes);
    if (const auto problem = policy_problem(scheduled.retry_policy())) {
        return CommandFailure{cause, *problem};
    }
    if (attributes.input().ByteSizeLong() + attributes.header().ByteSizeLong() >
        transition.limits().blob_bytes_max) {
        return CommandFailure{
            cause, "ScheduleActivityTaskCommandAttributes.Input exceeds size limit.", true};
    }
    const std::size_t pending = transition.run().activities().size();
    if (pending >= transition.limits().pending_max) {
        return CommandFailure{
            WORKFLOW_TASK_FAILED_CAUSE_PENDING_ACTIVITIES_LIMIT_EXCEEDED,
            fmt::format("the number of pending activities, {}, has reached the per-workflow limit "
                        "of {}",
                        pending,
                        transition.limits().pending_max)};
    }
    if (find_activity(transition.run(), attributes.activity_id()) != nullptr) {
        return CommandFailure{WORKFLOW_TASK_FAILED_CAUSE_SCHEDULE_ACTIVITY_DUPLICATE_ID,
                              fmt::format("invalid history builder state for action: "
                                          "add-activitytask-scheduled-event, ActivityID: {}",
                                          attributes.activity_id())};
    }
    HistoryEvent event = command_event(completing, EVENT_TYPE_ACTIVITY_TASK_SCHEDULED, command);
    *event.mutable_activity_task_scheduled_event_attributes() = std::move(scheduled);
    const std::int64_t scheduled_event_id = transition.add(std::move(event));
    transition.add_task({Task::Kind::activity, scheduled_event_id, 0});
    if (attributes.request_eager_execution()) {
        completing.eager.push_back(scheduled_event_id);
    }
    return std::nullopt;
}

CommandResult request_cancel_activity(Completing& completing, const Command& command) {
    const std::int64_t id =
        command.request_cancel_activity_task_command_attributes().scheduled_event_id();
    Transition& transition = completing.transition;
    const auto found = transition.run().activities().find(id);
    const bool pending = found != transition.run().activities().end();
    const bool acceptable = pending ? found->second.cancel_requested_event_id() == 0
                                    : end_is_unseen(transition.run(), id);
    if (!acceptable) {
        return CommandFailure{
            WORKFLOW_TASK_FAILED_CAUSE_BAD_REQUEST_CANCEL_ACTIVITY_ATTRIBUTES,
            fmt::format("invalid history builder state for action: "
                        "add-activitytask-cancel-requested-event, ScheduledEventID: {}",
                        id)};
    }
    HistoryEvent event =
        command_event(completing, EVENT_TYPE_ACTIVITY_TASK_CANCEL_REQUESTED, command);
    auto& attributes = *event.mutable_activity_task_cancel_requested_event_attributes();
    attributes.set_scheduled_event_id(id);
    attributes.set_workflow_task_completed_event_id(completing.completed_event_id);
    transition.add(std::move(event));
    if (pending && !transition.run().activities().at(id).started()) {
        cancel_unstarted_activity(transition, id, completing.identity);
    }
    return std::nullopt;
}

}  // namespace holdfast::server::history
