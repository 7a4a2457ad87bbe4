// The replay engine: one execution of one workflow, in memory.
//
// Pure: it knows no store, no thread and no clock. A history and messages go in; events and what is
// to be done about them come out. The caller makes both durable together, and only then acts on
// them. If that fails, memory is ahead of the store: throw the object away.
//
// An object can be kept between turns, and then a turn costs what its messages cost; or it can be
// built anew from the history, which runs the code from its first line to the same point.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <holdfast/flow_engine/context.hpp>
#include <holdfast/flow_engine/event.hpp>
#include <holdfast/flow_engine/message.hpp>

namespace holdfast::flow {

enum class Ending : std::uint8_t { none, completed, failed, cancelled, continued };

// What one turn did, and what its caller has to do.
struct Turn {
    std::vector<Event> events;  // To append; the terminal one last, if the execution has ended.
    Ending ending = Ending::none;
    // The code does not do what the history says, and so the execution has failed. The caller may
    // throw the turn away, and the object with it: another build may fit.
    bool mismatch = false;
    // Which of the messages were taken; the others belong to the execution that follows, or to the
    // next turn: a turn takes no more once the code has made half of the requests of one turn.
    std::vector<std::size_t> taken;
    bool left_some = false;  // Of the messages, for the next turn.
    // The code waits for a message that has arrived: it continues in another turn, which the caller
    // has to run. This bounds a turn, however many messages there are.
    bool cut = false;

    std::vector<std::pair<EventId, ActivityScheduled>> activities;
    std::vector<std::pair<EventId, std::int64_t>> timers;  // When they fire, in milliseconds.
    std::vector<std::pair<EventId, ChildScheduled>> children;
    std::vector<WorkflowDetached> detached;
    std::vector<EventId> cancelled_activities;
    std::vector<EventId> cancelled_timers;
    std::vector<std::pair<std::string, std::string>> cancelled_children;  // Instance and reason.

    std::optional<StatusUpdated> status;  // The last one of the turn.
    int status_changes = 0;
    std::vector<std::variant<KvSet, KvErased, KvCleared>> kv;
    std::vector<AttributeSet> attributes;
    std::optional<bool> suspended;
    // Answers to queries and updates, by request.
    std::vector<std::pair<std::string, std::variant<Payload, FailureInfo>>> replies;

    // Of Ending::continued: what the next execution takes along besides its input.
    std::vector<MessageReceived> carried;
    std::optional<CancelMessage> cancel;  // A cancel request, with the time left.

    // Requires: an ending with such an event.
    [[nodiscard]] const Payload& output() const;
    [[nodiscard]] const FailureInfo& failure() const;
    [[nodiscard]] const WorkflowContinued& continued() const;
};

// The code can see the limits, so a replay needs those of the first run.
struct ExecutionLimits {
    int actions_per_turn = 1000;
    std::int64_t cancel_grace_ms = 300'000;
    EventId events_max = 50'000;
    EventId events_soft = 10'000;  // From here on suggest_continue_as_new() is true.
    std::int64_t bytes_soft = 16 << 20;
    std::int64_t bytes_max = 64 << 20;
};

class Execution {
public:
    // `build` tells builds of the program apart: it is recorded where it changes, and decides how
    // a replay treats changed inputs (input_check.hpp). Empty: not known.
    Execution(std::string instance,
              ExecutionId execution,
              detail::Program program,
              ExecutionLimits limits = {},
              Logger* logger = nullptr,
              std::string build = {});
    // Destroys the coroutine where it stands. What it waited for is not cancelled.
    ~Execution();
    Execution(const Execution&) = delete;
    Execution& operator=(const Execution&) = delete;

    // One of the two, once, before the first turn.
    // A new execution: event 1 is written by the first turn.
    void begin(WorkflowStarted started, std::map<std::string, Payload> kv = {});
    // One that has a history, beginning with event 1, and `kv` as it was when the execution began.
    // Nothing runs yet.
    void load(std::vector<Event> history, std::map<std::string, Payload> kv = {});

    // Takes messages and runs the code until it waits again. Answers of other executions, and those
    // that were given already, are passed over. After an ending only an empty turn is possible.
    // Requires: `now` does not lie before that of an earlier turn (it is corrected if it does).
    [[nodiscard]] Turn turn(Moment now, std::span<const Message> messages);

    [[nodiscard]] EventId last_event() const noexcept;
    [[nodiscard]] bool ended() const noexcept;
    // Whether the code still wants the answer of this event.
    [[nodiscard]] bool waits_for(EventId event) const;
    // The events whose answers are still to come, in order. Requires: it has taken a turn.
    [[nodiscard]] std::vector<EventId> open() const;
    // Roughly what it holds in memory.
    [[nodiscard]] std::size_t bytes() const noexcept;
    [[nodiscard]] const WorkflowStarted& started() const;
    // Whether a cancel request has arrived.
    [[nodiscard]] bool cancel_requested() const noexcept;
    // The time of its first event. Requires: it has taken a turn.
    [[nodiscard]] Moment begun() const;
    // The custom status as the code left it.
    [[nodiscard]] const std::optional<Payload>& status() const;

private:
    class Engine;
    friend std::optional<FailureInfo> check_replay(std::string,
                                                   detail::Program,
                                                   std::vector<Event>,
                                                   std::map<std::string, Payload>,
                                                   ExecutionId,
                                                   std::string,
                                                   Logger*);

    std::unique_ptr<Engine> engine_;
};

// Runs a workflow's code over a whole history, as it was exported. Empty: it does what the history
// says, or differs only where a replay warns, through `logger`. Else where and how it differs.
// Random numbers and ids depend on the instance and the execution.
[[nodiscard]] std::optional<FailureInfo> check_replay(std::string instance,
                                                      detail::Program program,
                                                      std::vector<Event> history,
                                                      std::map<std::string, Payload> kv = {},
                                                      ExecutionId execution = 1,
                                                      std::string build = {},
                                                      Logger* logger = nullptr);

}  // namespace holdfast::flow
