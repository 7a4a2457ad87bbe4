// What is sent to an instance: answers, signals, requests. One turn takes all that are waiting.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include <holdfast/flow_engine/event.hpp>
#include <holdfast/flow_engine/failure.hpp>
#include <holdfast/flow_engine/ids.hpp>
#include <holdfast/flow_engine/payload.hpp>

namespace holdfast::flow {

struct StartMessage {
    std::string name;
    std::string version;  // Empty: by policy.
    Payload input;
    std::optional<ParentLink> parent;
    std::optional<std::string> cron{};
    friend bool operator==(const StartMessage&, const StartMessage&) = default;
};
// The execution before has ended and event 1 of the new one is written: run its first turn.
struct ContinueMessage {
    friend bool operator==(const ContinueMessage&, const ContinueMessage&) = default;
};
struct ActivityAnswer {
    EventId event = 0;  // Of its ActivityScheduled.
    std::variant<Payload, FailureInfo> result;
    std::optional<int> attempt{};               // Which one gave it, if it was not the first.
    std::optional<FailureInfo> last_failure{};  // Of a result: how the attempt before failed.
    friend bool operator==(const ActivityAnswer&, const ActivityAnswer&) = default;
};
struct TimerMessage {
    EventId event = 0;  // Of its TimerCreated, or of the CancelRequested whose deadline this is.
    std::int64_t fire_at_ms = 0;
    friend bool operator==(const TimerMessage&, const TimerMessage&) = default;
};
// An activity that has not begun by now has failed.
struct StartDeadline {
    EventId event = 0;  // Of its ActivityScheduled.
    std::int64_t limit_ms = 0;
    friend bool operator==(const StartDeadline&, const StartDeadline&) = default;
};
struct ChildAnswer {
    EventId event = 0;  // Of its ChildScheduled.
    std::variant<Payload, FailureInfo> result;
    friend bool operator==(const ChildAnswer&, const ChildAnswer&) = default;
};
struct ChannelMessage {
    std::string channel;
    Payload data;
    friend bool operator==(const ChannelMessage&, const ChannelMessage&) = default;
};
struct SignalMessage {
    std::string name;
    Payload data;
    friend bool operator==(const SignalMessage&, const SignalMessage&) = default;
};
struct CancelMessage {
    std::string reason;
    bool force = false;          // Terminate: the code cannot clean up.
    std::int64_t grace_ms = 0;   // How long the code may take; 0: the runtime's default.
    std::optional<bool> fail{};  // With force: it fails, and is not cancelled.
    friend bool operator==(const CancelMessage&, const CancelMessage&) = default;
};
struct SuspendMessage {
    std::string reason;
    friend bool operator==(const SuspendMessage&, const SuspendMessage&) = default;
};
struct ResumeMessage {
    friend bool operator==(const ResumeMessage&, const ResumeMessage&) = default;
};
// The reply is stored under `request`.
struct UpdateMessage {
    std::string request;
    std::string name;
    Payload input;
    friend bool operator==(const UpdateMessage&, const UpdateMessage&) = default;
};
struct QueryMessage {
    std::string request;
    std::string name;
    Payload input;
    friend bool operator==(const QueryMessage&, const QueryMessage&) = default;
};

using MessageBody = std::variant<StartMessage,
                                 ContinueMessage,
                                 ActivityAnswer,
                                 TimerMessage,
                                 ChildAnswer,
                                 ChannelMessage,
                                 SignalMessage,
                                 CancelMessage,
                                 SuspendMessage,
                                 ResumeMessage,
                                 UpdateMessage,
                                 QueryMessage,
                                 StartDeadline>;

struct Message {
    // The execution an answer belongs to; 0: the current one.
    ExecutionId execution = 0;
    MessageBody body;
    friend bool operator==(const Message&, const Message&) = default;
};

// The stored name of its kind: "activity_answer".
[[nodiscard]] std::string_view kind_name(const MessageBody& body) noexcept;

}  // namespace holdfast::flow
