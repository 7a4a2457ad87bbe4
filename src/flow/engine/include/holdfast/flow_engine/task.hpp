// Workflows and their helpers, as coroutines.
//
//   flow::Workflow<Receipt> checkout(flow::Context& ctx, Basket basket) { ... co_return receipt; }
//
// A Task is lazy: it runs when it is awaited or handed to all/any. Parameters are taken by value,
// because the caller's are gone after the first suspension; only Context& is lent.
#pragma once

#include <concepts>
#include <coroutine>
#include <exception>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <holdfast/flow_engine/core.hpp>
#include <holdfast/flow_engine/failure.hpp>
#include <holdfast/flow_engine/payload.hpp>

namespace holdfast::flow {

class Context;

template <class T>
class Task;
template <class T>
using Workflow = Task<T>;

namespace detail {
// Throws a Failure of type "InvalidOperation" unless it is a version that a registry can have.
void check_version(const std::string& text);
}  // namespace detail

// The arguments of the next execution: co_return flow::again(cursor, total);
template <class... A>
class Again {
public:
    explicit Again(A... args) : args_(std::move(args)...) {}
    // Continues with another version of the code than the registry would choose.
    Again&& version(std::string text) && {
        detail::check_version(text);
        version_ = std::move(text);
        return std::move(*this);
    }
    [[nodiscard]] std::tuple<A...>& args() noexcept { return args_; }
    [[nodiscard]] const std::string& version() const noexcept { return version_; }

private:
    std::tuple<A...> args_;
    std::string version_;
};
template <class... A>
[[nodiscard]] auto again(A&&... args) {
    return Again<std::decay_t<A>...>(std::forward<A>(args)...);
}

namespace detail {

// Everything a workflow can await derives from it; nothing else can be awaited.
struct Awaitable {};

template <class T>
concept FlowAwaitable = std::derived_from<std::remove_cvref_t<T>, Awaitable>;

template <class T>
struct BoxOf {
    using type = T;
};
template <>
struct BoxOf<void> {
    using type = Unit;
};
// T, or Unit for void.
template <class T>
using Boxed = typename BoxOf<T>::type;

// [a,b,c] of the arguments as the parameters' types.
std::string join_arguments(const std::vector<std::string>& values);
template <class... P, class... A>
[[nodiscard]] Payload encode_arguments(const A&... args) {
    std::vector<std::string> values;
    values.reserve(sizeof...(P));
    (values.push_back(Codec<P>::encode(args)), ...);
    return Payload{join_arguments(values)};
}

struct FinalAwaiter {
    [[nodiscard]] bool await_ready() const noexcept { return false; }
    template <class Promise>
    [[nodiscard]] std::coroutine_handle<> await_suspend(
        std::coroutine_handle<Promise> self) const noexcept {
        Frame& frame = self.promise();
        frame.settled = frame.core->settle_now();
        const std::coroutine_handle<> next =
            frame.listener != nullptr ? frame.listener->settled() : std::coroutine_handle<>{};
        return next ? next : std::noop_coroutine();
    }
    void await_resume() const noexcept {}
};

template <class T>
struct PromiseOf : Frame {
    std::optional<Boxed<T>> value;

    [[nodiscard]] std::suspend_always initial_suspend() const noexcept { return {}; }
    [[nodiscard]] FinalAwaiter final_suspend() const noexcept { return {}; }
    void unhandled_exception() noexcept { error = std::current_exception(); }

