// What the code no longer wants is given up: written down once, called back once, the same on
// replay.
#include "replay/test/engine_fixture.hpp"

namespace holdfast::flow::tests {
namespace {

Workflow<std::string> races_timer(Context& ctx) {
    auto first = co_await any(ctx.activity<&greet>("Ann"), ctx.sleep(5s));
    co_await ctx.sleep(1s);
    co_return first.index() == 0 ? std::get<0>(first) : "late";
}

TEST(EngineDrops, AnActivityThatLosesARaceIsCalledBackOnce) {
    HOLDFAST_CHECK("runtime select2_timer_wins_activity_cancelled");
    HOLDFAST_CHECK("runtime replay_select_loser_same_cancellation");
    HOLDFAST_CHECK("runtime cross_turn_activity_cancellation_emits_both_signals");
    // clang-format off: the mark stands in one line.
    HOLDFAST_CHECK("runtime replay_does_not_reemit_activity_cancellation_side_channel_when_already_in_history");
    // clang-format on
    HOLDFAST_CHECK("runtime timer_cancellation");
    Script s(program<&races_timer>());
    s.turn();
    s.turn(fired(3));
    EXPECT_THAT(
        s.events(),
        ElementsAre(
            "4 timer_fired<-3", "5 timer_created", "6 operation_cancelled<-2 activity dropped"));
    EXPECT_THAT(s.last().cancelled_activities, ElementsAre(2));
    s.turn(fired(5));
    EXPECT_THAT(s.last().cancelled_activities, IsEmpty());
    EXPECT_EQ(s.output(), R"("late")");
}

// A timer that stayed queued would cost a useless turn.
TEST(EngineDrops, ATimerThatLosesARaceIsCalledBack) {
    HOLDFAST_CHECK("runtime select2_activity_wins_timer_not_cancelled");
    HOLDFAST_CHECK("runtime explicit_drop_timer_no_cancel_needed");
    Script s(program<&races_timer>());
    s.turn();
    s.turn(done(2, R"("hi")"));
    EXPECT_THAT(s.last().cancelled_timers, ElementsAre(3));
    EXPECT_THAT(s.last().cancelled_activities, IsEmpty());
    s.turn(fired(3));
    EXPECT_THAT(s.events(), IsEmpty()) << "it was on its way; nobody listens";
}

Workflow<int> races_three(Context& ctx) {
    auto first =
        co_await any(ctx.activity<&add>(1, 1), ctx.activity<&add>(2, 2), ctx.activity<&add>(3, 3));
    co_return static_cast<int>(first.index());
}

TEST(EngineDrops, AllLosersAreCalledBack) {
    HOLDFAST_CHECK("runtime select3_two_activities_cancelled");
    HOLDFAST_CHECK("runtime completed_future_not_in_cancelled_list");
    Script s(program<&races_three>());
    s.turn();
    s.turn(done(3, "4"));
    EXPECT_THAT(s.last().cancelled_activities, ElementsAre(2, 4));
    EXPECT_EQ(s.output(), "1");
}

Workflow<std::string> drops_by_hand(Context& ctx) {
    {
        auto activity = ctx.start(ctx.activity<&add>(1, 1));
        auto wait = ctx.start(ctx.await_signal(go));
        auto message = ctx.start(ctx.receive(inbox));
        auto child = ctx.start(ctx.child<&sub>(1).id("c-1"));
        auto other = ctx.start(ctx.activity<&add>(2, 2));
        co_await ctx.sleep(1s);
        other.cancel();
    }
    std::string text = co_await ctx.activity<&greet>("Ann");
    co_return text;
}

TEST(EngineDrops, EveryKindOfOperationIsGivenUpWithItsHandle) {
    HOLDFAST_CHECK("runtime explicit_drop_activity_gets_cancelled");
    HOLDFAST_CHECK("runtime explicit_drop_external_wait");
    HOLDFAST_CHECK("runtime multiple_dropped_activities_all_cancelled");
    HOLDFAST_CHECK("runtime sub_orch_drop_after_schedule_cancelled");
    HOLDFAST_CHECK("runtime explicit_drop_then_await_captures_cancellation");
    HOLDFAST_CHECK("runtime cross_turn_sub_orch_cancellation_emits_both_signals");
    // clang-format off: the mark stands in one line.
    HOLDFAST_CHECK("runtime replay_does_not_reemit_sub_orch_cancellation_side_channel_when_already_in_history");
    // clang-format on
    HOLDFAST_CHECK("runtime persistent_cancelled_subscription_emits_breadcrumb");
    Script s(program<&drops_by_hand>());
    s.turn();
    s.turn(fired(7));
    EXPECT_THAT(s.events(),
                ElementsAre("8 timer_fired<-7",
                            "9 activity_scheduled greet",
                            "10 operation_cancelled<-2 activity dropped",
                            "11 operation_cancelled<-3 signal dropped",
                            "12 operation_cancelled<-4 message dropped",
                            "13 operation_cancelled<-5 child dropped",
                            "14 operation_cancelled<-6 activity dropped"));
    EXPECT_THAT(s.last().cancelled_activities, ElementsAre(2, 6));
    EXPECT_THAT(s.last().cancelled_children,
                ElementsAre(Pair("c-1", "the parent no longer waits")));
    s.turn(done(9, R"("hi")"));
    EXPECT_THAT(s.last().cancelled_children, IsEmpty());
    EXPECT_EQ(s.output(), R"("hi")");
}

Workflow<int> races_child(Context& ctx) {
    auto first = co_await any(ctx.child<&sub>(1).id("c-1"), ctx.sleep(1s));
    co_return static_cast<int>(first.index());
}

TEST(EngineDrops, AChildThatLosesARaceIsCancelledAndOneThatWinsIsNot) {
    HOLDFAST_CHECK("runtime sub_orch_select_loser_child_cancelled");
    HOLDFAST_CHECK("runtime completed_sub_orch_not_cancelled");
    HOLDFAST_CHECK("runtime async_block_suborchestration_loses_race");
    HOLDFAST_CHECK("runtime async_block_suborchestration_wins_race");
    HOLDFAST_CHECK("runtime async_block_suborchestration_racing_timeout");
    Script loses(program<&races_child>());
    loses.turn();
    loses.turn(fired(3));
    EXPECT_EQ(loses.last().cancelled_children.size(), 1U);
    Script wins(program<&races_child>());
    wins.turn();
    wins.turn(child_done(2, "5"));
    EXPECT_THAT(wins.last().cancelled_children, IsEmpty());
    EXPECT_THAT(wins.last().cancelled_timers, ElementsAre(3));
    EXPECT_EQ(wins.output(), "0");
}

Workflow<int> drops_at_once(Context& ctx) {
    (void)ctx.start(ctx.activity<&add>(1, 1));
    int sum = co_await ctx.activity<&add>(2, 2);
    co_return sum;
}

TEST(EngineDrops, WhatIsAskedForAndDroppedInOneTurnIsNeverSent) {
    Script s(program<&drops_at_once>());
    s.turn();
    EXPECT_THAT(s.events(),
                ElementsAre("1 workflow_started",
                            "2 activity_scheduled add",
                            "3 activity_scheduled add",
                            "4 operation_cancelled<-2 activity dropped"));
    EXPECT_THAT(s.activities(), ElementsAre(3));
    EXPECT_THAT(s.last().cancelled_activities, IsEmpty());
}

TEST(EngineDrops, AnAnswerThatComesAfterTheDropIsPassedOver) {
    HOLDFAST_CHECK("runtime replay_tolerates_completion_after_cancel_request");
    Script s(program<&races_timer>());
    s.turn();
    s.turn(fired(3), done(2, R"("too late")"));
    EXPECT_THAT(s.last().cancelled_activities, ElementsAre(2));
    s.turn(done(2, R"("far too late")"));
    EXPECT_THAT(s.events(), IsEmpty());
    // Written by another engine, it is still not a contradiction.
    std::vector<Event> history = s.history();
    history.push_back(event(7, ActivityCompleted{Payload{R"("x")"}}, 2));
    EXPECT_EQ(over(program<&races_timer>(), history).ending, Ending::none);
}

// --- what the history says about drops is compared with the code

Workflow<std::string> awaits_both(Context& ctx) {
    auto activity = ctx.start(ctx.activity<&greet>("Ann"));
    co_await ctx.sleep(5s);
    co_await ctx.sleep(1s);
    std::string text = co_await activity;
    co_return text;
}

TEST(EngineDrops, CodeThatNoLongerGivesUpWhatItGaveUpIsNondeterministic) {
    HOLDFAST_CHECK("runtime replay_fails_when_cancellation_decisions_differ");
    // clang-format off: the mark stands in one line.
    HOLDFAST_CHECK("runtime replay_fails_if_persisted_dropped_future_cancel_is_no_longer_emitted_by_code");
    // clang-format on
    Script s(program<&races_timer>());
    s.turn();
    s.turn(fired(3));
    const Turn turn = over(program<&awaits_both>(), s.history());
    EXPECT_EQ(turn.ending, Ending::failed);
    EXPECT_EQ(turn.failure().kind, FailureKind::nondeterminism);
    EXPECT_THAT(turn.failure().message, HasSubstr("gave up the activity of event 2"));
}

TEST(EngineDrops, NewDropsAreFineBesideOldOnes) {
    // clang-format off: the mark stands in one line.
    HOLDFAST_CHECK("runtime replay_allows_new_cancellations_in_current_turn_even_when_prior_cancellations_exist");
    // clang-format on
    Script s(program<&drops_by_hand>());
    s.turn();
    s.turn(fired(7));
    s.turn(terminate("stop"));
    EXPECT_THAT(s.last().cancelled_activities, ElementsAre(9));
}

TEST(EngineDrops, ADropThatIsWrittenTwiceIsOneDrop) {
    HOLDFAST_CHECK("runtime duplicate_activity_cancel_requested_is_benign");
    HOLDFAST_CHECK("runtime duplicate_sub_orch_cancel_requested_is_benign");
    Script s(program<&drops_by_hand>());
    s.turn();
    s.turn(fired(7));
    std::vector<Event> history = s.history();
    history.push_back(event(15, OperationCancelled{Dropped::activity, "dropped"}, 2));
    history.push_back(event(16, OperationCancelled{Dropped::child, "dropped"}, 5));
    const Turn turn = over(program<&drops_by_hand>(), history);
    EXPECT_EQ(turn.ending, Ending::none);
    EXPECT_THAT(turn.events, IsEmpty());
}

// --- handles

Workflow<int> moves_handles(Context& ctx) {
    std::vector<Handle<int>> handles;
    for (int i = 1; i <= 3; ++i) {
        handles.push_back(ctx.start(ctx.activity<&add>(i, i)));
    }
    handles[0] = std::move(handles[1]);
    handles[1] = ctx.start(ctx.activity<&add>(9, 9));
    Handle<int>& itself = handles[2];
    handles[2] = std::move(itself);
    std::vector<Ref<int>> refs;
    for (const Handle<int>& handle : handles) {
        refs.push_back(handle.ref());
    }
    std::vector<int> sums = co_await all(std::move(refs));
    co_return sums[0] + sums[1] + sums[2];
}

TEST(EngineDrops, AHandleThatIsAssignedGivesUpWhatItHad) {
    Script s(program<&moves_handles>());
    s.turn();
    EXPECT_THAT(s.events(),
                ElementsAre("1 workflow_started",
                            "2 activity_scheduled add",
                            "3 activity_scheduled add",
                            "4 activity_scheduled add",
                            "5 activity_scheduled add",
                            "6 operation_cancelled<-2 activity dropped"));
    s.turn(done(3, "4"), done(5, "18"), done(4, "6"));
    EXPECT_EQ(s.output(), "28");
}

Workflow<int> races_old_answers(Context& ctx) {
    auto late = ctx.start(ctx.activity<&add>(1, 1));
    auto early = ctx.start(ctx.activity<&add>(2, 2));
    co_await ctx.sleep(1s);
    auto first = co_await any(late.ref(), early.ref(), ctx.receive(inbox));
    auto second = co_await any(late.ref(), ctx.sleep(1h));
    co_return static_cast<int>(first.index() * 10 + second.index());
}

// The order of the answers decides, not the position of the branches.
TEST(EngineDrops, OfAnswersThatAreThereTheEarliestWins) {
    Script s(program<&races_old_answers>());
    s.turn();
    s.turn(mail("outbox", "1"), done(3, "4"), mail("inbox", R"("m")"), done(2, "2"));
    s.turn(fired(4));
    EXPECT_EQ(s.output(), "10");
}

Workflow<std::string> awaits_twice_at_once(Context& ctx) {
    auto handle = ctx.start(ctx.activity<&add>(1, 1));
    std::string said;
    try {
        co_await all(handle.ref(), handle.ref());
    } catch (const Failure& failure) {
        said = failure.type();
    }
    int sum = co_await handle;
    int again_sum = co_await handle;
    co_return said + std::to_string(sum + again_sum);
}

TEST(EngineDrops, OneOperationWakesOneWaiterAtATime) {
    Script s(program<&awaits_twice_at_once>());
    s.turn();
    s.turn(done(2, "2"));
    EXPECT_EQ(s.output(), R"("InvalidOperation4")");
}

Workflow<int> leaves_things_open(Context& ctx, int how) {
    auto activity = ctx.start(ctx.activity<&add>(1, 1));
    auto child = ctx.start(ctx.child<&sub>(1).id("c-1"));
    co_await ctx.sleep(1s);
    if (how == 1) {
        throw permanent("Tired", "enough");
    }
    if (how == 2) {
        co_return again(0);
    }
    co_return 1;
}

TEST(EngineDrops, WhateverTheEndNothingGoesOnForNobody) {
    HOLDFAST_CHECK("runtime orchestration_completes_before_activity_finishes");
    HOLDFAST_CHECK("runtime orchestration_fails_before_activity_finishes");
    HOLDFAST_CHECK("runtime simplified_futures_unawaited_completion_does_not_block");
    const std::vector<Ending> endings{Ending::completed, Ending::failed, Ending::continued};
    for (int how = 0; how < 3; ++how) {
        Script s(program<&leaves_things_open>(), "[" + std::to_string(how) + "]");
        s.turn();
        s.turn(fired(4));
        EXPECT_EQ(s.ending(), endings[static_cast<std::size_t>(how)]);
        EXPECT_THAT(s.last().cancelled_activities, ElementsAre(2));
        EXPECT_EQ(s.last().cancelled_children.size(), 1U);
        EXPECT_TRUE(is_terminal(s.history().back().body)) << "nothing is written after the end";
    }
}

// --- destroyed in the middle: an execution that is thrown away drops nothing

TEST(EngineDrops, AnExecutionIsThrownAwayWhereverItStandsAndSaysNothing) {
    for (const detail::Program code : {program<&races_timer>(),
                                       program<&drops_by_hand>(),
                                       program<&moves_handles>(),
                                       program<&races_old_answers>()}) {
        auto execution = std::make_unique<Execution>("order-7", 1, code);
        execution->begin(start());
        const Turn turn = execution->turn(Moment{1000ms}, {});
        EXPECT_EQ(turn.ending, Ending::none);
        execution.reset();
    }
    Execution never_run("order-7", 1, program<&races_timer>());
    never_run.begin(start());
}

}  // namespace
}  // namespace holdfast::flow::tests
