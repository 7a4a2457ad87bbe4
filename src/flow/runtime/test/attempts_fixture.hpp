// An activity that fails as often as it is told to, and what its attempts have seen.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "runtime/test/runtime_fixture.hpp"

namespace holdfast::flow::tests {

// What the attempts of `attempt` have seen. Reset by the fixture.
class Tried {
public:
    struct One {
        std::string key;
        int number = 0;
        std::int64_t note = 0;  // Of the attempt before; 0: there is none.
    };

    void add(One one) {
        const std::lock_guard lock(mutex_);
        all_.push_back(std::move(one));
    }
    void reset() {
        const std::lock_guard lock(mutex_);
        all_.clear();
        meanwhile = nullptr;
    }
    [[nodiscard]] std::vector<std::string> keys() const { return each(&One::key); }
    [[nodiscard]] std::vector<int> numbers() const { return each(&One::number); }
    [[nodiscard]] std::vector<std::int64_t> notes() const { return each(&One::note); }

    std::function<void(ActivityContext&)> meanwhile;  // Called in every attempt.

private:
    template <class T>
    std::vector<T> each(T One::* member) const {
        const std::lock_guard lock(mutex_);
        std::vector<T> values;
        for (const One& one : all_) {
            values.push_back(one.*member);
        }
        return values;
    }

    mutable std::mutex mutex_;
    std::vector<One> all_;
};
inline Tried tried;

// Fails in its first `failures` attempts.
inline std::int64_t attempt(ActivityContext& ctx, std::int64_t failures) {
    tried.add({.key = ctx.idempotency_key(),
               .number = ctx.attempt(),
               .note = ctx.last_heartbeat<std::int64_t>().value_or(0)});
    ctx.heartbeat(std::int64_t{ctx.attempt()} * 10);
    if (tried.meanwhile) {
        tried.meanwhile(ctx);
    }
    if (ctx.attempt() <= failures) {
        throw Failure("Refused", "attempt " + std::to_string(ctx.attempt()));
    }
    return 1;
}

Workflow<std::int64_t> tries(Context& ctx, std::int64_t failures, std::int64_t steps);
Workflow<std::int64_t> tries_at_once(Context& ctx, std::int64_t failures);
Workflow<std::int64_t> tries_for_a_minute(Context& ctx, std::int64_t failures);
Workflow<std::int64_t> tries_soon(Context& ctx, std::int64_t failures);

}  // namespace holdfast::flow::tests

HOLDFAST_NAME(holdfast::flow::tests::attempt, "test.attempt");
HOLDFAST_NAME(holdfast::flow::tests::tries, "test.tries");
HOLDFAST_NAME(holdfast::flow::tests::tries_at_once, "test.tries_at_once");
HOLDFAST_NAME(holdfast::flow::tests::tries_for_a_minute, "test.tries_for_a_minute");
HOLDFAST_NAME(holdfast::flow::tests::tries_soon, "test.tries_soon");

namespace holdfast::flow::tests {

inline Workflow<std::int64_t> tries(Context& ctx, std::int64_t failures, std::int64_t steps) {
    std::int64_t sum = 0;
    for (std::int64_t step = 0; step < steps; ++step) {
        const std::int64_t one = co_await ctx.activity<&attempt>(failures).retry(
            {.attempts = 5, .first = 10s, .ceiling = 80s, .non_retryable = {"Fraud"}});
        sum += one;
    }
    co_return sum;
}

inline Workflow<std::int64_t> tries_at_once(Context& ctx, std::int64_t failures) {
    const std::int64_t one =
        co_await ctx.activity<&attempt>(failures).retry({.attempts = 100, .first = 0ms});
    co_return one;
}

inline Workflow<std::int64_t> tries_for_a_minute(Context& ctx, std::int64_t failures) {
    const RetryPolicy policy{.attempts = 100, .first = 20s, .factor = 1.0, .total = 65s};
    const std::int64_t one = co_await ctx.activity<&attempt>(failures).retry(policy);
    co_return one;
}

inline Workflow<std::int64_t> tries_soon(Context& ctx, std::int64_t failures) {
    const std::int64_t one = co_await ctx.activity<&attempt>(failures)
                                 .retry({.attempts = 2, .first = 10s})
                                 .start_within(3s);
    co_return one;
}

class AttemptsFixture {
public:
    explicit AttemptsFixture(test::Backend backend) : place(backend) {
        tried.reset();
        runtime.emplace(store, registry, manual_options());
    }

    // Time passes, and whatever is due by then is done.
    void advance(std::chrono::microseconds by) {
        place.db.advance_clock(by);
        runtime->run_until_idle();
    }
    [[nodiscard]] std::vector<Event> history(std::string_view id) {
        return store.provider().load_history(id, 1).events;
    }
    [[nodiscard]] std::vector<std::string> kinds(std::string_view id) {
        std::vector<std::string> names;
        for (const Event& event : history(id)) {
            names.emplace_back(kind_name(event.body));
        }
        return names;
    }

    StoreFixture place;
    Store& store = *place.store;
    Client client{store};
    Registry registry = Registry()
                            .activity<&attempt>()
                            .workflow<&tries>()
                            .workflow<&tries_at_once>()
                            .workflow<&tries_for_a_minute>()
                            .workflow<&tries_soon>();
    std::optional<Runtime> runtime;
};

}  // namespace holdfast::flow::tests
