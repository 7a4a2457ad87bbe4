#include "history/command/command.hpp"

#include <utility>

#include "history/update/messages.hpp"
#include <fmt/format.h>

namespace holdfast::server::history {

namespace {

using namespace temporal::api::enums::v1;  // NOLINT(google-build-using-namespace): 50 names of it.
using temporal::api::command::v1::Command;
using temporal::api::history::v1::HistoryEvent;

bool closes(CommandType type) {
    return type == COMMAND_TYPE_COMPLETE_WORKFLOW_EXECUTION ||
           type == COMMAND_TYPE_FAIL_WORKFLOW_EXECUTION ||
           type == COMMAND_TYPE_CANCEL_WORKFLOW_EXECUTION ||
           type == COMMAND_TYPE_CONTINUE_AS_NEW_WORKFLOW_EXECUTION;
}

// The constant's name without its prefix, in PascalCase.
std::string pascal_case(std::string_view constant, std::string_view prefix) {
    constant.remove_prefix(constant.starts_with(prefix) ? prefix.size() : 0);
    std::string name;
    bool capital = true;
    for (const char letter : constant) {
        if (letter == '_') {
            capital = true;
            continue;
        }
        const bool lower = !capital && letter >= 'A' && letter <= 'Z';
        name.push_back(lower ? static_cast<char>(letter - 'A' + 'a') : letter);
        capital = false;
    }
    return name;
}

constexpr WorkflowTaskFailedCause bad_cancel_external =
    WORKFLOW_TASK_FAILED_CAUSE_BAD_REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_ATTRIBUTES;

WorkflowTaskFailedCause bad_attributes(CommandType type) {
    switch (type) {
        case COMMAND_TYPE_SCHEDULE_ACTIVITY_TASK:
            return WORKFLOW_TASK_FAILED_CAUSE_BAD_SCHEDULE_ACTIVITY_ATTRIBUTES;
        case COMMAND_TYPE_REQUEST_CANCEL_ACTIVITY_TASK:
            return WORKFLOW_TASK_FAILED_CAUSE_BAD_REQUEST_CANCEL_ACTIVITY_ATTRIBUTES;
        case COMMAND_TYPE_START_TIMER:
            return WORKFLOW_TASK_FAILED_CAUSE_BAD_START_TIMER_ATTRIBUTES;
        case COMMAND_TYPE_CANCEL_TIMER:
            return WORKFLOW_TASK_FAILED_CAUSE_BAD_CANCEL_TIMER_ATTRIBUTES;
        case COMMAND_TYPE_RECORD_MARKER:
            return WORKFLOW_TASK_FAILED_CAUSE_BAD_RECORD_MARKER_ATTRIBUTES;
        case COMMAND_TYPE_COMPLETE_WORKFLOW_EXECUTION:
            return WORKFLOW_TASK_FAILED_CAUSE_BAD_COMPLETE_WORKFLOW_EXECUTION_ATTRIBUTES;
        case COMMAND_TYPE_FAIL_WORKFLOW_EXECUTION:
            return WORKFLOW_TASK_FAILED_CAUSE_BAD_FAIL_WORKFLOW_EXECUTION_ATTRIBUTES;
        case COMMAND_TYPE_CANCEL_WORKFLOW_EXECUTION:
            return WORKFLOW_TASK_FAILED_CAUSE_BAD_CANCEL_WORKFLOW_EXECUTION_ATTRIBUTES;
        case COMMAND_TYPE_CONTINUE_AS_NEW_WORKFLOW_EXECUTION:
            return WORKFLOW_TASK_FAILED_CAUSE_BAD_CONTINUE_AS_NEW_ATTRIBUTES;
        case COMMAND_TYPE_START_CHILD_WORKFLOW_EXECUTION:
            return WORKFLOW_TASK_FAILED_CAUSE_BAD_START_CHILD_EXECUTION_ATTRIBUTES;
        case COMMAND_TYPE_REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION:
            return bad_cancel_external;
        case COMMAND_TYPE_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION:
            return WORKFLOW_TASK_FAILED_CAUSE_BAD_SIGNAL_WORKFLOW_EXECUTION_ATTRIBUTES;
        case COMMAND_TYPE_MODIFY_WORKFLOW_PROPERTIES:
            return WORKFLOW_TASK_FAILED_CAUSE_BAD_MODIFY_WORKFLOW_PROPERTIES_ATTRIBUTES;
        default:
            return WORKFLOW_TASK_FAILED_CAUSE_BAD_SEARCH_ATTRIBUTES;
    }
}

std::string name_of(CommandType type) {
    return pascal_case(CommandType_Name(type), "COMMAND_TYPE_");
}

std::string names_of(const google::protobuf::RepeatedPtrField<Command>& commands) {
    std::string names;
    for (const Command& command : commands) {
        names += names.empty() ? "" : ", ";
        names += name_of(command.command_type());
    }
    return names;
}

CommandFailure without_attributes(CommandType type) {
    return {bad_attributes(type),
            fmt::format("{0}CommandAttributes is not set on {0}Command.", name_of(type))};
}

CommandResult start_timer(Completing& completing, const Command& command) {
    constexpr auto cause = WORKFLOW_TASK_FAILED_CAUSE_BAD_START_TIMER_ATTRIBUTES;
    const auto& attributes = command.start_timer_command_attributes();
    if (const auto problem = id_problem(
            completing, attributes.timer_id(), "TimerId is not set on StartTimerCommand.")) {
        return CommandFailure{cause, *problem};
    }
    if (!valid_span(attributes.start_to_fire_timeout())) {
        return CommandFailure{cause,
                              fmt::format("An invalid StartToFireTimeout is set on "
                                          "StartTimerCommand. TimerId={}",
                                          attributes.timer_id())};
    }
    if (completing.transition.run().timers().contains(attributes.timer_id())) {
        return CommandFailure{
            WORKFLOW_TASK_FAILED_CAUSE_START_TIMER_DUPLICATE_ID,
            fmt::format("invalid history builder state for action: add-timer-started-event, "
                        "TimerID: {}",
                        attributes.timer_id())};
    }
    HistoryEvent event = command_event(completing, EVENT_TYPE_TIMER_STARTED, command);
    auto& started = *event.mutable_timer_started_event_attributes();
    started.set_timer_id(attributes.timer_id());
    *started.mutable_start_to_fire_timeout() =
        to_duration(span_of(attributes.start_to_fire_timeout()));
    started.set_workflow_task_completed_event_id(completing.completed_event_id);
    completing.transition.add(std::move(event));
    return std::nullopt;
}

// A timer that has fired, unseen by the worker, is as good as pending: its firing is taken back.
CommandResult cancel_timer(Completing& completing, const Command& command) {
    constexpr auto cause = WORKFLOW_TASK_FAILED_CAUSE_BAD_CANCEL_TIMER_ATTRIBUTES;
    const std::string& id = command.cancel_timer_command_attributes().timer_id();
    if (const auto problem =
            id_problem(completing, id, "TimerId is not set on CancelTimerCommand.")) {
        return CommandFailure{cause, *problem};
    }
    Transition& transition = completing.transition;
    std::int64_t started = 0;
    if (const auto timer = transition.run().timers().find(id);
        timer != transition.run().timers().end()) {
        started = timer->second.started_event_id();
    } else if (const auto unseen = transition.unbuffer_timer(id)) {
        started = *unseen;
        completing.unseen_events = !transition.run().buffered().empty();
    } else {
        return CommandFailure{
            cause,
            fmt::format("invalid history builder state for action: add-timer-canceled-event, "
                        "TimerID: {}",
                        id)};
    }
    HistoryEvent event = command_event(completing, EVENT_TYPE_TIMER_CANCELED, command);
    auto& canceled = *event.mutable_timer_canceled_event_attributes();
    canceled.set_timer_id(id);
    canceled.set_started_event_id(started);
    canceled.set_workflow_task_completed_event_id(completing.completed_event_id);
    canceled.set_identity(completing.identity);
    transition.add(std::move(event));
    return std::nullopt;
}

CommandResult record_marker(Completing& completing, const Command& command) {
    constexpr auto cause = WORKFLOW_TASK_FAILED_CAUSE_BAD_RECORD_MARKER_ATTRIBUTES;
    const auto& attributes = command.record_marker_command_attributes();
    if (const auto problem = id_problem(completing,
                                        attributes.marker_name(),
                                        "MarkerName is not set on RecordMarkerCommand.")) {
        return CommandFailure{cause, *problem};
    }
    if (attributes.ByteSizeLong() > completing.transition.limits().blob_bytes_max) {
        return CommandFailure{
            cause, "RecordMarkerCommandAttributes.Details exceeds size limit.", true};
    }
    HistoryEvent event = command_event(completing, EVENT_TYPE_MARKER_RECORDED, command);
    auto& marker = *event.mutable_marker_recorded_event_attributes();
    marker.set_marker_name(attributes.marker_name());
    *marker.mutable_details() = attributes.details();
    if (attributes.has_header()) {
        *marker.mutable_header() = attributes.header();
    }
    if (attributes.has_failure()) {
        *marker.mutable_failure() = attributes.failure();
    }
    marker.set_workflow_task_completed_event_id(completing.completed_event_id);
    completing.transition.add(std::move(event));
    return std::nullopt;
}

}  // namespace

std::optional<std::string> command_list_problem(
    const google::protobuf::RepeatedPtrField<Command>& commands) {
    for (int i = 0; i < commands.size(); ++i) {
        const CommandType type = commands[i].command_type();
        if (!CommandType_IsValid(type) || type == COMMAND_TYPE_UNSPECIFIED) {
            return fmt::format("Unknown command type: {}", static_cast<int>(type));
        }
        if (closes(type) && i + 1 != commands.size()) {
            return fmt::format(
                "invalid command sequence: [{}], command {} must be the last command.",
                names_of(commands),
                name_of(type));
        }
    }
    return std::nullopt;
}

CommandResult run_command(Completing& completing, const Command& command) {
    if (command.attributes_case() == Command::ATTRIBUTES_NOT_SET) {
        return without_attributes(command.command_type());
    }
    switch (command.command_type()) {
        case COMMAND_TYPE_SCHEDULE_ACTIVITY_TASK:
            return schedule_activity(completing, command);
        case COMMAND_TYPE_REQUEST_CANCEL_ACTIVITY_TASK:
            return request_cancel_activity(completing, command);
        case COMMAND_TYPE_START_TIMER:
            return start_timer(completing, command);
        case COMMAND_TYPE_CANCEL_TIMER:
            return cancel_timer(completing, command);
        case COMMAND_TYPE_RECORD_MARKER:
            return record_marker(completing, command);
        case COMMAND_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES:
            return upsert_search_attributes(completing, command);
        case COMMAND_TYPE_MODIFY_WORKFLOW_PROPERTIES:
            return modify_properties(completing, command);
        case COMMAND_TYPE_START_CHILD_WORKFLOW_EXECUTION:
            return start_child(completing, command);
        case COMMAND_TYPE_REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION:
            return request_cancel_external(completing, command);
        case COMMAND_TYPE_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION:
            return signal_external(completing, command);
        case COMMAND_TYPE_PROTOCOL_MESSAGE:
            return run_message_command(completing, command);
        case COMMAND_TYPE_SCHEDULE_NEXUS_OPERATION:
        case COMMAND_TYPE_REQUEST_CANCEL_NEXUS_OPERATION:
            return CommandFailure{WORKFLOW_TASK_FAILED_CAUSE_FEATURE_DISABLED,
                                  "Nexus operations are disabled"};
        default:
            return close_run(completing, command);
    }
}

std::string cause_name(WorkflowTaskFailedCause cause) {
    return pascal_case(WorkflowTaskFailedCause_Name(cause), "WORKFLOW_TASK_FAILED_CAUSE_");
}

HistoryEvent command_event(const Completing& completing, EventType type, const Command& command) {
    HistoryEvent event = completing.transition.event(type);
    if (command.has_user_metadata()) {
        *event.mutable_user_metadata() = command.user_metadata();
    }
    *event.mutable_event_group_markers() = command.event_group_markers();
    return event;
}

std::optional<std::string> id_problem(const Completing& completing,
                                      const std::string& value,
                                      std::string_view not_set) {
    const std::size_t most = completing.transition.limits().id_bytes_max;
    if (value.empty()) {
        return std::string{not_set};
    }
    if (value.size() > most) {
        return fmt::format("{} exceeds maximum allowed length ({}/{})",
                           not_set.substr(0, not_set.find(' ')),
                           value.size(),
                           most);
    }
    return std::nullopt;
}

}  // namespace holdfast::server::history
