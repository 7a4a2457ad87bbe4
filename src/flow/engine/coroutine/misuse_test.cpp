// What the compiler cannot refuse: using an operation, a handle or a task that is somewhere else by
// now, or a second time. The code gets a failure that says so, on the first run and on replay.
#include "replay/test/engine_fixture.hpp"

namespace holdfast::flow::tests {
namespace {

constexpr const char* moved = "the operation was moved from or detached; use it where it is now";

Workflow<int> awaits_a_moved_operation(Context& ctx) {
    auto operation = ctx.activity<&add>(1, 1);
    auto retried = std::move(operation).retry({.attempts = 2});
    int sum = co_await operation;  // NOLINT(bugprone-use-after-move): that is the point.
    co_return sum;
}
Workflow<int> modifies_a_moved_operation(Context& ctx) {
    auto operation = ctx.activity<&add>(1, 1);
    auto other = std::move(operation);
    // NOLINTNEXTLINE(bugprone-use-after-move)
    int sum = co_await std::move(operation).timeout(1s);
    co_return sum;
}
Workflow<int> starts_a_moved_operation(Context& ctx) {
    auto operation = ctx.activity<&add>(1, 1);
    auto first = ctx.start(std::move(operation));
    auto second = ctx.start(std::move(operation));  // NOLINT(bugprone-use-after-move)
    int sum = co_await second;
    co_return sum;
}
Workflow<int> asks_a_moved_operation_for_its_outcome(Context& ctx) {
    auto operation = ctx.activity<&add>(1, 1);
    auto other = std::move(operation);
    auto outcome = co_await std::move(operation).outcome();  // NOLINT(bugprone-use-after-move)
    co_return outcome ? *outcome : 0;
}
Workflow<int> gathers_a_moved_operation(Context& ctx) {
    auto operation = ctx.activity<&add>(1, 1);
    auto other = std::move(operation);
    // NOLINTNEXTLINE(bugprone-use-after-move)
    auto [one, two] = co_await all(std::move(other), std::move(operation));
    co_return one + two;
}
Workflow<int> gathers_twice(Context& ctx) {
    auto both = all(ctx.sleep(0ms), ctx.activity<&add>(1, 1));
    auto [slept, one] = co_await both;
    auto [slept_again, two] = co_await both;
    co_return one + two;
}
Workflow<int> awaits_a_moved_handle(Context& ctx) {
    auto handle = ctx.start(ctx.activity<&add>(1, 1));
    auto other = std::move(handle);
    int sum = co_await handle;  // NOLINT(bugprone-use-after-move)
    co_return sum;
}
Workflow<int> races_a_moved_handle(Context& ctx) {
    auto handle = ctx.start(ctx.activity<&add>(1, 1));
    auto other = std::move(handle);
    auto first = co_await any(handle.ref(), ctx.sleep(1s));  // NOLINT(bugprone-use-after-move)
    co_return static_cast<int>(first.index());
}
Workflow<bool> looks_at_a_moved_handle(Context& ctx) {
    auto handle = ctx.start(ctx.activity<&add>(1, 1));
    auto other = std::move(handle);
    handle.cancel();          // NOLINT(bugprone-use-after-move): nothing is left to cancel.
    co_return handle.done();  // NOLINT(bugprone-use-after-move)
}
Workflow<int> awaits_a_detached_handle(Context& ctx) {
    auto handle = ctx.start(ctx.activity<&add>(1, 1));
    std::move(handle).detach();
    int sum = co_await handle;  // NOLINT(bugprone-use-after-move)
    co_return sum;
}

TEST(CoroutineMisuse, WhatWasMovedFromIsAFailureThatSaysSo) {
    for (const detail::Program code : {program<&awaits_a_moved_operation>(),
                                       program<&modifies_a_moved_operation>(),
                                       program<&starts_a_moved_operation>(),
                                       program<&asks_a_moved_operation_for_its_outcome>(),
                                       program<&gathers_a_moved_operation>(),
                                       program<&awaits_a_moved_handle>(),
                                       program<&races_a_moved_handle>(),
                                       program<&looks_at_a_moved_handle>(),
                                       program<&awaits_a_detached_handle>()}) {
        Script s(code);
        s.turn();
        ASSERT_EQ(s.ending(), Ending::failed);
        EXPECT_EQ(s.failure().type, "InvalidOperation");
        EXPECT_EQ(s.failure().message, moved);
        EXPECT_FALSE(s.failure().retryable);
    }
}

TEST(CoroutineMisuse, WhatWasGatheredIsGatheredOnce) {
    Script s(program<&gathers_twice>());
    s.turn();
    s.turn(fired(2), done(3, "2"));
    ASSERT_EQ(s.ending(), Ending::failed);
    EXPECT_EQ(s.failure().message, moved);
}

Workflow<int> awaits_an_operation_twice(Context& ctx) {
    auto operation = ctx.activity<&add>(1, 1);
    int one = co_await operation;
    int two = co_await operation;
    co_return one + two;
}

TEST(CoroutineMisuse, AnAnswerThatIsThereMayBeLookedAtAgain) {
    Script s(program<&awaits_an_operation_twice>());
    s.turn();
    s.turn(done(2, "2"));
    EXPECT_EQ(s.output(), "4");
}

Workflow<int> modifies_what_runs(Context& ctx) {
    auto operation = ctx.activity<&add>(1, 1);
    int one = co_await operation;
    int two = co_await std::move(operation).tag("late");
    co_return one + two;
}

TEST(CoroutineMisuse, HowAnOperationRunsIsSaidBeforeItDoes) {
    Script s(program<&modifies_what_runs>());
    s.turn();
    s.turn(done(2, "2"));
    ASSERT_EQ(s.ending(), Ending::failed);
    EXPECT_EQ(s.failure().message,
              "the operation was started already; say how it runs before it is awaited");
}

Task<int> adds(Context& ctx, int n) {
    int sum = co_await ctx.activity<&add>(n, n);
    co_return sum;
}
Workflow<int> awaits_a_task_twice(Context& ctx) {
    auto task = adds(ctx, 1);
    int one = co_await task;
    int two = co_await task;
    co_return one + two;
}
Workflow<int> awaits_a_moved_task(Context& ctx) {
    auto task = adds(ctx, 1);
    auto [one] = co_await all(std::move(task));
    int two = co_await task;  // NOLINT(bugprone-use-after-move)
    co_return one + two;
}
Workflow<int> gathers_a_task_that_ran(Context& ctx) {
    auto task = adds(ctx, 1);
    int one = co_await task;
    auto [two, three] = co_await all(std::move(task), ctx.activity<&add>(3, 3));
    co_return one + two + three;
}

TEST(CoroutineMisuse, ATaskRunsOnce) {
    for (const auto& [code, message] :
         {std::pair(program<&awaits_a_task_twice>(), "awaited already; a task runs once"),
          std::pair(program<&gathers_a_task_that_ran>(), "awaited already; a task runs once"),
          std::pair(program<&awaits_a_moved_task>(), "moved from; await it where it is now")}) {
        Script s(code);
        s.turn();
        s.turn(done(2, "2"));
        ASSERT_EQ(s.ending(), Ending::failed);
        EXPECT_EQ(s.failure().type, "InvalidOperation");
        EXPECT_THAT(s.failure().message, HasSubstr(message));
    }
}

}  // namespace
}  // namespace holdfast::flow::tests
