// Applying events: the one path for what is new and what is replayed.
#include <algorithm>

#include "replay/engine.hpp"
#include "replay/event_kind.hpp"
#include "stored/payload_json.hpp"
#include <fmt/core.h>

#include <holdfast/base/assert.hpp>
#include <holdfast/base/log.hpp>

namespace holdfast::flow {
namespace {

Likeness likeness(const Payload& a, const Payload& b) {
    if (a == b) {
        return Likeness::same;
    }
    return agree(a.json, b.json) ? Likeness::other_fields : Likeness::other;
}

// Whether the code asks for what the history says, and how far with the same input. Timers, status,
// how long an activity may wait and how it is tried again may differ in their values.
struct SameRequest {
    Likeness& input;

    [[nodiscard]] bool compare(const Payload& a, const Payload& b) const {
        input = likeness(a, b);
        return true;
    }
    template <class A, class B>
    bool operator()(const A&, const B&) const {
        return false;
    }
    bool operator()(const ActivityScheduled& a, const ActivityScheduled& b) const {
        return a.name == b.name && a.session == b.session && a.tag == b.tag &&
               compare(a.input, b.input);
    }
    bool operator()(const TimerCreated&, const TimerCreated&) const { return true; }
    bool operator()(const ChildScheduled& a, const ChildScheduled& b) const {
        return a.name == b.name && compare(a.input, b.input);
    }
    bool operator()(const WorkflowDetached& a, const WorkflowDetached& b) const {
        return a.name == b.name && a.instance == b.instance && compare(a.input, b.input);
    }
    bool operator()(const MessageAwaited& a, const MessageAwaited& b) const { return a == b; }
    bool operator()(const SignalAwaited& a, const SignalAwaited& b) const { return a == b; }
    bool operator()(const StatusUpdated&, const StatusUpdated&) const { return true; }
    bool operator()(const KvSet& a, const KvSet& b) const {
        // Clients read the stored value: the one in memory must be the same.
        return a.key == b.key && compare(a.value, b.value) && input != Likeness::other;
    }
    bool operator()(const KvErased& a, const KvErased& b) const { return a == b; }
    bool operator()(const KvCleared&, const KvCleared&) const { return true; }
    bool operator()(const PatchRecorded& a, const PatchRecorded& b) const { return a == b; }
    bool operator()(const AttributeSet& a, const AttributeSet& b) const { return a.name == b.name; }
};

struct Describe {
    template <class T>
    std::string operator()(const T&) const {
        return {};
    }
    std::string operator()(const ActivityScheduled& a) const {
        return fmt::format(" '{}' with input {}{}{}",
                           a.name,
                           a.input.json.substr(0, 200),
                           a.session ? fmt::format(", session '{}'", *a.session) : "",
                           a.tag ? fmt::format(", tag '{}'", *a.tag) : "");
    }
    std::string operator()(const ChildScheduled& a) const {
        return fmt::format(" '{}' with input {}", a.name, a.input.json.substr(0, 200));
    }
    std::string operator()(const WorkflowDetached& a) const {
        return fmt::format(
            " '{}' as '{}' with input {}", a.name, a.instance, a.input.json.substr(0, 200));
    }
    std::string operator()(const MessageAwaited& a) const {
        return fmt::format(" on '{}'", a.channel);
    }
    std::string operator()(const SignalAwaited& a) const { return fmt::format(" '{}'", a.name); }
    std::string operator()(const KvSet& a) const {
        return fmt::format(" '{}' = {}", a.key, a.value.json.substr(0, 200));
    }
    std::string operator()(const KvErased& a) const { return fmt::format(" '{}'", a.key); }
    std::string operator()(const PatchRecorded& a) const { return fmt::format(" '{}'", a.change); }
    std::string operator()(const AttributeSet& a) const { return fmt::format(" '{}'", a.name); }
};

}  // namespace

Dropped dropped_kind(const EventBody& action) {
    if (std::holds_alternative<ActivityScheduled>(action)) {
        return Dropped::activity;
    }
    if (std::holds_alternative<TimerCreated>(action)) {
        return Dropped::timer;
    }
    if (std::holds_alternative<ChildScheduled>(action)) {
        return Dropped::child;
    }
    return std::holds_alternative<MessageAwaited>(action) ? Dropped::message : Dropped::signal;
}

bool has_start_limit(const EventBody& action) {
    const auto* const activity = std::get_if<ActivityScheduled>(&action);
    return activity != nullptr && activity->start_within_ms.has_value();
}

std::string describe_action(const EventBody& action) {
    return std::string(kind_name(action)) + std::visit(Describe{}, action);
}

struct Execution::Engine::Applier {
    Engine& engine;
    const Event& event;