    template <FlowAwaitable A>
    A&& await_transform(A&& awaitable) const noexcept {
        return std::forward<A>(awaitable);
    }
    template <class A>
    void await_transform(A&&) const {
        static_assert(never<A>,
                      "a workflow can await only flow operations: nothing else can be replayed");
    }
};

// Throws a Failure: a task is awaited once, by its owner.
[[noreturn]] void cannot_start_task(bool moved);

template <class T>
struct ValuePromise : PromiseOf<T> {
    template <class U>
        requires std::convertible_to<U, T>
    void return_value(U&& result) {
        this->value.emplace(std::forward<U>(result));
    }
};
template <>
struct ValuePromise<void> : PromiseOf<void> {
    void return_void() { value.emplace(); }
};

}  // namespace detail

namespace detail {
template <class T, bool TakesResult>
class TaskAwaiter;
}

template <class T>
class [[nodiscard]] Task : public detail::Awaitable {
public:
    using value_type = T;

    template <class Promise>
        requires std::derived_from<Promise, detail::ValuePromise<T>>
    explicit Task(std::coroutine_handle<Promise> handle) noexcept
        : handle_(handle), promise_(&handle.promise()) {}
    Task(Task&& other) noexcept
        : handle_(std::exchange(other.handle_, {})),
          promise_(std::exchange(other.promise_, nullptr)) {}
    Task& operator=(Task&& other) noexcept {
        if (this != &other) {
            destroy();
            handle_ = std::exchange(other.handle_, {});
            promise_ = std::exchange(other.promise_, nullptr);
        }
        return *this;
    }
    ~Task() { destroy(); }

    // Requires: it stays where it is meanwhile.
    [[nodiscard]] auto operator co_await() noexcept { return detail::TaskAwaiter<T, true>(*this); }

    // --- as a branch of all/any
    void branch_start(detail::Frame& parent, detail::Listener& listener) {
        if (promise_ == nullptr || promise_->core != nullptr) {
            detail::cannot_start_task(promise_ == nullptr);
        }
        promise_->core = parent.core;
        promise_->parent = &parent;
        promise_->listener = &listener;
        detail::Frame* const before = std::exchange(parent.core->current, promise_);
        handle_.resume();
        parent.core->current = before;
    }
    [[nodiscard]] bool branch_done() const noexcept { return handle_.done(); }
    [[nodiscard]] detail::SettledAt branch_settled() const noexcept { return promise_->settled; }
    [[nodiscard]] detail::Boxed<T> branch_take() {
        if (promise_->error) {
            std::rethrow_exception(promise_->error);
        }
        return std::move(*promise_->value);  // NOLINT(bugprone-unchecked-optional-access): ended.
    }
    [[nodiscard]] std::exception_ptr branch_error() const noexcept { return promise_->error; }
    // Its own awaits are cancelled one by one.
    [[nodiscard]] bool branch_cancels_itself() const noexcept { return true; }
    void branch_drop() noexcept { destroy(); }
    void branch_ignore(const detail::Listener&) noexcept {
        if (promise_ != nullptr) {
            promise_->listener = nullptr;
        }
    }

    // Lets it call again().
    void mark_workflow() noexcept { promise_->workflow = true; }
    // Starts it as the root of an execution, without a listener.
    void start_root(detail::Core& core) {
        promise_->core = &core;
        core.current = promise_;
        handle_.resume();
        core.current = nullptr;
    }

private:
    void destroy() noexcept {
        if (handle_) {
            std::exchange(handle_, {}).destroy();
            promise_ = nullptr;
        }
    }

    std::coroutine_handle<> handle_;
    detail::ValuePromise<T>* promise_;
};

namespace detail {

// A coroutine that waits for another one. Without `TakesResult` it only learns of the end.
template <class T, bool TakesResult>
class TaskAwaiter final : public Listener {
public:
    explicit TaskAwaiter(Task<T>& task) noexcept : task_(task) {}

    [[nodiscard]] bool await_ready() const noexcept { return false; }
    // Runs the child here and now; a child that has ended does not suspend its parent. So a long
    // chain of tasks that end at once does not grow the stack.
    template <class Promise>
    bool await_suspend(std::coroutine_handle<Promise> parent) {
        handle_ = parent;
        frame_ = &parent.promise();
        task_.branch_start(*frame_, *this);
        armed_ = true;
        return !task_.branch_done();
    }
    std::conditional_t<TakesResult, T, void> await_resume() {
        frame_->core->current = frame_;
        if constexpr (TakesResult && !std::is_void_v<T>) {
            return task_.branch_take();
        } else if constexpr (TakesResult) {
            (void)task_.branch_take();
        }
    }

