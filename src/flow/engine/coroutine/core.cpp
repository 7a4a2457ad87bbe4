#include <holdfast/flow_engine/core.hpp>

#include "coroutine/invalid_operation.hpp"
#include "stored/payload_json.hpp"
#include <fmt/core.h>

#include <holdfast/base/assert.hpp>
#include <holdfast/base/log.hpp>
#include <holdfast/flow_engine/task.hpp>

namespace holdfast::flow::detail {
namespace {

constexpr std::size_t kv_keys_max = 100;
constexpr std::size_t kv_value_bytes_max = 16'384;
constexpr std::size_t kv_key_bytes_max = 256;
constexpr std::size_t status_bytes_max = 262'144;
constexpr std::size_t name_bytes_max = 256;

// A good mixer with a period of 2^64: the n-th number depends on the seed and n alone.
std::uint64_t mix(std::uint64_t x) noexcept {
    x += 0x9E3779B97F4A7C15U;
    x = (x ^ (x >> 30U)) * 0xBF58476D1CE4E5B9U;
    x = (x ^ (x >> 27U)) * 0x94D049BB133111EBU;
    return x ^ (x >> 31U);
}

std::uint64_t seed_of(std::string_view instance, ExecutionId execution) noexcept {
    std::uint64_t hash = 0xCBF29CE484222325U;
    for (const char c : instance) {
        hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3U;
    }
    return mix(hash ^ mix(execution));
}

[[noreturn]] void beyond(std::string message) {
    throw Failure(FailureInfo{.kind = FailureKind::application,
                              .type = "LimitExceeded",
                              .message = std::move(message),
                              .retryable = false});
}

// Names that the code chooses are stored as they are. A name that a database would refuse fails the
// code here; at commit it would fail every turn of the same transaction.
struct CheckNames {
    template <class T>
    void operator()(const T&) const {}
    void operator()(const ActivityScheduled& a) const {
        name(a.name, "the name of an activity");
        text(a.session.value_or(""), "a session");
        text(a.tag.value_or(""), "a tag");
    }
    void operator()(const ChildScheduled& c) const {
        name(c.name, "the name of a workflow");
        text(c.instance, "a child's id");
        text(c.version, "a version");
    }
    void operator()(const WorkflowDetached& d) const {
        name(d.name, "the name of a workflow");
        name(d.instance, "the id of a workflow");
        if (!d.version.empty()) {
            check_version(d.version);
        }
    }
    void operator()(const MessageAwaited& m) const { text(m.channel, "a channel's name"); }
    void operator()(const SignalAwaited& s) const { text(s.name, "a signal's name"); }
    void operator()(const KvSet& k) const { text(k.key, "a key"); }
    void operator()(const KvErased& k) const { text(k.key, "a key"); }
    void operator()(const PatchRecorded& p) const { text(p.change, "a change's name"); }
    void operator()(const AttributeSet& a) const { text(a.name, "an attribute's name"); }

private:
    static void text(std::string_view what, std::string_view role) {
        if (!is_storable(what)) {
            throw_invalid_operation(fmt::format("{} is UTF-8 without a zero", role));
        }
    }
    static void name(std::string_view what, std::string_view role) {
        if (what.empty() || what.size() > name_bytes_max) {
            throw_invalid_operation(fmt::format("{} has 1 to {} bytes", role, name_bytes_max));
        }
        text(what, role);
    }
};

}  // namespace

void Suspension::enter(Frame& frame) noexcept {
    HOLDFAST_ASSERT(frame_ == nullptr);
    frame_ = &frame;
    told_ = false;
    Core& core = *frame.core;
    before_ = core.waiting_;
    after_ = nullptr;
    if (before_ != nullptr) {
        before_->after_ = this;
    } else {
        core.oldest_ = this;
    }
    core.waiting_ = this;
}

void Suspension::leave() noexcept {
    if (frame_ == nullptr) {
        return;
    }
    Core& core = *frame_->core;
    (before_ != nullptr ? before_->after_ : core.oldest_) = after_;
    (after_ != nullptr ? after_->before_ : core.waiting_) = before_;
    frame_ = nullptr;
}

Core::Core(std::string instance, ExecutionId execution)
    : instance_(std::move(instance)),
      execution_(execution),
      random_state_(seed_of(instance_, execution)) {}

void Core::reseed(ExecutionId execution) noexcept {
    random_state_ = seed_of(instance_, execution);
}

SlotPtr Core::ask(EventBody action, InputCheck check) {
    auto slot = std::make_shared<Slot>();
    slot->action = std::move(action);
    slot->input_check = check;
    ask(slot);
    return slot;
}

SlotPtr Core::take_message(std::string channel) {
    auto slot = std::make_shared<Slot>();
    slot->action = MessageAwaited{std::move(channel)};
    slot->at_once = true;
    ask(slot);
    return slot;
}

void Core::ask(const SlotPtr& slot) {
    if (read_only_) {
        throw Failure("InvalidOperation", "a query only reads; it cannot schedule operations");
    }
    std::visit(CheckNames{}, slot->action);
    asked(slot);
}

void Core::drop(const SlotPtr& slot) noexcept {
    if (evicting_ || slot->dropped) {
        return;
    }
    if (!slot->done()) {
        slot->dropped = true;
        slot->listener = nullptr;
        gave_up(slot);
    } else if (!slot->taken && std::holds_alternative<MessageAwaited>(slot->action)) {
        slot->dropped = true;
        gave_back(slot);
    }
}

void Core::cancel_waiting(std::string reason) {
    cancelled_ = std::move(reason);
    for (;;) {
        Suspension* next = oldest_;
        while (next != nullptr && (next->told_ || next->frame_->shielded())) {
            next = next->after_;
        }
        if (next == nullptr) {
            return;
        }
        next->told_ = true;
        const std::coroutine_handle<> goes_on = next->cancel();
        if (goes_on) {
            goes_on.resume();
            current = nullptr;
        }
    }
}

Moment Core::now() const noexcept {
    return Moment{std::chrono::milliseconds{now_ms_}};
}

std::uint64_t Core::random() noexcept {
    return mix(random_state_++);
}

bool Core::patched(std::string_view change) {
    const auto known = patches_.find(change);
    if (known != patches_.end()) {
        return known->second;
    }
    // While replaying, only the history can tell whether this point was passed before the change.
    const bool answer = !replaying_ || recorded_patches_.contains(change);
    if (answer) {
        note(PatchRecorded{std::string(change)});
    }
    patches_.emplace(change, answer);
    return answer;
}

void Core::continue_as_new(Payload input, std::string version) {
    continues_ = Continuation{std::move(input), std::move(version)};
}

void Core::kv_set(std::string key, Payload value) {
    if (key.size() > kv_key_bytes_max) {
        beyond(fmt::format("a key has at most {} bytes", kv_key_bytes_max));
    }
    if (value.json.size() > kv_value_bytes_max) {
        beyond(fmt::format("the value of '{}' has {} bytes; at most {}",
                           key,
                           value.json.size(),
                           kv_value_bytes_max));
    }
    if (!kv_.contains(key) && kv_.size() >= kv_keys_max) {
        beyond(fmt::format("an instance has at most {} keys", kv_keys_max));
    }
    note(KvSet{key, value});  // First: it may be refused, and then nothing has changed.
    kv_[std::move(key)] = std::move(value);
}

void Core::kv_erase(const std::string& key) {
    note(KvErased{key});
    kv_.erase(key);
}

void Core::kv_clear() {
    note(KvCleared{});
    kv_.clear();
}

void Core::set_status(std::optional<Payload> status) {
    if (status && status->json.size() > status_bytes_max) {
        beyond(fmt::format(
            "the status has {} bytes; at most {}", status->json.size(), status_bytes_max));
    }
    note(StatusUpdated{status});
    status_ = std::move(status);
}

Logger& Core::log() noexcept {
    return replaying_ || logger_ == nullptr ? null_logger() : *logger_;
}

}  // namespace holdfast::flow::detail
