// Functions and their stored names.
//
// A workflow or an activity is named once, and afterwards referred to by the function itself, so
// that the compiler checks its types and renaming it in C++ cannot break a stored history:
//
//   HOLDFAST_NAME(shop::capture, "shop.capture");   // at global scope, after its declaration
#pragma once

#include <cstddef>
#include <string_view>
#include <type_traits>

#include <holdfast/flow_engine/payload.hpp>

namespace holdfast::flow {

class Context;
template <class T>
class Task;

template <auto Function>
struct NameOf {
    static_assert(Function == nullptr, "give the function a stored name with HOLDFAST_NAME");
};

// What is passed to an activity besides its arguments (ActivityContext&, sql::Tx&).
template <class T>
inline constexpr bool is_lent_to_activities = false;

// A FIFO mailbox: typed, buffered, also before the start, kept over continue-as-new.
//   inline constexpr flow::Channel<Decision> decisions{"decision"};
template <class T>
class Channel {
public:
    using value_type = T;
    explicit constexpr Channel(std::string_view name) : name_(name) {}
    [[nodiscard]] constexpr std::string_view name() const noexcept { return name_; }

private:
    std::string_view name_;
};

// A positional event: it reaches only a wait that is already there. Prefer a Channel.
template <class T>
class Signal {
public:
    using value_type = T;
    explicit constexpr Signal(std::string_view name) : name_(name) {}
    [[nodiscard]] constexpr std::string_view name() const noexcept { return name_; }

private:
    std::string_view name_;
};

// Requests with an answer: inline constexpr flow::Query<Progress()> progress{"progress"};
// A query only reads; an update may change the workflow's state and is kept in its history.
template <class F>
class Query {
public:
    explicit constexpr Query(std::string_view name) : name_(name) {}
    [[nodiscard]] constexpr std::string_view name() const noexcept { return name_; }

private:
    std::string_view name_;
};
template <class F>
class Update {
public:
    explicit constexpr Update(std::string_view name) : name_(name) {}
    [[nodiscard]] constexpr std::string_view name() const noexcept { return name_; }

private:
    std::string_view name_;
};

namespace detail {

template <class... P>
struct Types {
    static constexpr std::size_t size = sizeof...(P);
};

template <class T>
inline constexpr bool is_task = false;
template <class T>
inline constexpr bool is_task<Task<T>> = true;

// A parameter list without the lent parameters in front.
template <class... P>
struct WithoutLent {
    static_assert(
        (!is_lent_to_activities<std::remove_cvref_t<P>> && ...),
        "what is lent to an activity (ActivityContext&, sql::Tx&) comes first, by reference");
    static_assert(
        ((!std::is_lvalue_reference_v<P> || std::is_const_v<std::remove_reference_t<P>>) && ...),
        "an activity takes its arguments by value or by const&: changes to a "
        "reference would be lost");
    static_assert((owns_itself<std::remove_cvref_t<P>> && ...),
                  "an activity takes values: what pointers and views look at is not stored");
    using type = Types<std::decay_t<P>...>;
};
template <class First, class... P>
    requires(std::is_lvalue_reference_v<First> && is_lent_to_activities<std::remove_cvref_t<First>>)
struct WithoutLent<First, P...> : WithoutLent<P...> {};

template <class F>
struct ActivityTraits {
    static_assert(!sizeof(F), "an activity is a plain function");
};
template <class R, class... P>
struct ActivityTraits<R (*)(P...)> {
    using result = std::remove_cvref_t<R>;
    static_assert(owns_itself<result>,
                  "an activity returns a value: what pointers and views look at is not stored");
    static_assert(!is_task<result>,
                  "an activity is a plain function; a coroutine is awaited, or started as a child");
    using arguments = typename WithoutLent<P...>::type;
};
template <class R, class... P>
struct ActivityTraits<R (*)(P...) noexcept> : ActivityTraits<R (*)(P...)> {};

template <class F>
struct WorkflowTraits {
    static_assert(!sizeof(F),
                  "a workflow is a function Workflow<R> f(Context&, arguments by value...); "
                  "a lambda's captures do not live in the coroutine");
};
template <class R, class... P>
struct WorkflowTraits<Task<R> (*)(Context&, P...)> {
    static_assert((owns_itself<P> && ...),
                  "a workflow takes its arguments by value: references, pointers and views would "
                  "dangle after the first await");
    static_assert(!std::is_void_v<R>, "a workflow that has no result returns Workflow<Unit>");
    static_assert(owns_itself<R>,
                  "a workflow returns a value: what pointers and views look at is not stored");
    using result = R;
    using arguments = Types<std::decay_t<P>...>;
};
template <class R, class... P>
struct WorkflowTraits<Task<R> (*)(Context&, P...) noexcept>
    : WorkflowTraits<Task<R> (*)(Context&, P...)> {};

// g++ before 13 destroys the temporaries of an awaited expression twice if they are aggregates that
// own something, or lambdas with captures that do.
template <class A>
inline constexpr bool safe_in_await =
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ < 13
    std::is_lvalue_reference_v<A> || !std::is_aggregate_v<std::remove_cvref_t<A>> ||
    std::is_trivially_destructible_v<std::remove_cvref_t<A>>;
#else
    true;
#endif
template <class F>
inline constexpr bool safe_function_in_await =
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ < 13
    std::is_lvalue_reference_v<F> || std::is_trivially_destructible_v<std::remove_cvref_t<F>>;
#else
    true;
#endif

}  // namespace detail

}  // namespace holdfast::flow

// NOLINTBEGIN(bugprone-macro-parentheses): a name is not an expression.
#define HOLDFAST_NAME(function, text)                   \
    template <>                                         \
    struct holdfast::flow::NameOf<&function> {          \
        static constexpr std::string_view value = text; \
    }
// NOLINTEND(bugprone-macro-parentheses)
