// Attempts that are ended from outside: by their limit, and by a process that stops.
#include <condition_variable>
#include <future>

#include "runtime/test/attempts_fixture.hpp"
#include <gmock/gmock.h>

namespace holdfast::flow::tests {

Workflow<std::int64_t> tries_quickly(Context& ctx);
Workflow<std::int64_t> tries_once(Context& ctx);

}  // namespace holdfast::flow::tests

HOLDFAST_NAME(holdfast::flow::tests::tries_quickly, "test.tries_quickly");
HOLDFAST_NAME(holdfast::flow::tests::tries_once, "test.tries_once");

namespace holdfast::flow::tests {

Workflow<std::int64_t> tries_quickly(Context& ctx) {
    const std::int64_t one = co_await ctx.activity<&attempt>(0).retry(
        {.attempts = 1'000, .first = 0ms, .per_try = 20ms});
    co_return one;
}

Workflow<std::int64_t> tries_once(Context& ctx) {
    const std::int64_t one = co_await ctx.activity<&attempt>(0).retry({.attempts = 1});
    co_return one;
}

namespace {

using testing::ElementsAre;

void wait_for_stop(const ActivityContext& ctx) {
    std::mutex mutex;
    std::condition_variable_any never;
    std::unique_lock lock(mutex);
    never.wait(lock, ctx.stop_token(), [] { return false; });
}

class AttemptsThreads : public testing::TestWithParam<test::Backend> {
protected:
    StoreFixture place{GetParam()};
    Store& store = *place.store;
    Client client{store};
    Registry registry =
        Registry().activity<&attempt>().workflow<&tries_quickly>().workflow<&tries_once>();

    AttemptsThreads() { tried.reset(); }
};

TEST_P(AttemptsThreads, AnAttemptThatTakesTooLongEndsAndTheNextOneAnswers) {
    tried.meanwhile = [](ActivityContext& ctx) {
        if (ctx.attempt() == 1) {
            wait_for_stop(ctx);  // And returns a result that is void.
        }
    };
    const Runtime runtime(store, registry);
    client.start<&tries_quickly>("flight");
    EXPECT_EQ(*client.result<&tries_quickly>("flight", 1min), 1);
    const auto events = client.history("flight");
    ASSERT_EQ(events.size(), 4U) << "however many attempts there were";
    const auto closing = std::get<ActivityCompleted>(events[2].body);
    EXPECT_GE(closing.attempt, 2);
    ASSERT_TRUE(closing.last_failure);
    EXPECT_EQ(closing.last_failure->kind, FailureKind::timeout);
}

TEST_P(AttemptsThreads, AnAttemptThatFailsBecauseItsProcessStopsDoesNotCount) {
    std::promise<void> begun;
    std::atomic<bool> first = true;
    tried.meanwhile = [&](ActivityContext& ctx) {
        if (first.exchange(false)) {
            begun.set_value();
            wait_for_stop(ctx);
            throw Failure("Interrupted", "the process stops");
        }
    };
    {
        Runtime stops(store, registry);
        client.start<&tries_once>("flight");
        begun.get_future().wait();
        EXPECT_EQ(stops.drain(0ms).activities_abandoned, 1);
    }
    const Runtime next(store, registry);
    EXPECT_EQ(*client.result<&tries_once>("flight", 1min), 1);
    EXPECT_THAT(tried.numbers(), ElementsAre(1, 1));
}

INSTANTIATE_TEST_SUITE_P(Every, AttemptsThreads, test::every_backend(), test::backend_name);

}  // namespace
}  // namespace holdfast::flow::tests