    void operator()(const WorkflowStarted&) const {
        if (event.id != 1 || engine.root_) {
            engine.differs("the history has a second start");
            return;
        }
        engine.start_code();
    }
    void operator()(const ActivityCompleted& e) const {
        engine.answer(event, e.result, kind_of<ActivityScheduled>());
    }
    void operator()(const ActivityFailedEvent& e) const {
        failed(e.failure, kind_of<ActivityScheduled>());
    }
    void operator()(const ChildCompleted& e) const {
        engine.answer(event, e.result, kind_of<ChildScheduled>());
    }
    void operator()(const ChildFailedEvent& e) const {
        failed(e.failure, kind_of<ChildScheduled>());
    }
    void operator()(const TimerFired&) const {
        if (event.source == engine.cancel_event_ && engine.cancel_event_ != 0) {
            engine.forced_ = true;  // The code did not end in time.
            return;
        }
        engine.answer(event, Payload{}, kind_of<TimerCreated>());
    }
    void operator()(const MessageReceived& e) const { engine.receive(event, e); }
    void operator()(const SignalReceived& e) const { engine.receive(event, e); }
    void operator()(const OperationCancelled& e) const { engine.cancelled(event, e); }
    void operator()(const CancelRequested& e) const { engine.request_cancel(event, e); }
    void operator()(const UpdateHandled& e) const { engine.handle_update(e); }
    void operator()(const WorkflowSuspended&) const {}
    void operator()(const WorkflowResumed&) const {}
    void operator()(const TurnContinued&) const {
        engine.actions_ = 0;
        for (std::string& name : engine.cut_channels()) {
            engine.returned_.insert(std::move(name));  // As if they had just come back.
        }
    }
    void operator()(const WorkflowCompleted&) const {}
    void operator()(const WorkflowFailed&) const {}
    void operator()(const WorkflowContinued&) const {}
    template <class Schedule>
    void operator()(const Schedule&) const {
        engine.match(event);
    }

private:
    void failed(const FailureInfo& failure, std::size_t kind) const {
        if (!reaches_code(failure.kind)) {
            engine.closed_.insert(event.source);
            engine.open_.erase(event.source);
            engine.abort_ = failure;
            return;
        }
        engine.answer(event, failure, kind);
    }
};

void Execution::Engine::apply(const Event& event) {
    applied_ = event.id;
    last_event_ = std::max(last_event_, event.id);
    now_ms_ = std::max(now_ms_, event.time_ms);
    if (!event.build.empty()) {
        recorded_build_ = event.build;
    }
    std::visit(Applier{*this, event}, event.body);
    serve_waiting();
}

void Execution::Engine::differs(std::string message) {
    if (!abort_) {
        mismatch_ = true;
        abort_ = FailureInfo{.kind = FailureKind::nondeterminism,
                             .type = "Nondeterminism",
                             .message = std::move(message),
                             .retryable = false};
    }
}

void Execution::Engine::bind(const SlotPtr& slot, EventId event) {
    slot->event = event;
    if (slot->dropped || slot->done()) {
        closed_.insert(event);
    } else if (slot->action.index() == kind_of<ActivityScheduled>() ||
               slot->action.index() == kind_of<TimerCreated>() ||
               slot->action.index() == kind_of<ChildScheduled>() ||
               slot->action.index() == kind_of<MessageAwaited>() ||
               slot->action.index() == kind_of<SignalAwaited>()) {
        open_.emplace(event, slot);
    }
}

bool Execution::Engine::is_long() const noexcept {
    return last_event_ >= limits_.events_soft || history_bytes_ >= limits_.bytes_soft;
}

// Logged by the turn that passes the limit, and so once per execution, on whichever worker.
void Execution::Engine::tell_of_length() const {
    if (logger_ != nullptr) {
        logger_->warn("a history has become long; the workflow should continue as new",
                      {{"instance", instance_},
                       {"workflow", workflow_},
                       {"execution", execution_},
                       {"events", last_event_},
                       {"events_max", limits_.events_max},
                       {"bytes", history_bytes_},
                       {"bytes_max", limits_.bytes_max}});
    }
}

bool Execution::Engine::accepts(InputCheck check, Likeness input) const {
    switch (check) {
        case InputCheck::strict:
            return input == Likeness::same;
        case InputCheck::warn:
        case InputCheck::ignore:
            return true;
        case InputCheck::by_build:
            break;
    }
    const bool known = !build_.empty() && !recorded_build_.empty();
    return input != Likeness::other || (known && build_ != recorded_build_);
}

// Warns once, and once more if a graver difference follows: the next event is probably of the same
// struct.
void Execution::Engine::tell_of_input(const Event& event, Likeness input) {
    if (input <= told_ || logger_ == nullptr) {
        return;
    }
    told_ = input;
    logger_->warn(input == Likeness::other ? "an input is not the one in the history"
                                           : "a value has other fields than the history has",
                  {{"instance", instance_},
                   {"event", event.id},
                   {"build", build_},
                   {"recorded_build", recorded_build_}});
}

void Execution::Engine::match(const Event& event) {
    if (asked_.empty()) {
        const bool over = root_ && root_->branch_done();
        differs(fmt::format("event {} is {}, but the code {}",
                            event.id,
                            describe_action(event.body),
                            over ? "has ended before it" : "asked for nothing"));
        return;
    }
    const SlotPtr slot = std::move(asked_.front());
    asked_.pop_front();
    Likeness input = Likeness::same;
    if (!std::visit(SameRequest{input}, slot->action, event.body) ||
        !accepts(slot->input_check, input)) {
        differs(fmt::format("event {} is {}, but the code asked for {}",
                            event.id,
                            describe_action(event.body),
                            describe_action(slot->action)));
        return;
    }
    if (slot->input_check != InputCheck::ignore) {
        tell_of_input(event, input);
    }
    if (const ChildScheduled* child = std::get_if<ChildScheduled>(&event.body)) {
        slot->instance = child->instance;
    }
    slot->must_begin = has_start_limit(event.body);
    bind(slot, event.id);
}

void Execution::Engine::answer(const Event& event,
                               detail::Answer answer,
                               std::size_t scheduled_kind) {
    const auto found = open_.find(event.source);
    if (found == open_.end()) {
        if (given_up_.contains(event.source)) {
            return;  // It was sent before the code gave it up.
        }
        differs(fmt::format(
            "event {} ({}) answers event {}, which {}",
            event.id,
            kind_name(event.body),
            event.source,
            closed_.contains(event.source) ? "is answered already" : "waits for no answer"));
        return;
    }
    const SlotPtr slot = found->second;
    if (slot->action.index() != scheduled_kind) {
        differs(fmt::format("event {} is {}, but it answers event {}, which is {}",
                            event.id,
                            kind_name(event.body),
                            event.source,
                            kind_name(slot->action)));
        return;
    }
    deliver(slot, std::move(answer), event.id);
}

void Execution::Engine::deliver(const SlotPtr& slot, detail::Answer answer, EventId arrived) {
    slot->answer = std::move(answer);
    slot->settled = {.event = arrived, .order = ++order_};
    if (slot->event != 0) {
        open_.erase(slot->event);
        closed_.insert(slot->event);
    }
    resume(slot->listener);
}

void Execution::Engine::receive(const Event& event, const MessageReceived& message) {
    ChannelState& channel = channels_[message.channel];
    // Never before an earlier one. Those carried over from the execution before come all at once.
    if (channel.waiting.empty() || !channel.buffered.empty() || reads_no_more()) {
        channel.buffered.emplace_back(event.id, message.data);
        return;
    }
    const SlotPtr slot = std::move(channel.waiting.front());
    channel.waiting.pop_front();
    deliver(slot, message.data, event.id);
}

// Delivers messages that were given back while the code ran to the coroutines that wait for them,
// and resumes those that awaited what another coroutine gave up.
void Execution::Engine::serve_waiting() {
    while (!to_wake_.empty() || !returned_.empty()) {
        if (!to_wake_.empty()) {
            const std::shared_ptr<detail::Listener> waiting = std::move(to_wake_.front());
            to_wake_.pop_front();
            resume(waiting.get());
            continue;
        }
        ChannelState& channel = channels_[*returned_.begin()];
        if (channel.waiting.empty() || channel.buffered.empty() || reads_no_more()) {
            returned_.erase(returned_.begin());
            continue;
        }
        const SlotPtr slot = std::move(channel.waiting.front());
        channel.waiting.pop_front();
        const auto [arrived, data] = std::move(channel.buffered.front());
        channel.buffered.pop_front();
        deliver(slot, data, arrived);
    }
}

void Execution::Engine::receive(const Event& event, const SignalReceived& signal) {
    std::deque<SlotPtr>& waiting = signals_[signal.name];
    if (waiting.empty()) {
        return;  // No wait is open: it is only recorded in the history.
    }
    const SlotPtr slot = std::move(waiting.front());
    waiting.pop_front();
    deliver(slot, signal.data, event.id);
}

void Execution::Engine::cancelled(const Event& event, const OperationCancelled& what) {
    if (!given_up_.insert(event.source).second || what.reason != "dropped") {
        return;
    }
    const auto found = std::ranges::find_if(
        dropped_, [&](const SlotPtr& slot) { return slot->event == event.source; });
    if (found == dropped_.end() || dropped_kind((*found)->action) != what.operation) {
        differs(
            fmt::format("event {} says that the code gave up the {} of event {}, and it did not",
                        event.id,
                        to_string(what.operation),
                        event.source));
        return;
    }
    dropped_.erase(found);
}

void Execution::Engine::request_cancel(const Event& event, const CancelRequested& request) {
    cancel_event_ = event.id;
    cancel_deadline_ms_ = request.deadline_ms;
    if (request.deadline_ms <= event.time_ms) {
        forced_ = true;  // Terminated: the code does not run again.
        if (!cancelled_) {
            cancelled_ = request.reason;
        }
        return;
    }
    if (!cancelled_) {
        cancel_waiting(request.reason);
    }
}

void Execution::Engine::handle_update(const UpdateHandled& update) {
    std::variant<Payload, FailureInfo> result;
    const auto handler = updates_.find(update.name);
    if (handler == updates_.end()) {
        differs(fmt::format("the history has an update '{}', which the code does not know",
                            update.name));
        return;
    }
    current = &handlers_;
    try {
        result = handler->second(update.input);
    } catch (const Failure& failure) {
        result = failure.info();
    } catch (const std::exception& error) {
        result = FailureInfo{.message = error.what()};
    }
    current = nullptr;
    updates_done_[update.request] = std::move(result);
}

}  // namespace holdfast::flow
