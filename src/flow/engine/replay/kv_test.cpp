// The instance's own store and its status, while the code runs and on replay.
#include "replay/test/engine_fixture.hpp"

namespace holdfast::flow::tests {
namespace {

Workflow<int> sets_and_greets(Context& ctx) {
    ctx.kv().set("a", 1);
    ctx.kv().set("a", 2);
    ctx.kv().erase("b");
    ctx.kv().clear();
    ctx.kv().set("c", "text");
    co_await ctx.activity<&add>(1, 1);
    co_return ctx.kv().get<int>("a").value_or(-1);
}

TEST(EngineKv, EveryChangeBecomesItsEventAndItsCommand) {
    HOLDFAST_CHECK("runtime action_to_event_kv_variants");
    HOLDFAST_CHECK("runtime replay_set_value_matches_action");
    HOLDFAST_CHECK("runtime replay_clear_all_values_matches_action");
    HOLDFAST_CHECK("runtime replay_clear_value_matches_action");
    HOLDFAST_CHECK("runtime replay_kv_interleaved_with_activities");
    HOLDFAST_CHECK("runtime replay_kv_no_token_binding");
    HOLDFAST_CHECK("runtime replay_clear_then_set");
    Script s(program<&sets_and_greets>());
    s.turn();
    EXPECT_THAT(s.events(),
                ElementsAre("1 workflow_started",
                            "2 kv_set a=1",
                            "3 kv_set a=2",
                            "4 kv_erased b",
                            "5 kv_cleared",
                            R"(6 kv_set c="text")",
                            "7 activity_scheduled add"));
    EXPECT_EQ(s.last().kv.size(), 5U);
    s.turn(done(7, "2"));
    EXPECT_THAT(s.last().kv, IsEmpty()) << "old changes are not made again";
    EXPECT_EQ(s.output(), "-1");
}

Workflow<int> reads_over_turns(Context& ctx) {
    const int before = ctx.kv().get<int>("seed").value_or(0);
    ctx.kv().set("n", before + 1);
    const int same_turn = ctx.kv().get<int>("n").value();
    co_await ctx.sleep(1s);
    ctx.kv().set("n", ctx.kv().get<int>("n").value() + 10);
    co_await ctx.sleep(1s);
    co_return same_turn * 1000 + ctx.kv().get<int>("n").value();
}

TEST(EngineKv, TheCodeReadsWhatItWroteAndWhatWasThereBefore) {
    HOLDFAST_CHECK("runtime kv_get_value_same_turn");
    HOLDFAST_CHECK("runtime kv_get_value_previous_turn");
    HOLDFAST_CHECK("runtime kv_get_value_previous_execution");
    HOLDFAST_CHECK("runtime kv_state_seeded_from_snapshot");
    HOLDFAST_CHECK("runtime replay_set_value_reconstructs_state");
    HOLDFAST_CHECK("runtime kv_read_modify_write_across_turns_replay");
    HOLDFAST_CHECK("runtime kv_read_modify_write_with_can_snapshot");
    HOLDFAST_CHECK("runtime new_kv_events_after_replay");
    Script s(program<&reads_over_turns>(), "[]", {.kv = {{"seed", Payload{"4"}}}});
    s.turn();
    s.turn(fired(3));
    EXPECT_THAT(s.events(), ElementsAre("4 timer_fired<-3", "5 kv_set n=15", "6 timer_created"));
    s.turn(fired(6));
    EXPECT_EQ(s.output(), "5015");
}

// If replay read the values of now, a counter would not fit its own history.
TEST(EngineKv, ACounterThatGrowsEveryTurnReplaysFromWhereTheExecutionBegan) {
    HOLDFAST_CHECK("runtime kv_read_modify_write_every_turn_snapshot_poisons_replay");
    Script s(program<&reads_over_turns>(), "[]", {.kv = {{"seed", Payload{"1"}}}});
    s.turn();
    s.turn(fired(3));
    Execution wrong("order-7", 1, program<&reads_over_turns>());
    wrong.load(s.history(), {{"seed", Payload{"99"}}, {"n", Payload{"12"}}});
    EXPECT_EQ(wrong.turn(Moment{9000ms}, {}).failure().kind, FailureKind::nondeterminism);
}

Workflow<std::string> overrides(Context& ctx) {
    ctx.kv().set("a", "mine");
    ctx.kv().erase("b");
    co_await ctx.sleep(1s);
    std::string said;
    for (const auto& [key, value] : ctx.kv().all()) {
        said += key + "=" + value.json + " ";
    }
    co_return said;
}

TEST(EngineKv, TheCodesOwnValuesHideTheOlderOnes) {
    HOLDFAST_CHECK("runtime kv_state_snapshot_overridden_by_code");
    HOLDFAST_CHECK("runtime replay_clear_single_key");
    HOLDFAST_CHECK("runtime replay_multiple_sets_last_wins");
    const std::map<std::string, Payload> before{
        {"a", Payload{"1"}}, {"b", Payload{"2"}}, {"c", Payload{"3"}}};
    Script s(program<&overrides>(), "[]", {.kv = before});
    s.turn();
    s.turn(fired(4));
    EXPECT_EQ(s.output(), R"("a=\"mine\" c=3 ")") << "sorted by key";
}

Workflow<int> clears_then_counts(Context& ctx, bool all_keys) {
    if (all_keys) {
        ctx.kv().clear();
    } else {
        ctx.kv().erase("n");
    }
    ctx.kv().set("n", ctx.kv().get<int>("n").value_or(0) + 1);
    co_await ctx.sleep(1s);
    co_return ctx.kv().get<int>("n").value();
}

TEST(EngineKv, AfterClearingTheCounterBeginsAnew) {
    HOLDFAST_CHECK("runtime kv_clear_all_then_set_replay");
    HOLDFAST_CHECK("runtime kv_clear_single_snapshot_key_then_rmw");
    for (const char* input : {"[true]", "[false]"}) {
        Script s(program<&clears_then_counts>(), input, {.kv = {{"n", Payload{"41"}}}});
        s.turn();
        s.turn(fired(4));
        EXPECT_EQ(s.output(), "1");
    }
}

Workflow<Unit> sets_k(Context& ctx) {
    ctx.kv().set("k", 1);
    co_await ctx.sleep(1s);
    co_return Unit{};
}
Workflow<Unit> erases_k(Context& ctx) {
    ctx.kv().erase("k");
    co_await ctx.sleep(1s);
    co_return Unit{};
}

TEST(EngineKv, AnotherKeyOrValueThanTheHistorysIsNondeterministic) {
    HOLDFAST_CHECK("runtime replay_set_value_mismatch_nondeterminism");
    HOLDFAST_CHECK("runtime replay_clear_value_mismatch_nondeterminism");
    HOLDFAST_CHECK("runtime kv_set_key_mismatch_nondeterminism");
    HOLDFAST_CHECK("runtime kv_set_value_mismatch_nondeterminism");
    HOLDFAST_CHECK("runtime kv_clear_key_mismatch_nondeterminism");
    const std::vector<std::pair<detail::Program, EventBody>> cases{
        {program<&sets_k>(), KvSet{"other", Payload{"1"}}},
        {program<&sets_k>(), KvSet{"k", Payload{"2"}}},
        {program<&sets_k>(), KvErased{"k"}},
        {program<&erases_k>(), KvErased{"other"}},
        {program<&erases_k>(), KvCleared{}},
    };
    for (const auto& [code, recorded] : cases) {
        const Turn turn = over(code, {started(), event(2, recorded), event(3, TimerCreated{1})});
        ASSERT_EQ(turn.ending, Ending::failed) << kind_name(recorded);
        EXPECT_EQ(turn.failure().kind, FailureKind::nondeterminism);
    }
}

TEST(EngineKv, WhenAValueWasSetIsNotCompared) {
    HOLDFAST_CHECK("runtime kv_set_timestamp_mismatch_ok");
    std::vector<Event> history{
        started(), event(2, KvSet{"k", Payload{"1"}}), event(3, TimerCreated{1})};
    history[1].time_ms = 777'777;
    EXPECT_EQ(over(program<&sets_k>(), history).ending, Ending::none);
}

// --- limits: refused at the call, as a Failure the code can handle

Workflow<std::string> fills_up(Context& ctx) {
    for (int i = 0; i < 100; ++i) {
        ctx.kv().set("key-" + std::to_string(i), i);
    }
    std::string said;
    try {
        ctx.kv().set("one more", 1);
    } catch (const Failure& failure) {
        said = failure.type();
    }
    ctx.kv().set("key-0", 100);
    ctx.kv().erase("key-1");
    ctx.kv().set("one more", 1);
    try {
        ctx.kv().set("key-0", std::string(16'383, 'x'));
    } catch (const Failure& failure) {
        said += " " + failure.type();
    }
    ctx.kv().set("key-0", std::string(16'382, 'x'));
    try {
        ctx.kv().set(std::string(257, 'k'), 1);
    } catch (const Failure& failure) {
        said += " " + failure.type();
    }
    co_return said + " " + std::to_string(ctx.kv().all().size());
}

TEST(EngineKv, BeyondTheLimitsASetIsRefusedAndChangesNothing) {
    HOLDFAST_CHECK("runtime kv_exceeding_key_limit_fails_orchestration");
    HOLDFAST_CHECK("runtime kv_exceeding_value_size_limit_fails_orchestration");
    HOLDFAST_CHECK("runtime kv_at_key_limit_succeeds");
    Script s(program<&fills_up>());
    s.turn();
    EXPECT_EQ(s.output(), R"("LimitExceeded LimitExceeded LimitExceeded 100")");
}

// --- status

Workflow<std::string> tells_its_status(Context& ctx) {
    std::string said = ctx.current_status().value_or(Payload{"none"}).json;
    ctx.status("one");
    ctx.status<void, int>(2);
    co_await ctx.sleep(1s);
    said += ctx.current_status().value_or(Payload{"none"}).json;
    ctx.clear_status();
    said += ctx.current_status().value_or(Payload{"none"}).json;
    co_return said;
}

TEST(EngineKv, TheLastStatusOfATurnIsKeptAndEveryChangeCounted) {
    HOLDFAST_CHECK("runtime custom_status_last_write_wins");
    HOLDFAST_CHECK("runtime custom_status_get_reflects_set_across_turns");
    HOLDFAST_CHECK("runtime custom_status_get_reflects_carry_forward_after_can");
    HOLDFAST_CHECK("runtime custom_status_reset_clears_to_none");
    Script s(program<&tells_its_status>(), "[]", {.status = Payload{R"("carried")"}});
    s.turn();
    EXPECT_EQ(s.last().status, StatusUpdated{Payload{"2"}});
    EXPECT_EQ(s.last().status_changes, 2);
    s.turn(fired(4));
    EXPECT_EQ(s.last().status, StatusUpdated{std::nullopt});
    EXPECT_EQ(s.output(), R"("\"carried\"2none")");
}

Workflow<std::string> long_status(Context& ctx, int bytes) {
    ctx.status<void, std::string>(std::string(static_cast<std::size_t>(bytes) - 2, 's'));
    co_return "kept";
}

TEST(EngineKv, AStatusMayHaveAQuarterOfAMegabyteAndNotOneByteMore) {
    HOLDFAST_CHECK("runtime custom_status_at_size_limit_succeeds");
    HOLDFAST_CHECK("runtime custom_status_exceeding_size_limit_fails_orchestration");
    HOLDFAST_CHECK("runtime custom_status_size_limit_precise_boundary");
    Script fits(program<&long_status>(), "[262144]");
    fits.turn();
    EXPECT_EQ(fits.output(), R"("kept")");
    Script beyond(program<&long_status>(), "[262145]");
    beyond.turn();
    EXPECT_EQ(beyond.failure().type, "LimitExceeded");
    EXPECT_FALSE(beyond.last().status.has_value());
}

Workflow<Unit> sets_another_status(Context& ctx) {
    ctx.status("changed");
    co_await ctx.sleep(2h);
    co_return Unit{};
}

TEST(EngineKv, AnotherStatusAndAnotherLengthOfATimerAreNoContradiction) {
    const std::vector<Event> history{
        started(), event(2, StatusUpdated{Payload{R"("was")"}}), event(3, TimerCreated{1})};
    EXPECT_EQ(over(program<&sets_another_status>(), history).ending, Ending::none);
}

Workflow<Unit> sets_attributes(Context& ctx) {
    ctx.attribute("customer", std::string("Ann"));
    ctx.remove_attribute("customer");
    co_await ctx.sleep(1s);
    co_return Unit{};
}

TEST(EngineKv, AttributesAreSetAndRemovedInOrder) {
    Script s(program<&sets_attributes>());
    s.turn();
    EXPECT_THAT(s.last().attributes,
                ElementsAre(AttributeSet{"customer", Payload{R"("Ann")"}},
                            AttributeSet{"customer", std::nullopt}));
}

}  // namespace
}  // namespace holdfast::flow::tests
