// A turn: messages become events, the code runs, its requests become events, the end is written.
#include <algorithm>

#include "replay/engine.hpp"
#include "replay/event_kind.hpp"
#include <fmt/core.h>

#include <holdfast/base/assert.hpp>

namespace holdfast::flow {
namespace {

// The order in which messages are taken: as they came, but timers that are due together by the time
// they were due.
std::vector<std::size_t> taking_order(std::span<const Message> messages) {
    std::vector<std::size_t> order(messages.size());
    std::vector<std::size_t> timers;
    for (std::size_t i = 0; i < messages.size(); ++i) {
        order[i] = i;
        if (std::holds_alternative<TimerMessage>(messages[i].body)) {
            timers.push_back(i);
        }
    }
    std::vector<std::size_t> sorted = timers;
    std::ranges::sort(sorted, {}, [&](std::size_t i) {
        return std::pair(std::get<TimerMessage>(messages[i].body).fire_at_ms, i);
    });
    for (std::size_t i = 0; i < timers.size(); ++i) {
        order[timers[i]] = sorted[i];
    }
    return order;
}

// From which event on the code does what it has never done: after a reset, from the last one that
// was copied, unless it went on since. 0: all of it is a repetition.
EventId first_new(const std::vector<Event>& history, const std::vector<ResetPoint>& resets) {
    const EventId copied = resets.empty() ? 0 : resets.back().event;
    const bool went_on = std::ranges::any_of(
        history, [&](const Event& event) { return event.id > copied && !came_in(event.body); });
    return went_on ? 0 : copied;
}

struct PayloadBytes {
    template <class T>
    std::size_t operator()(const T&) const {
        return 0;
    }
    std::size_t operator()(const WorkflowStarted& e) const { return e.input.json.size(); }
    std::size_t operator()(const ActivityScheduled& e) const { return e.input.json.size(); }
    std::size_t operator()(const ActivityCompleted& e) const { return e.result.json.size(); }
    std::size_t operator()(const ChildScheduled& e) const { return e.input.json.size(); }
    std::size_t operator()(const ChildCompleted& e) const { return e.result.json.size(); }
    std::size_t operator()(const WorkflowDetached& e) const { return e.input.json.size(); }
    std::size_t operator()(const MessageReceived& e) const { return e.data.json.size(); }
    std::size_t operator()(const SignalReceived& e) const { return e.data.json.size(); }
    std::size_t operator()(const UpdateHandled& e) const { return e.input.json.size(); }
    std::size_t operator()(const KvSet& e) const { return e.value.json.size(); }
    std::size_t operator()(const StatusUpdated& e) const {
        return e.status ? e.status->json.size() : 0;
    }
};

constexpr std::size_t child_id_bytes_max = 256;

// Roughly; the same for an event that is written and one that is replayed.
std::int64_t stored_bytes(const EventBody& body) {
    constexpr std::size_t frame = 80;
    return static_cast<std::int64_t>(frame + std::visit(PayloadBytes{}, body));
}

FailureInfo not_running(std::string_view what, std::string_view name) {
    return FailureInfo{.type = "NotHandled",
                       .message = fmt::format("the workflow handles no {} '{}'", what, name),
                       .retryable = false};
}

}  // namespace

bool has_run(const std::vector<Event>& history) {
    return std::ranges::any_of(history, [](const Event& event) {
        return !std::holds_alternative<WorkflowStarted>(event.body) &&
               !std::holds_alternative<MessageReceived>(event.body);
    });
}

void Execution::Engine::prime(std::int64_t now_ms) {
    primed_ = true;
    begun_ms_ = history_.empty() ? now_ms : history_.front().time_ms;
    if (history_.empty()) {
        now_ms_ = now_ms;
        WorkflowStarted started = started_;
        record(std::move(started));
        return;
    }
    replay();
    now_ms_ = std::max(now_ms_, now_ms);
}

void Execution::Engine::replay() {
    if (!std::holds_alternative<WorkflowStarted>(history_.front().body)) {
        differs("the history is damaged: it does not begin with workflow_started");
        last_event_ = history_.back().id;
        left_ = left_open(history_);
        return;
    }
    const auto terminal =
        std::ranges::find_if(history_, [](const Event& event) { return is_terminal(event.body); });
    if (terminal != history_.end() && !verifying_) {
        for (const Event& event : history_) {
            last_event_ = std::max(last_event_, event.id);
        }
        ended_ = true;
        return;
    }
    replaying_ = has_run(history_);
    const EventId fresh = first_new(history_, started_.resets);
    bool asked_some = false;
    for (const Event& event : history_) {
        replaying_ = replaying_ && (fresh == 0 || event.id < fresh);
        if (stopped()) {
            last_event_ = std::max(last_event_, event.id);  // New events come after all of them.
            continue;
        }
        const bool in = came_in(event.body);
        if (in && asked_some) {
            actions_ = 0;  // Another turn began here.
        }
        asked_some = stands_between(event.body) ? asked_some : !in;
        history_bytes_ += stored_bytes(event.body);
        apply(event);
    }
    replaying_ = false;
    if (asked_.empty()) {
        actions_ = 0;
    }
    if (stopped()) {
        left_ = left_open(history_);
    }
    history_.clear();
    history_.shrink_to_fit();
}

Turn Execution::Engine::turn(Moment now, std::span<const Message> messages) {
    Turn turn;
    turn_ = &turn;
    actions_ = 0;
    const std::int64_t now_ms = now.time_since_epoch().count();
    if (!primed_) {
        prime(now_ms);
    }
    now_ms_ = std::max(now_ms_, now_ms);
    if (!ended_) {
        if (!stopped() && !code_ended() && !cut_channels().empty()) {
            record(TurnContinued{});
        }
        for (const std::size_t i : taking_order(messages)) {
            if (makes_work(messages[i].body) && reads_no_more() && !stopped() && !code_ended()) {
                turn.left_some = true;
                continue;
            }
            if (!take(messages[i])) {
                continue;
            }
            turn.taken.push_back(i);
        }
        write_requests();
        write_drops();
        finish();
        turn.cut = turn.ending == Ending::none && !cut_channels().empty();
    } else {
        for (std::size_t i = 0; i < messages.size(); ++i) {
            turn.taken.push_back(i);
        }
    }
    turn.mismatch = mismatch_;
    turn_ = nullptr;
    return turn;
}

void Execution::Engine::append(EventBody body, EventId source) {
    const EventId id = last_event_ + 1;
    const bool was_long = is_long();
    last_event_ = id;
    history_bytes_ += stored_bytes(body);
    if (!was_long && is_long() && !is_terminal(body)) {
        tell_of_length();
    }
    const bool too_many = id > limits_.events_max;
    if ((too_many || history_bytes_ > limits_.bytes_max) && !abort_ && !is_terminal(body)) {
        abort_ = FailureInfo{
            .kind = FailureKind::infrastructure,
            .type = "HistoryTooLong",
            .message = fmt::format("the history has more than {}; continue as new before that",
                                   too_many ? fmt::format("{} events", limits_.events_max)
                                            : fmt::format("{} bytes", limits_.bytes_max)),
            .retryable = false};
    }
    turn_->events.push_back(
        Event{.id = id, .source = source, .time_ms = now_ms_, .body = std::move(body)});
    if (!build_.empty() && build_ != recorded_build_) {
        turn_->events.back().build = build_;
        recorded_build_ = build_;
    }
}

void Execution::Engine::record(EventBody body, EventId source) {
    append(std::move(body), source);
    const Event event = turn_->events.back();  // A copy: applying may add events.
    apply(event);
}

// --- messages -----------------------------------------------------------------------------------

struct Execution::Engine::Taker {
    Engine& engine;

