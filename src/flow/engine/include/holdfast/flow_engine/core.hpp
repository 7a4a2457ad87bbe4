// What awaitables and the engine share. Not for users: they see Context and Op.
//
// Code and history meet in two places. An operation that the code asks for becomes a Slot in the
// order of asking; the engine gives it an event. An answer closes its slot and resumes its
// listener. Everything runs on the thread that runs the turn.
#pragma once

#include <coroutine>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <holdfast/flow_engine/event.hpp>
#include <holdfast/flow_engine/failure.hpp>
#include <holdfast/flow_engine/ids.hpp>
#include <holdfast/flow_engine/input_check.hpp>
#include <holdfast/flow_engine/payload.hpp>

namespace holdfast {
class Logger;
}

namespace holdfast::flow::detail {

class Core;
class Operation;

// When something settled: by the event that did it, then by the order within that event. The
// smaller one happened first, on the first run and on every replay.
struct SettledAt {
    EventId event = 0;
    std::uint64_t order = 0;
    friend auto operator<=>(const SettledAt&, const SettledAt&) = default;
};

// Is notified when something it waits for has settled; returns the coroutine to resume (or none).
class Listener {
public:
    virtual std::coroutine_handle<> settled() noexcept = 0;

protected:
    ~Listener() = default;
};

// The part of a coroutine's promise that does not depend on its type.
struct Frame {
    Core* core = nullptr;
    Frame* parent = nullptr;  // The coroutine that awaits this one.
    int shields = 0;
    bool workflow = false;         // The workflow itself, not a task of it.
    Listener* listener = nullptr;  // Notified when the coroutine has ended.
    SettledAt settled{};
    std::exception_ptr error;

    [[nodiscard]] bool shielded() const noexcept {
        for (const Frame* frame = this; frame != nullptr; frame = frame->parent) {
            if (frame->shields > 0) {
                return true;
            }
        }
        return false;
    }
};

// An awaiter that a coroutine is suspended in, so that cancellation finds it.
class Suspension {
public:
    Suspension() = default;
    Suspension(const Suspension&) = delete;
    Suspension& operator=(const Suspension&) = delete;

    // A cancel request has arrived: give up the wait. Returns the coroutine to resume (or none).
    virtual std::coroutine_handle<> cancel() noexcept = 0;

protected:
    virtual ~Suspension() { leave(); }
    // Requires: not entered already.
    void enter(Frame& frame) noexcept;
    void leave() noexcept;
    [[nodiscard]] Frame* frame() const noexcept { return frame_; }

private:
    friend class Core;
    Frame* frame_ = nullptr;
    Suspension* before_ = nullptr;
    Suspension* after_ = nullptr;
    bool told_ = false;  // Has been cancelled once.
};

using Answer = std::variant<std::monostate, Payload, FailureInfo>;

// One operation that the code asked for.
struct Slot {
    EventBody action;   // What was asked; moved into its event.
    EventId event = 0;  // Of its schedule; 0 until it has one.
    Answer answer;      // Empty until it is answered.
    SettledAt settled{};
    bool dropped = false;     // The code no longer wants the answer.
    bool taken = false;       // The code has it.
    bool fresh = false;       // Scheduled in the turn that runs.
    bool must_begin = false;  // An activity with a limit on its wait for a worker.
    bool at_once = false;     // A message that is there; the code does not wait for it.
    InputCheck input_check = InputCheck::by_build;
    std::string instance{};  // Of a child.
    Listener* listener = nullptr;

    [[nodiscard]] bool done() const noexcept { return answer.index() != 0; }
};
using SlotPtr = std::shared_ptr<Slot>;

using Handler = std::function<Payload(const Payload& input)>;

class Core {
public:
    // --- for operations
    // Asks for something. An answer that is there already (a message in its channel) is given at
    // once. Throws Failure inside a query, which may not ask for anything.
    [[nodiscard]] SlotPtr ask(EventBody action, InputCheck check = InputCheck::by_build);
    // The next message of the channel. Requires: there is one.
    [[nodiscard]] SlotPtr take_message(std::string channel);
    // The same for what is never answered.
    void note(EventBody action) { (void)ask(std::move(action)); }
    // The code no longer wants the answer. Nothing happens while the frame is evicted.
    void drop(const SlotPtr& slot) noexcept;
    // Whether an await by the running coroutine must throw Cancelled.
    [[nodiscard]] bool must_cancel() const noexcept {
        return cancelled_.has_value() && current != nullptr && !current->shielded();
    }
    // Requires: a request.
    [[nodiscard]] const std::string& cancel_reason() const {
        return *cancelled_;  // NOLINT(bugprone-unchecked-optional-access): required.
    }
    [[nodiscard]] bool cancel_requested() const noexcept { return cancelled_.has_value(); }
    [[nodiscard]] SettledAt settle_now() noexcept { return {.event = applied_, .order = ++order_}; }
    [[nodiscard]] bool evicting() const noexcept { return evicting_; }
    // The code gave up what another of its coroutines awaits: that one is resumed when the running
    // coroutine has suspended. Resuming it at once could destroy the running one.
    void wake_later(std::shared_ptr<Listener> waiting) { to_wake_.push_back(std::move(waiting)); }
    // Keeps the operation until the workflow ends, although the code has no handle to it.
    void keep(std::shared_ptr<Operation> detached) { detached_.push_back(std::move(detached)); }