    std::coroutine_handle<> settled() noexcept override {
        return armed_ ? handle_ : std::coroutine_handle<>{};
    }

private:
    Task<T>& task_;
    std::coroutine_handle<> handle_;
    Frame* frame_ = nullptr;
    bool armed_ = false;
};

// Whether a parameter is still there after the first await: it lives in the coroutine, or outlives
// it as the context does. An object with nothing in it is that of a lambda without captures.
template <class P>
[[nodiscard]] constexpr bool stays_with_the_coroutine() {
    using Object = std::remove_reference_t<P>;
    if constexpr (std::is_same_v<P, Context&> || std::is_same_v<P, Core&>) {
        return true;
    } else if constexpr (std::is_reference_v<P>) {
        return std::is_class_v<Object> && std::is_empty_v<Object>;
    } else {
        return !is_view<P>;
    }
}

// The promise of a coroutine with these parameters; an object's or a lambda's own comes first.
template <class T, class Base, class... P>
struct PromiseWith : Base {
    // Only here is a lambda complete, and it shows whether it has captures.
    Task<T> get_return_object() {
        static_assert((stays_with_the_coroutine<P>() && ...),
                      "a coroutine takes its parameters by value (only Context& is lent) and has "
                      "no captures and no object: they may be gone after the first await");
        return Task<T>(std::coroutine_handle<PromiseWith>::from_promise(*this));
    }
};

// The promise of a coroutine that takes a context: it knows its own parameters, so that `again` is
// checked against them.
template <class T, class... P>
struct WorkflowPromise : ValuePromise<T> {
    using ValuePromise<T>::return_value;
    template <class... A>
    void return_value(Again<A...> next) {
        if constexpr (sizeof...(A) != sizeof...(P)) {
            static_assert(never<Again<A...>>,
                          "again() takes the arguments of this workflow, in their order");
        } else {
            static_assert((std::convertible_to<A, P> && ...),
                          "again() takes the arguments of this workflow, in their order");
            continue_with(next);
        }
    }

private:
    template <class... A>
    void continue_with(Again<A...>& next) {
        if (!this->workflow) {
            throw Failure("InvalidOperation",
                          "again() belongs to the workflow itself, not to a task it awaits");
        }
        std::apply(
            [&](auto&... args) {
                this->core->continue_as_new(encode_arguments<P...>(static_cast<const P&>(
                                                static_cast<P>(std::move(args)))...),
                                            next.version());
            },
            next.args());
    }
};

}  // namespace detail

}  // namespace holdfast::flow

template <class T, class... P>
struct std::coroutine_traits<holdfast::flow::Task<T>, P...> {
    using promise_type =
        holdfast::flow::detail::PromiseWith<T, holdfast::flow::detail::ValuePromise<T>, P...>;
};
template <class T, class... P>
    requires(!std::is_void_v<T>)
struct std::coroutine_traits<holdfast::flow::Task<T>, holdfast::flow::Context&, P...> {
    using promise_type = holdfast::flow::detail::
        PromiseWith<T, holdfast::flow::detail::WorkflowPromise<T, std::decay_t<P>...>, P...>;
};
// A lambda without captures is a function: it may call again(), like one that has a name.
template <class T, class Lambda, class... P>
    requires(!std::is_void_v<T>)
struct std::
    coroutine_traits<holdfast::flow::Task<T>, const Lambda&, holdfast::flow::Context&, P...> {
    using promise_type = holdfast::flow::detail::PromiseWith<
        T,
        holdfast::flow::detail::WorkflowPromise<T, std::decay_t<P>...>,
        const Lambda&,
        P...>;
};