    void operator()(const StartMessage&) const {}  // It has started; a repeat changes nothing.
    void operator()(const ContinueMessage&) const {}
    void operator()(const ActivityAnswer& m) const {
        if (const Payload* result = std::get_if<Payload>(&m.result)) {
            engine.take_answer(m.event,
                               ActivityCompleted{*result, m.attempt, m.last_failure},
                               kind_of<ActivityScheduled>());
        } else {
            engine.take_answer(m.event,
                               ActivityFailedEvent{std::get<FailureInfo>(m.result), m.attempt},
                               kind_of<ActivityScheduled>());
        }
    }
    void operator()(const ChildAnswer& m) const {
        if (const Payload* result = std::get_if<Payload>(&m.result)) {
            engine.take_answer(m.event, ChildCompleted{*result}, kind_of<ChildScheduled>());
        } else {
            engine.take_answer(m.event,
                               ChildFailedEvent{std::get<FailureInfo>(m.result)},
                               kind_of<ChildScheduled>());
        }
    }
    void operator()(const TimerMessage& m) const { engine.take_timer(m); }
    void operator()(const ChannelMessage& m) const {
        engine.record(MessageReceived{m.channel, m.data});
    }
    void operator()(const SignalMessage& m) const { engine.record(SignalReceived{m.name, m.data}); }
    void operator()(const CancelMessage& m) const { engine.take_cancel(m); }
    void operator()(const SuspendMessage& m) const {
        engine.append(WorkflowSuspended{m.reason});
        engine.turn_->suspended = true;
    }
    void operator()(const ResumeMessage&) const {
        engine.append(WorkflowResumed{});
        engine.turn_->suspended = false;
    }
    void operator()(const UpdateMessage& m) const { engine.take_update(m); }
    void operator()(const QueryMessage& m) const { engine.take_query(m); }
    // The runtime knows whether the activity has begun, and has sent its failure if not.
    void operator()(const StartDeadline&) const {}
};

// The answer of a child that an execution started whose events this one began with.
bool Execution::Engine::inherits(const Message& message) const {
    const ChildAnswer* const answer = std::get_if<ChildAnswer>(&message.body);
    return answer != nullptr && std::ranges::any_of(started_.resets, [&](const ResetPoint& reset) {
               return reset.execution == message.execution && answer->event <= reset.event;
           });
}

bool Execution::Engine::take(const Message& message) {
    if (message.execution != 0 && message.execution != execution_ && !inherits(message)) {
        return true;  // Meant for another execution: no longer needed.
    }
    if (code_ended() && message.execution == 0 && continues_) {
        return false;
    }
    if (stopped() || code_ended()) {
        refuse(message.body);
        return true;
    }
    std::visit(Taker{*this}, message.body);
    return true;
}

// The code has ended in this turn: its handlers may refer to variables that no longer exist, and a
// message that comes now cannot change the end.
void Execution::Engine::refuse(const MessageBody& message) {
    if (const UpdateMessage* update = std::get_if<UpdateMessage>(&message)) {
        turn_->replies.emplace_back(update->request, not_running("update", update->name));
    } else if (const QueryMessage* query = std::get_if<QueryMessage>(&message)) {
        turn_->replies.emplace_back(query->request, not_running("query", query->name));
    } else if (const ChannelMessage* mail = std::get_if<ChannelMessage>(&message)) {
        append(MessageReceived{mail->channel, mail->data});
    } else if (const SignalMessage* signal = std::get_if<SignalMessage>(&message)) {
        append(SignalReceived{signal->name, signal->data});
    } else if (const CancelMessage* cancel = std::get_if<CancelMessage>(&message)) {
        if (!cancelled_ && !continues_) {
            cancelled_ = cancel->reason;  // This end stays as it is; a schedule ends with it.
        }
    }
}

void Execution::Engine::take_answer(EventId source, EventBody body, std::size_t scheduled_kind) {
    const auto found = open_.find(source);
    if (found == open_.end()) {
        if (duplicate(source)) {
            return;
        }
        differs(fmt::format(
            "an answer ({}) came for event {}, which waits for none", kind_name(body), source));
        return;
    }
    if (found->second->action.index() != scheduled_kind) {
        differs(fmt::format("an answer ({}) came for event {}, which is {}",
                            kind_name(body),
                            source,
                            kind_name(found->second->action)));
        return;
    }
    if (found->second->must_begin) {
        turn_->cancelled_timers.push_back(source);
    }
    record(std::move(body), source);
}

void Execution::Engine::take_timer(const TimerMessage& message) {
    if (message.event == cancel_event_ && cancel_event_ != 0) {
        record(TimerFired{}, message.event);
        return;
    }
    take_answer(message.event, TimerFired{}, kind_of<TimerCreated>());
}

void Execution::Engine::take_cancel(const CancelMessage& message) {
    if (cancelled_ && !message.force) {
        return;  // The first reason stays.
    }
    const std::chrono::milliseconds grace{message.grace_ms > 0 ? message.grace_ms
                                                               : limits_.cancel_grace_ms};
    const std::int64_t deadline =
        message.force ? now_ms_ : later(this->now(), grace).time_since_epoch().count();
    record(CancelRequested{message.reason, deadline});
    if (!message.force) {
        turn_->timers.emplace_back(cancel_event_, deadline);
    }
}

void Execution::Engine::take_update(const UpdateMessage& message) {
    const auto done = updates_done_.find(message.request);
    if (done != updates_done_.end()) {
        turn_->replies.emplace_back(message.request, done->second);
        return;
    }
    if (!updates_.contains(message.name)) {
        turn_->replies.emplace_back(message.request, not_running("update", message.name));
        return;
    }
    UpdateHandled update{message.request, message.name, message.input, std::nullopt, std::nullopt};
    applied_ = last_event_ + 1;  // As on replay, where the event is there before its handler runs.
    handle_update(update);
    const std::variant<Payload, FailureInfo>& result = updates_done_[message.request];
    if (const Payload* value = std::get_if<Payload>(&result)) {
        update.result = *value;
    } else {
        update.failure = std::get<FailureInfo>(result);
    }
    turn_->replies.emplace_back(message.request, result);
    append(std::move(update));
    serve_waiting();
}

void Execution::Engine::take_query(const QueryMessage& message) {
    std::variant<Payload, FailureInfo> result = not_running("query", message.name);
    const auto handler = queries_.find(message.name);
    if (handler != queries_.end()) {
        read_only_ = true;
        current = &handlers_;
        const std::uint64_t random_state = random_state_;
        try {
            result = handler->second(message.input);
        } catch (const Failure& failure) {
            result = failure.info();
        } catch (const std::exception& error) {
            result = FailureInfo{.message = error.what()};
        }
        random_state_ = random_state;
        current = nullptr;
        read_only_ = false;
    }
    turn_->replies.emplace_back(message.request, std::move(result));
}

// --- requests
// -------------------------------------------------------------------------------------

// What is to be done about a request, beside writing it down.
struct Execution::Engine::Commander {
    Engine& engine;
    EventId id;
    const SlotPtr& slot;
    Turn& turn;

