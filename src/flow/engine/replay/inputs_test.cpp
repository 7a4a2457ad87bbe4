// Inputs that are not those of the history: what a replay lets pass, and what it says about it.
#include "replay/test/engine_fixture.hpp"

#include <holdfast/base/log_capture.hpp>

namespace holdfast::flow::tests::inputs {
namespace {

constexpr const char* other_input = "event=\"an input is not the one in the history\"";
constexpr const char* other_fields = "event=\"a value has other fields than the history has\"";

// What the code under test asks for, with a policy that each test chooses.
constexpr const char* code_input = R"([{"city":"Ulm","id":7}])";
constexpr const char* grown = R"([{"id":7}])";
constexpr const char* changed = R"([{"city":"Bonn","id":7}])";

template <InputCheck Check>
Workflow<Payload> packs(Context& ctx) {
    const Payload input(code_input);
    Payload result = co_await ctx.activity("pack", input).input_check(Check);
    co_return result;
}
template <InputCheck Check>
Workflow<Payload> packs_often(Context& ctx) {
    const Payload input(code_input);
    Payload result = co_await ctx.activity("pack", input).input_check(Check).retry({.attempts = 2});
    co_return result;
}
template <InputCheck Check>
Workflow<Payload> packs_in_time(Context& ctx) {
    const Payload input(code_input);
    Payload result = co_await ctx.activity("pack", input)
                         .timeout(1h)
                         .retry({.attempts = 2, .per_try = 1min})
                         .input_check(Check);
    co_return result;
}
template <InputCheck Check>
Workflow<Payload> ships(Context& ctx) {
    const Payload input(code_input);
    Payload result = co_await ctx.child("ship", input).input_check(Check).id("ship-1");
    co_return result;
}
template <InputCheck Check>
Workflow<Payload> audits(Context& ctx) {
    ctx.detach_by_name("audit", "audit-1", Payload{code_input}, "").input_check(Check);
    co_await ctx.sleep(1s);
    co_return Payload{};
}

EventBody pack(const char* input) {
    return ActivityScheduled{"pack", Payload{input}, std::nullopt, std::nullopt};
}
EventBody ship(const char* input) {
    return ChildScheduled{"ship", "ship-1", Payload{input}, ""};
}
EventBody audit(const char* input) {
    return WorkflowDetached{"audit", "audit-1", Payload{input}, ""};
}

std::vector<Event> history(std::string build, std::vector<EventBody> asked) {
    std::vector<Event> events{started()};
    events.front().build = std::move(build);
    for (EventBody& body : asked) {
        events.push_back(event(events.size() + 1, std::move(body)));
    }
    return events;
}

enum class Said : std::uint8_t { nothing, warning, failure };

// By a replay that goes on, and by one that only checks: both must say the same.
Said said(detail::Program code, const std::vector<Event>& events, const std::string& build) {
    CapturingLogger log;
    Execution execution("order-7", 1, code, {}, &log, build);
    execution.load(decode_events(encode(events)));
    const Turn turn = execution.turn(Moment{5000ms}, {});
    CapturingLogger check_log;
    const auto difference = check_replay("order-7", code, events, {}, 1, build, &check_log);
    EXPECT_EQ(difference.has_value(), turn.ending == Ending::failed);
    EXPECT_EQ(check_log.lines(), log.lines());
    if (turn.ending == Ending::failed) {
        EXPECT_EQ(turn.failure().kind, FailureKind::nondeterminism);
        EXPECT_THAT(log.lines(), IsEmpty());
        return Said::failure;
    }
    EXPECT_THAT(brief(turn.events), IsEmpty()) << "it goes on as if nothing were";
    return log.lines().empty() ? Said::nothing : Said::warning;
}

using Operation = std::pair<detail::Program, std::vector<EventBody> (*)(const char*)>;

template <InputCheck Check>
std::vector<Operation> operations() {
    return {{program<&packs<Check>>(), [](const char* in) { return std::vector{pack(in)}; }},
            {program<&packs_often<Check>>(), [](const char* in) { return std::vector{pack(in)}; }},
            {program<&packs_in_time<Check>>(),
             [](const char* in) { return std::vector<EventBody>{pack(in), TimerCreated{1}}; }},
            {program<&ships<Check>>(), [](const char* in) { return std::vector{ship(in)}; }},
            {program<&audits<Check>>(),
             [](const char* in) { return std::vector<EventBody>{audit(in), TimerCreated{1}}; }}};
}

struct Expected {
    Said fields;  // Came or went.
    Said value;   // Is another.
};

template <InputCheck Check>
void expect_table(const std::string& recorded, const std::string& build, Expected expected) {
    for (const auto& [code, asked] : operations<Check>()) {
        EXPECT_EQ(said(code, history(recorded, asked(code_input)), build), Said::nothing);
        EXPECT_EQ(said(code, history(recorded, asked(grown)), build), expected.fields);
        EXPECT_EQ(said(code, history(recorded, asked(changed)), build), expected.value);
    }
}

// The table of input_check.hpp, for everything that has an input.
TEST(EngineInputs, ThePolicyOfTheOperationDecides) {
    constexpr Expected as_ever{Said::warning, Said::failure};
    constexpr Expected told{Said::warning, Said::warning};
    constexpr Expected never{Said::failure, Said::failure};
    constexpr Expected whatever{Said::nothing, Said::nothing};
    for (const std::string recorded : {"", "a1", "b2"}) {
        for (const std::string build : {"", "a1", "b2"}) {
            const bool other = !recorded.empty() && !build.empty() && recorded != build;
            SCOPED_TRACE(testing::Message()
                         << "recorded by '" << recorded << "', replayed by '" << build << "'");
            expect_table<InputCheck::by_build>(recorded, build, other ? told : as_ever);
            expect_table<InputCheck::strict>(recorded, build, never);
            expect_table<InputCheck::warn>(recorded, build, told);
            expect_table<InputCheck::ignore>(recorded, build, whatever);
        }
    }
}

// What another build may do is limited to inputs.
TEST(EngineInputs, NamesAndKindsAreComparedWhateverThePolicy) {
    const auto expect_failure = [](detail::Program code, const EventBody& body) {
        EXPECT_EQ(said(code, history("a1", {body}), "b2"), Said::failure) << kind_name(body);
    };
    const auto code = program<&packs<InputCheck::ignore>>();
    const Payload input{code_input};
    expect_failure(code, ActivityScheduled{"wrap", input, std::nullopt, std::nullopt});
    expect_failure(code, ActivityScheduled{"pack", input, "s", std::nullopt});
    expect_failure(code, ActivityScheduled{"pack", input, std::nullopt, "t"});
    expect_failure(code, ChildScheduled{"pack", "p", input, ""});
    expect_failure(program<&ships<InputCheck::ignore>>(), ChildScheduled{"x", "y", input, ""});
    const auto audits_any = program<&audits<InputCheck::ignore>>();
    expect_failure(audits_any, WorkflowDetached{"audit", "audit-2", input, ""});
    expect_failure(audits_any, WorkflowDetached{"other", "audit-1", input, ""});
}

Workflow<Unit> keeps_a_key(Context& ctx) {
    ctx.kv().set("total", 7);
    co_await ctx.sleep(1s);
    co_return Unit{};
}

// Others read what is stored: a workflow that believes in another value would contradict it.
TEST(EngineInputs, ValuesOfKeysAreNoInputs) {
    const auto code = program<&keeps_a_key>();
    EXPECT_EQ(said(code, history("a1", {KvSet{"total", Payload{"7"}}, TimerCreated{1}}), "b2"),
              Said::nothing);
    EXPECT_EQ(said(code, history("a1", {KvSet{"total", Payload{"8"}}, TimerCreated{1}}), "b2"),
              Said::failure);
}

Workflow<std::string> greets_three(Context& ctx) {
    co_await ctx.activity<&greet>("Ann");
    co_await ctx.activity<&greet>("Bob");
    std::string last = co_await ctx.activity<&greet>("Cid");
    co_return last;
}

// A release in the middle of a life: only what the old build wrote is looked at with leniency.
TEST(EngineInputs, WhatABuildWroteItselfIsComparedStrictly) {
    Script old(program<&greets_three>(), "[]", {.build = "a1"});
    old.turn();
    EXPECT_EQ(old.history().at(0).build, "a1");
    EXPECT_EQ(old.history().at(1).build, "") << "nothing is said twice";
    old.turn(done(2, R"("hi")"));
    Script now(program<&greets_three>(), "[]", {.history = old.history(), .build = "b2"});
    now.turn(done(4, R"("hi")"));
    ASSERT_THAT(now.events(), ElementsAre("5 activity_completed<-4", "6 activity_scheduled greet"));
    EXPECT_EQ(now.last().events.at(0).build, "b2");
    EXPECT_EQ(now.last().events.at(1).build, "");

    const auto with_input = [&](std::size_t at, const char* json) {
        std::vector<Event> events = now.history();
        std::get<ActivityScheduled>(events.at(at).body).input = Payload{json};
        return events;
    };
    const auto code = program<&greets_three>();
    EXPECT_EQ(said(code, with_input(1, R"(["Eve"])"), "b2"), Said::warning);
    EXPECT_EQ(said(code, with_input(3, R"(["Eve"])"), "b2"), Said::warning);
    EXPECT_EQ(said(code, with_input(5, R"(["Eve"])"), "b2"), Said::failure);
    // A machine that was not upgraded yet: the other way round.
    EXPECT_EQ(said(code, with_input(1, R"(["Eve"])"), "a1"), Said::failure);
    EXPECT_EQ(said(code, with_input(5, R"(["Eve"])"), "a1"), Said::warning);
}

TEST(EngineInputs, ABuildIsRecordedWhereItChangesAndNowhereElse) {
    const auto marks = [](const std::vector<Event>& events) {
        std::vector<std::string> found;
        for (const Event& event : events) {
            if (!event.build.empty()) {
                found.push_back(std::to_string(event.id) + " " + event.build);
            }
        }
        return found;
    };
    const auto code = program<&greets_three>();
    Script first(code);
    first.turn();
    EXPECT_THAT(marks(first.history()), IsEmpty()) << "a build that has no name";
    Script second(code, "[]", {.history = first.history(), .build = "a1"});
    second.turn(done(2, R"("hi")"));
    EXPECT_THAT(marks(second.history()), ElementsAre("3 a1"));
    Script third(code, "[]", {.history = second.history(), .build = "b2"});
    third.turn(done(4, R"("hi")"));
    third.turn(done(6, R"("hi")"));
    EXPECT_THAT(marks(third.history()), ElementsAre("3 a1", "5 b2"));
    EXPECT_EQ(third.ending(), Ending::completed);
}

// The warning is for people: it names both builds, and a long history does not fill the log.
TEST(EngineInputs, EachSortOfDifferenceIsToldOnce) {
    CapturingLogger log;
    std::vector<Event> events = history("a1", {asks_greet(R"(["Xan"])")});
    events.push_back(event(3, ActivityCompleted{Payload{R"("hi")"}}, 2));
    events.push_back(event(4, asks_greet(R"(["Yan"])")));
    Execution execution("order-7", 1, program<&greets_three>(), {}, &log, "b2");
    execution.load(events);
    EXPECT_EQ(execution.turn(Moment{5000ms}, {}).ending, Ending::none);
    ASSERT_EQ(log.lines().size(), 1U);
    EXPECT_EQ(log.count(other_input), 1U);
    EXPECT_EQ(log.count("instance=order-7 event=2 build=b2 recorded_build=a1"), 1U)
        << log.lines().front();
    EXPECT_EQ(log.count(other_fields), 0U);
}

Workflow<Unit> checks_a_timer(Context& ctx) {
    co_await ctx.sleep(1s).input_check(InputCheck::ignore);
    co_return Unit{};
}
Workflow<Unit> checks_too_late(Context& ctx) {
    const Payload input(code_input);
    Op<Payload> operation = ctx.activity("pack", input);
    co_await operation;
    co_await std::move(operation).input_check(InputCheck::ignore);
    co_return Unit{};
}

TEST(EngineInputs, WhatHasNoInputHasNoPolicy) {
    Script timer(program<&checks_a_timer>());
    timer.turn();
    EXPECT_EQ(timer.failure().type, "InvalidOperation");
    EXPECT_THAT(timer.failure().message, HasSubstr("only activities and children"));
    Script late(program<&checks_too_late>());
    late.turn();
    late.turn(done(2, "1"));
    EXPECT_EQ(late.failure().type, "InvalidOperation");
}

// Histories from before builds were recorded, and those of a program that does not say.
TEST(EngineInputs, ARecordedBuildIsOneOptionalField) {
    Event event{.id = 3, .source = 2, .time_ms = 9, .body = TimerFired{}, .build = "0a1b2c"};
    EXPECT_EQ(encode(event),
              R"({"id":3,"source":2,"time_ms":9,"build":"0a1b2c","kind":"timer_fired"})");
    EXPECT_EQ(decode_event(encode(event)), event);
    event.build.clear();
    EXPECT_EQ(encode(event), R"({"id":3,"source":2,"time_ms":9,"kind":"timer_fired"})");
    EXPECT_EQ(decode_event(encode(event)), event);
}

}  // namespace
}  // namespace holdfast::flow::tests::inputs
