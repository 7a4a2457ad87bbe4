// What the code asks for becomes events and commands.
#include "replay/test/engine_fixture.hpp"

#include <holdfast/flow_engine/limits.hpp>

namespace holdfast::flow::tests {
namespace {

Workflow<std::string> says_hello(Context& ctx, std::string name) {
    std::string text = co_await ctx.activity<&greet>(name);
    co_return text;
}

// --- the first turn

Workflow<int> returns_at_once(Context&) {
    co_return 42;
}

TEST(EngineRequests, CodeThatAsksForNothingEndsInItsFirstTurn) {
    HOLDFAST_CHECK("runtime immediate_return_ok");
    Script s(program<&returns_at_once>());
    s.turn();
    EXPECT_THAT(s.events(), ElementsAre("1 workflow_started", "2 workflow_completed 42"));
    EXPECT_EQ(s.ending(), Ending::completed);
}

Workflow<int> fails_at_once(Context&) {
    throw permanent("CardDeclined", "the bank said no");
    co_return 0;
}

TEST(EngineRequests, AFailureBeforeTheFirstAwaitEndsTheExecution) {
    HOLDFAST_CHECK("runtime immediate_return_err");
    Script s(program<&fails_at_once>());
    s.turn();
    EXPECT_EQ(s.ending(), Ending::failed);
    EXPECT_EQ(s.failure().kind, FailureKind::application);
    EXPECT_EQ(s.failure().type, "CardDeclined");
    EXPECT_EQ(s.failure().message, "the bank said no");
    EXPECT_FALSE(s.failure().retryable);
}

TEST(EngineRequests, AnActivityIsScheduledWithItsNameAndArguments) {
    HOLDFAST_CHECK("runtime schedule_activity_creates_activity_scheduled_event");
    HOLDFAST_CHECK("runtime schedule_activity_pending");
    HOLDFAST_CHECK("runtime no_with_tag_leaves_none");
    Script s(program<&says_hello>(), R"(["Ann"])");
    s.turn();
    EXPECT_THAT(s.events(), ElementsAre("1 workflow_started", "2 activity_scheduled greet"));
    const ActivityScheduled expected{"greet", Payload{R"(["Ann"])"}, std::nullopt, std::nullopt};
    EXPECT_THAT(s.last().activities, ElementsAre(Pair(2, expected)));
    EXPECT_EQ(s.ending(), Ending::none);
}

TEST(EngineRequests, ATimerFiresFromTheTimeOfTheTurnThatAskedForIt) {
    HOLDFAST_CHECK("runtime schedule_timer_creates_timer_created_event");
    HOLDFAST_CHECK("runtime schedule_timer_pending");
    Script s(program<&sleeps>());
    s.turn();
    EXPECT_THAT(s.events(), ElementsAre("1 workflow_started", "2 timer_created"));
    EXPECT_THAT(s.last().timers, ElementsAre(Pair(2, 2000 + 5000)));
}

TEST(EngineRequests, AWaitIsWrittenDownAndSendsNothing) {
    HOLDFAST_CHECK("runtime schedule_wait_creates_external_subscribed_event");
    HOLDFAST_CHECK("runtime schedule_external_pending");
    Script signals(program<&awaits_go>());
    signals.turn();
    EXPECT_THAT(signals.events(), ElementsAre("1 workflow_started", "2 signal_awaited go"));
    Script messages(program<&reads_inbox>());
    messages.turn();
    EXPECT_THAT(messages.events(), ElementsAre("1 workflow_started", "2 message_awaited inbox"));
    EXPECT_THAT(messages.last().activities, IsEmpty());
    EXPECT_THAT(messages.last().timers, IsEmpty());
}

Workflow<Unit> asks_for_many(Context& ctx) {
    auto act = ctx.start(ctx.activity<&add>(1, 2));
    auto timer = ctx.start(ctx.sleep(1s));
    auto child = ctx.start(ctx.child<&sub>(1));
    auto wait = ctx.start(ctx.await_signal(go));
    ctx.detach<&sub>("audit-1", 7);
    ctx.status("started");
    co_await all(act.ref(), timer.ref(), child.ref(), wait.ref());
    co_return Unit{};
}

TEST(EngineRequests, EveryRequestBecomesItsEventInTheOrderOfAsking) {
    HOLDFAST_CHECK("runtime multiple_action_types_create_corresponding_events");
    HOLDFAST_CHECK("runtime multiple_schedules_no_await");
    HOLDFAST_CHECK("runtime sequential_allocation");
    HOLDFAST_CHECK("runtime pending_actions_have_correct_event_id");
    Script s(program<&asks_for_many>());
    s.turn();
    EXPECT_THAT(s.events(),
                ElementsAre("1 workflow_started",
                            "2 activity_scheduled add",
                            "3 timer_created",
                            "4 child_scheduled sub",
                            "5 signal_awaited go",
                            "6 workflow_detached sub",
                            "7 status_updated"));
    EXPECT_THAT(s.activities(), ElementsAre(2));
    ASSERT_EQ(s.last().timers.size(), 1U);
    EXPECT_EQ(s.last().timers[0].first, 3U);
    ASSERT_EQ(s.last().children.size(), 1U);
    EXPECT_EQ(s.last().children[0].first, 4U);
    EXPECT_EQ(s.last().status_changes, 1);
}

// --- children and detached workflows

TEST(EngineRequests, AChildGetsAnIdOfItsParentExecutionAndEvent) {
    HOLDFAST_CHECK("runtime schedule_sub_orchestration_creates_sub_orchestration_scheduled_event");
    HOLDFAST_CHECK("runtime schedule_sub_orch_pending");
    HOLDFAST_CHECK("runtime auto_instance_id");
    Script s(program<&waits_for_child>(), "[]", {.execution = 4});
    s.turn();
    ASSERT_EQ(s.last().children.size(), 1U);
    EXPECT_EQ(s.last().children[0].second.instance, "order-7::4.2");
    EXPECT_EQ(s.last().children[0].second.input.json, "[3]");
}

Workflow<int> names_its_child(Context& ctx) {
    const int result = co_await ctx.child<&sub>(1).id("invoice-9").version("2.0.0");
    co_return result;
}

TEST(EngineRequests, AChildKeepsTheIdAndVersionItWasGiven) {
    HOLDFAST_CHECK("runtime explicit_instance_preserved");
    HOLDFAST_CHECK("runtime sub_orchestration_uses_latest_by_default_and_pinned_when_set");
    Script pinned(program<&names_its_child>());
    pinned.turn();
    EXPECT_EQ(pinned.last().children[0].second.instance, "invoice-9");
    EXPECT_EQ(pinned.last().children[0].second.version, "2.0.0");
    Script open(program<&waits_for_child>());
    open.turn();
    EXPECT_EQ(open.last().children[0].second.version, "") << "the registry decides";
}

Workflow<int> has_two_children(Context& ctx) {
    auto both = co_await all(ctx.child<&sub>(1), ctx.child<&sub>(2));
    co_return std::get<0>(both) + std::get<1>(both);
}

TEST(EngineRequests, TwoChildrenHaveTwoIds) {
    HOLDFAST_CHECK("runtime multiple_sub_orchs_unique_ids");
    HOLDFAST_CHECK("runtime async_block_multiple_suborchestrations_joined");
    Script s(program<&has_two_children>());
    s.turn();
    EXPECT_EQ(s.last().children[0].second.instance, "order-7::1.2");
    EXPECT_EQ(s.last().children[1].second.instance, "order-7::1.3");
    s.turn(child_done(3, "20"), child_done(2, "10"));
    EXPECT_EQ(s.output(), "30");
}

TEST(EngineRequests, OnReplayAChildKeepsTheIdOfTheHistory) {
    HOLDFAST_CHECK("runtime replay_uses_history_instance");
    const std::vector<Event> history{
        started(), event(2, ChildScheduled{"sub", "an-older-scheme-2", Payload{"[3]"}, ""})};
    Script s(program<&waits_for_child>(), "[]", {.history = history});
    s.turn(terminate("enough"));
    EXPECT_THAT(s.last().cancelled_children,
                ElementsAre(Pair("an-older-scheme-2", "the parent has ended")));
}

Workflow<std::string> detaches_then_greets(Context& ctx) {
    ctx.detach<&sub>("audit-1", 7);
    std::string text = co_await ctx.activity<&greet>("Ann");
    co_return text;
}

TEST(EngineRequests, ADetachedWorkflowIsStartedAndNotWaitedFor) {
    HOLDFAST_CHECK("runtime schedule_orchestration_creates_orchestration_chained_event");
    HOLDFAST_CHECK("runtime detached_orchestration_then_activity_replays_correctly");
    Script s(program<&detaches_then_greets>());
    s.turn();
    EXPECT_THAT(s.last().detached,
                ElementsAre(WorkflowDetached{"sub", "audit-1", Payload{"[7]"}, ""}));
    s.turn(done(3, R"("hi")"));
    EXPECT_EQ(s.output(), R"("hi")");
    EXPECT_THAT(s.last().detached, IsEmpty());
}

Workflow<Unit> detaches_and_ends(Context& ctx) {
    ctx.detach<&sub>("audit-1", 7);
    auto unwanted = ctx.start(ctx.activity<&add>(1, 1));
    co_return Unit{};
}

TEST(EngineRequests, AtTheEndOnlyDetachedWorkflowsAreStillStarted) {
    Script s(program<&detaches_and_ends>());
    s.turn();
    EXPECT_EQ(s.ending(), Ending::completed);
    EXPECT_EQ(s.last().detached.size(), 1U);
    EXPECT_THAT(s.last().activities, IsEmpty());
    EXPECT_THAT(s.last().cancelled_activities, IsEmpty()) << "it was never sent";
}

// --- sessions and tags

Workflow<int> uses_session_and_tag(Context& ctx) {
    const int sum = co_await ctx.activity<&add>(1, 2).session("gpu-3").tag("fast");
    co_return sum;
}

TEST(EngineRequests, SessionAndTagTravelWithTheActivity) {
    // clang-format off: the mark stands in one line.
    HOLDFAST_CHECK("runtime schedule_activity_on_session_creates_activity_scheduled_event_with_session_id");
    // clang-format on
    HOLDFAST_CHECK("runtime with_tag_sets_tag_on_emitted_event");
    Script s(program<&uses_session_and_tag>());
    s.turn();
    const ActivityScheduled& sent = s.last().activities.at(0).second;
    EXPECT_EQ(sent.session, "gpu-3");
    EXPECT_EQ(sent.tag, "fast");
    s.turn(done(2, "3"));
    EXPECT_EQ(s.output(), "3");
}

Workflow<std::string> tags_a_timer(Context& ctx) {
    std::string said;
    try {
        co_await ctx.sleep(1s).tag("fast");
    } catch (const Failure& failure) {
        said = failure.type();
    }
    try {
        co_await ctx.activity<&add>(1, 2).tag(std::string(257, 'x'));
    } catch (const Failure& failure) {
        said += " " + failure.type();
    }
    try {
        co_await ctx.activity<&add>(1, 2).id("x");
    } catch (const Failure& failure) {
        said += " " + failure.type();
    }
    co_return said;
}

TEST(EngineRequests, ALabelThatDoesNotFitIsRefusedAtTheCall) {
    HOLDFAST_CHECK("runtime e2e_oversized_tag_fails_orchestration");
    Script s(program<&tags_a_timer>());
    s.turn();
    EXPECT_EQ(s.output(), R"("InvalidOperation InvalidOperation InvalidOperation")");
}

Workflow<std::string> names_versions(Context& ctx, std::string version) {
    std::string said;
    try {
        co_await ctx.child<&sub>(1).version(version);
    } catch (const Failure& failure) {
        said = failure.type() + ": " + failure.info().message;
    }
    try {
        ctx.detach_by_name("sub", "d", Payload{"[1]"}, version);
    } catch (const Failure& failure) {
        said += failure.type() == "InvalidOperation" ? " | detached" : " | " + failure.type();
    }
    co_return said;
}
Workflow<int> continues_as(Context&, std::string version) {
    co_return again(version).version(version);
}

// A child of a version that no registry can have would wait for its code until it is poison.
TEST(EngineRequests, AVersionThatNobodyCanHaveIsRefusedAtTheCall) {
    for (const char* wrong : {"abc",
                              "1",
                              "1.2",
                              "1.2.3.4",
                              "01.2.3",
                              "-1.0.0",
                              " 1.2.3",
                              "1.2.3-rc1",
                              "v1.2.3",
                              "99999999999.0.0",
                              "1..3"}) {
        Script s(program<&names_versions>(), "[\"" + std::string(wrong) + "\"]");
        s.turn();
        EXPECT_EQ(s.output(),
                  "\"InvalidOperation: '" + std::string(wrong) +
                      "' is not a version; write three numbers, for example 1.2.3 | detached\"");
        EXPECT_THAT(s.last().detached, IsEmpty());
        Script next(program<&continues_as>(), "[\"" + std::string(wrong) + "\"]");
        next.turn();
        ASSERT_EQ(next.ending(), Ending::failed) << wrong;
        EXPECT_EQ(next.failure().type, "InvalidOperation");
    }
    Script none(program<&names_versions>(), R"([""])");
    none.turn();
    EXPECT_THAT(none.output(), HasSubstr("'' is not a version")) << "leave it out instead";
    Script good(program<&names_versions>(), R"(["10.0.2147483647"])");
    good.turn();
    ASSERT_EQ(good.last().children.size(), 1U);
    EXPECT_EQ(good.last().children[0].second.version, "10.0.2147483647");
}

// --- a schedule that has no answer yet

TEST(EngineRequests, AScheduleWithoutAnAnswerStaysPendingOnReplay) {
    HOLDFAST_CHECK("runtime activity_scheduled_no_completion");
    HOLDFAST_CHECK("runtime timer_created_no_fire");
    HOLDFAST_CHECK("runtime external_subscribed_no_event");
    HOLDFAST_CHECK("runtime sub_orch_scheduled_no_completion");
    const std::vector<std::pair<detail::Program, EventBody>> cases{
        {program<&sleeps>(), TimerCreated{77}},
        {program<&awaits_go>(), SignalAwaited{"go"}},
        {program<&reads_inbox>(), MessageAwaited{"inbox"}},
        {program<&waits_for_child>(), ChildScheduled{"sub", "x", Payload{"[3]"}, ""}},
    };
    for (const auto& [code, schedule] : cases) {
        Script s(code, "[]", {.history = {started(), event(2, schedule)}});
        s.turn();
        EXPECT_THAT(s.events(), IsEmpty());
        EXPECT_EQ(s.ending(), Ending::none);
    }
    Script s(
        program<&says_hello>(), "", {.history = {started(R"(["Ann"])"), event(2, asks_greet())}});
    s.turn();
    EXPECT_THAT(s.events(), IsEmpty());
}

// --- edges

Workflow<Unit> naps_for_nothing(Context& ctx) {
    co_await ctx.sleep(0s);
    co_await ctx.sleep(-5s);
    co_await ctx.sleep_until(Moment{123456ms});
    co_return Unit{};
}

TEST(EngineRequests, ATimerOfNoLengthIsStillATimer) {
    HOLDFAST_CHECK("runtime zero_delay_timer");
    HOLDFAST_CHECK("runtime zero_duration_timer");
    Script s(program<&naps_for_nothing>());
    s.turn();
    EXPECT_THAT(s.last().timers, ElementsAre(Pair(2, 2000)));
    s.turn(fired(2));
    EXPECT_THAT(s.last().timers, ElementsAre(Pair(4, 3000))) << "a negative length is none";
    s.turn(fired(4));
    EXPECT_THAT(s.last().timers, ElementsAre(Pair(6, 123456)));
    s.turn(fired(6));
    EXPECT_EQ(s.ending(), Ending::completed);
}

Workflow<Payload> gives(Context& ctx, bool json) {
    const Payload input(json ? "[]" : "");
    Payload result = co_await ctx.activity("test.work", input);
    co_return result;
}

// Empty is "[]". A text of no bytes is not JSON and would make the history unreadable, so it is
// refused at once.
TEST(EngineRequests, AnEmptyInputIsCarriedAndOneThatIsNoJsonIsRefused) {
    HOLDFAST_CHECK("runtime empty_activity_input");
    Script empty(program<&gives>(), "[true]");
    empty.turn();
    ASSERT_EQ(empty.last().activities.size(), 1U);
    EXPECT_EQ(empty.last().activities[0].second.input.json, "[]");

    Script nothing(program<&gives>(), "[false]");
    nothing.turn();
    EXPECT_TRUE(nothing.last().activities.empty());
    EXPECT_NE(nothing.failure().message.find("not JSON"), std::string::npos);
}

TEST(EngineRequests, ALargeResultComesThroughWhole) {
    HOLDFAST_CHECK("runtime large_result_string");
    Script s(program<&says_hello>(), R"(["Ann"])");
    s.turn();
    const std::string large = '"' + std::string(payload_bytes_max - 2, 'x') + '"';
    s.turn(done(2, large));
    EXPECT_TRUE(s.output() == large) << "as large as a value may be";
}

TEST(EngineRequests, AResultThatIsTooLargeFailsByName) {
    Script s(program<&says_hello>(), R"(["Ann"])");
    s.turn();
    s.turn(done(2, '"' + std::string(payload_bytes_max, 'x') + '"'));
    ASSERT_EQ(s.ending(), Ending::failed);
    EXPECT_EQ(s.failure().type, "LimitExceeded");
}

int runs = 0;
Workflow<int> counts_its_runs(Context& ctx) {
    ++runs;
    const int a = co_await ctx.activity<&add>(1, 1);
    const int b = co_await ctx.activity<&add>(a, a);
    co_return b;
}

// The code is not run again in every turn: it goes on where it stood.
TEST(EngineRequests, AKeptExecutionRunsItsCodeOnceForAllTurns) {
    HOLDFAST_CHECK("runtime handler_invoked_once");
    HOLDFAST_CHECK("runtime handler_invoked_once_during_replay");
    runs = 0;
    Execution kept("order-7", 1, program<&counts_its_runs>());
    kept.begin(start());
    std::vector<Event> history = kept.turn(Moment{1000ms}, {}).events;
    const std::vector<Message> answers{done(2, "2")};
    const Turn second = kept.turn(Moment{2000ms}, answers);
    EXPECT_EQ(runs, 1);
    history.insert(history.end(), second.events.begin(), second.events.end());
    Execution rebuilt("order-7", 1, program<&counts_its_runs>());
    rebuilt.load(history);
    EXPECT_EQ(runs, 1) << "loading runs nothing";
    (void)rebuilt.turn(Moment{3000ms}, {});
    EXPECT_EQ(runs, 2);
}

TEST(EngineRequests, ATurnAddsToTheHistoryAndRepeatsNothingOfIt) {
    HOLDFAST_CHECK("runtime made_progress_after_completion");
    HOLDFAST_CHECK("runtime final_history_combines_baseline_and_delta");
    HOLDFAST_CHECK("runtime allocation_after_replay");
    Script s(program<&counts_its_runs>());
    s.turn();
    s.turn(done(2, "2"));
    EXPECT_THAT(s.events(), ElementsAre("3 activity_completed<-2", "4 activity_scheduled add"));
    s.turn();
    EXPECT_THAT(s.events(), IsEmpty());
    s.turn(done(4, "4"));
    EXPECT_THAT(brief(s.history()),
                ElementsAre("1 workflow_started",
                            "2 activity_scheduled add",
                            "3 activity_completed<-2",
                            "4 activity_scheduled add",
                            "5 activity_completed<-4",
                            "6 workflow_completed 4"));
}

TEST(EngineRequests, NewEventsComeAfterTheHighestOfAHistoryWithGaps) {
    HOLDFAST_CHECK("runtime allocation_with_gaps");
    const EventBody asks = ActivityScheduled{"add", Payload{"[1,1]"}, {}, {}};
    Script s(
        program<&counts_its_runs>(),
        "[]",
        {.history = {started(), event(5, asks), event(17, ActivityCompleted{Payload{"2"}}, 5)}});
    s.turn();
    EXPECT_THAT(s.events(), ElementsAre("18 activity_scheduled add"));
}

}  // namespace
}  // namespace holdfast::flow::tests
