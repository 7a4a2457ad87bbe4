// What a workflow can ask for: cold operations, and handles of those that were started.
//
// `ctx.activity<&charge>(order)` alone does nothing. The operation is scheduled when it is awaited,
// when it is handed to all/any (in the order of the parameters), or by ctx.start.
#pragma once

#include <chrono>
#include <coroutine>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include <holdfast/flow_engine/core.hpp>
#include <holdfast/flow_engine/failure.hpp>
#include <holdfast/flow_engine/payload.hpp>
#include <holdfast/flow_engine/retry.hpp>
#include <holdfast/flow_engine/task.hpp>

namespace holdfast::flow {

// A value, or why there is none.
template <class T>
class Expected {
public:
    using value_type = T;
    explicit Expected(T value) : value_(std::move(value)) {}
    explicit Expected(FailureInfo failure) : failure_(std::move(failure)) {}

    [[nodiscard]] explicit operator bool() const noexcept { return value_.has_value(); }
    [[nodiscard]] const T& operator*() const { return value(); }
    [[nodiscard]] const T* operator->() const { return &value(); }
    // Throws the Failure if there is no value.
    [[nodiscard]] const T& value() const {
        if (!value_) {
            throw Failure(failure());
        }
        return *value_;
    }
    // Requires: there is no value.
    [[nodiscard]] const FailureInfo& failure() const {
        return failure_.value();  // NOLINT(bugprone-unchecked-optional-access): required.
    }

private:
    std::optional<T> value_;
    std::optional<FailureInfo> failure_;
};

namespace detail {

template <class T>
inline constexpr bool is_expected = false;
template <class T>
inline constexpr bool is_expected<Expected<T>> = true;

template <class T>
struct ExpectedOf {
    using type = Expected<Boxed<T>>;
};
template <class T>
struct ExpectedOf<Expected<T>> {
    using type = Expected<T>;
};
template <class T>
using BoxedExpected = typename ExpectedOf<T>::type;

struct Modifiers {
    std::optional<RetryPolicy> retry;
    milliseconds timeout{0};
    std::optional<milliseconds> delay;  // Of a timer: from when it is scheduled.
    InputCheck input_check = InputCheck::by_build;
};

// What a message comes through: "channel 'inbox'". Empty for other operations, whose values are
// made by the program itself.
[[nodiscard]] std::string source_of(const EventBody& action);

// An operation that may run: one slot, or a small task when it has a timeout or is a child that is
// retried.
class Operation final : private Listener {
public:
    Operation(Core& core, EventBody action)
        : core_(core), action_(std::move(action)), source_(source_of(action_)) {
        host_.core = &core;
    }
    ~Operation() { drop(); }
    Operation(const Operation&) = delete;
    Operation& operator=(const Operation&) = delete;

    [[nodiscard]] Core& core() const noexcept { return core_; }
    [[nodiscard]] EventBody& action() noexcept { return action_; }
    [[nodiscard]] const std::string& source() const noexcept { return source_; }
    Modifiers modifiers;

    // Schedules it unless that was done; from now on `listener` is notified. Throws a Failure if
    // it has another listener: one of the two would wait for ever. An operation that was given up
    // is done, and has a failure.
    void start(Frame& parent, Listener* listener);
    [[nodiscard]] bool started() const noexcept { return slot_ != nullptr || task_.has_value(); }
    [[nodiscard]] bool done() const noexcept;
    [[nodiscard]] SettledAt settled_at() const noexcept;
    [[nodiscard]] bool is_task() const noexcept { return task_.has_value(); }
    // `listener` is no longer notified, if it was.
    void ignore(const Listener& listener) noexcept;
    // The answer is no longer needed. Idempotent.
    void drop() noexcept;
    // The same by its owner, while a coroutine may await it, which then gets a failure.
    static void give_up(const std::shared_ptr<Operation>& operation) noexcept;
    // Its owner lets it go, and it continues: from now on it belongs to the workflow.
    static void let_go(std::shared_ptr<Operation> operation);
    // Requires: done. Throws the failure.
    [[nodiscard]] Payload take();

private:
    std::coroutine_handle<> settled() noexcept override;

