// Answers, messages and signals reach the code that waits for them.
#include "replay/test/engine_fixture.hpp"

namespace holdfast::flow::tests {
namespace {

Workflow<std::string> rests(Context& ctx) {
    co_await ctx.sleep(5s);
    co_return "rested";
}

TEST(EngineAnswers, AnAnswerIsWrittenDownAndGivenToTheCode) {
    HOLDFAST_CHECK("runtime activity_completed_message");
    HOLDFAST_CHECK("runtime activity_completed_in_history");
    Script s(program<&greets>());
    s.turn();
    s.turn(done(2, R"("hi")"));
    EXPECT_THAT(s.events(), ElementsAre("3 activity_completed<-2", R"(4 workflow_completed "hi")"));
}

TEST(EngineAnswers, ATimerThatFiredWakesTheCode) {
    HOLDFAST_CHECK("runtime timer_fired_message");
    HOLDFAST_CHECK("runtime single_timer_fires");
    HOLDFAST_CHECK("runtime timer_fired_in_history");
    Script s(program<&rests>());
    s.turn();
    s.turn(fired(2, 7000));
    EXPECT_THAT(s.events(), ElementsAre("3 timer_fired<-2", R"(4 workflow_completed "rested")"));
}

TEST(EngineAnswers, ASignalReachesTheWaitThatIsThere) {
    HOLDFAST_CHECK("runtime external_raised_message");
    HOLDFAST_CHECK("runtime external_received_in_history");
    Script s(program<&awaits_go>());
    s.turn();
    s.turn(signal("go", R"("now")"));
    EXPECT_THAT(s.events(), ElementsAre("3 signal_received go", R"(4 workflow_completed "now")"));
}

TEST(EngineAnswers, AMessageReachesTheReceiveThatIsThere) {
    HOLDFAST_CHECK("runtime persistent_event_basic_delivery");
    Script s(program<&reads_inbox>());
    s.turn();
    s.turn(mail("inbox", R"("x")"));
    EXPECT_THAT(s.events(), ElementsAre("3 message_received inbox", R"(4 workflow_completed "x")"));
}

TEST(EngineAnswers, AChildsResultReachesItsParent) {
    HOLDFAST_CHECK("runtime sub_orch_completed_message");
    HOLDFAST_CHECK("runtime sub_orch_completed_in_history");
    Script s(program<&waits_for_child>());
    s.turn();
    s.turn(child_done(2, "9"));
    EXPECT_THAT(s.events(), ElementsAre("3 child_completed<-2", "4 workflow_completed 9"));
}

TEST(EngineAnswers, AnAnsweredHistoryIsTakenToItsEnd) {
    const std::vector<Event> history{
        started(), event(2, asks_greet()), event(3, ActivityCompleted{Payload{R"("hi")"}}, 2)};
    const Turn turn = over(program<&greets>(), history);
    EXPECT_THAT(brief(turn.events), ElementsAre(R"(4 workflow_completed "hi")"));
}

// --- twice, late, or for another execution

Workflow<int> adds_twice(Context& ctx) {
    int a = co_await ctx.activity<&add>(1, 1);
    int b = co_await ctx.activity<&add>(a, a);
    co_return b;
}

TEST(EngineAnswers, OnlyTheFirstAnswerCounts) {
    HOLDFAST_CHECK("runtime duplicate_completion_filtered");
    HOLDFAST_CHECK("runtime duplicate_in_same_batch");
    Script s(program<&adds_twice>());
    s.turn();
    s.turn(done(2, "2"), done(2, "3"));
    EXPECT_THAT(s.events(), ElementsAre("3 activity_completed<-2", "4 activity_scheduled add"));
    EXPECT_THAT(s.last().taken, ElementsAre(0, 1)) << "both are off the queue";
    EXPECT_EQ(s.last().activities[0].second.input.json, "[2,2]");
    s.turn(done(2, "5"));
    EXPECT_THAT(s.events(), IsEmpty());
}

// A second answer is a duplicate whatever its kind.
TEST(EngineAnswers, AFailureAfterAResultIsADuplicateToo) {
    Script s(program<&adds_twice>());
    s.turn();
    s.turn(done(2, "2"), failed(2, "too late"));
    EXPECT_THAT(s.events(), ElementsAre("3 activity_completed<-2", "4 activity_scheduled add"));
    s.turn(failed(2, "far too late"), failed(2, FailureInfo{.kind = FailureKind::infrastructure}));
    EXPECT_THAT(s.events(), IsEmpty());
}

TEST(EngineAnswers, AnswersOfAnotherExecutionArePassedOver) {
    HOLDFAST_CHECK("runtime wrong_execution_filtered");
    HOLDFAST_CHECK("runtime old_execution_completions_are_ignored");
    HOLDFAST_CHECK("runtime future_execution_completions_are_ignored");
    HOLDFAST_CHECK("runtime completion_wrong_execution");
    HOLDFAST_CHECK("runtime completion_for_different_execution");
    Script s(program<&greets>());
    s.turn();
    s.turn(done(2, R"("old")", 0 + 2), done(99, R"("older")", 7));
    EXPECT_THAT(s.events(), IsEmpty());
    EXPECT_THAT(s.last().taken, ElementsAre(0, 1));
    s.turn(done(2, R"("mine")"));
    EXPECT_EQ(s.output(), R"("mine")");
}

TEST(EngineAnswers, SeveralAnswersInOneTurnAreTakenInTheirOrder) {
    HOLDFAST_CHECK("runtime multiple_completions_batch");
    Script s(program<&adds_twice>());
    s.turn();
    s.turn(mail("inbox", "1"), done(2, "2"), signal("go", "2"));
    EXPECT_THAT(s.events(),
                ElementsAre("3 message_received inbox",
                            "4 activity_completed<-2",
                            "5 signal_received go",
                            "6 activity_scheduled add"));
}

Workflow<std::string> naps_three_times(Context& ctx) {
    auto a = ctx.start(ctx.sleep(3s));
    auto b = ctx.start(ctx.sleep(2s));
    auto c = ctx.start(ctx.sleep(1s));
    auto first = co_await any(a.ref(), b.ref(), c.ref());
    co_return std::to_string(first.index());
}

TEST(EngineAnswers, TimersThatComeTogetherAreTakenByWhenTheyWereDue) {
    HOLDFAST_CHECK("runtime multiple_timers_fire_in_order");
    Script s(program<&naps_three_times>());
    s.turn();
    s.turn(fired(2, 5000), fired(3, 4000), fired(4, 3000));
    EXPECT_EQ(s.output(), R"("2")");
}

// --- positional signals

Workflow<std::string> signal_after_activity(Context& ctx) {
    co_await ctx.activity<&add>(1, 1);
    std::string text = co_await ctx.await_signal(go);
    co_return text;
}

TEST(EngineAnswers, ASignalThatComesBeforeItsWaitIsOnlyWrittenDown) {
    HOLDFAST_CHECK("runtime external_without_subscription");
    HOLDFAST_CHECK("runtime event_before_subscription_after_start_is_ignored");
    HOLDFAST_CHECK("runtime event_drop_then_retry_after_subscribe");
    Script s(program<&signal_after_activity>());
    s.turn();
    s.turn(signal("go", R"("early")"));
    EXPECT_THAT(s.events(), ElementsAre("3 signal_received go"));
    s.turn(done(2, "2"));
    EXPECT_EQ(s.ending(), Ending::none);
    s.turn(signal("go", R"("again")"));
    EXPECT_EQ(s.output(), R"("again")");
}

// Within one turn, a wait that an earlier message brought about takes a signal that comes after it.
// Were waits counted at the end of the turn, the signal would be lost.
TEST(EngineAnswers, ASignalReachesAWaitThatWasAskedForEarlierInTheSameTurn) {
    Script s(program<&signal_after_activity>());
    s.turn();
    s.turn(done(2, "2"), signal("go", R"("just in time")"));
    EXPECT_THAT(s.events(),
                ElementsAre("3 activity_completed<-2",
                            "4 signal_received go",
                            "5 signal_awaited go",
                            R"(6 workflow_completed "just in time")"));
}

Workflow<std::string> two_signals(Context& ctx) {
    auto both = co_await all(ctx.await_signal(go), ctx.await_signal(go));
    co_return std::get<0>(both) + std::get<1>(both);
}

TEST(EngineAnswers, EqualSignalsAreTwoSignals) {
    HOLDFAST_CHECK("runtime duplicate_external_events_in_batch_are_kept");
    HOLDFAST_CHECK("runtime duplicate_external_event_in_history_is_kept");
    HOLDFAST_CHECK("runtime multiple_external_events_same_name");
    HOLDFAST_CHECK("runtime duplicate_external_events_not_deduplicated");
    HOLDFAST_CHECK("runtime positional_matching_fifo_without_cancellation");
    Script batch(program<&two_signals>());
    batch.turn();
    batch.turn(signal("go", R"("a")"), signal("go", R"("a")"));
    EXPECT_EQ(batch.output(), R"("aa")");
    Script turns(program<&two_signals>());
    turns.turn();
    turns.turn(signal("go", R"("a")"));
    EXPECT_EQ(turns.ending(), Ending::none);
    turns.turn(signal("go", R"("a")"));
    EXPECT_EQ(turns.output(), R"("aa")");
}

Workflow<std::string> gives_up_a_signal(Context& ctx) {
    co_await any(ctx.await_signal(go), ctx.sleep(1s));
    std::string text = co_await ctx.await_signal(go);
    co_return text;
}

TEST(EngineAnswers, AWaitThatWasGivenUpTakesNoSignal) {
    HOLDFAST_CHECK("runtime cancelled_subscription_does_not_steal_future_event");
    Script s(program<&gives_up_a_signal>());
    s.turn();
    s.turn(fired(3));
    s.turn(signal("go", R"("mine")"));
    EXPECT_EQ(s.output(), R"("mine")");
}

TEST(EngineAnswers, AnEmptySignalIsASignal) {
    HOLDFAST_CHECK("runtime empty_external_event_data");
    Script s(program<&awaits_go>());
    s.turn();
    s.turn(signal("go", R"("")"));
    EXPECT_EQ(s.output(), R"("")");
}

// --- channels

Workflow<std::string> reads_three(Context& ctx) {
    const std::string first = co_await ctx.receive(inbox);
    const std::string second = co_await ctx.receive(inbox);
    co_await ctx.sleep(1s);
    const std::string third = co_await ctx.receive(inbox);
    co_return first + second + third;
}

TEST(EngineAnswers, AChannelKeepsItsMessagesInOrderUntilTheyAreRead) {
    HOLDFAST_CHECK("runtime persistent_event_fifo_ordering");
    HOLDFAST_CHECK("runtime persistent_event_arrives_before_subscription");
    Script s(program<&reads_three>());
    s.turn(mail("inbox", R"("a")"), mail("inbox", R"("b")"), mail("inbox", R"("c")"));
    EXPECT_THAT(s.events(),
                ElementsAre("1 workflow_started",
                            "2 message_received inbox",
                            "3 message_received inbox",
                            "4 message_received inbox",
                            "5 message_awaited inbox",
                            "6 message_awaited inbox",
                            "7 timer_created"));
    s.turn(fired(7));
    EXPECT_EQ(s.output(), R"("abc")");
}

Workflow<std::string> looks_in_the_inbox(Context& ctx) {
    const std::optional<std::string> early = ctx.try_receive(inbox);
    co_await ctx.sleep(1s);
    const std::optional<std::string> late = ctx.try_receive(inbox);
    co_return early.value_or("nothing") + "," + late.value_or("nothing");
}

TEST(EngineAnswers, LookingIntoAChannelTakesWhatIsThereAndDoesNotWait) {
    Script s(program<&looks_in_the_inbox>());
    s.turn();
    s.turn(mail("inbox", R"("x")"));
    s.turn(fired(2));
    EXPECT_EQ(s.output(), R"("nothing,x")");
}

Workflow<std::string> reads_both(Context& ctx) {
    std::string text;
    for (int i = 0; i < 2; ++i) {
        auto first = co_await any(ctx.receive(inbox), ctx.receive(outbox));
        text += first.index() == 0 ? std::get<0>(first) : std::get<1>(first);
    }
    co_return text;
}

// The dangerous moment: both channels have a message when the race begins. The loser had its
// message already, and it must not be lost with it.
TEST(EngineAnswers, AReceiveThatLosesARaceLeavesItsMessageInTheChannel) {
    HOLDFAST_CHECK("runtime persistent_event_survives_select_cancellation_same_batch");
    Script s(program<&reads_both>());
    s.turn(mail("outbox", R"("o")"), mail("inbox", R"("i")"));
    EXPECT_EQ(s.output(), R"("oi")") << "the one that came first wins, the other comes next";
}

Workflow<std::string> gives_back(Context& ctx) {
    auto unread = ctx.start(ctx.receive(inbox));
    auto second = ctx.start(ctx.receive(inbox));
    co_await ctx.sleep(1s);
    unread.cancel();
    std::string text = co_await second;
    co_return text;
}

TEST(EngineAnswers, AMessageThatIsGivenBackGoesToWhoeverWaitsNext) {
    Script s(program<&gives_back>());
    s.turn();
    s.turn(mail("inbox", R"("one")"));
    s.turn(fired(4));
    EXPECT_EQ(s.output(), R"("one")");
}

Workflow<std::string> gives_back_and_continues(Context& ctx, int round) {
    if (round > 0) {
        co_return "done";
    }
    auto unread = ctx.start(ctx.receive(inbox));
    co_await ctx.sleep(1s);
    co_return again(round + 1);
}

TEST(EngineAnswers, AMessageThatCameAndWasNotReadIsCarriedOn) {
    Script s(program<&gives_back_and_continues>(), "[0]");
    s.turn();
    s.turn(mail("inbox", R"("one")"));
    s.turn(fired(3));
    EXPECT_EQ(s.ending(), Ending::continued);
    EXPECT_THAT(s.last().carried, ElementsAre(MessageReceived{"inbox", Payload{R"("one")"}}));
}

// --- failures

Workflow<std::string> reports_failure(Context& ctx) {
    std::string said;
    try {
        co_await ctx.activity<&add>(1, 1);
    } catch (const ActivityFailed& failure) {
        said = failure.info().text();
    }
    try {
        co_await ctx.child<&sub>(1);
    } catch (const ChildFailed& failure) {
        said += "; " + failure.info().text();
    }
    co_return said;
}

TEST(EngineAnswers, FailuresOfActivitiesAndChildrenAreThrownAtTheAwait) {
    HOLDFAST_CHECK("runtime application_error_propagates");
    HOLDFAST_CHECK("runtime sub_orch_app_error_propagates");
    HOLDFAST_CHECK("runtime activity_failed_in_history");
    Script s(program<&reports_failure>());
    s.turn();
    s.turn(failed(2, "no stock"));
    s.turn(child_failed(4, FailureInfo{.type = "Late", .message = "too slow"}));
    EXPECT_THAT(s.output(), HasSubstr("no stock"));
    EXPECT_THAT(s.output(), HasSubstr("too slow"));
}

TEST(EngineAnswers, AFailureThatNobodyCatchesIsTheWorkflowsOwn) {
    Script s(program<&greets>());
    s.turn();
    s.turn(failed(2, FailureInfo{.type = "NoSuchName", .message = "who is Ann?"}));
    EXPECT_EQ(s.ending(), Ending::failed);
    EXPECT_EQ(s.failure().type, "NoSuchName");
    EXPECT_EQ(s.failure().kind, FailureKind::application);
}

// What the code could only mishandle does not reach it.
TEST(EngineAnswers, AFailureOfTheSystemEndsTheInstanceWithoutAskingTheCode) {
    HOLDFAST_CHECK("runtime infrastructure_error_aborts");
    HOLDFAST_CHECK("runtime configuration_error_aborts");
    HOLDFAST_CHECK("runtime sub_orch_infra_error_aborts_parent");
    for (const FailureKind kind :
         {FailureKind::infrastructure, FailureKind::poison, FailureKind::nondeterminism}) {
        Script s(program<&reports_failure>());
        s.turn();
        s.turn(failed(2, FailureInfo{.kind = kind, .message = "broken"}));
        EXPECT_EQ(s.ending(), Ending::failed);
        EXPECT_EQ(s.failure().kind, kind);
    }
    Script s(program<&waits_for_child>());
    s.turn();
    s.turn(child_failed(2, FailureInfo{.kind = FailureKind::infrastructure, .message = "gone"}));
    EXPECT_EQ(s.failure().kind, FailureKind::infrastructure);
}

TEST(EngineAnswers, AnAnswerOfTheWrongTypeIsADecodeErrorAtTheAwait) {
    HOLDFAST_CHECK("runtime typed_activity_decode_error_fs");
    HOLDFAST_CHECK("runtime typed_event_decode_error_fs");
    Script activity(program<&adds_twice>());
    activity.turn();
    activity.turn(done(2, R"("two")"));
    EXPECT_EQ(activity.failure().type, "DecodeError");
    Script awaited(program<&awaits_go>());
    awaited.turn();
    awaited.turn(signal("go", "17"));
    EXPECT_EQ(awaited.failure().type, "DecodeError");
}

Workflow<int> takes_an_int(Context&, int n) {
    co_return n;
}

TEST(EngineAnswers, AnInputThatIsNotTheWorkflowsFailsIt) {
    for (const char* input : {"[]", "[1,2]", R"(["x"])", "7", ""}) {
        Script s(program<&takes_an_int>(), input, {.checked = false});
        if (*input == '\0') {
            continue;  // Not JSON: no history can hold it.
        }
        s.turn();
        EXPECT_EQ(s.ending(), Ending::failed) << input;
        EXPECT_EQ(s.failure().type, "DecodeError") << input;
    }
}

// --- panics

Workflow<int> panics(Context& ctx, int how) {
    if (how == 0) {
        throw std::runtime_error("index out of range");
    }
    if (how == 1) {
        throw 17;
    }
    int sum = co_await ctx.activity<&add>(1, 1);
    throw std::logic_error("after " + std::to_string(sum));
}

TEST(EngineAnswers, AnythingElseThatIsThrownIsAPanicWithItsText) {
    HOLDFAST_CHECK("runtime panic_string");
    HOLDFAST_CHECK("runtime panic_other");
    HOLDFAST_CHECK("runtime panic_during_await");
    HOLDFAST_CHECK("runtime orchestration_panic_is_caught_and_fails_with_message");
    Script text(program<&panics>(), "[0]");
    text.turn();
    EXPECT_EQ(text.failure().kind, FailureKind::panic);
    EXPECT_EQ(text.failure().message, "index out of range");
    Script other(program<&panics>(), "[1]");
    other.turn();
    EXPECT_EQ(other.failure().kind, FailureKind::panic);
    Script later(program<&panics>(), "[2]");
    later.turn();
    later.turn(done(2, "2"));
    EXPECT_EQ(later.failure().message, "after 2");
}

}  // namespace
}  // namespace holdfast::flow::tests
