#include "client/reset_cause.hpp"

#include <algorithm>
#include <string_view>

#include <holdfast/base/error.hpp>
#include <holdfast/flow_engine/failure.hpp>

namespace holdfast::flow {
namespace {

const FailureInfo* failure_in(const Event& event) {
    if (const auto* activity = std::get_if<ActivityFailedEvent>(&event.body)) {
        return &activity->failure;
    }
    const auto* child = std::get_if<ChildFailedEvent>(&event.body);
    return child != nullptr ? &child->failure : nullptr;
}

// What reached the code from outside.
bool arrived(const Event& event) {
    return event.source != 0 ? !std::holds_alternative<OperationCancelled>(event.body)
                             : std::holds_alternative<MessageReceived>(event.body) ||
                                   std::holds_alternative<SignalReceived>(event.body) ||
                                   std::holds_alternative<CancelRequested>(event.body) ||
                                   std::holds_alternative<UpdateHandled>(event.body) ||
                                   std::holds_alternative<WorkflowSuspended>(event.body) ||
                                   std::holds_alternative<WorkflowResumed>(event.body);
}

// The life of an execution without its end.
class Life {
public:
    explicit Life(const std::vector<Event>& history) : history_(history) {
        const auto end = std::ranges::find_if(history, belongs_to_the_end);
        lived_ = static_cast<std::size_t>(end - history.begin());
    }

    // The last failure that the end repeats or speaks of.
    [[nodiscard]] std::optional<std::size_t> repeated(const FailureInfo& end) const {
        return last([&](std::size_t i) {
            const FailureInfo* const failure = failure_in(history_[i]);
            return failure != nullptr && *failure == end && !made_good(i);
        });
    }
    [[nodiscard]] std::optional<std::size_t> spoken_of(const FailureInfo& end) const {
        const auto names = [&](std::string_view text) {
            return !text.empty() && (end.message.find(text) != std::string::npos ||
                                     end.cause.find(text) != std::string::npos);
        };
        return last([&](std::size_t i) {
            const FailureInfo* const failure = failure_in(history_[i]);
            return failure != nullptr && !made_good(i) &&
                   (names(failure->text()) || names(failure->message));
        });
    }
    // Of what the code saw in its last turn.
    [[nodiscard]] std::optional<std::size_t> seen_last(bool timers) const {
        const std::size_t after = last_arrival();
        for (std::size_t i = after; i > 0 && arrived(history_[i - 1]); --i) {
            const bool fired = std::holds_alternative<TimerFired>(history_[i - 1].body);
            if (timers ? fired : failure_in(history_[i - 1]) != nullptr) {
                return i - 1;
            }
        }
        return std::nullopt;
    }
    [[nodiscard]] std::optional<std::size_t> last_request() const {
        return last([&](std::size_t i) {
            return std::holds_alternative<CancelRequested>(history_[i].body);
        });
    }
    [[nodiscard]] std::optional<std::size_t> cancel_request() const {
        for (std::size_t i = 0; i < lived_; ++i) {
            if (std::holds_alternative<CancelRequested>(history_[i].body)) {
                return i;
            }
        }
        return std::nullopt;
    }
    // Behind the last event that is not the code's own. What it asked for in the turn that ended it
    // was never sent.
    [[nodiscard]] std::size_t last_arrival() const {
        for (std::size_t i = lived_; i > 1; --i) {
            if (arrived(history_[i - 1])) {
                return i;
            }
        }
        return 1;
    }
    [[nodiscard]] std::size_t scheduled(std::size_t answer) const {
        const auto found = std::ranges::find(history_, history_[answer].source, &Event::id);
        return static_cast<std::size_t>(found - history_.begin());
    }

private:
    template <class Fits>
    [[nodiscard]] std::optional<std::size_t> last(const Fits& fits) const {
        for (std::size_t i = lived_; i > 0; --i) {
            if (fits(i - 1)) {
                return i - 1;
            }
        }
        return std::nullopt;
    }
    // The same operation was asked for again later, and has succeeded.
    [[nodiscard]] bool made_good(std::size_t failure) const {
        const EventBody& wanted = history_[scheduled(failure)].body;
        for (std::size_t i = failure + 1; i < lived_; ++i) {
            const bool success = std::holds_alternative<ActivityCompleted>(history_[i].body) ||
                                 std::holds_alternative<ChildCompleted>(history_[i].body);
            if (success && same(history_[scheduled(i)].body, wanted)) {
                return true;
            }
        }
        return false;
    }
    [[nodiscard]] static bool same(const EventBody& a, const EventBody& b) {
        if (const auto* activity = std::get_if<ActivityScheduled>(&a)) {
            const auto* other = std::get_if<ActivityScheduled>(&b);
            return other != nullptr && activity->name == other->name &&
                   activity->input == other->input;
        }
        const auto* child = std::get_if<ChildScheduled>(&a);
        const auto* other = std::get_if<ChildScheduled>(&b);
        return child != nullptr && other != nullptr && child->name == other->name &&
               child->input == other->input;
    }

    const std::vector<Event>& history_;
    std::size_t lived_ = 0;
};

}  // namespace

bool belongs_to_the_end(const Event& event) {
    const auto* cancelled = std::get_if<OperationCancelled>(&event.body);
    return is_terminal(event.body) || (cancelled != nullptr && cancelled->reason != "dropped");
}

void date_last_turn(std::vector<Event>& events, std::int64_t now_ms) {
    bool in_arrivals = false;
    for (std::size_t i = events.size(); i > 0; --i) {
        Event& event = events[i - 1];
        if (in_arrivals && !arrived(event)) {
            return;
        }
        in_arrivals = arrived(event);
        event.time_ms = std::max(event.time_ms, now_ms);
    }
}

Cause cause_of_end(const std::vector<Event>& history) {
    const auto* const end =
        history.empty() ? nullptr : std::get_if<WorkflowFailed>(&history.back().body);
    if (end == nullptr) {
        throw Error(Code::condition_failed,
                    Outcome::not_applied,
                    "this execution has not failed; name the last event that stays");
    }
    const Life life(history);
    const FailureInfo& failure = end->failure;
    if (failure.type == failed_by_operator) {
        if (const auto request = life.last_request()) {
            return {.kept = *request, .event = history[*request]};
        }
    }
    if (failure.kind == FailureKind::cancelled) {
        if (const auto request = life.cancel_request()) {
            return {.kept = *request, .event = history[*request]};
        }
    }
    std::optional<std::size_t> found;
    if (reaches_code(failure.kind) || failure.kind == FailureKind::poison) {
        found = life.repeated(failure);
    }
    if (!found && reaches_code(failure.kind)) {
        found = life.spoken_of(failure);
        found = found ? found : life.seen_last(false);
    }
    if (found) {
        // A child that has failed stays so: another one is started.
        const bool child = std::holds_alternative<ChildFailedEvent>(history[*found].body);
        return {.kept = child ? life.scheduled(*found) : *found, .event = history[*found]};
    }
    if (failure.kind == FailureKind::timeout) {
        if (const auto fired = life.seen_last(true)) {  // Its time begins anew.
            return {.kept = life.scheduled(*fired), .event = history[*fired], .ran_out = true};
        }
    }
    return {.kept = life.last_arrival()};
}

}  // namespace holdfast::flow
