// Histories that the code contradicts, and histories that contradict themselves.
#include "replay/test/engine_fixture.hpp"

namespace holdfast::flow::tests {
namespace {

Workflow<std::string> detaches(Context& ctx) {
    ctx.detach<&sub>("audit-1", 7);
    std::string text = co_await ctx.activity<&greet>("Ann");
    co_return text;
}
Workflow<int> uses_labels(Context& ctx) {
    int sum = co_await ctx.activity<&add>(1, 2).session("s").tag("t");
    co_return sum;
}
Workflow<int> uses_no_labels(Context& ctx) {
    int sum = co_await ctx.activity<&add>(1, 2);
    co_return sum;
}
Workflow<int> ends_early(Context&) {
    co_return 1;
}

EventBody child() {
    return ChildScheduled{"sub", "c", Payload{"[3]"}, ""};
}
EventBody labelled(std::optional<std::string> session, std::optional<std::string> tag) {
    return ActivityScheduled{"add", Payload{"[1,2]"}, std::move(session), std::move(tag)};
}
FailureInfo info() {
    return FailureInfo{.message = "no"};
}

// Expects that the code does not follow the history, and that the message says `text`.
void expect_differs(detail::Program code, const std::vector<Event>& history, const char* text) {
    const Turn turn = over(code, history);
    ASSERT_EQ(turn.ending, Ending::failed) << text;
    EXPECT_EQ(turn.failure().kind, FailureKind::nondeterminism) << text;
    EXPECT_THAT(turn.failure().message, HasSubstr(text));
    const auto difference = check_replay("order-7", code, history);
    ASSERT_TRUE(difference.has_value()) << text;
    EXPECT_THAT(difference->message, HasSubstr(text));
}

TEST(EngineNondeterminism, ARequestThatIsNotTheHistorysIsFound) {
    HOLDFAST_CHECK("runtime schedule_mismatch_activity_vs_timer");
    HOLDFAST_CHECK("runtime schedule_mismatch_timer_vs_activity");
    HOLDFAST_CHECK("runtime schedule_mismatch_wrong_activity_name");
    HOLDFAST_CHECK("runtime schedule_mismatch_wrong_input");
    HOLDFAST_CHECK("runtime schedule_mismatch_wrong_external_name");
    HOLDFAST_CHECK("runtime orchestration_chained_name_mismatch");
    HOLDFAST_CHECK("runtime orchestration_chained_no_matching_action");
    const EventBody renamed =
        ActivityScheduled{"salute", Payload{R"(["Ann"])"}, std::nullopt, std::nullopt};
    expect_differs(program<&sleeps>(), {started(), event(2, asks_greet())}, "event 2");
    expect_differs(program<&greets>(), {started(), event(2, TimerCreated{1})}, "timer_created");
    expect_differs(program<&greets>(), {started(), event(2, renamed)}, "'salute'");
    expect_differs(program<&greets>(), {started(), event(2, asks_greet(R"(["Bob"])"))}, "Bob");
    expect_differs(program<&awaits_go>(), {started(), event(2, SignalAwaited{"halt"})}, "'halt'");
    expect_differs(program<&awaits_go>(), {started(), event(2, MessageAwaited{"go"})}, "on 'go'");
    const EventBody chained = WorkflowDetached{"other", "audit-1", Payload{"[7]"}, ""};
    expect_differs(program<&detaches>(), {started(), event(2, chained)}, "'other'");
    expect_differs(program<&greets>(), {started(), event(2, chained)}, "workflow_detached");
}

Workflow<Payload> carries_structs(Context& ctx) {
    ctx.kv().set("order", Payload{R"({"city":"Ulm","id":7})"});
    Payload packing(R"([{"city":"Ulm","id":7},3])");
    co_await ctx.activity("pack", packing);
    Payload shipping(R"([{"city":"Ulm","id":7}])");
    co_await ctx.child("ship", shipping);
    co_return Payload{R"({"id":7,"price":1})"};
}
std::vector<Event> before_the_struct_grew(std::string order, std::string output) {
    return {
        started(),
        event(2, KvSet{"order", Payload{order}}),
        event(3,
              ActivityScheduled{"pack", Payload{"[" + order + ",3]"}, std::nullopt, std::nullopt}),
        event(4, ActivityCompleted{Payload{"1"}}, 3),
        event(5, ChildScheduled{"ship", "ship-1", Payload{"[" + order + "]"}, ""}),
        event(6, ChildCompleted{Payload{"1"}}, 5),
        event(7, WorkflowCompleted{Payload{std::move(output)}})};
}

// A release that adds a field to a struct must not end the instances that run.
TEST(EngineNondeterminism, AStructMayGainAndLoseFieldsWhileInstancesRun) {
    const auto code = program<&carries_structs>();
    for (const char* order : {R"({"id":7})", R"({"city":"Ulm","id":7,"old":true})"}) {
        std::vector<Event> history = before_the_struct_grew(order, R"({"id":7})");
        EXPECT_EQ(check_replay("order-7", code, history, {}), std::nullopt);
        history.pop_back();
        EXPECT_EQ(over(code, history).ending, Ending::completed);
    }
    std::vector<Event> other = before_the_struct_grew(R"({"id":8})", R"({"id":7})");
    EXPECT_THAT(check_replay("order-7", code, other, {})->message, HasSubstr(R"({"id":8})"));
    other = before_the_struct_grew(R"({"id":7})", R"({"id":8})");
    EXPECT_EQ(check_replay("order-7", code, other, {})->message,
              "the code ended with another workflow_completed than the history has");
}

// The code has left its history at event 2: what the rest of it asked for is known from there
// alone.
TEST(EngineNondeterminism, WhatTheRestOfTheHistoryAskedForIsCalledBack) {
    const EventBody other = ChildScheduled{"sub", "d", Payload{"[4]"}, ""};
    const Turn turn = over(program<&sleeps>(),
                           {started(),
                            event(2, asks_greet()),
                            event(3, child()),
                            event(4, other),
                            event(5, ChildCompleted{Payload{"4"}}, 4)});
    ASSERT_EQ(turn.ending, Ending::failed);
    EXPECT_THAT(turn.cancelled_children, ElementsAre(Pair("c", "the parent has ended")));
    EXPECT_THAT(turn.cancelled_activities, ElementsAre(2U));
    std::vector<EventId> told;
    for (const Event& event : turn.events) {
        if (std::holds_alternative<OperationCancelled>(event.body)) {
            told.push_back(event.source);
        }
    }
    EXPECT_THAT(told, ElementsAre(2U, 3U));
    EXPECT_TRUE(is_terminal(turn.events.back().body));
}

TEST(EngineNondeterminism, SessionsAndTagsAreCompared) {
    // clang-format off: the mark stands in one line.
    HOLDFAST_CHECK("runtime schedule_activity_on_session_session_id_mismatch_causes_nondeterminism");
    // clang-format on
    HOLDFAST_CHECK("runtime tag_mismatch_on_replay_causes_nondeterminism");
    HOLDFAST_CHECK("runtime tag_value_change_on_replay_causes_nondeterminism");
    HOLDFAST_CHECK("runtime tag_removal_on_replay_causes_nondeterminism");
    expect_differs(program<&uses_labels>(), {started(), event(2, labelled("x", "t"))}, "session");
    expect_differs(program<&uses_labels>(), {started(), event(2, labelled("s", {}))}, "tag 't'");
    expect_differs(program<&uses_labels>(), {started(), event(2, labelled("s", "u"))}, "tag 'u'");
    expect_differs(program<&uses_no_labels>(), {started(), event(2, labelled({}, "t"))}, "tag 't'");
}

TEST(EngineNondeterminism, ARequestOfTheHistoryThatTheCodeDoesNotMakeIsFound) {
    HOLDFAST_CHECK("runtime history_schedule_no_emitted_action");
    expect_differs(program<&greets>(),
                   {started(), event(2, asks_greet()), event(3, TimerCreated{1})},
                   "the code asked for nothing");
}

// An early end is not a success: the rest of the history would be forgotten.
TEST(EngineNondeterminism, CodeThatEndsBeforeItsHistoryDoesIsFound) {
    expect_differs(program<&ends_early>(), {started(), event(2, asks_greet())}, "has ended before");
}

TEST(EngineNondeterminism, AnAnswerWithoutARequestIsFound) {
    HOLDFAST_CHECK("runtime completion_without_schedule");
    HOLDFAST_CHECK("runtime completion_source_not_found");
    HOLDFAST_CHECK("runtime orphan_completion_no_schedule");
    HOLDFAST_CHECK("runtime orphan_timer_fired");
    HOLDFAST_CHECK("runtime orphan_sub_orch_completed");
    HOLDFAST_CHECK("runtime timer_fired_before_created");
    HOLDFAST_CHECK("runtime activity_completed_before_scheduled");
    const std::vector<EventBody> orphans{ActivityCompleted{Payload{"1"}},
                                         ActivityFailedEvent{info()},
                                         TimerFired{},
                                         ChildCompleted{Payload{"1"}},
                                         ChildFailedEvent{info()}};
    for (const EventBody& orphan : orphans) {
        expect_differs(program<&greets>(),
                       {started(), event(2, asks_greet()), event(3, orphan, 9)},
                       "waits for no answer");
        expect_differs(program<&greets>(),
                       {started(), event(2, orphan, 3), event(3, asks_greet())},
                       "waits for no answer");
    }
    Script s(program<&greets>());
    s.turn();
    s.turn(done(9, "1"));
    EXPECT_EQ(s.failure().kind, FailureKind::nondeterminism);
}

TEST(EngineNondeterminism, AnAnswerOfAnotherKindIsFoundInMessagesAndInHistories) {
    HOLDFAST_CHECK("runtime completion_kind_mismatch");
    HOLDFAST_CHECK("runtime completion_source_wrong_type");
    HOLDFAST_CHECK("runtime timer_completion_for_activity_schedule");
    HOLDFAST_CHECK("runtime sub_orch_completion_for_activity_schedule");
    HOLDFAST_CHECK("runtime sub_orch_completion_for_timer_schedule");
    HOLDFAST_CHECK("runtime timer_completion_for_sub_orch_schedule");
    HOLDFAST_CHECK("runtime activity_completed_for_timer_in_history");
    struct Case {
        detail::Program code;
        EventBody schedule;
        Message message;
        EventBody answer;
    };
    const std::vector<Case> cases{
        {program<&greets>(), asks_greet(), fired(2), TimerFired{}},
        {program<&greets>(), asks_greet(), child_done(2, "1"), ChildCompleted{Payload{"1"}}},
        {program<&sleeps>(), TimerCreated{1}, child_done(2, "1"), ChildCompleted{Payload{"1"}}},
        {program<&sleeps>(), TimerCreated{1}, done(2, "1"), ActivityCompleted{Payload{"1"}}},
        {program<&sleeps>(), TimerCreated{1}, failed(2, "no"), ActivityFailedEvent{info()}},
        {program<&waits_for_child>(), child(), fired(2), TimerFired{}},
        {program<&waits_for_child>(), child(), done(2, "1"), ActivityCompleted{Payload{"1"}}},
        {program<&awaits_go>(), SignalAwaited{"go"}, fired(2), TimerFired{}},
    };
    for (const Case& c : cases) {
        const Turn turn = over(c.code, {started(), event(2, c.schedule)}, {c.message});
        ASSERT_EQ(turn.ending, Ending::failed);
        EXPECT_EQ(turn.failure().kind, FailureKind::nondeterminism);
        expect_differs(
            c.code, {started(), event(2, c.schedule), event(3, c.answer, 2)}, "answers event 2");
    }
}

TEST(EngineNondeterminism, ASecondAnswerInAHistoryIsFound) {
    HOLDFAST_CHECK("runtime timer_completion_for_closed_schedule");
    HOLDFAST_CHECK("runtime sub_orch_completion_for_closed_schedule");
    HOLDFAST_CHECK("runtime activity_completion_for_closed_schedule");
    HOLDFAST_CHECK("runtime activity_failed_for_closed_schedule");
    HOLDFAST_CHECK("runtime sub_orch_failed_for_closed_schedule");
    HOLDFAST_CHECK("runtime multiple_completions_same_source_in_history");
    const EventBody ok = ActivityCompleted{Payload{R"("hi")"}};
    const EventBody child_ok = ChildCompleted{Payload{"1"}};
    const auto twice = [](const EventBody& schedule, const EventBody& a, const EventBody& b) {
        return std::vector<Event>{started(), event(2, schedule), event(3, a, 2), event(4, b, 2)};
    };
    expect_differs(
        program<&sleeps>(), twice(TimerCreated{1}, TimerFired{}, TimerFired{}), "already");
    expect_differs(program<&waits_for_child>(), twice(child(), child_ok, child_ok), "already");
    expect_differs(
        program<&waits_for_child>(), twice(child(), child_ok, ChildFailedEvent{info()}), "already");
    expect_differs(program<&greets>(), twice(asks_greet(), ok, ok), "already");
    expect_differs(
        program<&greets>(), twice(asks_greet(), ok, ActivityFailedEvent{info()}), "already");
}

// --- checking an exported history

Workflow<int> other_result(Context& ctx) {
    co_await ctx.activity<&greet>("Ann");
    co_return 8;
}
Workflow<int> asks_more(Context& ctx) {
    co_await ctx.activity<&greet>("Ann");
    co_await ctx.activity<&greet>("Bob");
    co_return 7;
}
Workflow<int> fails_instead(Context& ctx) {
    co_await ctx.activity<&greet>("Ann");
    throw permanent("No", "no");
}
Workflow<int> continues_instead(Context& ctx) {
    co_await ctx.activity<&greet>("Ann");
    co_return again();
}
Workflow<int> returns_seven(Context& ctx) {
    co_await ctx.activity<&greet>("Ann");
    co_return 7;
}

TEST(EngineNondeterminism, ACheckComparesHowTheHistoryEnds) {
    const std::vector<Event> before{
        started(), event(2, asks_greet()), event(3, ActivityCompleted{Payload{R"("hi")"}}, 2)};
    const auto ends = [&](EventBody end) {
        std::vector<Event> history = before;
        history.push_back(event(4, std::move(end)));
        return history;
    };
    const auto check = [](detail::Program code, std::vector<Event> history) {
        const auto difference = check_replay("order-7", code, std::move(history));
        return difference ? difference->message : "";
    };
    FailureInfo no{.type = "No", .message = "no", .retryable = false};
    const EventBody seven = WorkflowCompleted{Payload{"7"}};
    const EventBody failure = WorkflowFailed{no};
    const EventBody next = WorkflowContinued{Payload{"[]"}, ""};

    EXPECT_EQ(check(program<&returns_seven>(), ends(seven)), "");
    EXPECT_EQ(check(program<&fails_instead>(), ends(failure)), "");
    EXPECT_EQ(check(program<&continues_instead>(), ends(next)), "");

    EXPECT_THAT(check(program<&other_result>(), ends(seven)), HasSubstr("another"));
    EXPECT_THAT(check(program<&asks_more>(), ends(seven)), HasSubstr("asks for"));
    EXPECT_THAT(check(program<&fails_instead>(), ends(seven)), HasSubstr("workflow_failed"));
    EXPECT_THAT(check(program<&continues_instead>(), ends(seven)), HasSubstr("workflow_continued"));
    EXPECT_THAT(check(program<&returns_seven>(), ends(failure)), HasSubstr("workflow_completed"));
    EXPECT_THAT(check(program<&returns_seven>(), ends(next)), HasSubstr("workflow_completed"));
    EXPECT_THAT(check(program<&returns_seven>(), before), HasSubstr("the history goes on"));
    EXPECT_THAT(
        check(program<&returns_seven>(), {started(), event(2, asks_greet()), event(3, seven)}),
        HasSubstr("still waits"));

    // Ended from outside, wherever the code stood: no contradiction.
    no.kind = FailureKind::poison;
    const std::vector<Event> poisoned{
        started(), event(2, asks_greet()), event(3, WorkflowFailed{no})};
    EXPECT_EQ(check(program<&returns_seven>(), poisoned), "");
}

Workflow<std::string> makes_an_id(Context& ctx) {
    std::string id = ctx.uuid();
    std::string text = co_await ctx.activity<&greet>(id);
    co_return text;
}

TEST(EngineNondeterminism, ACheckOfALaterExecutionKnowsItsNumber) {
    Script s(program<&makes_an_id>(), "[]", {.execution = 3});
    s.turn();
    EXPECT_FALSE(check_replay("order-7", program<&makes_an_id>(), s.history(), {}, 3).has_value());
    EXPECT_TRUE(check_replay("order-7", program<&makes_an_id>(), s.history()).has_value());
}

}  // namespace
}  // namespace holdfast::flow::tests
