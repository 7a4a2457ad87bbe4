// Kinds of events as numbers.
#pragma once

#include <cstddef>
#include <utility>

#include <holdfast/flow_engine/event.hpp>
#include <holdfast/flow_engine/message.hpp>

namespace holdfast::flow {

// The index of an event's type, as EventBody::index() gives it.
template <class T>
[[nodiscard]] constexpr std::size_t kind_of() {
    return EventBody(std::in_place_type<T>).index();
}

// Of a turn's events, those that come first: what the turn took, not what the code made of it.
[[nodiscard]] inline bool came_in(const EventBody& body) {
    return std::holds_alternative<ActivityCompleted>(body) ||
           std::holds_alternative<ActivityFailedEvent>(body) ||
           std::holds_alternative<TimerFired>(body) ||
           std::holds_alternative<ChildCompleted>(body) ||
           std::holds_alternative<ChildFailedEvent>(body) ||
           std::holds_alternative<MessageReceived>(body) ||
           std::holds_alternative<SignalReceived>(body) ||
           std::holds_alternative<CancelRequested>(body) ||
           std::holds_alternative<TurnContinued>(body) ||
           std::holds_alternative<UpdateHandled>(body);
}

// Written while messages are taken, but neither taken nor asked for.
[[nodiscard]] inline bool stands_between(const EventBody& body) {
    return std::holds_alternative<WorkflowStarted>(body) ||
           std::holds_alternative<WorkflowSuspended>(body) ||
           std::holds_alternative<WorkflowResumed>(body);
}

// Whether the code may ask for something because of it.
[[nodiscard]] inline bool makes_work(const MessageBody& body) {
    return !std::holds_alternative<StartMessage>(body) &&
           !std::holds_alternative<ContinueMessage>(body) &&
           !std::holds_alternative<StartDeadline>(body) &&
           !std::holds_alternative<QueryMessage>(body);
}

}  // namespace holdfast::flow
