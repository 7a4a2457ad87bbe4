// Small workflows and activities for the tests of the runtime, and a runtime that runs on the
// test's own thread with a clock that the test moves.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <holdfast/flow/flow.hpp>
#include <holdfast/flow/json.hpp>
#include <holdfast/flow/sql_provider.hpp>
#include <holdfast/sql/schema.hpp>
#include <holdfast/testing/backends.hpp>
#include <holdfast/testing/check.hpp>
#include <holdfast/testing/database.hpp>

namespace holdfast::flow::tests {

using namespace std::chrono_literals;

// What the activities of a test have seen. Reset by the fixture.
struct Seen {
    std::mutex mutex;
    std::map<std::string, int> runs;
    std::function<void(ActivityContext&)> meanwhile;  // Called inside `hold`.
    std::function<std::string(const std::string&)> answer;

    void count(const std::string& what) {
        const std::lock_guard lock(mutex);
        ++runs[what];
    }
    int of(const std::string& what) {
        const std::lock_guard lock(mutex);
        return runs[what];
    }
    void reset() {
        const std::lock_guard lock(mutex);
        runs.clear();
        meanwhile = nullptr;
        answer = nullptr;
    }
};
inline Seen seen;

inline std::string greet(const std::string& name) {
    seen.count("greet " + name);
    return "hello " + name;
}
inline std::int64_t add(std::int64_t a, std::int64_t b) {
    seen.count("add");
    return a + b;
}
inline std::int64_t refuse(std::int64_t times_before_success) {
    seen.count("refuse");
    if (seen.of("refuse") <= times_before_success) {
        throw Failure("Refused", "not yet");
    }
    return seen.of("refuse");
}
inline std::string hold(ActivityContext& ctx, const std::string& what) {
    seen.count("hold " + what);
    if (seen.meanwhile) {
        seen.meanwhile(ctx);
    }
    return ctx.cancelled() ? "cancelled" : what;
}
inline std::string about(ActivityContext& ctx) {
    return ctx.idempotency_key() + " " + ctx.workflow() + " " + ctx.workflow_version() + " " +
           std::to_string(ctx.attempt()) + " " + ctx.tag().value_or("-") + " " +
           ctx.session().value_or("-");
}

inline constexpr Channel<std::string> inbox{"inbox"};
inline constexpr Signal<std::string> bell{"bell"};
inline constexpr Query<std::string()> what_now{"what_now"};
inline constexpr Update<std::int64_t(std::int64_t)> raise_to{"raise_to"};

Workflow<std::string> hello(Context& ctx, std::string name);
Workflow<std::int64_t> chain(Context& ctx, std::int64_t steps);
Workflow<std::int64_t> parent(Context& ctx, std::int64_t children);
Workflow<std::int64_t> loop(Context& ctx, std::int64_t round, std::int64_t rounds);
Workflow<std::string> sleeper(Context& ctx, std::int64_t seconds);
Workflow<std::string> listener(Context& ctx, std::int64_t messages);
Workflow<std::string> cleaner(Context& ctx);
Workflow<std::int64_t> retrier(Context& ctx, std::int64_t failures, std::int64_t attempts);
Workflow<std::string> racer(Context& ctx);
Workflow<std::string> teller(Context& ctx);
Workflow<std::string> keeper(Context& ctx, std::string key);
Workflow<std::string> identity(Context& ctx, std::string tag, std::string session);
Workflow<std::int64_t> counter(Context& ctx);

[[nodiscard]] Registry test_registry();

}  // namespace holdfast::flow::tests

HOLDFAST_NAME(holdfast::flow::tests::greet, "test.greet");
HOLDFAST_NAME(holdfast::flow::tests::add, "test.add");
HOLDFAST_NAME(holdfast::flow::tests::refuse, "test.refuse");
HOLDFAST_NAME(holdfast::flow::tests::hold, "test.hold");
HOLDFAST_NAME(holdfast::flow::tests::about, "test.about");
HOLDFAST_NAME(holdfast::flow::tests::hello, "test.hello");
HOLDFAST_NAME(holdfast::flow::tests::chain, "test.chain");
HOLDFAST_NAME(holdfast::flow::tests::parent, "test.parent");
HOLDFAST_NAME(holdfast::flow::tests::loop, "test.loop");
HOLDFAST_NAME(holdfast::flow::tests::sleeper, "test.sleeper");
HOLDFAST_NAME(holdfast::flow::tests::listener, "test.listener");
HOLDFAST_NAME(holdfast::flow::tests::cleaner, "test.cleaner");
HOLDFAST_NAME(holdfast::flow::tests::retrier, "test.retrier");
HOLDFAST_NAME(holdfast::flow::tests::racer, "test.racer");
HOLDFAST_NAME(holdfast::flow::tests::teller, "test.teller");
HOLDFAST_NAME(holdfast::flow::tests::keeper, "test.keeper");
HOLDFAST_NAME(holdfast::flow::tests::identity, "test.identity");
HOLDFAST_NAME(holdfast::flow::tests::counter, "test.counter");

