// An execution that began with the events of another.
#include "replay/test/engine_fixture.hpp"

namespace holdfast::flow::tests {
namespace {

Workflow<std::string> draws(Context& ctx) {
    const std::string number = std::to_string(ctx.random());
    std::string text = co_await ctx.activity<&greet>(number);
    co_return text;
}

Workflow<std::string> changed(Context& ctx) {
    std::string text = co_await ctx.activity<&greet>("Ann");
    if (ctx.patched("louder")) {
        std::string again = co_await ctx.activity<&greet>(text);
        co_return again;
    }
    co_return text;
}

Workflow<int> has_a_child(Context& ctx) {
    int answer = co_await ctx.child<&sub>(7);
    co_return answer;
}

// The same events, as the beginning of the execution after `resets`.
std::vector<Event> copied(std::vector<Event> events, std::vector<ResetPoint> resets) {
    std::get<WorkflowStarted>(events.front().body).resets = std::move(resets);
    return events;
}

TEST(EngineReset, RandomNumbersAreThoseOfTheFirstExecution) {
    Script first(program<&draws>());
    first.turn();
    const std::vector<Event> events = first.history();

    const auto difference = check_replay("order-7", program<&draws>(), events, {}, 2);
    EXPECT_TRUE(difference.has_value()) << "another execution draws other numbers";
    Script second(
        program<&draws>(), "[]", {.execution = 3, .history = copied(events, {{1, 2}, {2, 2}})});
    second.turn();
    EXPECT_EQ(second.ending(), Ending::none) << second.output();
    second.turn(done(2, R"("hi")", 3));
    EXPECT_EQ(second.output(), R"("hi")");
}

// Changed code that continues from an earlier point has not passed the change before.
TEST(EngineReset, CodeAfterThePointIsNew) {
    Script first(program<&changed>());
    first.turn();
    first.turn(done(2, R"("hi")"));
    std::vector<Event> events = first.history();
    events.resize(3);  // Up to the answer.
    EXPECT_EQ(over(program<&changed>(), events).ending, Ending::completed)
        << "a history that is merely short was written by code without the change";

    Script second(program<&changed>(), "[]", {.execution = 2, .history = copied(events, {{1, 3}})});
    second.turn();
    EXPECT_THAT(second.events(),
                ElementsAre("4 patch_recorded louder", "5 activity_scheduled greet"));
    second.turn(done(5, R"("HI")", 2));
    EXPECT_EQ(second.output(), R"("HI")");
}

TEST(EngineReset, AChildAnswersWhoeverHasTheEventThatStartedIt) {
    Script first(program<&has_a_child>());
    first.turn();
    const std::vector<Event> events = first.history();
    const auto answer = [](ExecutionId execution, EventId event) {
        return Message{execution, ChildAnswer{event, Payload{"49"}}};
    };

    Script second(program<&has_a_child>(),
                  "[]",
                  {.execution = 3, .history = copied(events, {{1, 2}, {2, 2}})});
    second.turn(answer(4, 2), answer(9, 2));
    EXPECT_THAT(second.events(), IsEmpty()) << "of an execution that has nothing to do with it";
    second.turn(answer(1, 3));
    EXPECT_THAT(second.events(), IsEmpty()) << "of an event that was not copied";
    second.turn(Message{1, ActivityAnswer{2, Payload{"49"}}});
    EXPECT_THAT(second.events(), IsEmpty()) << "activities run again, and answer for themselves";
    second.turn(answer(1, 2));
    EXPECT_EQ(second.output(), "49");
}

}  // namespace
}  // namespace holdfast::flow::tests
