#include <holdfast/flow_engine/operation.hpp>

#include <algorithm>
#include <cmath>
#include <exception>

#include "coroutine/invalid_operation.hpp"
#include <fmt/core.h>

#include <holdfast/base/assert.hpp>
#include <holdfast/base/error.hpp>
#include <holdfast/flow_engine/combine.hpp>
#include <holdfast/flow_engine/stored.hpp>

namespace holdfast::flow {

namespace detail {
namespace {

constexpr std::size_t label_bytes_max = 256;
constexpr int attempts_max = 10'000;
constexpr milliseconds ahead_max = std::chrono::hours{24 * 365};

template <class Action>
Action& only_for(EventBody& action, std::string_view what) {
    Action* const found = std::get_if<Action>(&action);
    if (found == nullptr) {
        throw_invalid_operation(std::string(what));
    }
    return *found;
}

void check_label(const std::string& text, std::string_view what) {
    if (text.empty() || text.size() > label_bytes_max) {
        throw_invalid_operation(fmt::format("a {} has 1 to {} bytes", what, label_bytes_max));
    }
}

Op<Payload> plain(Core& core, const EventBody& action, InputCheck check) {
    auto operation = std::make_shared<Operation>(core, action);
    operation->modifiers.input_check = check;
    return Op<Payload>(std::move(operation));
}

Op<void> pause(Core& core, milliseconds duration) {
    auto timer = std::make_shared<Operation>(core, TimerCreated{});
    timer->modifiers.delay = duration;
    return Op<void>(std::move(timer));
}

TimedOut timed_out(milliseconds limit) {
    return TimedOut(timeout_failure(limit));
}

// One attempt, with its own limit.
Task<Payload> attempt_once(Core& core, EventBody action, InputCheck check, milliseconds limit) {
    if (limit.count() == 0) {
        Payload result = co_await plain(core, action, check);
        co_return result;
    }
    auto first = co_await any(plain(core, action, check), pause(core, limit));
    if (first.index() == 1) {
        throw timed_out(limit);
    }
    co_return std::get<0>(std::move(first));
}

// Where in its jitter a delay lies, the same on replay.
double jitter_unit(Core& core, const ActivityRetry& policy) {
    constexpr double steps = 1U << 20U;
    return policy.jitter ? static_cast<double>(core.random() >> 44U) / steps : 0.0;
}

// Of what the runtime does not try again itself: each attempt is an operation of its own, and each
// delay a durable timer.
Task<Payload> attempt_often(Core& core, EventBody action, InputCheck check, ActivityRetry policy) {
    const Moment began = core.now();
    const milliseconds per_try{policy.per_try_ms.value_or(0)};
    for (int attempt = 1;; ++attempt) {
        milliseconds delay{0};
        try {
            Payload result = co_await attempt_once(core, action, check, per_try);
            co_return result;
        } catch (const Failure& failure) {
            delay = policy.delay_after(attempt, jitter_unit(core, policy));
            const bool late =
                policy.total_ms && (core.now() + delay - began).count() > *policy.total_ms;
            if (late || !policy.tries_again(failure.info(), attempt)) {
                throw;
            }
        }
        if (delay.count() > 0) {
            co_await pause(core, delay);
        }
    }
}

Task<Payload> attempt_within(Core& core, EventBody action, Modifiers modifiers) {
    const InputCheck check = modifiers.input_check;
    if (!modifiers.retry) {
        Payload result = co_await attempt_once(core, action, check, modifiers.timeout);
        co_return result;
    }
    const ActivityRetry retry(*modifiers.retry);
    if (modifiers.timeout.count() == 0) {
        Payload result = co_await attempt_often(core, action, check, retry);
        co_return result;
    }
    auto first =
        co_await any(attempt_often(core, action, check, retry), pause(core, modifiers.timeout));
    if (first.index() == 1) {
        throw timed_out(modifiers.timeout);
    }
    co_return std::get<0>(std::move(first));
}

[[noreturn]] void throw_as(const EventBody& action, const FailureInfo& failure) {
    if (failure.kind == FailureKind::timeout) {
        throw TimedOut(failure);
    }
    if (std::holds_alternative<ChildScheduled>(action)) {
        throw ChildFailed(failure);
    }
    throw ActivityFailed(failure);
}

}  // namespace

void check_retry(const RetryPolicy& policy) {
    if (policy.attempts < 1 || policy.attempts > attempts_max) {
        throw_invalid_operation(fmt::format("a retry policy has 1 to {} attempts", attempts_max));
    }
    if (policy.first.count() < 0 || policy.factor < 0 || policy.ceiling.count() < 0 ||
        policy.per_try.count() < 0 || policy.total.count() < 0) {
        throw_invalid_operation("the times of a retry policy are not negative");
    }
    if (!std::isfinite(policy.factor)) {
        throw_invalid_operation("the factor of a retry policy is a number");
    }
    if (!(policy.jitter >= 0.0 && policy.jitter <= 1.0)) {
        throw_invalid_operation("the jitter of a retry policy is from 0 to 1");
    }
}

void check_timeout(milliseconds limit) {
    if (limit.count() <= 0) {
        throw_invalid_operation("a timeout is positive");
    }
}

void set_tag(EventBody& action, std::string text) {
    check_label(text, "tag");
    only_for<ActivityScheduled>(action, "only activities have a tag").tag = std::move(text);
}

void set_start_within(EventBody& action, milliseconds limit) {
    check_timeout(limit);
    only_for<ActivityScheduled>(action, "only activities wait for a worker").start_within_ms =
        limit.count();
}

void set_ahead(EventBody& action, milliseconds by) {
    if (by.count() <= 0 || by > ahead_max) {
        throw_invalid_operation(
            "an activity goes ahead of others by a positive time, and by a year at most");
    }
    only_for<ActivityScheduled>(action, "only activities wait for a worker").ahead_ms = by.count();
}

void set_session(EventBody& action, std::string text) {
    check_label(text, "session");
    only_for<ActivityScheduled>(action, "only activities have a session").session = std::move(text);
}

void set_child_id(EventBody& action, std::string text) {
    check_label(text, "child's id");
    only_for<ChildScheduled>(action, "only children have an id").instance = std::move(text);
}

void set_child_version(EventBody& action, std::string text) {
    check_version(text);
    only_for<ChildScheduled>(action, "only children have a version").version = std::move(text);
}

void require_input(const EventBody& action) {
    if (!std::holds_alternative<ActivityScheduled>(action) &&
        !std::holds_alternative<ChildScheduled>(action)) {
        throw_invalid_operation("only activities and children have an input to compare");
    }
}

void check_version(const std::string& text) {
    try {
        (void)Version::parse(text);
    } catch (const InvalidArgument& error) {
        throw_invalid_operation(error.what());  // No worker could ever run it.
    }
}

std::string source_of(const EventBody& action) {
    if (const auto* message = std::get_if<MessageAwaited>(&action)) {
        return fmt::format("channel '{}'", message->channel);
    }
    if (const auto* signal = std::get_if<SignalAwaited>(&action)) {
        return fmt::format("signal '{}'", signal->name);
    }
    return {};
}

void undecodable(const std::exception& error, std::string_view source, std::string_view type) {
    std::string message =
        source.empty() ? std::string(error.what())
                       : fmt::format("a message of {} is not a {}: {}", source, type, error.what());
    throw DecodeError(FailureInfo{.kind = FailureKind::application,
                                  .type = "DecodeError",
                                  .message = std::move(message),
                                  .retryable = false});
}

void cannot_start_task(bool moved) {
    throw_invalid_operation(moved ? "the task was moved from; await it where it is now"
                                  : "the task was awaited already; a task runs once");
}

const OperationPtr& present(const OperationPtr& operation) {
    if (!operation) {
        throw_invalid_operation("the operation was moved from or detached; use it where it is now");
    }
    // NOLINTNEXTLINE(bugprone-return-const-ref-from-parameter): temporaries are refused.
    return operation;
}

Operation& cold(const OperationPtr& operation) {
    if (present(operation)->started()) {
        throw_invalid_operation(
            "the operation was started already; say how it runs before it is awaited");
    }
    return *operation;
}

void Operation::start(Frame& parent, Listener* listener) {
    if (dropped_) {
        given_up_ = given_up_.value_or(core_.settle_now());
        return;
    }
    if (started() && !done() && listener_ != nullptr) {
        throw_invalid_operation("the operation is awaited already; one answer wakes one waiter");
    }
    const bool again = started();
    listener_ = listener;
    host_.parent = listener != nullptr ? &parent : nullptr;
    host_.shields = listener != nullptr ? 0 : 1;
    if (again) {
        if (slot_ != nullptr) {
            slot_->listener = listener;
        }
        return;
    }
    if (modifiers.delay) {
        const Moment fires = later(core_.now(), *modifiers.delay);
        std::get<TimerCreated>(action_).fire_at_ms = fires.time_since_epoch().count();
    }
    if (ActivityScheduled* const activity = std::get_if<ActivityScheduled>(&action_);
        activity != nullptr && modifiers.retry) {
        activity->retry.emplace(*modifiers.retry);  // The runtime's business.
        modifiers.retry.reset();
    }
    if (modifiers.retry || modifiers.timeout.count() > 0) {
        task_.emplace(attempt_within(core_, std::move(action_), modifiers));
        task_->branch_start(host_, *this);
        return;
    }
    slot_ = core_.ask(std::move(action_), modifiers.input_check);
    slot_->listener = listener;
}

bool Operation::done() const noexcept {
    if (given_up_) {
        return true;
    }
    return task_ ? task_->branch_done() : slot_ != nullptr && slot_->done();
}

SettledAt Operation::settled_at() const noexcept {
    if (given_up_) {
        return *given_up_;
    }
    return task_ ? task_->branch_settled() : slot_->settled;
}

void Operation::ignore(const Listener& listener) noexcept {
    if (listener_ != &listener) {
        return;
    }
    listener_ = nullptr;
    host_.parent = nullptr;
    host_.shields = 1;
    if (slot_ != nullptr) {
        slot_->listener = nullptr;
    }
}

void Operation::drop() noexcept {
    if (started() && !done()) {
        dropped_ = true;
    }
    if (task_) {
        if (dropped_) {
            task_.reset();
        }
    } else if (slot_ != nullptr) {
        core_.drop(slot_);
        dropped_ = slot_->dropped;
    }
}

void Operation::give_up(const std::shared_ptr<Operation>& operation) noexcept {
    Operation& self = *operation;
    const bool awaited = self.started() && !self.done() && self.listener_ != nullptr;
    self.drop();
    if (awaited && !self.core_.evicting()) {
        self.given_up_ = self.core_.settle_now();
        self.core_.wake_later(std::shared_ptr<Listener>(operation, &self));
    }
}

void Operation::let_go(std::shared_ptr<Operation> operation) {
    Core& core = present(operation)->core_;
    core.keep(std::move(operation));
}

Payload Operation::take() {
    if (given_up_) {
        throw Failure(FailureInfo{.kind = FailureKind::cancelled,
                                  .type = "Cancelled",
                                  .message = "the workflow itself cancelled the operation",
                                  .retryable = false});
    }
    if (task_) {
        return task_->branch_take();
    }
    HOLDFAST_ASSERT(slot_ != nullptr && slot_->done());
    slot_->taken = true;
    if (const FailureInfo* failure = std::get_if<FailureInfo>(&slot_->answer)) {
        throw_as(slot_->action, *failure);
    }
    return std::get<Payload>(slot_->answer);
}

std::coroutine_handle<> Operation::settled() noexcept {
    return listener_ != nullptr ? listener_->settled() : std::coroutine_handle<>{};
}

}  // namespace detail

}  // namespace holdfast::flow
