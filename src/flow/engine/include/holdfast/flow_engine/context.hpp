// The API of a workflow.
//
// Everything here is deterministic: a replay of the same history gets the same answers. Other
// clocks, random numbers, files and threads belong in activities.
#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include <holdfast/flow_engine/core.hpp>
#include <holdfast/flow_engine/names.hpp>
#include <holdfast/flow_engine/operation.hpp>
#include <holdfast/flow_engine/payload.hpp>
#include <holdfast/flow_engine/stored.hpp>
#include <holdfast/flow_engine/task.hpp>

namespace holdfast::flow {

namespace detail {

// Throws DecodeError unless the payload is an array of `expected` values.
std::vector<std::string_view> split_arguments(const Payload& input, std::size_t expected);

template <class... P, std::size_t... I>
[[nodiscard]] std::tuple<P...> decode_each(const std::vector<std::string_view>& values,
                                           std::index_sequence<I...>) {
    return std::tuple<P...>{Codec<P>::decode(values[I])...};
}

template <class... P>
[[nodiscard]] std::tuple<P...> decode_arguments(const Payload& input) {
    const std::vector<std::string_view> values = split_arguments(input, sizeof...(P));
    try {
        return decode_each<P...>(values, std::index_sequence_for<P...>{});
    } catch (const Failure&) {
        throw;
    } catch (const std::exception& error) {
        undecodable(error);
    }
}

}  // namespace detail

// What <holdfast/flow/json.hpp> makes of a braced list: ctx.status({{"done", 3}}).
template <class Tag>
struct DefaultJson;

// The instance's key-value store: at most 100 keys of 16 KiB. It outlives executions, and clients
// can read it.
class Kv {
public:
    explicit Kv(detail::Core& core) noexcept : core_(core) {}

    // Throws a Failure of type "LimitExceeded" beyond the limits.
    template <class T>
    void set(std::string key, const T& value) {
        core_.kv_set(std::move(key), Payload{Codec<T>::encode(value)});
    }
    void set(std::string key, const char* value) { set(std::move(key), std::string(value)); }
    // Empty if there is no such key. Throws DecodeError if the value has another type.
    template <class T>
    [[nodiscard]] std::optional<T> get(std::string_view key) const {
        const auto found = core_.kv().find(key);
        if (found == core_.kv().end()) {
            return std::nullopt;
        }
        return detail::decode_as<T>(found->second);
    }
    void erase(const std::string& key) { core_.kv_erase(key); }
    void clear() { core_.kv_clear(); }
    // Sorted by key.
    [[nodiscard]] const std::map<std::string, Payload, std::less<>>& all() const noexcept {
        return core_.kv();
    }

private:
    detail::Core& core_;
};

// While it exists, cancellation does not interrupt the awaits of the coroutine that created it.
class [[nodiscard]] Shield {
public:
    explicit Shield(detail::Core& core) noexcept : frame_(core.current) { ++frame_->shields; }
    ~Shield() { --frame_->shields; }
    Shield(const Shield&) = delete;
    Shield& operator=(const Shield&) = delete;

private:
    detail::Frame* frame_;
};

// A detached workflow, just after it was requested.
class Detached {
public:
    explicit Detached(detail::SlotPtr slot) noexcept : slot_(std::move(slot)) {}
    // How a replay treats an input that differs from the history. Requires: no await in between.
    void input_check(InputCheck check) && { slot_->input_check = check; }

private:
    detail::SlotPtr slot_;
};

class Context {
public:
    explicit Context(detail::Core& core) noexcept : core_(core), kv_(core) {}
    Context(const Context&) = delete;
    Context& operator=(const Context&) = delete;

