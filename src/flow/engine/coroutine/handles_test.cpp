// A handle that one coroutine of a workflow cancels while another one awaits it, and handles that
// the code does not keep.
#include "replay/test/engine_fixture.hpp"

namespace holdfast::flow::tests {
namespace {

// What awaiting the handle came to, in words.
Task<std::string> waits(Handle<int>* handle) {
    std::string said;
    try {
        const int sum = co_await *handle;
        said = std::to_string(sum);
    } catch (const Failure& failure) {
        said = std::string(to_string(failure.info().kind)) + " " + failure.type();
    }
    co_return said;
}

Task<std::string> cancels(Context& ctx, Handle<int>* handle) {
    co_await ctx.sleep(1s);
    handle->cancel();
    co_await ctx.sleep(1s);
    co_return "went on";
}

Workflow<std::string> one_waits_one_cancels(Context& ctx, bool retried) {
    auto handle = retried ? ctx.start(ctx.activity<&add>(1, 1).retry({.attempts = 3}).timeout(1h))
                          : ctx.start(ctx.activity<&add>(1, 1));
    auto [waited, cancelled] = co_await all(waits(&handle), cancels(ctx, &handle));
    co_return waited + ", " + cancelled;
}

TEST(CoroutineHandles, WhoAwaitsAHandleLearnsThatItWasCancelled) {
    Script s(program<&one_waits_one_cancels>(), "[false]");
    s.turn();
    s.turn(fired(3));
    EXPECT_THAT(s.last().cancelled_activities, ElementsAre(2));
    s.turn(fired(5));
    EXPECT_EQ(s.output(), R"("cancelled Cancelled, went on")");
}

TEST(CoroutineHandles, AlsoIfTheOperationIsARowOfAttempts) {
    Script s(program<&one_waits_one_cancels>(), "[true]");
    s.turn();
    const std::vector<EventId> asked = s.activities();
    ASSERT_EQ(asked.size(), 1U);
    s.turn(fired(4));
    EXPECT_THAT(s.last().cancelled_activities, ElementsAre(asked[0]));
    EXPECT_EQ(s.ending(), Ending::none) << "the one that cancelled has something to do";
    s.turn(fired(6));
    EXPECT_EQ(s.output(), R"("cancelled Cancelled, went on")");
}

Workflow<std::string> races_what_is_cancelled(Context& ctx) {
    auto handle = ctx.start(ctx.activity<&add>(1, 1));
    auto first = co_await any(waits(&handle), cancels(ctx, &handle));
    co_return std::to_string(first.index()) + " " +
        std::visit([](auto& said) { return said; }, first);
}

// The dangerous moment: the waiter's end ends the race, which destroys the coroutine that cancels,
// and that one is still running.
TEST(CoroutineHandles, TheOneThatCancelsMayBeDestroyedByIt) {
    Script s(program<&races_what_is_cancelled>());
    s.turn();
    s.turn(fired(3));
    EXPECT_EQ(s.output(), R"("0 cancelled Cancelled")");
    EXPECT_THAT(s.last().cancelled_activities, ElementsAre(2));
}

Task<std::string> gathers(Context& ctx, Handle<int>* handle) {
    std::string said;
    try {
        auto [sum, text] = co_await all(handle->ref(), ctx.activity<&greet>("Ann"));
        said = std::to_string(sum) + text;
    } catch (const Failure& failure) {
        said = failure.type();
    }
    co_return said;
}

Workflow<std::string> gathers_what_is_cancelled(Context& ctx) {
    auto handle = ctx.start(ctx.activity<&add>(1, 1));
    auto [said, cancelled] = co_await all(gathers(ctx, &handle), cancels(ctx, &handle));
    co_return said;
}

TEST(CoroutineHandles, AmongOthersItCountsAsSettled) {
    Script s(program<&gathers_what_is_cancelled>());
    s.turn();
    s.turn(fired(4));
    s.turn(fired(6));
    EXPECT_EQ(s.ending(), Ending::none) << "all() waits for the greeting";
    s.turn(done(3, R"("hi")"));
    EXPECT_EQ(s.output(), R"("Cancelled")");
}

Workflow<std::string> races_a_cancelled_ref(Context& ctx) {
    auto handle = ctx.start(ctx.activity<&add>(1, 1));
    handle.cancel();
    std::string said;
    try {
        auto first = co_await any(ctx.sleep(1h), handle.ref());
        said = std::to_string(first.index());
    } catch (const Failure& failure) {
        said = failure.type();
    }
    auto outcome = co_await ctx.activity<&greet>(said).outcome();
    co_return outcome ? *outcome : outcome.failure().text();
}

TEST(CoroutineHandles, ARaceWithWhatIsCancelledAlreadyIsDecided) {
    Script s(program<&races_a_cancelled_ref>());
    s.turn();
    EXPECT_EQ(s.last().activities.back().second.input.json, R"(["Cancelled"])");
    s.turn(done(s.activities().back(), R"("told")"));
    EXPECT_EQ(s.output(), R"("told")");
}

Workflow<std::string> cancels_by_request(Context& ctx) {
    auto handle = ctx.start(ctx.activity<&add>(1, 1));
    constexpr Update<bool()> never_mind{"never_mind"};
    ctx.on(never_mind, [&handle] {
        handle.cancel();
        return true;
    });
    std::string said = co_await waits(&handle);
    co_return said;
}

TEST(CoroutineHandles, AnUpdateMayCancelWhatTheWorkflowAwaits) {
    Script s(program<&cancels_by_request>());
    s.turn();
    s.turn(Message{.execution = 0, .body = UpdateMessage{"r-1", "never_mind", Payload{"[]"}}});
    EXPECT_EQ(s.output(), R"("cancelled Cancelled")");
}

Workflow<std::string> cancelled_both_ways(Context& ctx) {
    auto handle = ctx.start(ctx.activity<&add>(1, 1));
    auto [said, cancelled] = co_await all(waits(&handle), cancels(ctx, &handle));
    co_return said;
}

// In one turn the handle is cancelled and the instance too: the waiter hears of the first.
TEST(CoroutineHandles, AnInstanceThatIsCancelledThenEndsAllTheSame) {
    Script s(program<&cancelled_both_ways>());
    s.turn();
    s.turn(fired(3), cancel("stop"));
    EXPECT_EQ(s.ending(), Ending::cancelled);
    EXPECT_THAT(s.last().cancelled_activities, ElementsAre(2));
}

Workflow<int> leaves_it_alone(Context& ctx, bool detached) {
    {
        auto handle = ctx.start(ctx.activity<&add>(1, 1).retry({.attempts = 3, .first = 1s}));
        if (detached) {
            std::move(handle).detach();
        }
    }
    const int sum = co_await ctx.activity<&add>(2, 2);
    co_return sum;
}

TEST(CoroutineHandles, AHandleThatIsDroppedCancelsItsOperation) {
    Script s(program<&leaves_it_alone>(), "[false]");
    s.turn();
    EXPECT_THAT(s.events(),
                ElementsAre("1 workflow_started",
                            "2 activity_scheduled add",
                            "3 activity_scheduled add",
                            "4 operation_cancelled<-2 activity dropped"));
    EXPECT_THAT(s.activities(), ElementsAre(3));
    s.turn(done(3, "4"));
    EXPECT_EQ(s.output(), "4");
}

TEST(CoroutineHandles, WhatIsDetachedGoesOn) {
    Script s(program<&leaves_it_alone>(), "[true]");
    s.turn();
    EXPECT_THAT(s.activities(), ElementsAre(2, 3));
    s.turn(done(2, "2"));
    EXPECT_EQ(s.ending(), Ending::none);
    s.turn(done(3, "4"));
    EXPECT_EQ(s.output(), "4");
}

// The workflow's end is the end of all that it asked for; and a cancel request skips what is
// not awaited.
TEST(CoroutineHandles, WhatIsDetachedEndsWithTheWorkflow) {
    Script s(program<&leaves_it_alone>(), "[true]");
    s.turn();
    s.turn(done(3, "4"));
    EXPECT_EQ(s.output(), "4");
    EXPECT_THAT(s.last().cancelled_activities, ElementsAre(2));

    Script stopped(program<&leaves_it_alone>(), "[true]");
    stopped.turn();
    stopped.turn(cancel("stop"));
    EXPECT_EQ(stopped.ending(), Ending::cancelled);
    EXPECT_THAT(stopped.last().cancelled_activities, testing::UnorderedElementsAre(2, 3));
}

}  // namespace
}  // namespace holdfast::flow::tests
