// Asking an execution to stop: its code sees it at an await, may clean up, and has until a
// deadline.
#include "replay/test/engine_fixture.hpp"

namespace holdfast::flow::tests {
namespace {

TEST(EngineCancellation, TheCodeSeesCancelledAtTheAwaitItIsIn) {
    HOLDFAST_CHECK("runtime cancel_via_message");
    HOLDFAST_CHECK("runtime cancel_with_pending_activity");
    Script s(program<&greets>());
    s.turn();
    s.turn(cancel("the customer left"));
    EXPECT_THAT(s.events(),
                ElementsAre("3 cancel_requested the customer left",
                            "4 operation_cancelled<-2 activity dropped",
                            "5 workflow_failed cancelled: the customer left"));
    EXPECT_EQ(s.ending(), Ending::cancelled);
    EXPECT_EQ(s.failure().kind, FailureKind::cancelled);
    EXPECT_THAT(s.last().cancelled_activities, ElementsAre(2));
    EXPECT_THAT(s.last().timers, IsEmpty()) << "there is no deadline left to watch";
}

TEST(EngineCancellation, ARequestInTheHistoryIsSeenAgainOnReplay) {
    HOLDFAST_CHECK("runtime cancel_in_history");
    const std::vector<Event> history{
        started(), event(2, asks_greet()), event(3, CancelRequested{"stop", 301'000})};
    const Turn turn = over(program<&greets>(), history);
    EXPECT_EQ(turn.ending, Ending::cancelled);
    EXPECT_EQ(turn.failure().message, "stop");
}

// Messages of one turn are taken in their order: what came first is what the code saw first.
TEST(EngineCancellation, WhatCameFirstDecidesBetweenARequestAndAResult) {
    HOLDFAST_CHECK("runtime cancel_precedence_over_completion");
    Script result_first(program<&greets>());
    result_first.turn();
    result_first.turn(done(2, R"("hi")"), cancel("stop"));
    EXPECT_EQ(result_first.output(), R"("hi")");
    Script request_first(program<&greets>());
    request_first.turn();
    request_first.turn(cancel("stop"), done(2, R"("hi")"));
    EXPECT_EQ(request_first.ending(), Ending::cancelled);
    Script force_last(program<&greets>());
    force_last.turn();
    force_last.turn(done(2, R"("hi")"), terminate("now"));
    EXPECT_EQ(force_last.output(), R"("hi")") << "the code had ended before";
}

Workflow<std::string> ignores_it(Context& ctx) {
    const Shield shield = ctx.shield();
    std::string text = co_await ctx.activity<&greet>("Ann");
    co_return text;
}

TEST(EngineCancellation, ASecondRequestChangesNothing) {
    HOLDFAST_CHECK("runtime cancel_duplicate_filtered");
    HOLDFAST_CHECK("runtime multiple_cancel_calls_are_idempotent");
    Script s(program<&ignores_it>());
    s.turn();
    s.turn(cancel("first"), cancel("second"));
    EXPECT_THAT(s.events(), ElementsAre("3 cancel_requested first"));
    s.turn(cancel("third"));
    EXPECT_THAT(s.events(), IsEmpty());
    s.turn(done(2, R"("hi")"));
    EXPECT_EQ(s.output(), R"("hi")");
}

TEST(EngineCancellation, ARequestBeforeTheFirstTurnIsSeenAtTheFirstAwait) {
    HOLDFAST_CHECK("runtime cancel_before_orchestration_starts");
    Script s(program<&greets>());
    s.turn(cancel("never mind"));
    EXPECT_THAT(s.events(),
                ElementsAre("1 workflow_started",
                            "2 cancel_requested never mind",
                            "3 activity_scheduled greet",
                            "4 operation_cancelled<-3 activity dropped",
                            "5 workflow_failed cancelled: never mind"));
    EXPECT_THAT(s.last().activities, IsEmpty());
    EXPECT_THAT(s.last().cancelled_activities, IsEmpty()) << "it was never sent";
}

Workflow<std::string> cleans_up(Context& ctx) {
    bool stopped = false;
    try {
        co_await ctx.sleep(1h);
    } catch (const Cancelled&) {
        stopped = true;
    }
    if (!stopped) {
        co_return "slept";
    }
    const Shield shield = ctx.shield();
    co_await ctx.activity<&undo>(1).retry({.attempts = 2, .first = 100ms});
    co_await ctx.sleep(1s);
    co_return ctx.cancel_requested() ? "cleaned" : "?";
}

TEST(EngineCancellation, InsideAShieldTheCodeCleansUpAndMayEndWell) {
    Script s(program<&cleans_up>());
    s.turn();
    s.turn(cancel("stop", 60'000));
    EXPECT_THAT(s.events(),
                ElementsAre("3 cancel_requested stop",
                            "4 activity_scheduled undo",
                            "5 operation_cancelled<-2 timer dropped"));
    EXPECT_THAT(s.last().timers, ElementsAre(Pair(3, 3000 + 60'000))) << "the deadline";
    EXPECT_THAT(s.last().cancelled_timers, ElementsAre(2));
    s.turn(done(4, "null"));
    s.turn(fired(7));
    EXPECT_EQ(s.output(), R"("cleaned")");
}

TEST(EngineCancellation, CodeThatHasNotEndedByTheDeadlineIsEndedForIt) {
    Script s(program<&ignores_it>());
    s.turn();
    s.turn(cancel("stop", 60'000));
    s.turn(fired(3, 63'000));
    EXPECT_EQ(s.ending(), Ending::cancelled);
    EXPECT_EQ(s.failure().message, "stop");
    EXPECT_THAT(s.last().cancelled_activities, ElementsAre(2));
}

TEST(EngineCancellation, TheUsualGraceIsTheLimitsOwn) {
    Script s(program<&ignores_it>(), "[]", {.limits = {.cancel_grace_ms = 5000}, .checked = false});
    s.turn();
    s.turn(cancel("stop"));
    EXPECT_THAT(s.last().timers, ElementsAre(Pair(3, 3000 + 5000)));
}

TEST(EngineCancellation, TerminationGivesTheCodeNoChance) {
    Script s(program<&ignores_it>());
    s.turn();
    s.turn(terminate("now"));
    EXPECT_THAT(s.events(),
                ElementsAre("3 cancel_requested now",
                            "4 operation_cancelled<-2 activity workflow_failed",
                            "5 workflow_failed cancelled: now"));
    Script after(program<&ignores_it>());
    after.turn();
    after.turn(cancel("please"));
    after.turn(terminate("now"));
    EXPECT_EQ(after.ending(), Ending::cancelled);
}

Workflow<std::string> swallows(Context& ctx) {
    int seen = 0;
    for (int i = 0; i < 3; ++i) {
        try {
            co_await ctx.sleep(1h);
        } catch (const Cancelled&) {
            ++seen;
        }
    }
    co_return std::to_string(seen);
}

TEST(EngineCancellation, ASwallowedCancelledIsThrownAgainAtTheNextAwait) {
    Script s(program<&swallows>());
    s.turn();
    s.turn(cancel("stop"));
    EXPECT_EQ(s.output(), R"("3")");
    EXPECT_THAT(s.events(),
                ElementsAre("3 cancel_requested stop",
                            "4 operation_cancelled<-2 timer dropped",
                            R"(5 workflow_completed "3")"))
        << "an await that throws at once asks for nothing";
}

Workflow<std::string> catches_errors(Context& ctx) {
    try {
        co_await ctx.activity<&greet>("Ann");
    } catch (const std::exception&) {
        co_return "swallowed";
    }
    co_return "greeted";
}

TEST(EngineCancellation, AHandlerForErrorsDoesNotSwallowIt) {
    Script s(program<&catches_errors>());
    s.turn();
    s.turn(cancel("stop"));
    EXPECT_EQ(s.ending(), Ending::cancelled);
}

Workflow<int> has_child(Context& ctx) {
    const int n = co_await ctx.child<&sub>(1).id("c-1");
    co_return n;
}

TEST(EngineCancellation, OpenChildrenAreCancelledWithTheirParent) {
    HOLDFAST_CHECK("runtime cancel_parent_down_propagates_to_child");
    Script asked(program<&has_child>());
    asked.turn();
    asked.turn(cancel("stop"));
    EXPECT_THAT(asked.last().cancelled_children,
                ElementsAre(Pair("c-1", "the parent no longer waits")));
    Script forced(program<&has_child>());
    forced.turn();
    forced.turn(terminate("stop"));
    EXPECT_THAT(forced.last().cancelled_children, ElementsAre(Pair("c-1", "the parent has ended")));
}

TEST(EngineCancellation, ACancelledChildIsAFailureAtItsParentsAwait) {
    HOLDFAST_CHECK("runtime cancel_child_directly_signals_parent");
    Script s(program<&has_child>());
    s.turn();
    s.turn(child_failed(2, FailureInfo{.kind = FailureKind::cancelled, .message = "by hand"}));
    EXPECT_EQ(s.ending(), Ending::failed);
    EXPECT_EQ(s.failure().kind, FailureKind::cancelled);
}

// --- with several things under way

Task<int> undoes(Context& ctx, int step) {
    bool stopped = false;
    try {
        const int sum = co_await ctx.activity<&add>(step, step);
        co_return sum;
    } catch (const Cancelled&) {
        stopped = true;
    }
    const Shield shield = ctx.shield();
    co_await ctx.activity<&undo>(step);
    co_return stopped ? -step : 0;
}

Workflow<int> gathers_tasks(Context& ctx) {
    auto both = co_await all(undoes(ctx, 1), undoes(ctx, 2));
    co_return std::get<0>(both) + std::get<1>(both);
}

TEST(EngineCancellation, EveryTaskThatIsGatheredGetsToCleanUp) {
    Script s(program<&gathers_tasks>());
    s.turn();
    s.turn(cancel("stop"));
    EXPECT_THAT(s.activities(), ElementsAre(5, 6));
    EXPECT_THAT(s.last().cancelled_activities, ElementsAre(2, 3));
    s.turn(done(6, "null"));
    s.turn(done(5, "null"));
    EXPECT_EQ(s.output(), "-3") << "they swallowed it, and so it ends well";
}

Workflow<int> gathers_a_mix(Context& ctx) {
    auto both = co_await all(undoes(ctx, 1), ctx.sleep(1h), ctx.activity<&add>(9, 9));
    co_return std::get<0>(both);
}

// The dangerous moment: the tasks are done with it, and a timer of an hour is still waited for.
TEST(EngineCancellation, WhatIsGatheredBesideTasksIsGivenUpAtOnce) {
    Script s(program<&gathers_a_mix>());
    s.turn();
    s.turn(cancel("stop"));
    EXPECT_THAT(s.last().cancelled_activities, ElementsAre(2, 4));
    EXPECT_THAT(s.last().cancelled_timers, ElementsAre(3));
    EXPECT_EQ(s.ending(), Ending::none) << "the task cleans up";
    s.turn(done(6, "null"));
    EXPECT_EQ(s.ending(), Ending::cancelled);
}

Workflow<int> races_tasks(Context& ctx) {
    auto first = co_await any(undoes(ctx, 1), undoes(ctx, 2), ctx.sleep(1h));
    co_return static_cast<int>(first.index());
}

TEST(EngineCancellation, TasksOfARaceGetToCleanUpToo) {
    Script s(program<&races_tasks>());
    s.turn();
    s.turn(cancel("stop"));
    EXPECT_EQ(s.activities().size(), 2U);
    s.turn(done(s.activities()[1], "null"));
    EXPECT_EQ(s.ending(), Ending::none);
    s.turn(done(6, "null"));
    EXPECT_EQ(s.ending(), Ending::cancelled);
}

Workflow<int> maps_tasks(Context& ctx) {
    const std::vector<int> steps{1, 2, 3, 4};
    auto all_of =
        co_await map(ctx, steps, 2, [](Context& c, const int& i) { return undoes(c, i); });
    co_return static_cast<int>(all_of.size());
}

TEST(EngineCancellation, TasksOfAMapGetToCleanUpAndNoMoreAreStarted) {
    Script s(program<&maps_tasks>());
    s.turn();
    EXPECT_THAT(s.activities(), ElementsAre(2, 3));
    s.turn(cancel("stop"));
    EXPECT_THAT(s.activities(), ElementsAre(5, 6)) << "two undo steps, and nothing new";
    s.turn(done(5, "null"));
    EXPECT_EQ(s.ending(), Ending::none);
    s.turn(done(6, "null"));
    EXPECT_EQ(s.ending(), Ending::cancelled);
}

Task<int> lets_it_out(Context& ctx, int step) {
    const int sum = co_await ctx.activity<&add>(step, step);
    co_return sum;
}

Workflow<int> maps_tasks_that_stop(Context& ctx) {
    const std::vector<int> steps{1, 2};
    auto sums =
        co_await map(ctx, steps, 5, [](Context& c, const int& i) { return lets_it_out(c, i); });
    co_return static_cast<int>(sums.size());
}
Workflow<int> maps_operations(Context& ctx) {
    const std::vector<int> steps{1, 2, 3};
    auto sums = co_await map(
        ctx, steps, 2, [](Context& c, const int& i) { return c.activity<&add>(i, i); });
    co_return static_cast<int>(sums.size());
}
Workflow<int> maps_retried(Context& ctx) {
    const std::vector<int> steps{1, 2, 3};
    auto sums = co_await map(ctx, steps, 2, [](Context& c, const int& i) {
        return c.activity<&add>(i, i).retry({.attempts = 2});
    });
    co_return static_cast<int>(sums.size());
}
Workflow<int> gathers_operations(Context& ctx) {
    auto both = co_await all(ctx.activity<&add>(1, 1), ctx.activity<&add>(2, 2));
    co_return std::get<0>(both);
}
Workflow<int> races_operations(Context& ctx) {
    auto first = co_await any(ctx.activity<&add>(1, 1), ctx.activity<&add>(2, 2));
    co_return static_cast<int>(first.index());
}
Workflow<int> races_retried(Context& ctx) {
    auto first = co_await any(ctx.activity<&add>(1, 1).retry({.attempts = 3}).timeout(1h),
                              ctx.activity<&add>(2, 2).retry({.attempts = 3, .per_try = 5s}));
    co_return static_cast<int>(first.index());
}

TEST(EngineCancellation, HoweverItWaitsTheCodeStopsAtOnceAndEverythingIsGivenUp) {
    for (const detail::Program code : {program<&maps_tasks_that_stop>(),
                                       program<&maps_operations>(),
                                       program<&maps_retried>(),
                                       program<&gathers_operations>(),
                                       program<&races_operations>(),
                                       program<&races_retried>()}) {
        Script s(code);
        s.turn();
        const std::size_t sent = s.last().activities.size();
        const std::size_t timers = s.last().timers.size();
        s.turn(cancel("stop"));
        EXPECT_EQ(s.ending(), Ending::cancelled);
        EXPECT_EQ(s.last().cancelled_activities.size(), sent);
        EXPECT_EQ(s.last().cancelled_timers.size(), timers);
    }
}

// --- shields in tasks that run side by side

Task<int> shielded(Context& ctx, int step) {
    const Shield shield = ctx.shield();
    const int a = co_await ctx.activity<&add>(step, step);
    const int b = co_await ctx.activity<&add>(a, a);
    co_return b;
}

Workflow<std::string> shields_one(Context& ctx) {
    std::string said;
    try {
        co_await all(shielded(ctx, 1), lets_it_out(ctx, 2), shielded(ctx, 3));
        said = "all";
    } catch (const Cancelled& stop) {
        said = stop.reason();
    }
    co_return said;
}

TEST(EngineCancellation, AShieldCoversItsOwnTaskAndNoOther) {
    Script s(program<&shields_one>());
    s.turn();
    s.turn(done(2, "2"));
    s.turn(cancel("stop"));
    EXPECT_THAT(s.last().cancelled_activities, ElementsAre(3)) << "the task without a shield";
    s.turn(done(6, "4"), done(4, "6"));
    s.turn(done(11, "12"));
    EXPECT_EQ(s.output(), R"("stop")");
}

Workflow<int> shields_a_race(Context& ctx) {
    int sum = 0;
    {
        const Shield shield = ctx.shield();
        auto both = co_await all(lets_it_out(ctx, 1), ctx.activity<&add>(2, 2).timeout(1h));
        sum = std::get<0>(both) + std::get<1>(both);
    }
    co_await ctx.sleep(1s);
    co_return sum;
}

TEST(EngineCancellation, AShieldCoversTheTasksThatItsCoroutineAwaits) {
    Script s(program<&shields_a_race>());
    s.turn();
    s.turn(cancel("stop"));
    EXPECT_THAT(s.last().cancelled_activities, IsEmpty());
    s.turn(done(2, "2"));
    s.turn(done(3, "4"));
    EXPECT_EQ(s.ending(), Ending::cancelled) << "the next await is outside";
}

// --- handles

Workflow<int> awaits_later(Context& ctx) {
    auto plain = ctx.start(ctx.activity<&add>(1, 1));
    auto timed = ctx.start(ctx.activity<&add>(2, 2).timeout(2h));
    try {
        co_await ctx.sleep(1h);
    } catch (const Cancelled&) {  // NOLINT(bugprone-empty-catch): it goes on under a shield.
    }
    const Shield shield = ctx.shield();
    const int a = co_await plain;
    const int b = co_await timed;
    co_return a + b;
}

// An operation with a timeout is a small task inside; it must not be cancelled where a plain one is
// not.
TEST(EngineCancellation, WhatNobodyAwaitsGoesOnWhetherItHasATimeoutOrNot) {
    Script s(program<&awaits_later>());
    s.turn();
    s.turn(cancel("stop"));
    EXPECT_THAT(s.last().cancelled_activities, IsEmpty());
    s.turn(done(2, "2"));
    s.turn(done(3, "4"));
    EXPECT_EQ(s.output(), "6");
}

Task<Handle<int>> launches(Context& ctx) {
    auto handle = ctx.start(ctx.activity<&add>(1, 1).timeout(1h));
    co_await ctx.sleep(0s);
    co_return handle;
}

Workflow<int> outlives_its_starter(Context& ctx) {
    Handle<int> handle = co_await launches(ctx);
    const int sum = co_await handle;
    co_return sum;
}

// The dangerous moment: the coroutine that started it has ended, and cancellation looks for shields
// around it.
TEST(EngineCancellation, AnOperationOutlivesTheTaskThatStartedIt) {
    Script s(program<&outlives_its_starter>());
    s.turn();
    s.turn(fired(4));
    s.turn(cancel("stop"));
    EXPECT_EQ(s.ending(), Ending::cancelled);
    EXPECT_THAT(s.last().cancelled_activities, ElementsAre(2));
}

Workflow<std::string> awaits_what_it_gave_up(Context& ctx) {
    auto handle = ctx.start(ctx.activity<&add>(1, 1));
    try {
        co_await handle;
    } catch (const Cancelled&) {  // NOLINT(bugprone-empty-catch): it goes on under a shield.
    }
    const Shield shield = ctx.shield();
    std::string said;
    try {
        co_await handle;
    } catch (const Failure& failure) {
        said = failure.type();
    }
    co_return said;
}

TEST(EngineCancellation, AwaitingWhatWasGivenUpFailsInsteadOfWaitingForEver) {
    Script s(program<&awaits_what_it_gave_up>());
    s.turn();
    s.turn(cancel("stop"));
    EXPECT_EQ(s.output(), R"("Cancelled")");
}

Workflow<std::string> unwinds_when_cancelled(Context& ctx) {
    Saga saga{ctx};
    std::optional<std::string> reason;
    try {
        const int first = co_await ctx.activity<&add>(1, 1);
        saga.push<&undo>(first);
        co_await ctx.sleep(1h);
    } catch (const Cancelled& stop) {
        reason = stop.reason();
    }
    co_await saga.unwind();
    throw Cancelled(reason.value_or("?"));
}

TEST(EngineCancellation, ASagaUnwindsInACancelledWorkflow) {
    Script s(program<&unwinds_when_cancelled>());
    s.turn();
    s.turn(done(2, "2"));
    s.turn(cancel("stop"));
    EXPECT_THAT(s.activities(), ElementsAre(6));
    s.turn(done(6, "null"));
    EXPECT_EQ(s.ending(), Ending::cancelled);
    EXPECT_EQ(s.failure().message, "stop");
}

// --- cancellation and continuing as new

Workflow<int> shielded_round(Context& ctx, int round) {
    const Shield shield = ctx.shield();
    co_await ctx.sleep(1s);
    co_return again(round + 1);
}

// The code did not see the request, so it must not end with the history: the next execution has it,
// and no more time than is left.
TEST(EngineCancellation, TheNextExecutionHasTheRequestThatThisOneDidNotSee) {
    Script s(program<&shielded_round>(), "[1]");
    s.turn();                        // At 2000 ms.
    s.turn(cancel("enough", 5000));  // At 3000 ms.
    s.turn(fired(2));                // At 4000 ms.
    ASSERT_EQ(s.ending(), Ending::continued);
    EXPECT_EQ(s.last().cancel, (CancelMessage{"enough", false, 4000}));
    Script calm(program<&shielded_round>(), "[1]");
    calm.turn();
    calm.turn(fired(2));
    EXPECT_EQ(calm.last().cancel, std::nullopt);
}

// A loop that swallows every request would go on for ever, one execution after another.
TEST(EngineCancellation, WhoContinuesAfterTheDeadlineIsEnded) {
    Script s(program<&shielded_round>(), "[1]");
    s.turn();
    s.turn(cancel("enough", 1000));  // At 3000 ms: until 4000.
    s.turn(fired(2));                // The deadline's own timer is on its way.
    EXPECT_EQ(s.ending(), Ending::cancelled);
    EXPECT_EQ(s.failure().message, "enough");
    EXPECT_EQ(s.last().cancel, std::nullopt);
}

}  // namespace
}  // namespace holdfast::flow::tests