    void operator()(const ActivityScheduled& a) const {
        if (!slot->dropped) {
            turn.activities.emplace_back(id, a);
        }
    }
    void operator()(const TimerCreated& t) const {
        if (!slot->dropped) {
            turn.timers.emplace_back(id, t.fire_at_ms);
        }
    }
    void operator()(const ChildScheduled& c) const {
        if (!slot->dropped) {
            turn.children.emplace_back(id, c);
        }
    }
    void operator()(const WorkflowDetached& d) const { turn.detached.push_back(d); }
    void operator()(const StatusUpdated& s) const {
        turn.status = s;
        ++turn.status_changes;
    }
    void operator()(const KvSet& k) const { turn.kv.emplace_back(k); }
    void operator()(const KvErased& k) const { turn.kv.emplace_back(k); }
    void operator()(const KvCleared& k) const { turn.kv.emplace_back(k); }
    void operator()(const AttributeSet& a) const { turn.attributes.push_back(a); }
    template <class Other>
    void operator()(const Other&) const {}
};

void Execution::Engine::write_requests() {
    while (!asked_.empty()) {
        const SlotPtr slot = std::move(asked_.front());
        asked_.pop_front();
        const EventId id = last_event_ + 1;
        if (ChildScheduled* child = std::get_if<ChildScheduled>(&slot->action)) {
            if (child->instance.empty()) {
                child->instance = fmt::format("{}::{}.{}", instance_, execution_, id);
            }
            if (child->instance.size() > child_id_bytes_max && !abort_) {
                abort_ = FailureInfo{
                    .kind = FailureKind::application,
                    .type = "LimitExceeded",
                    .message = fmt::format("the id of a child would have {} bytes, and {} is the "
                                           "most; give it a shorter one by .id()",
                                           child->instance.size(),
                                           child_id_bytes_max),
                    .retryable = false};
            }
            slot->instance = child->instance;
        }
        slot->fresh = true;
        slot->must_begin = has_start_limit(slot->action);
        fresh_.push_back(slot);
        bind(slot, id);
        // Waits are found by what they wait for when they are given up; the rest may be large.
        const bool waits = std::holds_alternative<MessageAwaited>(slot->action) ||
                           std::holds_alternative<SignalAwaited>(slot->action);
        append(waits ? EventBody(slot->action) : std::move(slot->action));
        std::visit(Commander{*this, id, slot, *turn_}, turn_->events.back().body);
    }
}

void Execution::Engine::write_drops() {
    // What was given up, in the order of asking; what was asked and given up in one turn was never
    // sent, so there is nothing to call back.
    std::ranges::sort(dropped_, {}, [](const SlotPtr& slot) { return slot->event; });
    for (const SlotPtr& slot : dropped_) {
        const Dropped what = dropped_kind(slot->action);
        given_up_.insert(slot->event);
        append(OperationCancelled{what, "dropped"}, slot->event);
        if (slot->fresh) {
            continue;
        }
        if (what == Dropped::timer || slot->must_begin) {
            turn_->cancelled_timers.push_back(slot->event);
        }
        if (what == Dropped::activity) {
            turn_->cancelled_activities.push_back(slot->event);
        } else if (what == Dropped::child) {
            turn_->cancelled_children.emplace_back(slot->instance, "the parent no longer waits");
        }
    }
    dropped_.clear();
}

// --- the end
// ----------------------------------------------------------------------------------------

void Execution::Engine::finish() {
    if (abort_) {
        finish_with(Ending::failed, WorkflowFailed{*abort_});
    } else if (forced_) {
        finish_by_force();
    } else if (root_ && root_->branch_done()) {
        if (const std::exception_ptr error = root_->branch_error()) {
            finish_from_error(error);
        } else if (continues_) {
            finish_by_continuing(*continues_);
        } else {
            finish_with_result(root_->branch_take());
        }
    }
    for (const SlotPtr& slot : fresh_) {
        slot->fresh = false;
    }
    fresh_.clear();
}

void Execution::Engine::finish_with_result(Payload result) {
    if (const auto failure = too_large("the result", result.json.size())) {
        finish_with(Ending::failed, WorkflowFailed{*failure});
    } else {
        finish_with(Ending::completed, WorkflowCompleted{std::move(result)});
    }
}

void Execution::Engine::finish_by_force() {
    finish_with(Ending::cancelled,
                WorkflowFailed{FailureInfo{.kind = FailureKind::cancelled,
                                           .type = "Cancelled",
                                           .message = cancelled_.value_or(""),
                                           .retryable = false}});
}

// A cancel request is for the instance: the next execution inherits it with the same deadline.
void Execution::Engine::finish_by_continuing(const Continuation& next) {
    if (cancelled_ && cancel_deadline_ms_ <= now_ms_) {
        finish_by_force();
        return;
    }
    if (const auto failure = too_large("the next input", next.input.json.size())) {
        finish_with(Ending::failed, WorkflowFailed{*failure});
        return;
    }
    carry_messages();
    if (cancelled_) {
        turn_->cancel = CancelMessage{*cancelled_, false, cancel_deadline_ms_ - now_ms_};
    }
    finish_with(Ending::continued, WorkflowContinued{next.input, next.version});
}

void Execution::Engine::finish_from_error(const std::exception_ptr& error) {
    FailureInfo info;
    Ending ending = Ending::failed;
    try {
        std::rethrow_exception(error);
    } catch (const Failure& failure) {
        info = failure.info();
    } catch (const Cancelled& stop) {
        ending = Ending::cancelled;
        info = FailureInfo{.kind = FailureKind::cancelled,
                           .type = "Cancelled",
                           .message = stop.reason(),
                           .retryable = false};
    } catch (const std::exception& panic) {
        info = FailureInfo{.kind = FailureKind::panic,
                           .type = "Panic",
                           .message = panic.what(),
                           .retryable = false};
    } catch (...) {
        info = FailureInfo{.kind = FailureKind::panic,
                           .type = "Panic",
                           .message = "something other than a std::exception was thrown",
                           .retryable = false};
    }
    finish_with(ending, WorkflowFailed{std::move(info)});
}

void Execution::Engine::finish_with(Ending ending, EventBody terminal) {
    turn_->ending = ending;
    abandon_open(std::string(kind_name(terminal)));
    // Answers are not needed: requests of this turn are not sent. Detached starts are.
    turn_->activities.clear();
    turn_->timers.clear();
    turn_->children.clear();
    append(std::move(terminal));
    ended_ = true;
}

void Execution::Engine::carry_messages() {
    std::map<EventId, MessageReceived> unread;
    for (auto& [name, channel] : channels_) {
        for (auto& [id, data] : channel.buffered) {
            unread.emplace(id, MessageReceived{name, std::move(data)});
        }
    }
    for (auto& [id, message] : unread) {
        turn_->carried.push_back(std::move(message));
    }
}

}  // namespace holdfast::flow
