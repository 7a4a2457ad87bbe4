// Starts workflows, sends them messages and reads their state, from any process that can reach the
// store.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <holdfast/flow/provider.hpp>
#include <holdfast/flow/store.hpp>
#include <holdfast/flow_engine/context.hpp>
#include <holdfast/flow_engine/event.hpp>
#include <holdfast/flow_engine/names.hpp>

namespace holdfast::flow {

struct StartOptions {
    std::string version{};  // Empty: the newest the runtime has, or the one it pins.
    milliseconds delay{0};
    DuplicatePolicy duplicate = DuplicatePolicy::reject;
    // Runs by a schedule, "*/5 * * * *" (in UTC), "@daily" or "@every 90m": first at the next time
    // that fits, and again when it has completed or failed, with the same input. Runs that were
    // missed are left out. Each is an execution of its own; cancelling ends the schedule.
    std::string cron{};
};

// Where a reset takes an instance back to.
enum class ResetTo : std::uint8_t {
    // Just before the cause of its end: the failure that ended it, the timeout, or the cancel
    // request. If the cause is its own code, all events are kept and the new code decides again.
    // Failures that did not end it are kept. Requires: it has failed or was cancelled.
    before_failure,
    event,  // Just after the event of that id, the last one that is kept.
    start,  // The start of the current execution.
};
struct ResetOptions {
    ResetTo to = ResetTo::before_failure;
    EventId event = 0;
    std::string version{};  // Of the code that continues; empty: as before.
};

// What a reset will do.
struct ResetPlan {
    ResetInstance reset;
    std::optional<Event> cause{};  // Of before_failure: the first event that is not kept.
    EventId last_kept = 0;         // Of the current execution.
    std::vector<Event> cut{};      // What comes after that in the current execution.
};

// Safe to share between threads. Unknown instances are Error not_found; an input or a message of
// more than payload_bytes_max, a little less than 1 MiB, is limit_exceeded.
class Client {
public:
    explicit Client(std::shared_ptr<Store> store);
    // Requires: `store` outlives the client.
    explicit Client(Store& store);

    // --- starting
    // True if it was created. If the id exists: already_exists, or false with use_existing; with
    // restart the old instance is ended first.
    template <auto W, class... A>
    bool start(std::string id, A&&... args) {
        return start_with<W>(StartOptions{}, std::move(id), std::forward<A>(args)...);
    }
    template <auto W, class... A>
    bool start_with(const StartOptions& options, std::string id, A&&... args) {
        using Traits = detail::WorkflowTraits<decltype(W)>;
        return start_by_name(options,
                             NameOf<W>::value,
                             std::move(id),
                             arguments(typename Traits::arguments{}, std::forward<A>(args)...));
    }
    bool start_by_name(const StartOptions& options,
                       std::string_view workflow,
                       std::string id,
                       Payload input);

    // --- waiting; a wait reads one row and never the history
    // The result or the failure. Error deadline if it has not ended by then.
    template <auto W>
    [[nodiscard]] Expected<typename detail::WorkflowTraits<decltype(W)>::result> result(
        std::string_view id, milliseconds timeout) {
        using R = typename detail::WorkflowTraits<decltype(W)>::result;
        const InstanceInfo info = wait_for_end(id, timeout, false);
        if (info.status == Status::completed) {
            return Expected<R>(Codec<R>::decode(info.output));
        }
        return Expected<R>(failure_of(info));
    }
    // Waits until it has ended.
    [[nodiscard]] InstanceInfo wait(std::string_view id, milliseconds timeout);
    // Waits until its custom status is newer than `seen`, or it has ended.
    [[nodiscard]] InstanceInfo wait_for_status(std::string_view id,
                                               std::int64_t seen,
                                               milliseconds timeout);
    // Why it failed. Requires: a status of failed or cancelled.
    [[nodiscard]] static FailureInfo failure_of(const InstanceInfo& info);

