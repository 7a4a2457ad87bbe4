// A world for one test of workflows: a database in memory, a clock that stands still until it is
// moved, and activities that the test plays.
//
//   flow::test::World world;
//   std::vector<std::string> nudged;
//   world.stub<&nudge>([&](std::string officer) { nudged.push_back(officer); });
//   world.start<&review>("loan-7", loan);
//   world.advance(24h);                              // A reminder is due.
//   world.signal("loan-7", decisions, decision);
//   EXPECT_EQ(*world.result<&review>("loan-7"), "granted by bob");
//
// start, signal and cancel only deliver; run, advance and result make things happen, on the
// caller's thread and always in the same order. It needs no test framework: what is not as
// expected is thrown as Unexpected. A turn is always checked by a replay from scratch, so code
// that is not deterministic fails at once. Use it from one thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <holdfast/flow/activity.hpp>
#include <holdfast/flow/client.hpp>
#include <holdfast/flow/registry.hpp>
#include <holdfast/flow/runtime.hpp>
#include <holdfast/flow/store.hpp>
#include <holdfast/flow_engine/context.hpp>
#include <holdfast/flow_engine/names.hpp>
#include <holdfast/flow_testing/faulty_provider.hpp>
#include <holdfast/sql/database.hpp>

namespace holdfast::flow::test {

// Something is not as the test expects.
class Unexpected : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

// Where a world begins: 2030-01-01T00:00:00Z.
inline constexpr Moment first_moment{milliseconds{1'893'456'000'000}};

// Decides what happens next where several things could: a number below `count`.
using Chooser = std::function<int(int count)>;

struct WorldOptions {
    // Empty: what was scheduled first ends first, and its workflow sees it before anything else
    // ends.
    Chooser choose{};
    // Activities may also end only after the clock was moved. Needs `choose`.
    bool late_activities = false;
    ExecutionLimits limits{};
    int steps_max = 100'000;       // A world that does not come to rest by then is Unexpected.
    int clock_moves_max = 10'000;  // A workflow that has not ended by then is one that never ends.
    // The build id of the code. Empty: none is recorded, so histories do not depend on the build.
    std::string build_id{};
};

namespace detail {

using Stub = std::function<Payload(ActivityContext&, sql::Tx*, const Payload&)>;

template <class Fn, class... A>
inline constexpr bool takes = std::is_invocable_v<Fn&, A...>;

template <class R, class Fn, class... A>
Payload call_stub(Fn& fn, ActivityContext& ctx, sql::Tx* tx, std::tuple<A...> args) {
    const auto call = [&](A&... arg) -> decltype(auto) {
        if constexpr (takes<Fn, A...>) {
            return fn(std::move(arg)...);
        } else if constexpr (takes<Fn, ActivityContext&, A...>) {
            return fn(ctx, std::move(arg)...);
        } else {
            static_assert(takes<Fn, sql::Tx&, A...>,
                          "a stub takes the arguments of the activity it stands for");
            return fn(*tx, std::move(arg)...);
        }
    };
    if constexpr (std::is_void_v<R>) {
        std::apply(call, args);
        return Payload{};
    } else {
        static_assert(std::is_convertible_v<decltype(std::apply(call, args)), R>,
                      "a stub returns what the activity it stands for returns");
        return Payload{Codec<std::decay_t<R>>::encode(std::apply(call, args))};
    }
}

}  // namespace detail

class World {
public:
    explicit World(WorldOptions options = {});
    ~World();
    World(const World&) = delete;
    World& operator=(const World&) = delete;

    // --- the code
    // Workflows that are started here are known already; their children and older versions are not.
    template <auto W>
    World& workflow(std::string_view version = "1.0.0") {
        registry_.workflow<W>(version);
        runtime_.reset();
        return *this;
    }
    // The real activity.
    template <auto F>
    World& activity() {
        using Invoke = flow::detail::Invoke<decltype(F)>;
        return play(NameOf<F>::value, &Invoke::template call<F>, Invoke::transactional);
    }
    // A function that stands for the activity: it takes the same arguments, also with an
    // ActivityContext& or a sql::Tx& in front, and may throw. The newest one counts.
    template <auto F, class Fn>
    World& stub(Fn fn) {
        using Traits = flow::detail::ActivityTraits<decltype(F)>;
        return stub_as<typename Traits::result>(
            NameOf<F>::value, std::move(fn), typename Traits::arguments{});
    }
    // The activity is taken by a worker that does not answer, until it is released, or until its
    // policy gives up on the attempt.
    template <auto F>
    World& hold() {
        held_.emplace(NameOf<F>::value);
        return *this;
    }
    template <auto F>
    World& release() {
        held_.erase(std::string(NameOf<F>::value));
        return *this;
    }
    // How often it was called.
    template <auto F>
    [[nodiscard]] int calls() const {
        const auto found = calls_.find(NameOf<F>::value);
        return found == calls_.end() ? 0 : found->second;
    }

    // --- messages
    template <auto W, class... A>
    void start(std::string id, A&&... args) {
        if (!registry_.has_workflow(NameOf<W>::value)) {
            workflow<W>();
        }
        client_->start<W>(std::move(id), std::forward<A>(args)...);
    }
    template <class T>
    Delivery signal(std::string_view id,
                    const Channel<T>& channel,
                    const std::type_identity_t<T>& value) {
        return client_->signal(id, channel, value);
    }
    template <class T>
    Delivery signal(std::string_view id,
                    const Signal<T>& signal,
                    const std::type_identity_t<T>& value) {
        return client_->signal(id, signal, value);
    }
    Delivery cancel(std::string_view id, std::string reason);
    // Answered at once. Both throw the handler's Failure; Unexpected if there is no answer.
    template <class R, class... P, class... A>
    [[nodiscard]] R query(std::string_view id, const Query<R(P...)>& what, A&&... args) {
        return reply<R>(ask(id, false, what.name(), arguments<P...>(std::forward<A>(args)...)));
    }
    template <class R, class... P, class... A>
    R update(std::string_view id, const Update<R(P...)>& what, A&&... args) {
        return reply<R>(ask(id, true, what.name(), arguments<P...>(std::forward<A>(args)...)));
    }