    // --- for the context
    [[nodiscard]] Moment now() const noexcept;
    [[nodiscard]] bool replaying() const noexcept { return replaying_; }
    [[nodiscard]] std::uint64_t random() noexcept;
    [[nodiscard]] bool patched(std::string_view change);
    [[nodiscard]] bool has_message(std::string_view channel) const {
        return message_waits(channel);
    }
    void continue_as_new(Payload input, std::string version);
    [[nodiscard]] bool continues() const noexcept { return continues_.has_value(); }
    void on_query(std::string name, Handler handler) {
        queries_[std::move(name)] = std::move(handler);
    }
    void on_update(std::string name, Handler handler) {
        updates_[std::move(name)] = std::move(handler);
    }
    [[nodiscard]] std::map<std::string, Payload, std::less<>>& kv() noexcept { return kv_; }
    void kv_set(std::string key, Payload value);
    void kv_erase(const std::string& key);
    void kv_clear();
    void set_status(std::optional<Payload> status);
    [[nodiscard]] const std::optional<Payload>& status() const noexcept { return status_; }
    [[nodiscard]] Logger& log() noexcept;
    [[nodiscard]] const std::string& instance() const noexcept { return instance_; }
    [[nodiscard]] ExecutionId execution() const noexcept { return execution_; }
    [[nodiscard]] const std::string& workflow() const noexcept { return workflow_; }
    [[nodiscard]] const std::string& version() const noexcept { return version_; }
    [[nodiscard]] bool history_is_long() const noexcept {
        // By what the code reacts to, not by the end: a replay must see what the first run saw.
        return applied_ >= events_soft_ || history_bytes_ >= bytes_soft_;
    }

    Frame* current = nullptr;  // The coroutine that runs.

protected:
    Core(std::string instance, ExecutionId execution);
    virtual ~Core() = default;
    Core(const Core&) = delete;
    Core& operator=(const Core&) = delete;

    // What the engine does when the code asks: finds the answer that may be there already.
    virtual void asked(const SlotPtr& slot) = 0;
    void ask(const SlotPtr& slot);
    virtual void gave_up(const SlotPtr& slot) noexcept = 0;
    // The same for a message that had arrived and that the code has not seen.
    virtual void gave_back(const SlotPtr& slot) noexcept = 0;
    [[nodiscard]] virtual bool message_waits(std::string_view channel) const = 0;
    // Random numbers as in that execution. Requires: none was asked for yet.
    void reseed(ExecutionId execution) noexcept;
    // Resumes every coroutine that waits and is not shielded, with Cancelled.
    void cancel_waiting(std::string reason);

    struct Continuation {
        Payload input;
        std::string version;
    };

    std::string instance_;
    ExecutionId execution_;
    std::string workflow_;
    std::string version_;
    std::int64_t now_ms_ = 0;
    EventId applied_ = 0;  // The event that is being applied.
    EventId last_event_ = 0;
    EventId events_soft_ = 0;
    std::int64_t history_bytes_ = 0;  // Up to `applied_`.
    std::int64_t bytes_soft_ = 0;
    std::uint64_t order_ = 0;
    std::uint64_t random_state_ = 0;
    bool replaying_ = false;
    bool evicting_ = false;
    bool read_only_ = false;
    std::optional<std::string> cancelled_;
    std::optional<Continuation> continues_;
    std::map<std::string, Handler, std::less<>> queries_;
    std::map<std::string, Handler, std::less<>> updates_;
    std::map<std::string, Payload, std::less<>> kv_;
    std::map<std::string, bool, std::less<>> patches_;  // Those asked for, and the answer.
    std::map<std::string, bool, std::less<>> recorded_patches_;
    std::optional<Payload> status_;
    std::deque<std::shared_ptr<Listener>> to_wake_;
    std::vector<std::shared_ptr<Operation>> detached_;
    Logger* logger_ = nullptr;

private:
    friend class Suspension;
    Suspension* waiting_ = nullptr;  // The newest; they are linked.
    Suspension* oldest_ = nullptr;
};

}  // namespace holdfast::flow::detail
