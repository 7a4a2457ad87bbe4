#include <holdfast/flow_engine/execution.hpp>

#include <algorithm>

#include "replay/engine.hpp"
#include <fmt/core.h>

#include <holdfast/base/assert.hpp>

namespace holdfast::flow {

// --- what the code asks --------------------------------------------------------------------------

namespace {

struct InputBytes {
    template <class T>
    std::size_t operator()(const T&) const {
        return 0;
    }
    std::size_t operator()(const ActivityScheduled& e) const { return e.input.json.size(); }
    std::size_t operator()(const ChildScheduled& e) const { return e.input.json.size(); }
    std::size_t operator()(const WorkflowDetached& e) const { return e.input.json.size(); }
};

}  // namespace

std::optional<FailureInfo> too_large(std::string_view what, std::size_t bytes) {
    if (bytes <= payload_bytes_max) {
        return std::nullopt;
    }
    return FailureInfo{.type = "LimitExceeded",
                       .message = fmt::format("{} has {} bytes; at most {}: keep it elsewhere and "
                                              "pass its address",
                                              what,
                                              bytes,
                                              payload_bytes_max),
                       .retryable = false};
}

void Execution::Engine::asked(const SlotPtr& slot) {
    if (const auto failure = too_large("the input", std::visit(InputBytes{}, slot->action))) {
        throw Failure(*failure);
    }
    // A message that is there is read at most once: their number is a bound of its own.
    if (!slot->at_once && ++actions_ > limits_.actions_per_turn) {
        throw Failure(FailureInfo{.type = "LimitExceeded",
                                  .message = fmt::format("the code asked for more than {} things "
                                                         "in one turn",
                                                         limits_.actions_per_turn),
                                  .retryable = false});
    }
    asked_.push_back(slot);
    if (const MessageAwaited* wait = std::get_if<MessageAwaited>(&slot->action)) {
        ChannelState& channel = channels_[wait->channel];
        if (channel.buffered.empty() || (reads_no_more() && !slot->at_once)) {
            channel.waiting.push_back(slot);
            return;
        }
        auto& [arrived, data] = channel.buffered.front();
        slot->answer = std::move(data);
        slot->settled = {.event = arrived, .order = ++order_};
        channel.buffered.pop_front();
    } else if (const SignalAwaited* wait_signal = std::get_if<SignalAwaited>(&slot->action)) {
        signals_[wait_signal->name].push_back(slot);
    }
}

void Execution::Engine::gave_up(const SlotPtr& slot) noexcept {
    if (slot->event != 0) {
        open_.erase(slot->event);
        closed_.insert(slot->event);
    }
    if (const MessageAwaited* wait = std::get_if<MessageAwaited>(&slot->action)) {
        std::erase(channels_[wait->channel].waiting, slot);
    } else if (const SignalAwaited* wait_signal = std::get_if<SignalAwaited>(&slot->action)) {
        std::erase(signals_[wait_signal->name], slot);
    }
    dropped_.push_back(slot);
}

// A wait that lost had its message already: it goes back to its place in the channel.
void Execution::Engine::gave_back(const SlotPtr& slot) noexcept {
    const auto* const wait = std::get_if<MessageAwaited>(&slot->action);
    const auto* const message = std::get_if<Payload>(&slot->answer);
    HOLDFAST_ASSERT(wait != nullptr);
    HOLDFAST_ASSERT(message != nullptr);
    auto& buffered = channels_[wait->channel].buffered;
    const auto later = std::ranges::find_if(
        buffered, [&](const auto& other) { return other.first > slot->settled.event; });
    buffered.emplace(later, slot->settled.event, *message);
    returned_.insert(wait->channel);
    dropped_.push_back(slot);
}

std::vector<std::string> Execution::Engine::cut_channels() const {
    std::vector<std::string> names;
    for (const auto& [name, channel] : channels_) {
        if (!channel.waiting.empty() && !channel.buffered.empty()) {
            names.push_back(name);
        }
    }
    return names;
}

bool Execution::Engine::message_waits(std::string_view channel) const {
    const auto found = channels_.find(channel);
    return found != channels_.end() && !found->second.buffered.empty();
}

void Execution::Engine::start_code() {
    root_.emplace(program_(context_, started_.input));
    root_->start_root(*this);
}

void Execution::Engine::resume(detail::Listener* listener) {
    const std::coroutine_handle<> goes_on =
        listener != nullptr ? listener->settled() : std::coroutine_handle<>{};
    if (goes_on) {
        goes_on.resume();
        current = nullptr;
    }
}

// --- Engine
// ----------------------------------------------------------------------------------------

Execution::Engine::Engine(std::string instance,
                          ExecutionId execution,
                          detail::Program program,
                          ExecutionLimits limits,
                          Logger* logger,
                          std::string build)
    : Core(std::move(instance), execution),
      program_(program),
      limits_(limits),
      build_(std::move(build)) {
    logger_ = logger;
    handlers_.core = this;
    events_soft_ = limits.events_soft;
    bytes_soft_ = limits.bytes_soft;
}

Execution::Engine::~Engine() {
    evicting_ = true;
    root_.reset();
    to_wake_.clear();
    detached_.clear();
}

void Execution::Engine::begin(WorkflowStarted started, std::map<std::string, Payload> kv) {
    HOLDFAST_ASSERT(!primed_);
    started_ = std::move(started);
    workflow_ = started_.name;
    version_ = started_.version;
    status_ = started_.status;
    if (!started_.resets.empty()) {
        reseed(started_.resets.front().execution);
    }
    kv_.insert(std::make_move_iterator(kv.begin()), std::make_move_iterator(kv.end()));
}

void Execution::Engine::load(std::vector<Event> history, std::map<std::string, Payload> kv) {
    HOLDFAST_ASSERT(!primed_);
    HOLDFAST_ASSERT(!history.empty());
    history_ = std::move(history);
    for (const Event& event : history_) {
        if (const PatchRecorded* patch = std::get_if<PatchRecorded>(&event.body)) {
            recorded_patches_.emplace(patch->change, true);
        }
    }
    if (const WorkflowStarted* first = std::get_if<WorkflowStarted>(&history_.front().body)) {
        begin(*first, std::move(kv));
    }
    last_event_ = history_.back().id;
}

std::vector<EventId> Execution::Engine::open() const {
    std::vector<EventId> events;
    events.reserve(open_.size());
    for (const auto& [event, slot] : open_) {
        events.push_back(event);
    }
    std::ranges::sort(events);
    return events;
}

std::size_t Execution::Engine::bytes() const noexcept {
    // This object, the frames of a small coroutine, and what is kept beside it, as the allocator
    // counts it.
    constexpr std::size_t fixed = 6144;
    constexpr std::size_t per_operation = sizeof(detail::Slot) + 256;
    std::size_t total = fixed + open_.size() * per_operation + closed_.size() * 32;
    for (const auto& [key, value] : kv_) {
        total += key.size() + value.json.size();
    }
    for (const auto& [name, channel] : channels_) {
        for (const auto& [id, data] : channel.buffered) {
            total += data.json.size();
        }
    }
    return total;
}

// --- Execution
// -------------------------------------------------------------------------------------

Execution::Execution(std::string instance,
                     ExecutionId execution,
                     detail::Program program,
                     ExecutionLimits limits,
                     Logger* logger,
                     std::string build)
    : engine_(std::make_unique<Engine>(
          std::move(instance), execution, program, limits, logger, std::move(build))) {}

Execution::~Execution() = default;

void Execution::begin(WorkflowStarted started, std::map<std::string, Payload> kv) {
    engine_->begin(std::move(started), std::move(kv));
}

void Execution::load(std::vector<Event> history, std::map<std::string, Payload> kv) {
    engine_->load(std::move(history), std::move(kv));
}

Turn Execution::turn(Moment now, std::span<const Message> messages) {
    return engine_->turn(now, messages);
}

EventId Execution::last_event() const noexcept {
    return engine_->last_event();
}

bool Execution::waits_for(EventId event) const {
    return engine_->waits_for(event);
}

bool Execution::ended() const noexcept {
    return engine_->ended();
}

std::vector<EventId> Execution::open() const {
    return engine_->open();
}

std::size_t Execution::bytes() const noexcept {
    return engine_->bytes();
}

const std::optional<Payload>& Execution::status() const {
    return engine_->status();
}

const WorkflowStarted& Execution::started() const {
    return engine_->started();
}

bool Execution::cancel_requested() const noexcept {
    return engine_->cancel_requested();
}

Moment Execution::begun() const {
    return engine_->begun();
}

std::optional<FailureInfo> check_replay(std::string instance,
                                        detail::Program program,
                                        std::vector<Event> history,
                                        std::map<std::string, Payload> kv,
                                        ExecutionId execution,
                                        std::string build,
                                        Logger* logger) {
    if (history.empty()) {
        return FailureInfo{.kind = FailureKind::infrastructure, .message = "the history is empty"};
    }
    Execution::Engine engine(
        std::move(instance), execution, program, ExecutionLimits{}, logger, std::move(build));
    engine.load(std::move(history), std::move(kv));
    return engine.check();
}

// --- Turn
// --------------------------------------------------------------------------------------------

const Payload& Turn::output() const {
    HOLDFAST_ASSERT(ending == Ending::completed);
    return std::get<WorkflowCompleted>(events.back().body).output;
}

const FailureInfo& Turn::failure() const {
    HOLDFAST_ASSERT(ending == Ending::failed || ending == Ending::cancelled);
    return std::get<WorkflowFailed>(events.back().body).failure;
}

const WorkflowContinued& Turn::continued() const {
    HOLDFAST_ASSERT(ending == Ending::continued);
    return std::get<WorkflowContinued>(events.back().body);
}

}  // namespace holdfast::flow