    // --- operations; each is cold until it is awaited
    template <auto F, class... A>
    [[nodiscard]] auto activity(A&&... args) {
        using Traits = detail::ActivityTraits<decltype(F)>;
        static_assert((detail::safe_in_await<A&&> && ...),
                      "g++ before 13 destroys such a temporary twice inside co_await: give the "
                      "argument a name in the line before, and pass it without std::move");
        return make<typename Traits::result>(
            ActivityScheduled{std::string(NameOf<F>::value),
                              arguments(typename Traits::arguments{}, std::forward<A>(args)...),
                              std::nullopt,
                              std::nullopt});
    }
    template <auto W, class... A>
    [[nodiscard]] auto child(A&&... args) {
        using Traits = detail::WorkflowTraits<decltype(W)>;
        static_assert((detail::safe_in_await<A&&> && ...),
                      "g++ before 13 destroys such a temporary twice inside co_await: give the "
                      "argument a name in the line before, and pass it without std::move");
        return make<typename Traits::result>(
            ChildScheduled{std::string(NameOf<W>::value),
                           {},
                           arguments(typename Traits::arguments{}, std::forward<A>(args)...),
                           {}});
    }
    // By the name alone, when the code is not linked in: input and result are payloads.
    [[nodiscard]] Op<Payload> activity(std::string name, Payload input);
    [[nodiscard]] Op<Payload> child(std::string name, Payload input);

    [[nodiscard]] Op<void> sleep(milliseconds duration);
    [[nodiscard]] Op<void> sleep_until(Moment moment);
    template <class T>
    [[nodiscard]] Op<T> receive(const Channel<T>& channel) {
        return make<T>(MessageAwaited{std::string(channel.name())});
    }
    // Empty if nothing is waiting in the channel right now.
    template <class T>
    [[nodiscard]] std::optional<T> try_receive(const Channel<T>& channel) {
        if (!core_.has_message(channel.name())) {
            return std::nullopt;
        }
        const detail::SlotPtr slot = core_.take_message(std::string(channel.name()));
        return detail::decode_as<T>(std::get<Payload>(slot->answer),
                                    detail::source_of(slot->action));
    }
    template <class T>
    [[nodiscard]] Op<T> await_signal(const Signal<T>& signal) {
        return make<T>(SignalAwaited{std::string(signal.name())});
    }
    // Schedules the operation now. Never twice in one expression: their order would be the
    // compiler's choice.
    template <class T>
    [[nodiscard]] Handle<T> start(Op<T> operation) {
        detail::OperationPtr started = std::move(operation).release();
        detail::present(started)->start(*core_.current, nullptr);
        return Handle<T>(std::move(started));
    }
    // Starts a detached workflow.
    template <auto W, class... A>
    Detached detach(std::string id, A&&... args) {
        using Traits = detail::WorkflowTraits<decltype(W)>;
        return detach_by_name(std::string(NameOf<W>::value),
                              std::move(id),
                              arguments(typename Traits::arguments{}, std::forward<A>(args)...),
                              {});
    }
    Detached detach_by_name(std::string name, std::string id, Payload input, std::string version);

    // --- time and random numbers
    // The time of the event that the code reacts to; never goes back.
    [[nodiscard]] Moment now() const noexcept { return core_.now(); }
    [[nodiscard]] std::uint64_t random() noexcept { return core_.random(); }
    [[nodiscard]] std::string uuid();

    // --- what clients can see
    [[nodiscard]] Kv& kv() noexcept { return kv_; }
    // At most 256 KiB, else a Failure of type "LimitExceeded". The last one of a turn is kept.
    template <class Tag = void, class T = typename DefaultJson<Tag>::type>
    void status(const T& value) {
        core_.set_status(Payload{Codec<T>::encode(value)});
    }
    void status(const char* text) { core_.set_status(Payload{quote(text)}); }
    void clear_status() { core_.set_status(std::nullopt); }
    // The current value, also if it was carried over.
    [[nodiscard]] const std::optional<Payload>& current_status() const noexcept {
        return core_.status();
    }
    // A search attribute: listings can filter by it.
    template <class T>
    void attribute(std::string name, const T& value) {
        set_attribute(std::move(name), Payload{Codec<T>::encode(value)});
    }
    void remove_attribute(std::string name) { set_attribute(std::move(name), std::nullopt); }
    // Answers queries and updates from now on. What the function uses must live as long as the
    // workflow.
    template <class R, class... P, class F>
    void on(const Query<R(P...)>& query, F handler) {
        core_.on_query(std::string(query.name()), erase<R, P...>(std::move(handler)));
    }
    template <class R, class... P, class F>
    void on(const Update<R(P...)>& update, F handler) {
        core_.on_update(std::string(update.name()), erase<R, P...>(std::move(handler)));
    }