    Core& core_;
    EventBody action_;
    std::string source_;
    SlotPtr slot_;
    // The parent of task_; its own parent is the coroutine that awaits the operation, which can
    // change, and can end before it. Cancellation skips an operation that is not awaited.
    Frame host_;
    std::optional<Task<Payload>> task_;
    Listener* listener_ = nullptr;
    bool dropped_ = false;
    std::optional<SettledAt> given_up_;  // Dropped, and its listener was or will be told so.
};
using OperationPtr = std::shared_ptr<Operation>;

// The operation itself. Throws a Failure if it is no longer there: it was moved from, or detached.
const OperationPtr& present(const OperationPtr& operation);
const OperationPtr& present(OperationPtr&& operation) = delete;
// The same, while it can still be changed. Throws a Failure if it was started.
Operation& cold(const OperationPtr& operation);

// Refuse what the operation is not, or what is too long, with a Failure of type "InvalidOperation".
void check_retry(const RetryPolicy& policy);
void check_timeout(milliseconds limit);
void set_tag(EventBody& action, std::string text);
void set_start_within(EventBody& action, milliseconds limit);
void set_ahead(EventBody& action, milliseconds by);
void set_session(EventBody& action, std::string text);
void set_child_id(EventBody& action, std::string text);
void set_child_version(EventBody& action, std::string text);
void require_input(const EventBody& action);

// Throws DecodeError. `source` and `type` say what was read and as what; empty: not known.
[[noreturn]] void undecodable(const std::exception& error,
                              std::string_view source = {},
                              std::string_view type = {});

// As the compiler writes it.
template <class T>
[[nodiscard]] constexpr std::string_view type_name() {
    if constexpr (std::is_same_v<T, std::string>) {
        return "std::string";
    } else {
        constexpr std::string_view text = __PRETTY_FUNCTION__;
        constexpr std::size_t begin = text.find("T = ") + 4;
        return text.substr(begin, text.find_first_of(";]", begin) - begin);
    }
}

template <class T>
Boxed<T> decode_as(const Payload& payload, std::string_view source = {}) {
    if constexpr (std::is_void_v<T>) {
        return Unit{};
    } else {
        try {
            return Codec<T>::decode(payload.json);
        } catch (const std::exception& error) {
            undecodable(error, source, type_name<T>());
        }
    }
}

template <class T>
Boxed<T> take_as(Operation& operation) {
    if constexpr (is_expected<T>) {
        using V = typename T::value_type;
        try {
            return T(decode_as<V>(operation.take(), operation.source()));
        } catch (const Failure& failure) {
            return T(failure.info());
        }
    } else {
        return decode_as<T>(operation.take(), operation.source());
    }
}

// A coroutine that waits for one operation.
template <class T>
class OperationAwaiter final : public Suspension, public Listener {
public:
    explicit OperationAwaiter(OperationPtr operation) : operation_(std::move(operation)) {}
    ~OperationAwaiter() override { operation_->ignore(*this); }

    [[nodiscard]] bool await_ready() noexcept {
        cancelled_ = operation_->core().must_cancel();
        return cancelled_;
    }
    template <class Promise>
    bool await_suspend(std::coroutine_handle<Promise> self) {
        handle_ = self;
        resumed_ = &self.promise();
        operation_->start(self.promise(), this);
        if (operation_->done()) {
            return false;
        }
        enter(self.promise());
        armed_ = true;
        return true;
    }
    T await_resume() {
        leave();
        if (resumed_ != nullptr) {
            operation_->core().current = resumed_;
        }
        if (cancelled_) {
            throw Cancelled(operation_->core().cancel_reason());
        }
        if constexpr (std::is_void_v<T>) {
            (void)take_as<void>(*operation_);
        } else {
            return take_as<T>(*operation_);
        }
    }

    std::coroutine_handle<> settled() noexcept override {
        return armed_ ? handle_ : std::coroutine_handle<>{};
    }
    std::coroutine_handle<> cancel() noexcept override {
        if (operation_->is_task()) {
            return {};  // It has awaits of its own, which are cancelled.
        }
        cancelled_ = true;
        operation_->drop();
        return handle_;
    }

private:
    OperationPtr operation_;
    std::coroutine_handle<> handle_;
    Frame* resumed_ = nullptr;
    bool armed_ = false;
    bool cancelled_ = false;
};

// What Op and Ref have in common: a branch of all/any.
template <class T>
class OperationBranch : public Awaitable {
public:
    using value_type = T;

    [[nodiscard]] auto operator co_await() const {
        return OperationAwaiter<T>(present(operation_));
    }

