// Damaged and strange histories: refused or carried, never guessed at.
#include "replay/test/engine_fixture.hpp"

namespace holdfast::flow::tests {
namespace {

TEST(EngineCorruption, AnEmptyHistoryIsNoHistory) {
    HOLDFAST_CHECK("runtime empty_history");
    EXPECT_DEATH(
        {
            Execution execution("order-7", 1, program<&greets>());
            execution.load({});
        },
        "history");
    EXPECT_TRUE(check_replay("order-7", program<&greets>(), {}).has_value());
}

TEST(EngineCorruption, AHistoryThatDoesNotBeginWithItsStartFails) {
    HOLDFAST_CHECK("runtime missing_started_event");
    HOLDFAST_CHECK("runtime started_not_first");
    for (const std::vector<Event>& history :
         {std::vector<Event>{event(1, asks_greet())},
          std::vector<Event>{event(1, asks_greet()), event(2, start())},
          std::vector<Event>{started(), event(2, start())}}) {
        const Turn turn = over(program<&greets>(), history);
        EXPECT_EQ(turn.ending, Ending::failed);
        EXPECT_EQ(turn.failure().kind, FailureKind::nondeterminism);
        EXPECT_GT(turn.events.back().id, history.back().id);
    }
}

TEST(EngineCorruption, IdsMayHaveGapsAndStandInAnyOrder) {
    HOLDFAST_CHECK("runtime event_id_gap");
    HOLDFAST_CHECK("runtime non_monotonic_event_ids");
    const Turn gap = over(program<&greets>(), {started(), event(40, asks_greet())});
    EXPECT_EQ(gap.ending, Ending::none);
    const Turn turned = over(
        program<&greets>(),
        {started(), event(9, asks_greet()), event(4, ActivityCompleted{Payload{R"("hi")"}}, 9)});
    EXPECT_THAT(brief(turned.events), ElementsAre(R"(10 workflow_completed "hi")"))
        << "new events come after the highest";
}

// 0 means "none", so a start must be event 1.
TEST(EngineCorruption, TheStartIsEventOne) {
    HOLDFAST_CHECK("runtime event_id_zero");
    const Turn turn = over(program<&greets>(), {event(0, start()), event(2, asks_greet())});
    EXPECT_EQ(turn.ending, Ending::failed);
    EXPECT_EQ(turn.failure().kind, FailureKind::nondeterminism);
}

TEST(EngineCorruption, AHistoryThatHasEndedIsLeftAlone) {
    HOLDFAST_CHECK("runtime terminal_completed");
    HOLDFAST_CHECK("runtime terminal_failed");
    HOLDFAST_CHECK("runtime terminal_continued_as_new");
    HOLDFAST_CHECK("runtime multiple_terminal_events");
    HOLDFAST_CHECK("runtime events_after_terminal");
    HOLDFAST_CHECK("runtime cancel_after_completed");
    HOLDFAST_CHECK("runtime cancel_after_completion_is_noop");
    const std::vector<EventBody> ends{WorkflowCompleted{Payload{"1"}},
                                      WorkflowFailed{FailureInfo{.message = "no"}},
                                      WorkflowContinued{Payload{"[]"}, ""}};
    for (const EventBody& end : ends) {
        for (const std::vector<Event>& history :
             {std::vector<Event>{started(), event(2, end)},
              std::vector<Event>{started(), event(2, end), event(3, end)},
              std::vector<Event>{started(), event(2, end), event(3, asks_greet())}}) {
            const Turn turn = over(program<&greets>(), history, {cancel("too late"), done(3, "1")});
            EXPECT_THAT(turn.events, IsEmpty());
            EXPECT_EQ(turn.ending, Ending::none);
            EXPECT_THAT(turn.taken, ElementsAre(0, 1)) << "they are off the queue";
        }
    }
}

TEST(EngineCorruption, ASignalThatNobodyWaitedForIsNoContradiction) {
    HOLDFAST_CHECK("runtime orphan_external_event");
    const Turn turn = over(program<&greets>(),
                           {started(),
                            event(2, SignalReceived{"go", Payload{"1"}}),
                            event(3, MessageReceived{"inbox", Payload{"1"}}),
                            event(4, asks_greet())});
    EXPECT_EQ(turn.ending, Ending::none);
    EXPECT_THAT(turn.events, IsEmpty());
}

TEST(EngineCorruption, ARequestThatStandsTwiceIsFound) {
    HOLDFAST_CHECK("runtime duplicate_activity_schedule_in_history");
    HOLDFAST_CHECK("runtime duplicate_timer_schedule_in_history");
    HOLDFAST_CHECK("runtime duplicate_external_subscription_in_history");
    for (const EventBody& twice : {asks_greet(),
                                   EventBody(TimerCreated{1}),
                                   EventBody(SignalAwaited{"go"}),
                                   EventBody(MessageAwaited{"inbox"})}) {
        const Turn turn =
            over(program<&greets>(), {started(), event(2, asks_greet()), event(3, twice)});
        EXPECT_EQ(turn.failure().kind, FailureKind::nondeterminism);
    }
}

Workflow<Payload> by_name(Context& ctx, std::string name, std::string text) {
    Payload input{R"([")" + text + R"("])"};
    Payload result = co_await ctx.activity(name, input);
    co_return result;
}

TEST(EngineCorruption, NamesAndTextsAreCarriedAsTheyAre) {
    HOLDFAST_CHECK("runtime unicode_in_names");
    HOLDFAST_CHECK("runtime very_long_strings");
    HOLDFAST_CHECK("runtime special_characters");
    const std::vector<std::string> names{
        "привет 你好 🚀", std::string(256, 'n'), "a/b\\c\"d'e;--", "tab\tnew\nline"};
    const std::string text(100'000, 't');
    for (const std::string& name : names) {
        const std::string input = "[" + quote(name) + "," + quote(text) + "]";
        Script s(program<&by_name>(), input);
        s.turn();
        ASSERT_EQ(s.last().activities.size(), 1U);
        EXPECT_EQ(s.last().activities[0].second.name, name);
        EXPECT_EQ(s.last().activities[0].second.input.json, "[" + quote(text) + "]");
        s.turn(done(2, quote(name)));
        EXPECT_EQ(s.output(), quote(name));
    }
}

// No activity has an empty name, and a database has no room for a name of any length: either is the
// code's mistake, and is refused there.
TEST(EngineCorruption, ANameThatNobodyCanHaveFailsTheCodeThatSaysIt) {
    HOLDFAST_CHECK("runtime empty_activity_name");
    for (const std::string& name : {std::string(), std::string(257, 'n')}) {
        Script s(program<&by_name>(), "[" + quote(name) + "," + quote("x") + "]");
        s.turn();
        EXPECT_TRUE(s.last().activities.empty());
        EXPECT_EQ(s.failure().type, "InvalidOperation");
    }
}

}  // namespace
}  // namespace holdfast::flow::tests
