// Which fields of each event and message are stored, and by which names: the one description that
// writing and reading are derived from.
//
// Names in here are in databases. One that was released is never changed; a field that is added is
// optional, so that older histories stay readable.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>

#include <holdfast/flow_engine/event.hpp>
#include <holdfast/flow_engine/failure.hpp>
#include <holdfast/flow_engine/message.hpp>

namespace holdfast::flow::stored {

template <class Owner, class Type>
struct Field {
    std::string_view name;
    Type Owner::* member;
};

// Either of two fields, by what the answer is.
using Answer = std::variant<Payload, FailureInfo>;
template <class Owner>
struct AnswerField {
    std::string_view result;
    std::string_view failure;
    Answer Owner::* member;
};

// `kind` (of events and messages), `fields` in the order of the text, and, where a value can be
// invalid as a whole, `fault`: why, or null.
template <class T>
struct Layout;

// --- parts
// ------------------------------------------------------------------------------------------

template <>
struct Layout<FailureInfo> {
    static constexpr std::tuple fields{Field{"kind", &FailureInfo::kind},
                                       Field{"type", &FailureInfo::type},
                                       Field{"message", &FailureInfo::message},
                                       Field{"retryable", &FailureInfo::retryable},
                                       Field{"details", &FailureInfo::details},
                                       Field{"cause", &FailureInfo::cause}};
};
template <>
struct Layout<ParentLink> {
    static constexpr std::tuple fields{Field{"instance", &ParentLink::instance},
                                       Field{"execution", &ParentLink::execution},
                                       Field{"event", &ParentLink::event}};
};

template <>
struct Layout<ResetPoint> {
    static constexpr std::tuple fields{Field{"execution", &ResetPoint::execution},
                                       Field{"event", &ResetPoint::event}};
};

template <>
struct Layout<ActivityRetry> {
    static constexpr std::tuple fields{Field{"attempts", &ActivityRetry::attempts},
                                       Field{"first_ms", &ActivityRetry::first_ms},
                                       Field{"factor", &ActivityRetry::factor},
                                       Field{"ceiling_ms", &ActivityRetry::ceiling_ms},
                                       Field{"per_try_ms", &ActivityRetry::per_try_ms},
                                       Field{"total_ms", &ActivityRetry::total_ms},
                                       Field{"timeouts", &ActivityRetry::timeouts},
                                       Field{"linear", &ActivityRetry::linear},
                                       Field{"jitter", &ActivityRetry::jitter},
                                       Field{"non_retryable", &ActivityRetry::non_retryable}};
};

// --- events
// -----------------------------------------------------------------------------------------

template <>
struct Layout<WorkflowStarted> {
    static constexpr std::string_view kind = "workflow_started";
    static constexpr std::tuple fields{Field{"name", &WorkflowStarted::name},
                                       Field{"version", &WorkflowStarted::version},
                                       Field{"input", &WorkflowStarted::input},
                                       Field{"parent", &WorkflowStarted::parent},
                                       Field{"status", &WorkflowStarted::status},
                                       Field{"format", &WorkflowStarted::format},
                                       Field{"engine", &WorkflowStarted::engine},
                                       Field{"cron", &WorkflowStarted::cron},
                                       Field{"resets", &WorkflowStarted::resets}};
    static constexpr const char* fault(const WorkflowStarted& event) {
        return event.format == history_format ? nullptr : "the history has another format";
    }
};
template <>
struct Layout<WorkflowCompleted> {
    static constexpr std::string_view kind = "workflow_completed";
    static constexpr std::tuple fields{Field{"output", &WorkflowCompleted::output}};
};
template <>
struct Layout<WorkflowFailed> {
    static constexpr std::string_view kind = "workflow_failed";
    static constexpr std::tuple fields{Field{"failure", &WorkflowFailed::failure}};
};
template <>
struct Layout<WorkflowContinued> {
    static constexpr std::string_view kind = "workflow_continued";
    static constexpr std::tuple fields{Field{"input", &WorkflowContinued::input},
                                       Field{"version", &WorkflowContinued::version}};
};
template <>
struct Layout<CancelRequested> {
    static constexpr std::string_view kind = "cancel_requested";
    static constexpr std::tuple fields{Field{"reason", &CancelRequested::reason},
                                       Field{"deadline_ms", &CancelRequested::deadline_ms}};
};
template <>
struct Layout<WorkflowSuspended> {
    static constexpr std::string_view kind = "workflow_suspended";
    static constexpr std::tuple fields{Field{"reason", &WorkflowSuspended::reason}};
};
template <>
struct Layout<WorkflowResumed> {
    static constexpr std::string_view kind = "workflow_resumed";
    static constexpr std::tuple<> fields{};
};
template <>
struct Layout<TurnContinued> {
    static constexpr std::string_view kind = "turn_continued";
    static constexpr std::tuple<> fields{};
};
template <>
struct Layout<UpdateHandled> {
    static constexpr std::string_view kind = "update_handled";
    static constexpr std::tuple fields{Field{"request", &UpdateHandled::request},
                                       Field{"name", &UpdateHandled::name},
                                       Field{"input", &UpdateHandled::input},
                                       Field{"result", &UpdateHandled::result},
                                       Field{"failure", &UpdateHandled::failure}};
    static constexpr const char* fault(const UpdateHandled& event) {
        return event.result.has_value() != event.failure.has_value()
                   ? nullptr
                   : "an update has either a result or a failure";
    }
};
template <>
struct Layout<ActivityScheduled> {
    static constexpr std::string_view kind = "activity_scheduled";
    static constexpr std::tuple fields{
        Field{"name", &ActivityScheduled::name},
        Field{"input", &ActivityScheduled::input},
        Field{"session", &ActivityScheduled::session},
        Field{"tag", &ActivityScheduled::tag},
        Field{"start_within_ms", &ActivityScheduled::start_within_ms},
        Field{"ahead_ms", &ActivityScheduled::ahead_ms},
        Field{"retry", &ActivityScheduled::retry}};
};
template <>
struct Layout<ActivityCompleted> {
    static constexpr std::string_view kind = "activity_completed";
    static constexpr std::tuple fields{Field{"result", &ActivityCompleted::result},
                                       Field{"attempt", &ActivityCompleted::attempt},
                                       Field{"last_failure", &ActivityCompleted::last_failure}};
};
template <>
struct Layout<ActivityFailedEvent> {
    static constexpr std::string_view kind = "activity_failed";
    static constexpr std::tuple fields{Field{"failure", &ActivityFailedEvent::failure},
                                       Field{"attempt", &ActivityFailedEvent::attempt}};
};
template <>
struct Layout<TimerCreated> {
    static constexpr std::string_view kind = "timer_created";
    static constexpr std::tuple fields{Field{"fire_at_ms", &TimerCreated::fire_at_ms}};
};
template <>
struct Layout<TimerFired> {
    static constexpr std::string_view kind = "timer_fired";
    static constexpr std::tuple<> fields{};
};
template <>
struct Layout<ChildScheduled> {
    static constexpr std::string_view kind = "child_scheduled";
    static constexpr std::tuple fields{Field{"name", &ChildScheduled::name},
                                       Field{"instance", &ChildScheduled::instance},
                                       Field{"input", &ChildScheduled::input},
                                       Field{"version", &ChildScheduled::version}};
};
template <>
struct Layout<ChildCompleted> {
    static constexpr std::string_view kind = "child_completed";
    static constexpr std::tuple fields{Field{"result", &ChildCompleted::result}};
};
template <>
struct Layout<ChildFailedEvent> {
    static constexpr std::string_view kind = "child_failed";
    static constexpr std::tuple fields{Field{"failure", &ChildFailedEvent::failure}};
};
template <>
struct Layout<WorkflowDetached> {
    static constexpr std::string_view kind = "workflow_detached";
    static constexpr std::tuple fields{Field{"name", &WorkflowDetached::name},
                                       Field{"instance", &WorkflowDetached::instance},
                                       Field{"input", &WorkflowDetached::input},
                                       Field{"version", &WorkflowDetached::version}};
};
template <>
struct Layout<MessageAwaited> {
    static constexpr std::string_view kind = "message_awaited";
    static constexpr std::tuple fields{Field{"channel", &MessageAwaited::channel}};
};
template <>
struct Layout<MessageReceived> {
    static constexpr std::string_view kind = "message_received";
    static constexpr std::tuple fields{Field{"channel", &MessageReceived::channel},
                                       Field{"data", &MessageReceived::data}};
};
template <>
struct Layout<SignalAwaited> {
    static constexpr std::string_view kind = "signal_awaited";
    static constexpr std::tuple fields{Field{"name", &SignalAwaited::name}};
};
template <>
struct Layout<SignalReceived> {
    static constexpr std::string_view kind = "signal_received";
    static constexpr std::tuple fields{Field{"name", &SignalReceived::name},
                                       Field{"data", &SignalReceived::data}};
};
template <>
struct Layout<OperationCancelled> {
    static constexpr std::string_view kind = "operation_cancelled";
    static constexpr std::tuple fields{Field{"operation", &OperationCancelled::operation},
                                       Field{"reason", &OperationCancelled::reason}};
};
template <>
struct Layout<StatusUpdated> {
    static constexpr std::string_view kind = "status_updated";
    static constexpr std::tuple fields{Field{"status", &StatusUpdated::status}};
};
template <>
struct Layout<KvSet> {
    static constexpr std::string_view kind = "kv_set";
    static constexpr std::tuple fields{Field{"key", &KvSet::key}, Field{"value", &KvSet::value}};
};
template <>
struct Layout<KvErased> {
    static constexpr std::string_view kind = "kv_erased";
    static constexpr std::tuple fields{Field{"key", &KvErased::key}};
};
template <>
struct Layout<KvCleared> {
    static constexpr std::string_view kind = "kv_cleared";
    static constexpr std::tuple<> fields{};
};
template <>
struct Layout<PatchRecorded> {
    static constexpr std::string_view kind = "patch_recorded";
    static constexpr std::tuple fields{Field{"change", &PatchRecorded::change}};
};
template <>
struct Layout<AttributeSet> {
    static constexpr std::string_view kind = "attribute_set";
    static constexpr std::tuple fields{Field{"name", &AttributeSet::name},
                                       Field{"value", &AttributeSet::value}};
};

// --- messages
// ---------------------------------------------------------------------------------------

template <>
struct Layout<StartMessage> {
    static constexpr std::string_view kind = "start";
    static constexpr std::tuple fields{Field{"name", &StartMessage::name},
                                       Field{"version", &StartMessage::version},
                                       Field{"input", &StartMessage::input},
                                       Field{"parent", &StartMessage::parent},
                                       Field{"cron", &StartMessage::cron}};
};
template <>
struct Layout<ContinueMessage> {
    static constexpr std::string_view kind = "continue";
    static constexpr std::tuple<> fields{};
};
template <>
struct Layout<ActivityAnswer> {
    static constexpr std::string_view kind = "activity_answer";
    static constexpr std::tuple fields{Field{"event", &ActivityAnswer::event},
                                       AnswerField{"result", "failure", &ActivityAnswer::result},
                                       Field{"attempt", &ActivityAnswer::attempt},
                                       Field{"last_failure", &ActivityAnswer::last_failure}};
};
template <>
struct Layout<TimerMessage> {
    static constexpr std::string_view kind = "timer";
    static constexpr std::tuple fields{Field{"event", &TimerMessage::event},
                                       Field{"fire_at_ms", &TimerMessage::fire_at_ms}};
};
template <>
struct Layout<ChildAnswer> {
    static constexpr std::string_view kind = "child_answer";
    static constexpr std::tuple fields{Field{"event", &ChildAnswer::event},
                                       AnswerField{"result", "failure", &ChildAnswer::result}};
};
template <>
struct Layout<ChannelMessage> {
    static constexpr std::string_view kind = "channel_message";
    static constexpr std::tuple fields{Field{"channel", &ChannelMessage::channel},
                                       Field{"data", &ChannelMessage::data}};
};
template <>
struct Layout<SignalMessage> {
    static constexpr std::string_view kind = "signal";
    static constexpr std::tuple fields{Field{"name", &SignalMessage::name},
                                       Field{"data", &SignalMessage::data}};
};
template <>
struct Layout<CancelMessage> {
    static constexpr std::string_view kind = "cancel";
    static constexpr std::tuple fields{Field{"reason", &CancelMessage::reason},
                                       Field{"force", &CancelMessage::force},
                                       Field{"grace_ms", &CancelMessage::grace_ms},
                                       Field{"fail", &CancelMessage::fail}};
};
template <>
struct Layout<SuspendMessage> {
    static constexpr std::string_view kind = "suspend";
    static constexpr std::tuple fields{Field{"reason", &SuspendMessage::reason}};
};
template <>
struct Layout<ResumeMessage> {
    static constexpr std::string_view kind = "resume";
    static constexpr std::tuple<> fields{};
};
template <>
struct Layout<UpdateMessage> {
    static constexpr std::string_view kind = "update";
    static constexpr std::tuple fields{Field{"request", &UpdateMessage::request},
                                       Field{"name", &UpdateMessage::name},
                                       Field{"input", &UpdateMessage::input}};
};
template <>
struct Layout<QueryMessage> {
    static constexpr std::string_view kind = "query";
    static constexpr std::tuple fields{Field{"request", &QueryMessage::request},
                                       Field{"name", &QueryMessage::name},
                                       Field{"input", &QueryMessage::input}};
};
template <>
struct Layout<StartDeadline> {
    static constexpr std::string_view kind = "start_deadline";
    static constexpr std::tuple fields{Field{"event", &StartDeadline::event},
                                       Field{"limit_ms", &StartDeadline::limit_ms}};
};

// --- all of a sort
// ----------------------------------------------------------------------------------

template <class Body>
struct Kinds;
template <class... Bodies>
struct Kinds<std::variant<Bodies...>> {
    // By the variant's index.
    static constexpr std::array<std::string_view, sizeof...(Bodies)> names{Layout<Bodies>::kind...};
};

}  // namespace holdfast::flow::stored
