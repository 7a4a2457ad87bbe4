#include <holdfast/flow_engine/left_open.hpp>

#include <algorithm>
#include <map>
#include <variant>

#include "replay/engine.hpp"
#include "replay/event_kind.hpp"

namespace holdfast::flow {
namespace {

bool closes(const EventBody& body) {
    return std::holds_alternative<ActivityCompleted>(body) ||
           std::holds_alternative<ActivityFailedEvent>(body) ||
           std::holds_alternative<ChildCompleted>(body) ||
           std::holds_alternative<ChildFailedEvent>(body) ||
           std::holds_alternative<OperationCancelled>(body);
}

}  // namespace

std::vector<LeftOpen> left_open(std::span<const Event> history) {
    std::map<EventId, LeftOpen> open;
    for (const Event& event : history) {
        if (std::holds_alternative<ActivityScheduled>(event.body)) {
            open[event.id] = {.event = event.id, .operation = Dropped::activity};
        } else if (const auto* child = std::get_if<ChildScheduled>(&event.body)) {
            open[event.id] = {
                .event = event.id, .operation = Dropped::child, .child = child->instance};
        } else if (closes(event.body)) {
            open.erase(event.source);
        }
    }
    std::vector<LeftOpen> left;
    left.reserve(open.size());
    for (auto& [id, operation] : open) {
        left.push_back(std::move(operation));
    }
    return left;
}

void abandon(Turn& turn, const LeftOpen& operation) {
    if (operation.operation == Dropped::child) {
        turn.cancelled_children.emplace_back(operation.child, "the parent has ended");
    } else {
        turn.cancelled_activities.push_back(operation.event);
    }
}

// If the code did not come as far as its history, the history knows of more.
void Execution::Engine::abandon_open(std::string_view reason) {
    std::vector<SlotPtr> left;
    left.reserve(open_.size());
    for (const auto& [id, slot] : open_) {
        left.push_back(slot);
    }
    std::ranges::sort(left, {}, [](const SlotPtr& slot) { return slot->event; });
    for (const SlotPtr& slot : left) {
        const std::size_t kind = slot->action.index();
        if (kind == kind_of<ActivityScheduled>()) {
            append(OperationCancelled{Dropped::activity, std::string(reason)}, slot->event);
            if (!slot->fresh) {
                abandon(*turn_, {slot->event, Dropped::activity});
            }
            if (!slot->fresh && slot->must_begin) {
                turn_->cancelled_timers.push_back(slot->event);
            }
        } else if (kind == kind_of<ChildScheduled>()) {
            append(OperationCancelled{Dropped::child, std::string(reason)}, slot->event);
            if (!slot->fresh) {
                abandon(*turn_, {slot->event, Dropped::child, slot->instance});
            }
        } else if (kind == kind_of<TimerCreated>() && !slot->fresh) {
            turn_->cancelled_timers.push_back(slot->event);
        }
    }
    for (const LeftOpen& operation : left_) {
        if (!open_.contains(operation.event)) {
            append(OperationCancelled{operation.operation, std::string(reason)}, operation.event);
            abandon(*turn_, operation);
        }
    }
    left_.clear();
    open_.clear();
}

}  // namespace holdfast::flow
