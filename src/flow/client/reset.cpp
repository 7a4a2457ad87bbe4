#include "client/reset.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "client/reset_cause.hpp"
#include "runtime/turns.hpp"
#include <fmt/core.h>

#include <holdfast/base/error.hpp>

namespace holdfast::flow {
namespace {

template <class... F>
struct Cases : F... {
    using F::operator()...;
};

// How many events stay, and what would have come next if that is the cause of the end.
struct Cut {
    std::size_t kept = 0;
    std::optional<Event> cause{};
    bool ran_out = false;  // Of a cause that is a timeout.
};

Cut cut_of(const std::vector<Event>& history, const ResetOptions& options) {
    if (options.to == ResetTo::start) {
        return {.kept = 1};
    }
    if (options.to == ResetTo::before_failure) {
        const Cause cause = cause_of_end(history);
        return {.kept = cause.kept, .cause = cause.event, .ran_out = cause.ran_out};
    }
    const auto end = std::ranges::find_if(history, belongs_to_the_end);
    const EventId last = history[static_cast<std::size_t>(end - history.begin()) - 1].id;
    if (options.event < 1 || options.event > last) {
        throw InvalidArgument(fmt::format(
            "event {} cannot be the last that stays; choose from 1 to {}", options.event, last));
    }
    const auto after =
        std::ranges::find_if(history, [&](const Event& event) { return event.id > options.event; });
    return {.kept = static_cast<std::size_t>(after - history.begin())};
}

// What the code waits for after these events.
std::map<EventId, const Event*> open_operations(const std::vector<Event>& events) {
    std::map<EventId, const Event*> open;
    for (const Event& event : events) {
        const auto* const cancel = std::get_if<CancelRequested>(&event.body);
        const bool has_deadline = cancel != nullptr && cancel->deadline_ms > event.time_ms;
        if (std::holds_alternative<ActivityScheduled>(event.body) ||
            std::holds_alternative<TimerCreated>(event.body) ||
            std::holds_alternative<ChildScheduled>(event.body) || has_deadline) {
            open.emplace(event.id, &event);
        } else if (event.source != 0) {
            open.erase(event.source);
        }
    }
    return open;
}

void send_timer(ResetInstance& reset, EventId event, std::int64_t fire_at_ms) {
    reset.messages.push_back({.instance = reset.instance,
                              .message = Message{.execution = reset.next.execution,
                                                 .body = TimerMessage{event, fire_at_ms}},
                              .visible_at_ms = fire_at_ms});
}

// Activities run again and timers are set again. Children continue: they answer to the execution
// that has the events that started them.
void wait_again(ResetInstance& reset,
                const std::map<EventId, const Event*>& open,
                const WorkflowStarted& started,
                Moment now) {
    for (const auto& [id, event] : open) {
        if (const auto* activity = std::get_if<ActivityScheduled>(&event->body)) {
            reset.activities.push_back({.key = {reset.instance, reset.next.execution, id},
                                        .name = activity->name,
                                        .input = activity->input,
                                        .workflow = started.name,
                                        .version = started.version,
                                        .session = activity->session,
                                        .tag = activity->tag,
                                        .ahead = milliseconds{activity->ahead_ms.value_or(0)},
                                        .must_begin = activity->start_within_ms.has_value(),
                                        .retry = activity->retry});
            if (activity->start_within_ms) {
                reset.messages.push_back(
                    start_deadline(reset.activities.back().key, *activity->start_within_ms, now));
            }
        } else if (const auto* timer = std::get_if<TimerCreated>(&event->body)) {
            send_timer(reset, id, timer->fire_at_ms);
        } else if (const auto* cancel = std::get_if<CancelRequested>(&event->body)) {
            send_timer(reset, id, cancel->deadline_ms);
        }
    }
}

void send(ResetInstance& reset, const std::string& instance, MessageBody body) {
    reset.messages.push_back(
        {.instance = instance, .message = Message{.execution = 0, .body = std::move(body)}});
}

// Sends a message from outside again. False: the event is not such a message.
bool send_again(ResetInstance& reset, const Event& event) {
    if (const auto* update = std::get_if<UpdateHandled>(&event.body)) {
        send(reset, reset.instance, UpdateMessage{update->request, update->name, update->input});
    } else if (const auto* message = std::get_if<MessageReceived>(&event.body)) {
        send(reset, reset.instance, ChannelMessage{message->channel, message->data});
    } else if (const auto* signal = std::get_if<SignalReceived>(&event.body)) {
        send(reset, reset.instance, SignalMessage{signal->name, signal->data});
    } else {
        return false;
    }
    return true;
}

// What came from outside after the point is kept; what the execution did itself is not.
void bring_along(ResetInstance& reset,
                 const std::map<EventId, const Event*>& open,
                 std::vector<Event> cut,
                 const ChildRuns& runs) {
    std::set<EventId> answered;
    for (const Event& event : cut) {
        const bool of_child = std::holds_alternative<ChildCompleted>(event.body) ||
                              std::holds_alternative<ChildFailedEvent>(event.body);
        if (of_child) {
            answered.insert(event.source);
        }
    }
    const auto stays = [&](const Event& event) {
        if (std::holds_alternative<ChildCompleted>(event.body) ||
            std::holds_alternative<ChildFailedEvent>(event.body)) {
            const auto child = open.find(event.source);
            // One that failed and was reset itself will answer again.
            return child != open.end() &&
                   (std::holds_alternative<ChildCompleted>(event.body) ||
                    !runs(std::get<ChildScheduled>(child->second->body).instance));
        }
        return std::holds_alternative<MessageReceived>(event.body) ||
               std::holds_alternative<SignalReceived>(event.body);
    };
    EventId last = reset.next.events.back().id;
    bool by_mail = false;
    for (Event& event : cut) {
        const bool arrival = stays(event);
        // An update needs its handler, which the code may register later: it comes as a message,
        // and so does all that came after it.
        by_mail = by_mail || std::holds_alternative<UpdateHandled>(event.body);
        if (by_mail && send_again(reset, event)) {
            continue;
        }
        if (arrival) {
            event.id = ++last;
            reset.next.events.push_back(std::move(event));
        } else if (const auto* child = std::get_if<ChildScheduled>(&event.body);
                   child != nullptr && !answered.contains(event.id)) {
            send(reset, child->instance, CancelMessage{"the parent was reset", false, 0});
        }
    }
}

void restore_state(ResetInstance& reset,
                   const WorkflowStarted& started,
                   const std::vector<Event>& kept_events,
                   const std::vector<Event>& cut) {
    reset.custom_status = started.status;
    std::map<std::string, std::optional<Payload>> attributes;
    for (const Event& event : kept_events) {
        std::visit(
            Cases{[&](const StatusUpdated& e) { reset.custom_status = e.status; },
                  [&](const KvSet& e) {
                      reset.kv.push_back(
                          {.what = KvChange::What::set, .key = e.key, .value = e.value});
                  },
                  [&](const KvErased& e) {
                      reset.kv.push_back({.what = KvChange::What::erase, .key = e.key});
                  },
                  [&](const KvCleared&) { reset.kv.push_back({.what = KvChange::What::clear}); },
                  [&](const AttributeSet& e) { attributes[e.name] = e.value; },
                  [](const auto&) {}},
            event.body);
    }
    // What an attribute was before this execution is not known; then it stays as it is.
    std::set<std::string> changed;
    for (const Event& event : cut) {
        const auto* attribute = std::get_if<AttributeSet>(&event.body);
        if (attribute == nullptr || !changed.insert(attribute->name).second) {
            continue;
        }
        const auto before = attributes.find(attribute->name);
        if (before != attributes.end() || reset.execution == 1) {
            reset.attributes.push_back(
                {attribute->name, before != attributes.end() ? before->second : std::nullopt});
        }
    }
}

}  // namespace

ResetPlan plan_reset(std::string instance,
                     ExecutionId execution,
                     std::vector<Event> history,
                     const ResetOptions& options,
                     const ChildRuns& runs,
                     Moment now) {
    if (history.empty() || !std::holds_alternative<WorkflowStarted>(history.front().body)) {
        throw Error(
            Code::condition_failed,
            holdfast::Outcome::not_applied,
            fmt::format("workflow '{}' has not begun; there is nothing to reset", instance));
    }
    ResetInstance reset{.instance = std::move(instance),
                        .execution = execution,
                        .last_event = history.back().id,
                        .next = {.execution = execution + 1, .version = {}}};
    Cut where = cut_of(history, options);
    const auto cut_at = history.begin() + static_cast<std::ptrdiff_t>(where.kept);
    std::vector<Event> cut(std::make_move_iterator(cut_at), std::make_move_iterator(history.end()));
    history.erase(cut_at, history.end());

    if (where.ran_out) {
        date_last_turn(history, now.time_since_epoch().count());
    }
    auto& started = std::get<WorkflowStarted>(history.front().body);
    if (!options.version.empty()) {
        started.version = Version::parse(options.version).text();
    }
    const EventId point = history.back().id;
    std::vector<Event> undone = cut;
    for (ResetPoint& earlier : started.resets) {
        earlier.event = std::min(earlier.event, point);
    }
    started.resets.push_back({.execution = execution, .event = point});
    reset.next.version = started.version;
    reset.next.events = history;

    const std::map<EventId, const Event*> open = open_operations(history);
    restore_state(reset, started, history, cut);
    wait_again(reset, open, started, now);
    bring_along(reset, open, std::move(cut), runs);
    return {.reset = std::move(reset),
            .cause = std::move(where.cause),
            .last_kept = point,
            .cut = std::move(undone)};
}

}  // namespace holdfast::flow
