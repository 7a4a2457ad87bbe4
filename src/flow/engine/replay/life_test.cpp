// The life of an execution: replaying, continuing as new, patches, limits, queries and updates.
#include "replay/test/engine_fixture.hpp"

#include <holdfast/base/log.hpp>
#include <holdfast/base/log_capture.hpp>

namespace holdfast::flow::tests {
namespace {

// --- replaying

std::vector<bool> flags;
Workflow<int> notes_replaying(Context& ctx) {
    flags.push_back(ctx.replaying());
    co_await ctx.activity<&add>(1, 1);
    flags.push_back(ctx.replaying());
    co_await ctx.activity<&add>(2, 2);
    flags.push_back(ctx.replaying());
    co_return 1;
}

TEST(EngineLife, TheCodeKnowsWhetherItRunsOverWhatHasHappened) {
    HOLDFAST_CHECK("runtime fresh_execution_not_replaying");
    HOLDFAST_CHECK("runtime replay_is_replaying");
    HOLDFAST_CHECK("runtime transitions_after_history");
    flags.clear();
    Execution kept("order-7", 1, program<&notes_replaying>());
    kept.begin(start());
    std::vector<Event> history = kept.turn(Moment{1000ms}, {}).events;
    EXPECT_THAT(flags, ElementsAre(false));
    const std::vector<Message> first{done(2, "2")};
    const Turn second = kept.turn(Moment{2000ms}, first);
    history.insert(history.end(), second.events.begin(), second.events.end());
    EXPECT_THAT(flags, ElementsAre(false, false));

    flags.clear();
    Execution rebuilt("order-7", 1, program<&notes_replaying>());
    rebuilt.load(history);
    const std::vector<Message> answer{done(4, "4")};
    EXPECT_EQ(rebuilt.turn(Moment{3000ms}, answer).ending, Ending::completed);
    EXPECT_THAT(flags, ElementsAre(true, true, false));
}

class Lines final : public Logger {
public:
    [[nodiscard]] bool enabled(Level) const noexcept override { return true; }
    void write(Level, std::string_view event, std::initializer_list<Field>) override {
        lines.emplace_back(event);
    }
    std::vector<std::string> lines;
};

Workflow<bool> logs_and_patches(Context& ctx) {
    ctx.log().info("began");
    const bool changed = ctx.patched("round up");
    co_await ctx.sleep(1s);
    ctx.log().info("woke");
    co_return changed;
}

// The dangerous moment: the execution before has written the first events of this one, so there is
// a history, but no code has run over it.
TEST(EngineLife, TheFirstTurnOfAContinuedExecutionIsNoReplay) {
    HOLDFAST_CHECK("runtime fresh_start_with_zero_persisted");
    Lines log;
    Execution execution("order-7", 2, program<&logs_and_patches>(), {}, &log);
    execution.load({started(), event(2, MessageReceived{"inbox", Payload{"1"}})});
    const Turn turn = execution.turn(Moment{5000ms}, {});
    EXPECT_THAT(log.lines, ElementsAre("began"));
    EXPECT_THAT(brief(turn.events), ElementsAre("3 patch_recorded round up", "4 timer_created"));
}

TEST(EngineLife, TheLogIsSilentWhileReplaying) {
    Script s(program<&logs_and_patches>());
    s.turn();
    Lines log;
    Execution rebuilt("order-7", 1, program<&logs_and_patches>(), {}, &log);
    rebuilt.load(s.history());
    const std::vector<Message> timer{fired(3)};
    EXPECT_EQ(rebuilt.turn(Moment{9000ms}, timer).output().json, "true");
    EXPECT_THAT(log.lines, ElementsAre("woke"));
}

// --- patches

Workflow<std::string> patched_loop(Context& ctx) {
    std::string said;
    for (int i = 0; i < 3; ++i) {
        said += ctx.patched("v2") ? "new " : "old ";
        co_await ctx.sleep(1s);
    }
    co_return said;
}
Workflow<std::string> loop_before_the_patch(Context& ctx) {
    std::string said;
    for (int i = 0; i < 3; ++i) {
        said += "old ";
        co_await ctx.sleep(1s);
    }
    co_return said;
}

TEST(EngineLife, AnExecutionThatBeginsWithAChangeSeesItEverywhere) {
    Script s(program<&patched_loop>());
    s.turn();
    EXPECT_THAT(s.events(),
                ElementsAre("1 workflow_started", "2 patch_recorded v2", "3 timer_created"));
    s.turn(fired(3));
    s.turn(fired(5));
    s.turn(fired(7));
    EXPECT_EQ(s.output(), R"("new new new ")");
}

TEST(EngineLife, AnExecutionThatPassedThePointBeforeTheChangeKeepsToTheOldWay) {
    Script old(program<&loop_before_the_patch>());
    old.turn();
    old.turn(fired(2));
    Script s(program<&patched_loop>(), "[]", {.history = old.history()});
    s.turn(fired(4));
    EXPECT_THAT(s.events(), ElementsAre("5 timer_fired<-4", "6 timer_created"));
    s.turn(fired(6));
    EXPECT_EQ(s.output(), R"("old old old ")") << "the answer stays what it was at first";
}

Workflow<std::string> patched_later(Context& ctx) {
    co_await ctx.sleep(1s);
    co_return ctx.patched("v2") ? "new" : "old";
}

TEST(EngineLife, AnExecutionThatHasNotReachedThePointYetTakesTheNewWay) {
    Script old(program<&loop_before_the_patch>());
    old.turn();
    Script s(program<&patched_later>(), "[]", {.history = old.history()});
    s.turn(fired(2));
    EXPECT_EQ(s.output(), R"("new")");
}

TEST(EngineLife, ACodeThatDropsAPatchItsHistoryHasIsNondeterministic) {
    Script s(program<&patched_loop>());
    s.turn();
    const Turn turn = over(program<&loop_before_the_patch>(), s.history());
    EXPECT_EQ(turn.failure().kind, FailureKind::nondeterminism);
    EXPECT_THAT(turn.failure().message, HasSubstr("patch_recorded 'v2'"));
}

// --- continuing as new

Workflow<int> counts_down(Context& ctx, int n, std::string carry) {
    if (n == 0) {
        co_return 7;
    }
    co_await ctx.sleep(1s);
    co_return again(n - 1, carry + "x");
}

TEST(EngineLife, AgainEndsTheExecutionWithTheInputOfTheNext) {
    HOLDFAST_CHECK("runtime continue_as_new");
    HOLDFAST_CHECK("runtime continue_as_new_multiexec");
    Script s(program<&counts_down>(), R"([2,"a"])");
    s.turn();
    s.turn(fired(2));
    EXPECT_EQ(s.ending(), Ending::continued);
    EXPECT_EQ(s.last().continued().input.json, R"([1,"ax"])");
    EXPECT_EQ(s.last().continued().version, "");
    Script last(program<&counts_down>(), R"([0,"axx"])", {.execution = 3});
    last.turn();
    EXPECT_EQ(last.output(), "7");
}

Workflow<int> continues_at_once(Context&, int n) {
    if (n > 0) {
        co_return 1;
    }
    co_return again(n + 1).version("2.0.0");
}

TEST(EngineLife, TheNextExecutionMayHaveAnotherVersion) {
    HOLDFAST_CHECK("runtime continue_as_new_without_await");
    HOLDFAST_CHECK("runtime continue_as_new_versioned_typed_explicit");
    Script s(program<&continues_at_once>(), "[0]");
    s.turn();
    EXPECT_THAT(s.events(), ElementsAre("1 workflow_started", "2 workflow_continued [1]"));
    EXPECT_EQ(s.last().continued().version, "2.0.0");
}

Workflow<int> child_then_again(Context& ctx, int n) {
    int more = co_await ctx.child<&sub>(n);
    ctx.detach<&sub>("audit-1", 1);
    co_return again(n + more);
}

// Detached starts of the turn that continues must not be forgotten.
TEST(EngineLife, WhatWasDetachedInTheLastTurnIsStarted) {
    HOLDFAST_CHECK("runtime sub_orch_then_continue_as_new");
    Script s(program<&child_then_again>(), "[1]");
    s.turn();
    s.turn(child_done(2, "4"));
    EXPECT_EQ(s.last().continued().input.json, "[5]");
    EXPECT_EQ(s.last().detached.size(), 1U);
}

Workflow<int> reads_one_and_continues(Context& ctx, int n) {
    co_await ctx.receive(inbox);
    co_return again(n + 1);
}

TEST(EngineLife, UnreadMessagesAreCarriedAndLaterOnesLeftForTheNext) {
    HOLDFAST_CHECK("runtime continue_as_new_event_routes_to_latest");
    Script s(program<&reads_one_and_continues>(), "[0]");
    s.turn(mail("outbox", R"("o")"),
           mail("inbox", R"("1")"),
           mail("inbox", R"("2")"),
           done(77, "1", 5),
           query("q", "progress"));
    EXPECT_EQ(s.ending(), Ending::continued);
    EXPECT_THAT(s.last().carried, ElementsAre(MessageReceived{"outbox", Payload{R"("o")"}}));
    EXPECT_THAT(s.last().taken, ElementsAre(0, 1, 3)) << "the second belongs to the next execution";
}

Task<int> helper_says_again(Context& ctx, int n) {
    co_await ctx.sleep(0s);
    co_return again(n);
}
Workflow<int> awaits_helper(Context& ctx, int n) {
    try {
        int more = co_await helper_says_again(ctx, n);
        co_return more;
    } catch (const Failure& failure) {
        if (n == 1) {
            throw;
        }
    }
    co_return 5;
}

TEST(EngineLife, OnlyTheWorkflowItselfContinuesAsNew) {
    Script caught(program<&awaits_helper>(), "[0]");
    caught.turn();
    caught.turn(fired(2));
    EXPECT_EQ(caught.output(), "5");
    Script thrown(program<&awaits_helper>(), "[1]");
    thrown.turn();
    thrown.turn(fired(2));
    EXPECT_EQ(thrown.ending(), Ending::failed);
    EXPECT_EQ(thrown.failure().type, "InvalidOperation");
}

// --- limits

Workflow<int> asks_until_refused(Context& ctx) {
    int refused = 0;
    for (int i = 0; i < 7; ++i) {
        try {
            ctx.kv().set("k" + std::to_string(i), i);
        } catch (const Failure&) {
            ++refused;
        }
    }
    try {
        co_await ctx.sleep(1s);
    } catch (const Failure&) {
        ++refused;
    }
    co_return refused * 100 + static_cast<int>(ctx.kv().all().size());
}
Workflow<int> asks_in_two_turns(Context& ctx) {
    ctx.kv().set("a", 1);
    ctx.kv().set("b", 1);
    ctx.kv().set("c", 1);
    co_await ctx.sleep(1s);
    int refused = 0;
    for (int i = 0; i < 6; ++i) {
        try {
            ctx.kv().set("k" + std::to_string(i), i);
        } catch (const Failure&) {
            ++refused;
        }
    }
    co_return refused;
}

// The dangerous moment: the code lives on after the refusal, and a replay must refuse the same
// call.
TEST(EngineLife, ATurnHasABoundOnWhatIsAskedForAlsoOnReplay) {
    Script once(program<&asks_until_refused>(),
                "[]",
                {.limits = {.actions_per_turn = 5}, .checked = false});
    once.turn();
    EXPECT_EQ(once.output(), "305");
    Script twice(
        program<&asks_in_two_turns>(), "[]", {.limits = {.actions_per_turn = 4}, .checked = false});
    twice.turn();
    twice.turn(fired(5));
    EXPECT_EQ(twice.output(), "2") << "every turn begins anew";
}

Workflow<std::string> watches_its_length(Context& ctx) {
    std::string said;
    for (int i = 0; i < 4; ++i) {
        said += ctx.suggest_continue_as_new() ? "long " : "short ";
        co_await ctx.activity<&greet>(said);
    }
    co_return said;
}

// What the code is told here decides what it asks for: a replay must be told the same.
TEST(EngineLife, TheLengthOfAHistoryIsWhatItWasWhenTheCodeAsked) {
    Script events(
        program<&watches_its_length>(), "[]", {.limits = {.events_soft = 4}, .checked = false});
    events.turn();
    for (const EventId id : {2U, 4U, 6U, 8U}) {
        events.turn(done(id, R"("x")"));
    }
    EXPECT_EQ(events.output(), R"("short short long long ")");

    Script bytes(
        program<&watches_its_length>(), "[]", {.limits = {.bytes_soft = 10'000}, .checked = false});
    bytes.turn();
    bytes.turn(done(2, '"' + std::string(11'000, 'x') + '"'));
    for (const EventId id : {4U, 6U, 8U}) {
        bytes.turn(done(id, R"("x")"));
    }
    EXPECT_EQ(bytes.output(), R"("short long long long ")");
}

// What passes the limit says so; those that come after it, replays and checks do not.
TEST(EngineLife, AHistoryThatBecomesLongIsToldOfOnce) {
    constexpr const char* told = "event=\"a history has become long";
    const ExecutionLimits limits{.events_max = 12, .events_soft = 4, .bytes_soft = 10'000};
    CapturingLogger log;
    std::vector<Event> history;
    const auto play = [&](Execution& execution, const std::vector<Message>& messages) {
        const Turn turn = execution.turn(Moment{1s}, messages);
        history.insert(history.end(), turn.events.begin(), turn.events.end());
    };
    const auto make = [&] {
        auto made =
            std::make_unique<Execution>("order-7", 1, program<&watches_its_length>(), limits, &log);
        history.empty() ? made->begin(start()) : made->load(history);
        return made;
    };
    std::unique_ptr<Execution> kept = make();
    play(*kept, {});
    EXPECT_EQ(log.count(told), 0U) << "two events";
    play(*kept, {done(2, R"("x")")});
    EXPECT_EQ(log.count(told), 1U) << "four";
    EXPECT_EQ(log.count("instance=order-7 workflow=under_test execution=1 events=4 events_max=12"),
              1U)
        << log.lines().front();
    kept = make();  // Another process takes over.
    play(*kept, {done(4, '"' + std::string(11'000, 'x') + '"')});
    play(*kept, {done(6, R"("x")")});
    EXPECT_EQ(log.count(told), 1U) << "nor a second time when it has many bytes as well";
    play(*kept, {done(8, R"("x")")});
    ASSERT_TRUE(kept->ended());
    (void)check_replay("order-7", program<&watches_its_length>(), history, {}, 1, "", &log);
    EXPECT_EQ(log.lines().size(), 1U);

    CapturingLogger short_log;
    Execution brief_one("o", 1, program<&greets>(), {.events_soft = 4}, &short_log);
    brief_one.begin(start());
    (void)brief_one.turn(Moment{1s}, {});
    const std::vector<Message> answer{done(2, R"("x")")};
    EXPECT_EQ(brief_one.turn(Moment{1s}, answer).ending, Ending::completed);
    EXPECT_THAT(short_log.lines(), IsEmpty()) << "its last event was the fourth: it is over";
}

Workflow<Unit> naps_for_ever(Context& ctx) {
    for (;;) {
        co_await ctx.sleep(1s);
    }
}

Workflow<Unit> reads_inbox_for_ever(Context& ctx) {
    for (;;) {
        co_await ctx.receive(inbox);
    }
}

TEST(EngineLife, AHistoryThatIsTooLongEndsTheInstance) {
    HOLDFAST_CHECK("runtime history_cap_exceeded_inmem");
    Script s(program<&naps_for_ever>(), "[]", {.limits = {.events_max = 5}, .checked = false});
    s.turn();
    s.turn(fired(2));
    s.turn(fired(4));
    EXPECT_EQ(s.failure().type, "HistoryTooLong");
    EXPECT_EQ(s.failure().kind, FailureKind::infrastructure);
    EXPECT_EQ(s.failure().message,
              "the history has more than 5 events; continue as new before that");
}

// Few events can be large ones.
TEST(EngineLife, AHistoryThatIsTooLargeEndsTheInstance) {
    Script s(program<&reads_inbox_for_ever>(),
             "[]",
             {.limits = {.bytes_max = 100'000}, .checked = false});
    s.turn();
    const std::string large = '"' + std::string(45'000, 'x') + '"';
    s.turn(mail("inbox", large));
    s.turn(mail("inbox", large));
    EXPECT_EQ(s.ending(), Ending::none);
    s.turn(mail("inbox", large));
    EXPECT_EQ(s.failure().type, "HistoryTooLong");
    EXPECT_EQ(s.failure().message,
              "the history has more than 100000 bytes; continue as new before that");
}

// --- queries and updates

inline constexpr Query<int()> total_query{"total"};
inline constexpr Query<int(int)> meddling_query{"meddle"};
inline constexpr Update<int(int)> add_update{"add"};

Workflow<int> keeps_a_total(Context& ctx) {
    int total = 0;
    ctx.on(total_query, [&total] { return total; });
    ctx.on(meddling_query, [&ctx](int how) {
        if (how == 0) {
            ctx.kv().set("k", 1);
        } else if (how == 1) {
            ctx.status("changed");
        } else if (how == 2) {
            (void)ctx.start(ctx.activity<&add>(1, 1));
        }
        const Shield shield = ctx.shield();
        return static_cast<int>(ctx.random() % 2);
    });
    ctx.on(add_update, [&total, &ctx](int n) {
        if (n < 0) {
            throw permanent("Negative", "only up");
        }
        total += n;
        ctx.kv().set("total", total);
        return total;
    });
    co_await ctx.receive(inbox);
    const std::uint64_t drawn = ctx.random();
    ctx.kv().set("drawn", std::to_string(drawn));
    co_await ctx.sleep(1s);
    co_return total;
}

TEST(EngineLife, AQueryIsAnsweredAndLeavesNoTrace) {
    Script s(program<&keeps_a_total>());
    s.turn(query("q1", "total"), query("q2", "unknown"));
    ASSERT_EQ(s.last().replies.size(), 2U);
    EXPECT_EQ(std::get<Payload>(s.last().replies[0].second).json, "0");
    EXPECT_EQ(std::get<FailureInfo>(s.last().replies[1].second).type, "NotHandled");
    s.turn(query("q3", "total"));
    EXPECT_THAT(s.events(), IsEmpty());
}

// A query that changed the memory of this process would split it from every replay.
TEST(EngineLife, AQueryCannotChangeAnything) {
    Script s(program<&keeps_a_total>());
    s.turn();
    s.turn(query("a", "meddle", "[0]"), query("b", "meddle", "[1]"), query("c", "meddle", "[2]"));
    for (const auto& [request, reply] : s.last().replies) {
        EXPECT_EQ(std::get<FailureInfo>(reply).type, "InvalidOperation") << request;
    }
    s.turn(query("d", "meddle", "[9]"));
    EXPECT_TRUE(std::holds_alternative<Payload>(s.last().replies[0].second));
    s.turn(mail("inbox", R"("x")"));
    EXPECT_EQ(s.last().kv.size(), 1U) << "and the next random number is that of a replay";
    EXPECT_FALSE(s.last().status.has_value());
}

TEST(EngineLife, AnUpdateChangesTheStateOnceAndIsAnsweredAgain) {
    Script s(program<&keeps_a_total>());
    s.turn();
    s.turn(update("u1", "add", "[4]"), update("u2", "add", "[-1]"), update("u1", "add", "[4]"));
    EXPECT_THAT(s.events(),
                ElementsAre("3 update_handled", "4 update_handled", "5 kv_set total=4"));
    ASSERT_EQ(s.last().replies.size(), 3U);
    EXPECT_EQ(std::get<Payload>(s.last().replies[0].second).json, "4");
    EXPECT_EQ(std::get<FailureInfo>(s.last().replies[1].second).type, "Negative");
    EXPECT_EQ(std::get<Payload>(s.last().replies[2].second).json, "4");
    s.turn(update("u1", "add", "[4]"), update("u3", "nothing", "[]"));
    EXPECT_THAT(s.events(), IsEmpty()) << "a repeat is answered from the history";
    s.turn(mail("inbox", R"("x")"));
    s.turn(fired(8));
    EXPECT_EQ(s.output(), "4");
}

// The dangerous moment: the handlers speak of variables of a coroutine that has just ended.
TEST(EngineLife, AfterTheCodeHasEndedItsHandlersAreNotCalled) {
    Script s(program<&keeps_a_total>());
    s.turn();
    s.turn(mail("inbox", R"("x")"));
    s.turn(fired(5), query("late", "total"), update("later", "add", "[1]"));
    EXPECT_EQ(s.output(), "0");
    ASSERT_EQ(s.last().replies.size(), 2U);
    for (const auto& [request, reply] : s.last().replies) {
        EXPECT_EQ(std::get<FailureInfo>(reply).type, "NotHandled") << request;
    }
}

TEST(EngineLife, SuspendingAndResumingAreWrittenDown) {
    Script s(program<&naps_for_ever>());
    s.turn();
    s.turn(Message{0, SuspendMessage{"a look at it"}});
    EXPECT_THAT(s.events(), ElementsAre("3 workflow_suspended"));
    EXPECT_EQ(s.last().suspended, true);
    s.turn(Message{0, ResumeMessage{}});
    EXPECT_EQ(s.last().suspended, false);
    s.turn(fired(2));
    EXPECT_THAT(s.events(), ElementsAre("5 timer_fired<-2", "6 timer_created"));
}

// --- time and chance: computed by the engine, without an activity

Workflow<std::string> uses_chance(Context& ctx) {
    const std::string first = ctx.uuid();
    const std::string second = ctx.uuid();
    const auto when = ctx.now();
    auto both = co_await all(ctx.activity<&greet>(first), ctx.sleep(1s));
    const std::string third = ctx.uuid();
    std::string text = co_await ctx.activity<&greet>(third);
    const auto later = ctx.now();
    co_return first + second + third + std::to_string((later - when).count());
}

TEST(EngineLife, TimeAndChanceAreTheSameOnReplay) {
    HOLDFAST_CHECK("runtime new_guid");
    HOLDFAST_CHECK("runtime utc_now_ms");
    HOLDFAST_CHECK("runtime system_calls_deterministic_replay");
    HOLDFAST_CHECK("runtime system_calls_join_with_activities");
    HOLDFAST_CHECK("runtime utc_now_as_activity_input_replays_correctly");
    HOLDFAST_CHECK("runtime new_guid_as_activity_input_replays_correctly");
    HOLDFAST_CHECK("runtime activity_then_syscall_ordering");
    HOLDFAST_CHECK("runtime multiple_syscalls_same_type");
    Script s(program<&uses_chance>());
    s.turn();
    s.turn(done(2, R"("x")"), fired(3));
    s.turn(done(6, R"("y")"));
    EXPECT_EQ(s.output().size(), 2 + 3 * 36 + 4U);
    EXPECT_NE(s.output().substr(1, 36), s.output().substr(37, 36));
    EXPECT_THAT(s.output(), HasSubstr("2000")) << "two turns of a second";
    Script other(program<&uses_chance>(), "[]", {.execution = 2});
    other.turn();
    EXPECT_NE(other.last().activities[0].second.input,
              std::get<ActivityScheduled>(s.history()[1].body).input);
}

TEST(EngineLife, TimeNeverGoesBack) {
    Execution execution("order-7", 1, program<&uses_chance>());
    execution.begin(start());
    const Turn first = execution.turn(Moment{9000ms}, {});
    const std::vector<Message> answer{done(2, R"("x")")};
    const Turn second = execution.turn(Moment{4000ms}, answer);
    EXPECT_GE(second.events[0].time_ms, first.events.back().time_ms);
}

}  // namespace
}  // namespace holdfast::flow::tests