    // --- time
    [[nodiscard]] Moment now() const;
    // Until there is nothing to do at this moment.
    void run();
    // Runs, and moves the clock from one thing that becomes due to the next. Requires: not back.
    void advance(milliseconds by);
    // Runs, and moves the clock from one thing that becomes due to the next until the workflow has
    // ended. Unexpected if nothing becomes due any more: it says what the workflow waits for.
    void run_to_end(std::string_view id);
    // Moves the clock without running anything: leases that ran out and timers that are overdue are
    // handled by the next run.
    void skip(milliseconds by);
    // As if the process had died: the state in memory is lost, and rebuilt from the histories.
    void crash();

    // --- results
    // Runs, and then the workflow must have ended; else Unexpected.
    template <auto W>
    [[nodiscard]] Expected<typename flow::detail::WorkflowTraits<decltype(W)>::result> result(
        std::string_view id) {
        ended(id);
        return client_->result<W>(id, milliseconds{0});
    }
    [[nodiscard]] Status status(std::string_view id);
    // The events of its newest execution, a JSON line each. The same scenario gives the same text.
    [[nodiscard]] std::string history(std::string_view id);
    // Throws Unexpected, naming the first line that differs, unless the history is what the file
    // says. Writes the file instead if the environment says HOLDFAST_GOLDEN=write.
    void expect_history(std::string_view id, const std::filesystem::path& file);

    // --- internals
    [[nodiscard]] Client& client() noexcept { return *client_; }
    [[nodiscard]] FaultyProvider& faults() noexcept;
    // For the tables of transactional activities.
    [[nodiscard]] sql::Database& database() noexcept;
    // What was chosen so far, if there is a chooser.
    [[nodiscard]] std::string order() const;

private:
    class Place;  // The database, its clock and the provider.
    struct Played {
        detail::Stub run;
        bool transactional = false;
    };

    template <class R, class Fn, class... A>
    World& stub_as(std::string_view name, Fn fn, flow::detail::Types<A...>) {
        constexpr bool transactional =
            !detail::takes<Fn, A...> && !detail::takes<Fn, ActivityContext&, A...>;
        auto run = [fn = std::move(fn)](
                       ActivityContext& ctx, sql::Tx* tx, const Payload& input) mutable {
            return detail::call_stub<R>(fn, ctx, tx, flow::detail::decode_arguments<A...>(input));
        };
        return play(name, std::move(run), transactional);
    }
    template <class... P, class... A>
    [[nodiscard]] static Payload arguments(A&&... args) {
        static_assert(sizeof...(P) == sizeof...(A), "the handler takes other arguments");
        return flow::detail::encode_arguments<P...>(static_cast<P>(std::forward<A>(args))...);
    }
    template <class R>
    [[nodiscard]] static R reply(const Payload& payload) {
        if constexpr (!std::is_void_v<R>) {
            return Codec<R>::decode(payload.json);
        }
    }

    World& play(std::string_view name, detail::Stub run, bool transactional);
    [[nodiscard]] Payload ask(std::string_view id,
                              bool update,
                              std::string_view name,
                              Payload input);
    void ended(std::string_view id);
    // False: nothing becomes due until then.
    bool advance_to_next(Moment latest);
    // What it and its children wait for. Requires: it has not ended.
    [[nodiscard]] std::string why_not_ended(std::string_view id);
    // A workflow of its family whose code the world does not have; empty if there is none.
    [[nodiscard]] std::string unknown_code(std::string_view id);
    [[nodiscard]] Runtime& runtime();
    void claim_activities();
    [[nodiscard]] std::vector<std::size_t> ready() const;
    // One activity of those that are ready. False: there is none.
    bool perform_one();
    void perform(const ClaimedActivity& claim);
    void end_what_overran();
    void end_attempt(const ClaimedActivity& claim, std::variant<Payload, FailureInfo> result);
    [[nodiscard]] int choose(std::size_t count);
    void move_clock(milliseconds by);

    struct Claimed {
        ClaimedActivity claim;
        bool late = false;
    };

    WorldOptions options_;
    std::unique_ptr<Place> place_;
    std::unique_ptr<Store> store_;
    std::unique_ptr<Client> client_;
    Registry registry_;
    std::unique_ptr<Runtime> runtime_;
    std::map<std::string, Played, std::less<>> played_;
    std::set<std::string, std::less<>> held_;
    std::map<std::string, int, std::less<>> calls_;
    std::vector<Claimed> claimed_;
    std::vector<int> chosen_;
};

// Runs the code of a workflow over a history from a file, as expect_history or `holdfast flow
// export` wrote it. Throws Unexpected where the code does something else: it would break running
// instances. An export says whose it is; of a bare history, give the instance if the code asks
// for random numbers or ids.
void check_history(flow::detail::Program program,
                   const std::filesystem::path& file,
                   std::string instance,
                   ExecutionId execution);
template <auto W>
void check_history(const std::filesystem::path& file,
                   std::string instance = "instance",
                   ExecutionId execution = 1) {
    check_history(&flow::detail::run_program<W>, file, std::move(instance), execution);
}

}  // namespace holdfast::flow::test