    // --- messages
    template <class T>
    Delivery signal(std::string_view id,
                    const Channel<T>& channel,
                    const std::type_identity_t<T>& value) {
        return send(id,
                    ChannelMessage{std::string(channel.name()), Payload{Codec<T>::encode(value)}});
    }
    template <class T>
    Delivery signal(std::string_view id,
                    const Signal<T>& signal,
                    const std::type_identity_t<T>& value) {
        return send(id,
                    SignalMessage{std::string(signal.name()), Payload{Codec<T>::encode(value)}});
    }
    Delivery send(std::string_view id, MessageBody message);
    // Asks it to stop; it may clean up for as long as `grace` (0: the runtime's default).
    Delivery cancel(std::string_view id, std::string reason, milliseconds grace = milliseconds{0});
    // Ends it without running its code again. Like cancel, it also reaches an instance that is
    // suspended, which then runs to its end, and one that is not due yet.
    Delivery terminate(std::string_view id, std::string reason);
    // The same, but it ends as failed, with a failure of type "FailedByOperator" and this reason: a
    // parent gets it as the failure of its child, and searches find it among the failed.
    Delivery fail(std::string_view id, std::string reason);
    // It takes no turns after the next one until it is resumed; its messages are kept.
    Delivery suspend(std::string_view id, std::string reason);
    bool resume(std::string_view id);
    // Takes it back to an earlier point of its current execution, also if it has ended: a new
    // execution begins with the events up to there and continues with the current code. Activities
    // that were open at that point run again, timers are set again, children that were running
    // continue; those that were started later are cancelled. Messages that came later are delivered
    // again. The old execution is kept, with the status `reset`. Returns the number of the new one.
    // InvalidArgument or condition_failed: there is no such point.
    ExecutionId reset(std::string_view id, const ResetOptions& options = {});
    // What reset would do now.
    [[nodiscard]] ResetPlan plan(std::string_view id, const ResetOptions& options = {});
    // Both throw Failure if the workflow's handler does, or if it has no handler of that name.
    template <class R, class... P, class... A>
    [[nodiscard]] R query(std::string_view id,
                          milliseconds timeout,
                          const Query<R(P...)>& what,
                          A&&... args) {
        const Payload reply = ask(id,
                                  timeout,
                                  false,
                                  what.name(),
                                  arguments(detail::Types<P...>{}, std::forward<A>(args)...));
        return decode_reply<R>(reply);
    }
    template <class R, class... P, class... A>
    R update(std::string_view id, milliseconds timeout, const Update<R(P...)>& what, A&&... args) {
        const Payload reply = ask(id,
                                  timeout,
                                  true,
                                  what.name(),
                                  arguments(detail::Types<P...>{}, std::forward<A>(args)...));
        return decode_reply<R>(reply);
    }
    [[nodiscard]] Payload ask(std::string_view id,
                              milliseconds timeout,
                              bool update,
                              std::string_view name,
                              Payload input);

    // --- reading
    [[nodiscard]] std::optional<InstanceInfo> info(std::string_view id);
    template <class T>
    [[nodiscard]] std::optional<T> kv(std::string_view id, std::string_view key) {
        const std::optional<Payload> value = provider().kv_value(id, key);
        return value ? std::optional<T>(Codec<T>::decode(value->json)) : std::nullopt;
    }
    [[nodiscard]] std::map<std::string, KvEntry> kv_all(std::string_view id);
    // Waits until the key exists. condition_failed if the workflow has ended without it.
    template <class T>
    [[nodiscard]] T wait_for_kv(std::string_view id, std::string_view key, milliseconds timeout) {
        return Codec<T>::decode(wait_for_key(id, key, timeout).json);
    }
    [[nodiscard]] InstancePage list(const ListInstances& ask = {});
    // Of the current execution unless one is named. Damaged rows are Error internal.
    [[nodiscard]] std::vector<Event> history(std::string_view id, ExecutionId execution = 0);
    [[nodiscard]] std::vector<ExecutionInfo> executions(std::string_view id);
    [[nodiscard]] std::vector<std::string> tree(std::string_view id);
    [[nodiscard]] SystemStats stats();

    // --- maintenance
    // A header line with the instance and the keys that the execution began with, then one JSON
    // line per event. The keys are left out if an earlier execution was pruned. import_history
    // refuses an id that exists.
    [[nodiscard]] std::string export_history(std::string_view id, ExecutionId execution = 0);
    void import_history(std::string_view id, std::string_view lines);
    DeleteCounts remove(std::string_view id, bool force = false);
    DeleteCounts remove_ended(const DeleteFilter& filter);
    DeleteCounts prune(std::string_view id, const PruneOptions& options);
    // Removes earlier executions that ended before then, of at most `limit` instances, running ones
    // included.
    DeleteCounts prune_ended(Moment before, int limit = 1000);

    [[nodiscard]] Provider& provider() noexcept;

private:
    // Starts it in a runtime of this process, together with its first turn. False: nothing done.
    [[nodiscard]] bool start_with_first_turn(const StartOptions& options,
                                             std::string_view workflow,
                                             const std::string& id,
                                             const Payload& input);
    [[nodiscard]] Payload wait_for_key(std::string_view id,
                                       std::string_view key,
                                       milliseconds timeout);
    // Unless `fully`, only the status and the output need be current.
    [[nodiscard]] InstanceInfo wait_for_end(std::string_view id, milliseconds timeout, bool fully);
    template <class... P, class... A>
    [[nodiscard]] static Payload arguments(detail::Types<P...>, A&&... args) {
        static_assert(sizeof...(P) == sizeof...(A) && (std::convertible_to<A, P> && ...),
                      "the workflow takes other arguments");
        return detail::encode_arguments<P...>(static_cast<P>(std::forward<A>(args))...);
    }
    template <class R>
    [[nodiscard]] static R decode_reply(const Payload& reply) {
        if constexpr (!std::is_void_v<R>) {
            return Codec<R>::decode(reply.json);
        }
    }

    std::shared_ptr<Store> owned_;
    Store* store_;
};

}  // namespace holdfast::flow