    void branch_start(Frame& parent, Listener& listener) {
        present(operation_)->start(parent, &listener);
    }
    [[nodiscard]] bool branch_done() const noexcept { return operation_->done(); }
    [[nodiscard]] SettledAt branch_settled() const noexcept { return operation_->settled_at(); }
    [[nodiscard]] Boxed<T> branch_take() { return take_as<T>(*operation_); }
    [[nodiscard]] bool branch_cancels_itself() const noexcept { return operation_->is_task(); }
    void branch_ignore(const Listener& listener) noexcept {
        if (operation_) {
            operation_->ignore(listener);
        }
    }

protected:
    explicit OperationBranch(OperationPtr operation) : operation_(std::move(operation)) {}
    OperationPtr operation_;
};

}  // namespace detail

// A cold operation. Modifiers are applied before it is awaited.
template <class T>
class [[nodiscard]] Op : public detail::OperationBranch<T> {
public:
    explicit Op(detail::OperationPtr operation)
        : detail::OperationBranch<T>(std::move(operation)) {}
    Op(Op&&) noexcept = default;
    Op& operator=(Op&&) noexcept = default;

    // Of activities and children: tried again when it fails. The attempts of an activity share its
    // key and its two events.
    Op retry(RetryPolicy policy) && {
        detail::check_retry(policy);
        cold().modifiers.retry = policy;
        return std::move(*this);
    }
    // Throws TimedOut if there is no answer by then, retries included.
    Op timeout(milliseconds limit) && {
        detail::check_timeout(limit);
        cold().modifiers.timeout = limit;
        return std::move(*this);
    }
    // Of activities: only workers that serve this tag take it.
    Op tag(std::string text) && {
        detail::set_tag(cold().action(), std::move(text));
        return std::move(*this);
    }
    // Of activities: throws TimedOut if no worker has begun it by then; once begun it may take as
    // long as it needs.
    Op start_within(milliseconds limit) && {
        detail::set_start_within(cold().action(), limit);
        return std::move(*this);
    }
    // Of activities: if workers are short, it is taken before others that were scheduled up to this
    // much earlier. It cannot delay the others for ever.
    Op ahead(milliseconds by) && {
        detail::set_ahead(cold().action(), by);
        return std::move(*this);
    }
    // Of activities: all of one session run on the same worker, while it lives.
    Op session(std::string text) && {
        detail::set_session(cold().action(), std::move(text));
        return std::move(*this);
    }
    // Of children: their instance id, else one is derived from the parent's.
    Op id(std::string text) && {
        detail::set_child_id(cold().action(), std::move(text));
        return std::move(*this);
    }
    // Of children: the version of their code, else the registry decides.
    Op version(std::string text) && {
        detail::set_child_version(cold().action(), std::move(text));
        return std::move(*this);
    }
    // Of activities and children: how a replay treats an input that differs from the history.
    Op input_check(InputCheck check) && {
        detail::require_input(cold().action());
        cold().modifiers.input_check = check;
        return std::move(*this);
    }
    // Value or failure, as a value: the await does not throw (Cancelled excepted).
    Op<Expected<detail::Boxed<T>>> outcome() && {
        return Op<Expected<detail::Boxed<T>>>(std::move(this->operation_));
    }

    void branch_drop() noexcept { this->operation_.reset(); }
    [[nodiscard]] detail::OperationPtr release() && { return std::move(this->operation_); }

private:
    [[nodiscard]] detail::Operation& cold() const { return detail::cold(this->operation_); }
};

// A running operation that belongs to its handle; a branch that does not end it.
template <class T>
class [[nodiscard]] Ref : public detail::OperationBranch<T> {
public:
    explicit Ref(detail::OperationPtr operation)
        : detail::OperationBranch<T>(std::move(operation)) {}
    void branch_drop() noexcept {}
};

// An operation that was started. Dropping the handle cancels what has not been answered, unless it
// is detached; an await of it then, or later, throws a Failure of kind cancelled.
template <class T>
class [[nodiscard]] Handle : public detail::Awaitable {
public:
    using value_type = T;

    explicit Handle(detail::OperationPtr operation) : operation_(std::move(operation)) {}
    Handle(Handle&&) noexcept = default;
    Handle& operator=(Handle&& other) noexcept {
        if (this != &other) {
            cancel();
            operation_ = std::move(other.operation_);
        }
        return *this;
    }
    ~Handle() { cancel(); }

    [[nodiscard]] auto operator co_await() const {
        return detail::OperationAwaiter<T>(detail::present(operation_));
    }
    // To use it in all/any, as often as needed.
    [[nodiscard]] Ref<T> ref() const { return Ref<T>(detail::present(operation_)); }
    [[nodiscard]] bool done() const { return detail::present(operation_)->done(); }
    // It continues without a handle, for as long as the workflow runs.
    void detach() && { detail::Operation::let_go(std::move(operation_)); }
    void cancel() noexcept {
        if (operation_) {
            detail::Operation::give_up(operation_);
        }
    }

private:
    detail::OperationPtr operation_;
};

}  // namespace holdfast::flow