namespace holdfast::flow::tests {

inline Workflow<std::string> hello(Context& ctx, std::string name) {
    std::string text = co_await ctx.activity<&greet>(name);
    co_return text;
}

inline Workflow<std::int64_t> chain(Context& ctx, std::int64_t steps) {
    std::int64_t value = 0;
    for (std::int64_t i = 0; i < steps; ++i) {
        value = co_await ctx.activity<&add>(value, 1);
    }
    co_return value;
}

inline Workflow<std::int64_t> parent(Context& ctx, std::int64_t children) {
    std::vector<Op<std::int64_t>> running;
    for (std::int64_t i = 1; i <= children; ++i) {
        running.push_back(ctx.child<&chain>(i));
    }
    std::int64_t sum = 0;
    for (const std::int64_t value : co_await all(std::move(running))) {
        sum += value;
    }
    co_return sum;
}

inline Workflow<std::int64_t> loop(Context& ctx, std::int64_t round, std::int64_t rounds) {
    ctx.kv().set("round", round);
    const std::int64_t next = co_await ctx.activity<&add>(round, 1);
    if (next <= rounds) {
        co_return again(next, rounds);
    }
    co_return round;
}

inline Workflow<std::string> sleeper(Context& ctx, std::int64_t seconds) {
    const std::chrono::seconds pause{seconds};
    co_await ctx.sleep(pause);
    co_return "awake";
}

inline Workflow<std::string> listener(Context& ctx, std::int64_t messages) {
    std::string heard;
    for (std::int64_t i = 0; i < messages; ++i) {
        const std::string message = co_await ctx.receive(inbox);
        heard += message;
        ctx.status(heard);
    }
    co_return heard;
}

inline Workflow<std::string> cleaner(Context& ctx) {
    bool stopped = false;
    try {
        co_await ctx.sleep(1h);
    } catch (const Cancelled&) {
        stopped = true;
    }
    if (stopped) {
        const Shield shield = ctx.shield();
        std::string text = co_await ctx.activity<&greet>("clean-up");
        co_return text;
    }
    co_return "slept";
}

inline Workflow<std::int64_t> retrier(Context& ctx, std::int64_t failures, std::int64_t attempts) {
    const RetryPolicy policy{.attempts = static_cast<int>(attempts), .first = 10s};
    const std::int64_t value = co_await ctx.activity<&refuse>(failures).retry(policy);
    co_return value;
}

inline Workflow<std::string> racer(Context& ctx) {
    auto first = co_await any(ctx.activity<&hold>("slow"), ctx.sleep(5s));
    co_return first.index() == 0 ? std::get<0>(first) : "too slow";
}

inline Workflow<std::string> teller(Context& ctx) {
    std::string state = "waiting";
    std::int64_t level = 0;
    ctx.on(what_now, [&] { return state + " at " + std::to_string(level); });
    ctx.on(raise_to, [&](std::int64_t wanted) {
        if (wanted <= level) {
            throw Failure("TooLow", "it is there already");
        }
        return level = wanted;
    });
    const std::string message = co_await ctx.receive(inbox);
    co_return message + " " + std::to_string(level);
}

inline Workflow<std::string> keeper(Context& ctx, std::string key) {
    ctx.kv().set(key, std::string("first"));
    const std::string text = co_await ctx.activity<&greet>(key);
    ctx.kv().set(key, text);
    co_return ctx.kv().get<std::string>(key).value_or("nothing");
}

inline Workflow<std::string> identity(Context& ctx, std::string tag, std::string session) {
    auto operation = ctx.activity<&about>();
    if (!tag.empty()) {
        operation = std::move(operation).tag(tag);
    }
    if (!session.empty()) {
        operation = std::move(operation).session(session);
    }
    std::string text = co_await operation;
    co_return text;
}

inline Workflow<std::int64_t> counter(Context& ctx) {
    std::int64_t total = 0;
    for (;;) {
        const std::string message = co_await ctx.receive(inbox);
        if (message == "stop") {
            co_return total;
        }
        total = co_await ctx.activity<&add>(total, 1);
    }
}

inline Registry test_registry() {
    Registry registry;
    registry.activity<&greet>()
        .activity<&add>()
        .activity<&refuse>()
        .activity<&hold>()
        .activity<&about>()
        .workflow<&hello>()
        .workflow<&chain>()
        .workflow<&parent>()
        .workflow<&loop>()
        .workflow<&sleeper>()
        .workflow<&listener>()
        .workflow<&cleaner>()
        .workflow<&retrier>()
        .workflow<&racer>()
        .workflow<&teller>()
        .workflow<&keeper>()
        .workflow<&identity>()
        .workflow<&counter>();
    return registry;
}

// Everything is checked by a replay from scratch, at every turn.
inline RuntimeOptions manual_options() {
    RuntimeOptions options;
    options.manual = true;
    options.shadow_replay_every = 1;
    return options;
}

// A database with the tables of flow, and a store on it.
class StoreFixture {
public:
    explicit StoreFixture(test::Backend backend) : db(backend, schema_part()) {
        store.emplace(*db);
        seen.reset();
    }
    test::Database db;
    std::optional<Store> store;
};

}  // namespace holdfast::flow::tests
