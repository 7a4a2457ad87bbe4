// Tasks, all, any and map: how operations are put together.
#include "replay/test/engine_fixture.hpp"

namespace holdfast::flow::tests {
namespace {

// --- one after the other

Workflow<int> two_steps(Context& ctx) {
    const int a = co_await ctx.activity<&add>(1, 1);
    const int b = co_await ctx.activity<&add>(1, 1);
    co_return a * 100 + b;
}

TEST(Coroutine, EqualActivitiesGetTheirOwnAnswers) {
    HOLDFAST_CHECK("runtime two_activities_first_done");
    HOLDFAST_CHECK("runtime two_activities_both_done");
    HOLDFAST_CHECK("runtime identical_activities_both_done_routes_correctly");
    HOLDFAST_CHECK("runtime identical_activities_routes_correctly_across_restart_boundary");
    HOLDFAST_CHECK("runtime same_activity_name_and_input_routes_correctly_across_restart");
    HOLDFAST_CHECK("runtime deterministic_replay_activity_only");
    Script s(program<&two_steps>());
    s.turn();
    s.turn(done(2, "5"));
    EXPECT_EQ(s.ending(), Ending::none);
    s.turn(done(4, "6"));
    EXPECT_EQ(s.output(), "506");
}

Workflow<int> mixed_steps(Context& ctx) {
    const int a = co_await ctx.activity<&add>(1, 1);
    co_await ctx.sleep(1s);
    const int b = co_await ctx.activity<&add>(a, a);
    co_return b;
}

TEST(Coroutine, ActivitiesAndTimersTakeTurns) {
    HOLDFAST_CHECK("runtime activity_then_timer");
    HOLDFAST_CHECK("runtime timer_then_activity");
    HOLDFAST_CHECK("runtime timer_with_activity");
    HOLDFAST_CHECK("runtime timer_fires_at_correct_time_after_previous_timer");
    Script s(program<&mixed_steps>());
    s.turn();
    s.turn(done(2, "2"));
    EXPECT_THAT(s.last().timers, ElementsAre(Pair(4, 4000))) << "from the turn that asked";
    s.turn(fired(4));
    s.turn(done(6, "4"));
    EXPECT_EQ(s.output(), "4");
}

Workflow<int> many_steps(Context& ctx) {
    int sum = 0;
    for (int i = 0; i < 40; ++i) {
        const int more = co_await ctx.activity<&add>(i, sum);
        sum += more;
    }
    co_return sum;
}

TEST(Coroutine, ManyStepsInARow) {
    HOLDFAST_CHECK("runtime many_sequential_activities");
    Script s(program<&many_steps>());
    s.turn();
    for (EventId id = 2; s.ending() == Ending::none; id += 2) {
        s.turn(done(id, "1"));
    }
    EXPECT_EQ(s.output(), "40");
}

// --- any

Workflow<std::string> races(Context& ctx) {
    auto first = co_await any(ctx.activity<&greet>("Ann"), ctx.sleep(5s));
    co_return first.index() == 0 ? std::get<0>(first) : "late";
}

TEST(Coroutine, TheFirstAnswerDecidesARace) {
    HOLDFAST_CHECK("runtime select2_activity_wins");
    HOLDFAST_CHECK("runtime select2_timer_wins");
    HOLDFAST_CHECK("runtime select2_both_pending");
    HOLDFAST_CHECK("runtime typed_activity_select2_timeout");
    HOLDFAST_CHECK("runtime async_block_vs_durable_future");
    Script activity(program<&races>());
    activity.turn();
    activity.turn();
    EXPECT_EQ(activity.ending(), Ending::none);
    activity.turn(done(2, R"("hi")"), fired(3));
    EXPECT_EQ(activity.output(), R"("hi")");
    Script timer(program<&races>());
    timer.turn();
    timer.turn(fired(3), done(2, R"("hi")"));
    EXPECT_EQ(timer.output(), R"("late")");
}

Workflow<std::string> races_signals(Context& ctx) {
    auto first = co_await any(ctx.await_signal(go), ctx.await_signal(halt));
    const std::string text =
        first.index() == 0 ? "go " + std::get<0>(first) : "halt " + std::get<1>(first);
    std::string more = co_await ctx.activity<&greet>(text);
    co_return more;
}

TEST(Coroutine, OfTwoSignalsTheOneThatCameFirstWins) {
    HOLDFAST_CHECK("runtime select2_two_externals_first_delivery_wins");
    HOLDFAST_CHECK("runtime select2_loser_event_consumed_during_replay");
    HOLDFAST_CHECK("runtime select2_schedule_after_winner_returns");
    Script s(program<&races_signals>());
    s.turn();
    s.turn(signal("halt", R"("h")"), signal("go", R"("g")"));
    EXPECT_EQ(s.last().activities.at(0).second.input.json, R"(["halt h"])");
    s.turn(done(s.activities()[0], R"("ok")"));
    EXPECT_EQ(s.output(), R"("ok")");
}

Workflow<int> races_mixed(Context& ctx) {
    auto first =
        co_await any(ctx.sleep(9s), ctx.activity<&add>(1, 1), ctx.receive(inbox), ctx.sleep(1s));
    co_return static_cast<int>(first.index());
}

TEST(Coroutine, TheOrderOfTheBranchesDoesNotMatter) {
    HOLDFAST_CHECK("runtime select3_mixed_branch_order_winner");
    const std::vector<Message> answers{
        fired(2, 1), done(3, "2"), mail("inbox", R"("x")"), fired(5, 1)};
    for (std::size_t winner = 0; winner < answers.size(); ++winner) {
        Script s(program<&races_mixed>());
        s.turn();
        s.turn(answers[winner]);
        EXPECT_EQ(s.output(), std::to_string(winner));
    }
}

Workflow<std::string> any_of_many(Context& ctx) {
    std::vector<Op<int>> branches;
    branches.reserve(5);
    for (int i = 0; i < 5; ++i) {
        branches.push_back(ctx.activity<&add>(i, i));
    }
    auto first = co_await any(std::move(branches));
    std::string said = std::to_string(first.first) + "=" + std::to_string(first.second);
    std::vector<Op<int>> none;
    try {
        auto never = co_await any(std::move(none));
        said += std::to_string(never.first);
    } catch (const Failure& failure) {
        said += failure.type();
    }
    co_return said;
}

TEST(Coroutine, ARaceOfManySaysWhichOneWon) {
    Script s(program<&any_of_many>());
    s.turn();
    s.turn(done(5, "6"));
    EXPECT_EQ(s.output(), R"("3=6InvalidOperation")");
    EXPECT_THAT(s.last().cancelled_activities, ElementsAre(2, 3, 4, 6));
}

Workflow<std::string> race_fails(Context& ctx) {
    std::string said;
    try {
        co_await any(ctx.activity<&add>(1, 1), ctx.sleep(1h));
    } catch (const ActivityFailed& failure) {
        said = failure.what();
    }
    co_return said;
}

TEST(Coroutine, AFailureWinsARaceToo) {
    Script s(program<&race_fails>());
    s.turn();
    s.turn(failed(2, "no stock"));
    EXPECT_EQ(s.output(), R"("no stock")");
    EXPECT_THAT(s.last().cancelled_timers, ElementsAre(3));
}

// --- all

Workflow<std::string> joins(Context& ctx) {
    auto [text, sum, nothing] =
        co_await all(ctx.activity<&greet>("Ann"), ctx.activity<&add>(1, 2), ctx.sleep(1s));
    (void)nothing;
    co_return text + std::to_string(sum);
}

TEST(Coroutine, AllResultsStandInTheOrderOfTheBranches) {
    HOLDFAST_CHECK("runtime join_all_complete");
    HOLDFAST_CHECK("runtime join_partial_complete");
    HOLDFAST_CHECK("runtime join_fresh_schedule");
    HOLDFAST_CHECK("runtime join_returns_schedule_order");
    HOLDFAST_CHECK("runtime typed_activity_join2_heterogeneous");
    HOLDFAST_CHECK("runtime system_calls_with_select");
    Script s(program<&joins>());
    s.turn();
    EXPECT_THAT(s.activities(), ElementsAre(2, 3));
    s.turn(done(3, "3"));
    EXPECT_EQ(s.ending(), Ending::none);
    s.turn(fired(4));
    s.turn(done(2, R"("hi")"));
    EXPECT_EQ(s.output(), R"("hi3")");
}

Workflow<int> fans_out(Context& ctx, int width) {
    std::vector<Op<int>> branches;
    branches.reserve(static_cast<std::size_t>(width));
    for (int i = 0; i < width; ++i) {
        branches.push_back(ctx.activity<&add>(i, i));
    }
    std::vector<int> sums = co_await all(std::move(branches));
    int total = 0;
    for (std::size_t i = 0; i < sums.size(); ++i) {
        total += sums[i] * static_cast<int>(i);
    }
    co_return total;
}

TEST(Coroutine, AnyNumberOfBranchesAreGathered) {
    HOLDFAST_CHECK("runtime typed_activity_join_fan_out");
    HOLDFAST_CHECK("runtime async_block_join_many");
    Script s(program<&fans_out>(), "[50]");
    s.turn();
    std::vector<Message> answers;
    int expected = 0;
    for (int i = 49; i >= 0; --i) {
        answers.push_back(done(static_cast<EventId>(i) + 2, std::to_string(i)));
        expected += i * i;
    }
    s.turn(answers);
    EXPECT_EQ(s.output(), std::to_string(expected));
    Script none(program<&fans_out>(), "[0]");
    none.turn();
    EXPECT_EQ(none.output(), "0") << "nothing to wait for";
}

Workflow<std::string> join_fails(Context& ctx) {
    std::string said;
    try {
        co_await all(ctx.activity<&add>(1, 1), ctx.activity<&add>(2, 2), ctx.activity<&add>(3, 3));
    } catch (const Failure& failure) {
        said = failure.what();
    }
    co_return said;
}

TEST(Coroutine, AllWaitsForEveryBranchAndThrowsWhatFailedFirst) {
    HOLDFAST_CHECK("runtime join_one_fails");
    HOLDFAST_CHECK("runtime typed_error_propagation_through_join");
    Script s(program<&join_fails>());
    s.turn();
    s.turn(failed(4, "third, first"));
    EXPECT_EQ(s.ending(), Ending::none);
    s.turn(failed(2, "first, second"));
    s.turn(done(3, "4"));
    EXPECT_EQ(s.output(), R"("third, first")");
}

Workflow<std::string> outcomes(Context& ctx) {
    auto [good, bad, odd] = co_await all(ctx.activity<&add>(1, 1).outcome(),
                                         ctx.activity<&add>(2, 2).outcome(),
                                         ctx.activity<&add>(3, 3).outcome());
    std::string said = good ? std::to_string(*good) : "?";
    said += bad ? "?" : " " + bad.failure().message;
    said += odd ? "?" : " " + odd.failure().type;
    co_return said;
}

TEST(Coroutine, AnOutcomeIsAValueWhateverHappened) {
    Script s(program<&outcomes>());
    s.turn();
    s.turn(done(2, "2"), failed(3, "no"), done(4, R"("text")"));
    EXPECT_EQ(s.output(), R"("2 no DecodeError")");
}

// --- tasks

Task<int> twice(Context& ctx, int n) {
    const int a = co_await ctx.activity<&add>(n, n);
    if (a > 10) {
        co_return a;
    }
    const int b = co_await ctx.activity<&add>(a, a);
    co_return b;
}
Task<std::string> nested(Context& ctx, int n) {
    const int a = co_await twice(ctx, n);
    const int b = co_await ctx.child<&sub>(a);
    co_return std::to_string(a) + ":" + std::to_string(b);
}
Workflow<std::string> composes(Context& ctx) {
    auto [a, b] = co_await all(twice(ctx, 1), nested(ctx, 20));
    co_return std::to_string(a) + " " + b;
}

TEST(Coroutine, TasksRunSideBySideEachWithItsOwnSteps) {
    HOLDFAST_CHECK("runtime async_block_join_with_control_flow");
    HOLDFAST_CHECK("runtime async_block_nested_suborchestration_chain");
    Script s(program<&composes>());
    s.turn();
    s.turn(done(3, "40"), done(2, "2"));
    EXPECT_THAT(s.events(),
                ElementsAre("4 activity_completed<-3",
                            "5 activity_completed<-2",
                            "6 child_scheduled sub",
                            "7 activity_scheduled add"))
        << "in the order in which they were reached";
    s.turn(child_done(6, "9"));
    s.turn(done(7, "4"));
    EXPECT_EQ(s.output(), R"("4 40:9")");
}

Workflow<int> sequential_tasks(Context& ctx) {
    const int a = co_await twice(ctx, 1);
    const int b = co_await twice(ctx, a);
    co_return b;
}

TEST(Coroutine, TasksOneAfterTheOther) {
    HOLDFAST_CHECK("runtime async_block_sequential");
    Script s(program<&sequential_tasks>());
    s.turn();
    s.turn(done(2, "2"));
    s.turn(done(4, "4"));
    s.turn(done(6, "11"));
    EXPECT_EQ(s.output(), "11");
}

Workflow<std::string> races_blocks(Context& ctx) {
    auto first = co_await any(twice(ctx, 1), nested(ctx, 20), ctx.sleep(1h));
    co_return std::to_string(first.index());
}

TEST(Coroutine, ALosingTaskIsEndedWhereItStands) {
    HOLDFAST_CHECK("runtime async_block_select_racing");
    HOLDFAST_CHECK("runtime async_block_select3_with_timers");
    Script s(program<&races_blocks>());
    s.turn();
    s.turn(done(3, "40"));
    s.turn(done(2, "12"));
    EXPECT_EQ(s.output(), R"("0")");
    EXPECT_EQ(s.last().cancelled_children.size(), 1U) << "what the other task waited for";
    EXPECT_THAT(s.last().cancelled_timers, ElementsAre(4));
}

Task<int> joins_inside(Context& ctx) {
    auto [a, b] = co_await all(ctx.activity<&add>(1, 1), ctx.activity<&add>(2, 2));
    co_return a + b;
}
Workflow<int> join_in_race(Context& ctx) {
    auto first = co_await any(joins_inside(ctx), ctx.sleep(1s));
    co_return first.index() == 0 ? std::get<0>(first) : -1;
}

TEST(Coroutine, AJoinInsideARace) {
    HOLDFAST_CHECK("runtime async_block_nested_join_in_select");
    Script wins(program<&join_in_race>());
    wins.turn();
    wins.turn(done(2, "2"));
    wins.turn(done(3, "4"));
    EXPECT_EQ(wins.output(), "6");
    Script loses(program<&join_in_race>());
    loses.turn();
    loses.turn(done(2, "2"));
    loses.turn(fired(4));
    EXPECT_EQ(loses.output(), "-1");
    EXPECT_THAT(loses.last().cancelled_activities, ElementsAre(3)) << "2 was answered";
}

Task<int> fails_before_awaiting(int how) {
    if (how == 0) {
        throw permanent("Early", "at once");
    }
    co_return how;
}
Workflow<std::string> early_failures(Context& ctx) {
    std::string said;
    try {
        co_await fails_before_awaiting(0);
    } catch (const Failure& failure) {
        said = failure.type();
    }
    try {
        co_await all(fails_before_awaiting(0), ctx.activity<&add>(1, 1), fails_before_awaiting(1));
    } catch (const Failure& failure) {
        said += failure.type();
    }
    try {
        auto first = co_await any(ctx.activity<&add>(2, 2), fails_before_awaiting(0));
        said += std::to_string(first.index());
    } catch (const Failure& failure) {
        said += failure.type();
    }
    co_return said;
}

TEST(Coroutine, ATaskThatFailsBeforeItsFirstAwaitFailsWhereItIsAwaited) {
    Script s(program<&early_failures>());
    s.turn();
    s.turn(done(2, "2"));
    EXPECT_EQ(s.output(), R"("EarlyEarlyEarly")");
}

Task<int> never_awaited(Context& ctx) {
    co_await ctx.activity<&add>(1, 1);
    co_return 1;
}
Workflow<int> wastes(Context& ctx) {
    const Task<int> lazy = never_awaited(ctx);
    auto unused = ctx.activity<&add>(2, 2);
    const int sum = co_await ctx.activity<&add>(3, 3);
    co_return sum;
}

TEST(Coroutine, WhatIsNotAwaitedDoesNothing) {
    Script s(program<&wastes>());
    s.turn();
    EXPECT_THAT(s.events(), ElementsAre("1 workflow_started", "2 activity_scheduled add"));
}

Task<int> ends_at_once(int n) {
    co_return n + 1;
}
Workflow<int> long_chain(Context&, int length) {
    int n = 0;
    for (int i = 0; i < length; ++i) {
        const int next = co_await ends_at_once(n);
        n = next;
    }
    co_return n;
}

// By symmetric transfer this overflows the stack with g++ 12 below -O2, and under sanitizers.
TEST(Coroutine, AMillionTasksThatEndAtOnceDoNotGrowTheStack) {
    Execution execution("order-7", 1, program<&long_chain>());
    execution.begin(start("[1000000]"));
    EXPECT_EQ(execution.turn(Moment{1000ms}, {}).output().json, "1000000");
}

// --- map

Workflow<std::string> maps(Context& ctx) {
    const std::vector<int> items{10, 20, 30, 40};
    auto prices = co_await map(
        ctx, items, 2, [](Context& c, const int& item) { return c.activity<&quote_price>(item); });
    std::string said;
    for (const auto& price : prices) {
        said += price ? std::to_string(*price) + " " : price.failure().message + " ";
    }
    co_return said;
}

TEST(Coroutine, AMapRunsAFewAtATimeAndKeepsTheOrderOfItsItems) {
    HOLDFAST_CHECK("runtime durable_future_map_transforms_result");
    HOLDFAST_CHECK("runtime typed_map_then_join");
    Script s(program<&maps>());
    s.turn();
    EXPECT_THAT(s.activities(), ElementsAre(2, 3));
    s.turn(failed(3, "sold out"));
    EXPECT_THAT(s.activities(), ElementsAre(5));
    s.turn(done(2, "1"), done(5, "3"));
    EXPECT_THAT(s.activities(), ElementsAre(8));
    s.turn(done(8, "4"));
    EXPECT_EQ(s.output(), R"("1 sold out 3 4 ")");
}

Workflow<int> map_in_race(Context& ctx) {
    const std::vector<int> items{1, 2, 3};
    auto first = co_await any(
        map(ctx,
            items,
            2,
            [](Context& c, const int& item) { return c.activity<&quote_price>(item); }),
        ctx.sleep(1s));
    co_return static_cast<int>(first.index());
}

TEST(Coroutine, AMapThatLosesGivesUpWhatItWaitsFor) {
    HOLDFAST_CHECK("runtime map_preserves_cancellation_on_drop");
    Script s(program<&map_in_race>());
    s.turn();
    s.turn(fired(4));
    EXPECT_THAT(s.last().cancelled_activities, ElementsAre(2, 3));
}

Workflow<std::size_t> maps_nothing(Context& ctx) {
    const std::vector<int> none;
    auto results = co_await map(
        ctx, none, 0, [](Context& c, const int& item) { return c.activity<&quote_price>(item); });
    const std::vector<int> items{1, 2};
    auto chained =
        co_await map(ctx, items, 0, [](Context& c, const int& i) { return twice(c, i); });
    co_return results.size() + chained.size();
}

TEST(Coroutine, AMapOfNothingIsDoneAndALimitIsAtLeastOne) {
    Script s(program<&maps_nothing>());
    s.turn();
    s.turn(done(2, "20"));
    s.turn(done(4, "20"));
    EXPECT_EQ(s.output(), "2");
}

// --- sagas

Workflow<int> pays(Context& ctx) {
    Saga saga{ctx, {.attempts = 2, .first = 0ms}};
    std::exception_ptr problem;
    try {
        const int a = co_await ctx.activity<&add>(1, 1);
        saga.push<&undo>(a);
        const int b = co_await ctx.activity<&add>(2, 2);
        saga.push<&undo>(b);
        co_await ctx.activity<&add>(3, 3);
        saga.dismiss();
    } catch (const Failure&) {
        problem = std::current_exception();
    }
    co_await saga.unwind();
    if (problem) {
        std::rethrow_exception(problem);
    }
    co_return 1;
}

TEST(Coroutine, ASagaUndoesTheNewestFirst) {
    HOLDFAST_CHECK("runtime error_handling_compensation_on_ship_failure_inmem");
    Script s(program<&pays>());
    s.turn();
    s.turn(done(2, "2"));
    s.turn(done(4, "4"));
    s.turn(failed(6, "declined"));
    EXPECT_EQ(s.last().activities.at(0).second.input.json, "[4]");
    s.turn(done(8, "null"));
    EXPECT_EQ(s.last().activities.at(0).second.input.json, "[2]");
    s.turn(done(10, "null"));
    EXPECT_EQ(s.failure().message, "declined");
}

TEST(Coroutine, ASagaThatIsDismissedUndoesNothing) {
    Script s(program<&pays>());
    s.turn();
    s.turn(done(2, "2"));
    s.turn(done(4, "4"));
    s.turn(done(6, "6"));
    EXPECT_EQ(s.output(), "1");
}

TEST(Coroutine, ASagaGoesOnWhenOneUndoFailsAndSaysSo) {
    Script s(program<&pays>());
    s.turn();
    s.turn(done(2, "2"));
    s.turn(done(4, "4"));
    s.turn(failed(6, "declined"));
    s.turn(failed(8, "stuck for good"));
    EXPECT_EQ(s.last().activities.at(0).second.input.json, "[2]");
    s.turn(done(10, "null"));
    EXPECT_EQ(s.failure().type, "CompensationFailed");
    EXPECT_THAT(s.failure().message, HasSubstr("stuck for good"));
}

}  // namespace
}  // namespace holdfast::flow::tests
