// Activities: ordinary functions with side effects.
//
//   Receipt capture(Basket basket);                                    // just work
//   Receipt capture(flow::ActivityContext& ctx, Basket basket);       // with its context
//   Receipt capture(sql::Tx& tx, Basket basket);                       // in the database itself
//
// An activity runs at least once: a crash after its effect and before its answer runs it again. One
// that takes a sql::Tx& writes in the same transaction as its answer, so its effect on the user's
// own tables happens exactly once; it must do nothing else, and may be run again after a conflict.
#pragma once

#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include <holdfast/flow/provider.hpp>
#include <holdfast/flow_engine/context.hpp>
#include <holdfast/flow_engine/names.hpp>
#include <holdfast/flow_engine/payload.hpp>

namespace holdfast {
class Logger;
}
namespace holdfast::sql {
class Tx;
}

namespace holdfast::flow {

// What an activity can read and report. Valid only during the call.
class ActivityContext {
public:
    ActivityContext(const ClaimedActivity& claim,
                    std::stop_token stop,
                    Logger& logger,
                    std::function<void(const Payload&)> heartbeat)
        : claim_(claim), stop_(std::move(stop)), logger_(logger), beat_(std::move(heartbeat)) {}

    [[nodiscard]] const std::string& instance() const noexcept { return claim_.task.key.instance; }
    [[nodiscard]] ExecutionId execution() const noexcept { return claim_.task.key.execution; }
    [[nodiscard]] EventId event() const noexcept { return claim_.task.key.event; }
    [[nodiscard]] const std::string& name() const noexcept { return claim_.task.name; }
    // The workflow's code that asked for it.
    [[nodiscard]] const std::string& workflow() const noexcept { return claim_.task.workflow; }
    [[nodiscard]] const std::string& workflow_version() const noexcept {
        return claim_.task.version;
    }
    [[nodiscard]] const std::optional<std::string>& session() const noexcept {
        return claim_.task.session;
    }
    [[nodiscard]] const std::optional<std::string>& tag() const noexcept { return claim_.task.tag; }
    // 1 for the first attempt. Grows with each, also after one whose process died.
    [[nodiscard]] int attempt() const noexcept { return claim_.attempt; }
    // The failure of the last attempt that failed; null if none has.
    [[nodiscard]] const FailureInfo* last_failure() const noexcept {
        return claim_.last_failure ? &*claim_.last_failure : nullptr;
    }
    // The same for every attempt: pass it to services that deduplicate by key.
    [[nodiscard]] std::string idempotency_key() const;

    // Fires when the result is no longer needed: the activity was cancelled, or the process shuts
    // down.
    [[nodiscard]] const std::stop_token& stop_token() const noexcept { return stop_; }
    [[nodiscard]] bool cancelled() const noexcept { return stop_.stop_requested(); }

    // Stores progress that the next attempt can read if this one fails or is lost.
    template <class T>
    void heartbeat(const T& progress) {
        beat_(Payload{Codec<T>::encode(progress)});
    }
    template <class T>
    [[nodiscard]] std::optional<T> last_heartbeat() const {
        if (!claim_.heartbeat) {
            return std::nullopt;
        }
        return Codec<T>::decode(claim_.heartbeat->json);
    }
    [[nodiscard]] Logger& log() noexcept { return logger_; }

private:
    const ClaimedActivity& claim_;
    std::stop_token stop_;
    Logger& logger_;
    std::function<void(const Payload&)> beat_;
};

// Decides how an attempt ends that took `took` since its claim: with the activity's answer, or with
// another attempt, by its retry policy. `unit` from 0 to 1 selects the pause within its jitter.
[[nodiscard]] ActivityEnd end_of_attempt(const ClaimedActivity& claim,
                                         std::variant<Payload, FailureInfo> result,
                                         milliseconds took,
                                         double unit);
// Why the attempt must not begin; empty if it may. Its policy bounds the time for all of them.
[[nodiscard]] std::optional<FailureInfo> total_exceeded(const ClaimedActivity& claim);

template <>
inline constexpr bool is_lent_to_activities<ActivityContext> = true;
template <>
inline constexpr bool is_lent_to_activities<sql::Tx> = true;

namespace detail {

// A registered activity without its types. `tx` is null unless it is transactional.
using ActivityFunction = Payload (*)(ActivityContext&, sql::Tx*, const Payload& input);

template <class... P>
inline constexpr bool takes_transaction = (std::is_same_v<std::remove_cvref_t<P>, sql::Tx> || ...);

template <class P>
decltype(auto) lend(ActivityContext& ctx, sql::Tx* tx) {
    if constexpr (takes_transaction<P>) {
        return static_cast<sql::Tx&>(*tx);
    } else {
        return static_cast<ActivityContext&>(ctx);
    }
}

template <class F>
struct Invoke;
template <class R, class... P>
struct Invoke<R (*)(P...)> {
    static constexpr bool transactional = takes_transaction<P...>;

    template <auto F>
    static Payload call(ActivityContext& ctx, sql::Tx* tx, const Payload& input) {
        return call_with<F>(ctx, tx, input, typename WithoutLent<P...>::type{});
    }

private:
    template <auto F, class... A>
    static Payload call_with(ActivityContext& ctx, sql::Tx* tx, const Payload& input, Types<A...>) {
        std::tuple<A...> args = decode_arguments<A...>(input);
        constexpr std::size_t lent = sizeof...(P) - sizeof...(A);
        return finish<F>(
            ctx, tx, args, std::make_index_sequence<lent>{}, std::index_sequence_for<A...>{});
    }
    template <auto F, class Args, std::size_t... L, std::size_t... I>
    static Payload finish(ActivityContext& ctx,
                          sql::Tx* tx,
                          Args& args,
                          std::index_sequence<L...>,
                          std::index_sequence<I...>) {
        using All = std::tuple<P...>;
        if constexpr (std::is_void_v<R>) {
            F(lend<std::tuple_element_t<L, All>>(ctx, tx)..., std::move(std::get<I>(args))...);
            return Payload{};
        } else {
            return Payload{Codec<std::decay_t<R>>::encode(F(
                lend<std::tuple_element_t<L, All>>(ctx, tx)..., std::move(std::get<I>(args))...))};
        }
    }
};
template <class R, class... P>
struct Invoke<R (*)(P...) noexcept> : Invoke<R (*)(P...)> {};

}  // namespace detail

}  // namespace holdfast::flow