    // --- changes of the code
    // True in executions that began with the change, false in those that passed this point before.
    [[nodiscard]] bool patched(std::string_view change) { return core_.patched(change); }

    // --- the end
    [[nodiscard]] Shield shield() noexcept { return Shield(core_); }
    [[nodiscard]] bool cancel_requested() const noexcept { return core_.cancel_requested(); }
    // The history has grown long: a good moment for co_return again(...).
    [[nodiscard]] bool suggest_continue_as_new() const noexcept { return core_.history_is_long(); }

    // --- about itself
    [[nodiscard]] const std::string& instance() const noexcept { return core_.instance(); }
    [[nodiscard]] ExecutionId execution() const noexcept { return core_.execution(); }
    // The stored name of its code, and the version that this execution runs to its end.
    [[nodiscard]] const std::string& workflow() const noexcept { return core_.workflow(); }
    [[nodiscard]] const std::string& version() const noexcept { return core_.version(); }
    [[nodiscard]] bool replaying() const noexcept { return core_.replaying(); }
    // Silent while replaying.
    [[nodiscard]] Logger& log() noexcept { return core_.log(); }

    [[nodiscard]] detail::Core& core() noexcept { return core_; }

private:
    template <class T>
    [[nodiscard]] Op<T> make(EventBody action) {
        return Op<T>(std::make_shared<detail::Operation>(core_, std::move(action)));
    }
    template <class... P, class... A>
    [[nodiscard]] static Payload arguments(detail::Types<P...>, A&&... args) {
        static_assert(sizeof...(P) == sizeof...(A), "the function takes other arguments");
        return detail::encode_arguments<P...>(as<P>(std::forward<A>(args))...);
    }
    // The argument itself if it has the parameter's type, else what it converts to.
    template <class P, class A>
    [[nodiscard]] static decltype(auto) as(A&& arg) {
        if constexpr (std::same_as<std::remove_cvref_t<A>, P>) {
            return static_cast<const P&>(arg);
        } else {
            static_assert(std::convertible_to<A, P>, "the function takes other arguments");
            return static_cast<P>(std::forward<A>(arg));
        }
    }
    template <class R, class... P, class F>
    [[nodiscard]] static detail::Handler erase(F handler) {
        return [handler = std::move(handler)](const Payload& input) mutable -> Payload {
            auto args = detail::decode_arguments<P...>(input);
            if constexpr (std::is_void_v<R>) {
                std::apply(handler, std::move(args));
                return Payload{};
            } else {
                return Payload{Codec<R>::encode(std::apply(handler, std::move(args)))};
            }
        };
    }
    void set_attribute(std::string name, std::optional<Payload> value);

    detail::Core& core_;
    Kv kv_;
};

namespace detail {

// Code of a workflow, without its types: takes the input, gives the output.
using Program = Task<Payload> (*)(Context&, Payload);

// Awaits a task to its end without taking its result.
template <class T>
class Ended : public Awaitable {
public:
    explicit Ended(Task<T>& task) : task_(task) {}
    [[nodiscard]] auto operator co_await() const noexcept { return TaskAwaiter<T, false>(task_); }

private:
    Task<T>& task_;
};

template <class... P>
struct Caller {
    template <auto W>
    static auto call(Context& ctx, std::tuple<P...>&& args) {
        return std::apply([&](P&... arg) { return W(ctx, std::move(arg)...); }, args);
    }
};

template <auto W, class R, class... P>
Task<Payload> run_program_as(Context& ctx, Payload input, Types<P...>) {
    Task<R> task = Caller<P...>::template call<W>(ctx, decode_arguments<P...>(input));
    task.mark_workflow();
    co_await Ended<R>(task);
    if (ctx.core().continues()) {
        co_return Payload{};
    }
    co_return Payload{Codec<R>::encode(task.branch_take())};
}

template <auto W>
Task<Payload> run_program(Context& ctx, Payload input) {
    using Traits = WorkflowTraits<decltype(W)>;
    return run_program_as<W, typename Traits::result>(
        ctx, std::move(input), typename Traits::arguments{});
}

}  // namespace detail

}  // namespace holdfast::flow
