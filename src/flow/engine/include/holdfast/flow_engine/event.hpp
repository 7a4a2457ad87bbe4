// The event catalogue: everything a history can say.
//
// A history is what one execution did, in order. Three sorts of events: request events (the code
// asked for something; compared with the code on replay), closing events (what came back; `source`
// is the request they answer) and facts (about the instance as a whole). docs/workflows-format.md
// has the stored names.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <holdfast/flow_engine/failure.hpp>
#include <holdfast/flow_engine/ids.hpp>
#include <holdfast/flow_engine/payload.hpp>
#include <holdfast/flow_engine/retry.hpp>

namespace holdfast::flow {

// The operation that waits for a child's answer.
struct ParentLink {
    std::string instance;
    ExecutionId execution = 0;
    EventId event = 0;
    friend bool operator==(const ParentLink&, const ParentLink&) = default;
};

// Where an execution was reset: the next one began with its events up to this one.
struct ResetPoint {
    ExecutionId execution = 0;
    EventId event = 0;
    friend bool operator==(const ResetPoint&, const ResetPoint&) = default;
};

// --- facts ------------------------------------------------------------------------------------

// Always event 1.
struct WorkflowStarted {
    std::string name;
    std::string version;
    Payload input;
    std::optional<ParentLink> parent;
    std::optional<Payload> status;  // Carried over from the execution before.
    int format = history_format;
    std::string engine = engine_version.text();
    std::optional<std::string> cron{};  // When it runs again after it has ended.
    // Of an execution that began with the events of another: which, the oldest first. Random
    // numbers are those of the first, and its children answer to all of them.
    std::vector<ResetPoint> resets{};
    friend bool operator==(const WorkflowStarted&, const WorkflowStarted&) = default;
};
struct WorkflowCompleted {
    Payload output;
    friend bool operator==(const WorkflowCompleted&, const WorkflowCompleted&) = default;
};
struct WorkflowFailed {
    FailureInfo failure;
    friend bool operator==(const WorkflowFailed&, const WorkflowFailed&) = default;
};
struct WorkflowContinued {
    Payload input;
    std::string version;  // Requested; empty: as the registry decides.
    friend bool operator==(const WorkflowContinued&, const WorkflowContinued&) = default;
};
// The execution is ended if the code has not ended by the deadline.
struct CancelRequested {
    std::string reason;
    std::int64_t deadline_ms = 0;
    friend bool operator==(const CancelRequested&, const CancelRequested&) = default;
};
struct WorkflowSuspended {
    std::string reason;
    friend bool operator==(const WorkflowSuspended&, const WorkflowSuspended&) = default;
};
struct WorkflowResumed {
    friend bool operator==(const WorkflowResumed&, const WorkflowResumed&) = default;
};
// A turn began only because the one before stopped reading messages: see Turn::cut.
struct TurnContinued {
    friend bool operator==(const TurnContinued&, const TurnContinued&) = default;
};
// An update of the workflow's state, and its answer.
struct UpdateHandled {
    std::string request;  // Its id; a repeat is answered from here.
    std::string name;
    Payload input;
    std::optional<Payload> result;  // One of the two.
    std::optional<FailureInfo> failure;
    friend bool operator==(const UpdateHandled&, const UpdateHandled&) = default;
};

// --- requests and their closing events
// ------------------------------------------------------------------

struct ActivityScheduled {
    std::string name;
    Payload input;
    std::optional<std::string> session;
    std::optional<std::string> tag;
    std::optional<std::int64_t> start_within_ms{};  // Fails if it has not begun by then.
    std::optional<std::int64_t> ahead_ms{};  // Taken before those that are older by up to this.
    std::optional<ActivityRetry> retry{};    // Empty: the first failure is final.
    friend bool operator==(const ActivityScheduled&, const ActivityScheduled&) = default;
};
// Attempts before the last leave no events: the closing event has the number of the last one, if it
// was not the first, and how the one before it failed.
struct ActivityCompleted {
    Payload result;
    std::optional<int> attempt{};
    std::optional<FailureInfo> last_failure{};
    friend bool operator==(const ActivityCompleted&, const ActivityCompleted&) = default;
};
struct ActivityFailedEvent {
    FailureInfo failure;
    std::optional<int> attempt{};
    friend bool operator==(const ActivityFailedEvent&, const ActivityFailedEvent&) = default;
};

struct TimerCreated {
    std::int64_t fire_at_ms = 0;
    friend bool operator==(const TimerCreated&, const TimerCreated&) = default;
};
struct TimerFired {
    friend bool operator==(const TimerFired&, const TimerFired&) = default;
};

struct ChildScheduled {
    std::string name;
    std::string instance;
    Payload input;
    std::string version;  // Empty: by policy.
    friend bool operator==(const ChildScheduled&, const ChildScheduled&) = default;
};
struct ChildCompleted {
    Payload result;
    friend bool operator==(const ChildCompleted&, const ChildCompleted&) = default;
};
struct ChildFailedEvent {
    FailureInfo failure;
    friend bool operator==(const ChildFailedEvent&, const ChildFailedEvent&) = default;
};

// A detached start; never answered.
struct WorkflowDetached {
    std::string name;
    std::string instance;
    Payload input;
    std::string version;
    friend bool operator==(const WorkflowDetached&, const WorkflowDetached&) = default;
};

// The code waits for, or took, the next message of a channel.
struct MessageAwaited {
    std::string channel;
    friend bool operator==(const MessageAwaited&, const MessageAwaited&) = default;
};
// Kept until some wait takes it. Carried messages of the execution before come right after event 1.
struct MessageReceived {
    std::string channel;
    Payload data;
    friend bool operator==(const MessageReceived&, const MessageReceived&) = default;
};
// Positional: a wait is a slot, an arrival without a free slot is only recorded.
struct SignalAwaited {
    std::string name;
    friend bool operator==(const SignalAwaited&, const SignalAwaited&) = default;
};
struct SignalReceived {
    std::string name;
    Payload data;
    friend bool operator==(const SignalReceived&, const SignalReceived&) = default;
};

// The code no longer wants an answer of `source`: a race was lost, a handle was dropped, the
// execution ended.
enum class Dropped : std::uint8_t { activity, timer, child, message, signal };
struct OperationCancelled {
    Dropped operation = Dropped::activity;
    std::string reason;  // "dropped", or how the workflow ended
    friend bool operator==(const OperationCancelled&, const OperationCancelled&) = default;
};

// --- requests without an answer
// ------------------------------------------------------------------

struct StatusUpdated {
    std::optional<Payload> status;  // Empty: cleared.
    friend bool operator==(const StatusUpdated&, const StatusUpdated&) = default;
};
struct KvSet {
    std::string key;
    Payload value;
    friend bool operator==(const KvSet&, const KvSet&) = default;
};
struct KvErased {
    std::string key;
    friend bool operator==(const KvErased&, const KvErased&) = default;
};
struct KvCleared {
    friend bool operator==(const KvCleared&, const KvCleared&) = default;
};
struct PatchRecorded {
    std::string change;
    friend bool operator==(const PatchRecorded&, const PatchRecorded&) = default;
};
struct AttributeSet {
    std::string name;
    std::optional<Payload> value;  // Empty: removed.
    friend bool operator==(const AttributeSet&, const AttributeSet&) = default;
};

using EventBody = std::variant<WorkflowStarted,
                               WorkflowCompleted,
                               WorkflowFailed,
                               WorkflowContinued,
                               CancelRequested,
                               WorkflowSuspended,
                               WorkflowResumed,
                               TurnContinued,
                               UpdateHandled,
                               ActivityScheduled,
                               ActivityCompleted,
                               ActivityFailedEvent,
                               TimerCreated,
                               TimerFired,
                               ChildScheduled,
                               ChildCompleted,
                               ChildFailedEvent,
                               WorkflowDetached,
                               MessageAwaited,
                               MessageReceived,
                               SignalAwaited,
                               SignalReceived,
                               OperationCancelled,
                               StatusUpdated,
                               KvSet,
                               KvErased,
                               KvCleared,
                               PatchRecorded,
                               AttributeSet>;

struct Event {
    EventId id = 0;
    EventId source = 0;        // Of closing events and cancellations: the request.
    std::int64_t time_ms = 0;  // By the database's clock; never falls within a history.
    EventBody body;
    // Which build of the program wrote it and those that follow. Empty: the same as before it.
    std::string build{};
    friend bool operator==(const Event&, const Event&) = default;
};

// The stored name of its kind: "activity_scheduled".
[[nodiscard]] std::string_view kind_name(const EventBody& body) noexcept;
[[nodiscard]] std::string_view to_string(Dropped operation) noexcept;

// Completed, failed or continued: nothing follows.
[[nodiscard]] bool is_terminal(const EventBody& body) noexcept;

}  // namespace holdfast::flow
