// The small store of an instance: what its code writes, and what it and others read.
#include "behaviour/test/behaviour_fixture.hpp"

#include <holdfast/base/error.hpp>

namespace holdfast::flow::tests {
namespace {

class KvBehaviour : public StoredBehaviour {
protected:
    [[nodiscard]] std::optional<std::string> value(std::string_view id, std::string_view key) {
        return client.kv<std::string>(id, key);
    }
    [[nodiscard]] std::vector<std::string> keys(std::string_view id) {
        std::vector<std::string> names;
        for (const auto& [key, entry] : client.kv_all(id)) {
            names.push_back(key);
        }
        return names;
    }
};

TEST_P(KvBehaviour, WhatATurnWroteIsSeenFromOutsideWhileTheWorkflowRuns) {
    HOLDFAST_CHECK("runtime kv_set_value_visible_via_client");
    HOLDFAST_CHECK("runtime kv_set_multiple_values_same_turn");
    HOLDFAST_CHECK("runtime kv_overwrite_same_key");
    HOLDFAST_CHECK("runtime kv_get_missing_key_returns_none");
    HOLDFAST_CHECK("runtime client_get_value_running");
    HOLDFAST_CHECK("runtime kv_client_get_all_values");
    HOLDFAST_CHECK("runtime kv_client_get_all_values_after_overwrite");
    HOLDFAST_CHECK("runtime kv_client_get_all_values_empty");
    code("writer", [](Context& ctx, std::string, std::string) -> Task<std::string> {
        std::string before = co_await ctx.receive(inbox);
        ctx.kv().set("a", "1");
        ctx.kv().set("b", "1");
        ctx.kv().set("b", "2");
        std::string after = co_await ctx.receive(inbox);
        co_return before + after;
    });
    run_script("writer", "w");
    EXPECT_THAT(keys("w"), IsEmpty());
    tell("w", inbox, std::string("go"));
    EXPECT_EQ(status("w"), Status::running);
    EXPECT_EQ(value("w", "a"), "1");
    EXPECT_EQ(value("w", "b"), "2");
    EXPECT_EQ(value("w", "c"), std::nullopt);
    EXPECT_EQ(value("nobody", "a"), std::nullopt);
    EXPECT_THAT(keys("w"), ElementsAre("a", "b"));
    EXPECT_EQ(client.kv_all("w").at("b").value.json, R"("2")");
}

TEST_P(KvBehaviour, AClientWaitsForAKeyAndNotForOneThatNeverComes) {
    code("writer", [](Context& ctx, std::string, std::string) -> Task<std::string> {
        std::string told = co_await ctx.receive(inbox);
        ctx.kv().set("a", told);
        co_return told;
    });
    const auto waited = [&](std::string_view id, std::string_view key) {
        return test::code_of([&] { (void)client.wait_for_kv<std::string>(id, key, 0ms); });
    };
    run_script("writer", "w");
    EXPECT_EQ(waited("w", "a"), Code::deadline);
    EXPECT_EQ(waited("nobody", "a"), Code::not_found);
    tell("w", inbox, std::string("here"));
    EXPECT_EQ(client.wait_for_kv<std::string>("w", "a", 0ms), "here") << "also after its end";
    EXPECT_EQ(waited("w", "b"), Code::condition_failed);
}

TEST_P(KvBehaviour, KeysAreErasedOneByOneOrAllAtOnce) {
    HOLDFAST_CHECK("runtime kv_clear_single_value");
    HOLDFAST_CHECK("runtime kv_clear_all_values");
    HOLDFAST_CHECK("runtime kv_clear_value_then_set_same_key");
    HOLDFAST_CHECK("runtime kv_clear_value_then_reset");
    HOLDFAST_CHECK("runtime kv_client_get_all_values_after_clear");
    HOLDFAST_CHECK("runtime kv_clear_all_then_set_across_turns");
    code("eraser", [](Context& ctx, std::string, std::string) -> Task<std::string> {
        ctx.kv().set("a", "1");
        ctx.kv().set("b", "1");
        ctx.kv().set("c", "1");
        co_await ctx.receive(inbox);
        ctx.kv().erase("a");
        ctx.kv().erase("b");
        ctx.kv().set("b", "again");  // In the same turn.
        co_await ctx.receive(inbox);
        ctx.kv().set("a", "later");  // In a later one.
        co_await ctx.receive(inbox);
        ctx.kv().clear();
        co_await ctx.receive(inbox);
        ctx.kv().set("d", "after all");
        co_return ctx.kv().get<std::string>("a").value_or("gone");
    });
    run_script("eraser", "e");
    tell("e", inbox, std::string("1"));
    EXPECT_THAT(keys("e"), ElementsAre("b", "c"));
    EXPECT_EQ(value("e", "b"), "again");
    tell("e", inbox, std::string("2"));
    EXPECT_EQ(value("e", "a"), "later");
    tell("e", inbox, std::string("3"));
    EXPECT_THAT(keys("e"), IsEmpty());
    tell("e", inbox, std::string("4"));
    EXPECT_EQ(result("e"), "gone");
    EXPECT_THAT(keys("e"), ElementsAre("d"));
}

TEST_P(KvBehaviour, TheCodeReadsItsOwnWritesInEveryTurnAlsoAfterACrash) {
    HOLDFAST_CHECK("runtime kv_get_value_reads_local_state");
    HOLDFAST_CHECK("runtime kv_persists_across_turns");
    HOLDFAST_CHECK("runtime kv_update_across_turns");
    HOLDFAST_CHECK("runtime kv_read_modify_write_across_turns");
    HOLDFAST_CHECK("runtime kv_read_modify_write_every_turn");
    HOLDFAST_CHECK("runtime kv_single_thread_basic");
    code("sum", [](Context& ctx, std::string, std::string) -> Task<std::string> {
        ctx.kv().set("sum", std::int64_t{0});
        for (int i = 0; i < 4; ++i) {
            std::string more = co_await ctx.receive(inbox);
            const std::int64_t sum = ctx.kv().get<std::int64_t>("sum").value_or(-1000);
            ctx.kv().set("sum", sum + std::stoi(more));
        }
        co_return std::to_string(ctx.kv().get<std::int64_t>("sum").value_or(-1));
    });
    run_script("sum", "s");
    tell("s", inbox, std::string("1"));
    restart();
    tell("s", inbox, std::string("2"));
    EXPECT_EQ(client.kv<std::int64_t>("s", "sum"), 3);
    tell("s", inbox, std::string("3"));
    restart();
    tell("s", inbox, std::string("4"));
    EXPECT_EQ(result("s"), "10");
}

TEST_P(KvBehaviour, ValuesOutliveTheEndAndLeaveWithTheInstance) {
    HOLDFAST_CHECK("runtime kv_accessible_after_completion");
    HOLDFAST_CHECK("runtime kv_accessible_after_failure");
    HOLDFAST_CHECK("runtime kv_not_accessible_after_deletion");
    HOLDFAST_CHECK("runtime kv_deleted_with_instance");
    HOLDFAST_CHECK("runtime kv_delete_instance_removes_all_kv");
    code("ends", [](Context& ctx, std::string, std::string how) -> Task<std::string> {
        ctx.kv().set("how", how);
        ctx.kv().set("more", "1");
        if (how == "badly") {
            throw permanent("Sad", "no stock");
        }
        co_return "fine";
    });
    run_script("ends", "good", "well");
    run_script("ends", "bad", "badly");
    EXPECT_EQ(status("bad"), Status::failed);
    EXPECT_EQ(value("good", "how"), "well");
    EXPECT_EQ(value("bad", "how"), "badly");
    client.remove("bad");
    EXPECT_EQ(value("bad", "how"), std::nullopt);
    EXPECT_THAT(keys("bad"), IsEmpty());
    EXPECT_EQ(value("good", "how"), "well");
    run_script("ends", "bad", "well");
    EXPECT_EQ(value("bad", "how"), "well") << "a namesake begins with nothing";
}

TEST_P(KvBehaviour, TheNextExecutionReadsWritesAndErasesWhatItWasLeft) {
    HOLDFAST_CHECK("runtime kv_overwrite_after_can");
    HOLDFAST_CHECK("runtime kv_clear_after_can");
    HOLDFAST_CHECK("runtime kv_can_chain_accumulation");
    HOLDFAST_CHECK("runtime kv_rmw_across_can_boundary");
    HOLDFAST_CHECK("runtime kv_clear_single_with_prior_execution_value");
    HOLDFAST_CHECK("runtime kv_client_get_all_values_across_can");
    HOLDFAST_CHECK("runtime kv_single_thread_can_with_kv");
    code("rounds", [](Context& ctx, std::string self, std::string round) -> Task<std::string> {
        const std::int64_t sum = ctx.kv().get<std::int64_t>("sum").value_or(0);
        ctx.kv().set("sum", sum + 1);
        ctx.kv().set("last", round);
        ctx.kv().set("round " + round, "here");
        if (round == "3") {
            ctx.kv().erase("round 1");
            co_await ctx.sleep(1s);  // Another turn: replay must not count its own writes twice.
            const std::int64_t again_sum = ctx.kv().get<std::int64_t>("sum").value_or(0);
            ctx.kv().set("sum", again_sum * 10);
            co_return std::to_string(again_sum) + (ctx.kv().get<std::string>("round 1") ? "!" : "");
        }
        co_return again(self, std::to_string(std::stoi(round) + 1));
    });
    run_script("rounds", "r", "1");
    restart();
    run();
    EXPECT_EQ(result("r"), "3");
    EXPECT_EQ(client.executions("r").size(), 3U);
    EXPECT_EQ(client.kv<std::int64_t>("r", "sum"), 30);
    EXPECT_EQ(value("r", "last"), "3");
    EXPECT_THAT(keys("r"), ElementsAre("last", "round 2", "round 3", "sum"));
}

// Keys belong to the instance, also those that only one execution has written.
TEST_P(KvBehaviour, PruningOldExecutionsTakesNoKeys) {
    HOLDFAST_CHECK("runtime kv_prune_execution_removes_orphan_keys");
    HOLDFAST_CHECK("runtime kv_bulk_prune");
    code("rounds", [](Context& ctx, std::string self, std::string round) -> Task<std::string> {
        ctx.kv().set("only " + round, "here");
        if (round == "3") {
            co_return "done";
        }
        co_return again(self, std::to_string(std::stoi(round) + 1));
    });
    for (const char* id : {"r-1", "r-2"}) {
        run_script("rounds", id, "1");
        EXPECT_EQ(client.prune(id, {.keep_last = 1}).executions, 2);
    }
    for (const char* id : {"r-1", "r-2"}) {
        EXPECT_EQ(client.executions(id).size(), 1U);
        EXPECT_THAT(keys(id), ElementsAre("only 1", "only 2", "only 3"));
    }
}

TEST_P(KvBehaviour, EveryTypeAndEveryKeyComesBackAsItWas) {
    HOLDFAST_CHECK("runtime kv_typed_round_trip");
    HOLDFAST_CHECK("runtime kv_json_value");
    HOLDFAST_CHECK("runtime kv_empty_key");
    HOLDFAST_CHECK("runtime kv_get_value_typed_wrong_type");
    code("types", [](Context& ctx, std::string, std::string) -> Task<std::string> {
        const std::vector<std::string> list{"x", "\"y\"", ""};
        ctx.kv().set("list", list);
        ctx.kv().set("number", -7);
        ctx.kv().set("truth", true);
        ctx.kv().set("", "a key without letters");
        ctx.kv().set("text", "null");
        co_await ctx.sleep(1s);
        std::string said;
        try {
            said += std::to_string(ctx.kv().get<int>("text").value_or(0));
        } catch (const DecodeError& error) {
            said += error.type();
        }
        const bool same = ctx.kv().get<std::vector<std::string>>("list") == list &&
                          ctx.kv().get<int>("number") == -7 && ctx.kv().get<bool>("truth") == true;
        co_return said + (same ? " same " : " other ") +
            ctx.kv().get<std::string>("").value_or("-");
    });
    run_script("types", "t");
    restart();
    run();
    EXPECT_EQ(result("t"), "DecodeError same a key without letters");
    EXPECT_EQ(client.kv<nlohmann::json>("t", "list"), nlohmann::json({"x", "\"y\"", ""}));
    EXPECT_EQ(value("t", ""), "a key without letters");
    EXPECT_EQ(value("t", "text"), "null");
    EXPECT_EQ(test::code_of([&] { (void)client.kv<int>("t", "text"); }), Code::invalid_argument);
}

TEST_P(KvBehaviour, AClearedStoreHasRoomForAllKeysAgain) {
    HOLDFAST_CHECK("runtime kv_clear_all_resets_key_count");
    HOLDFAST_CHECK("runtime kv_stress_high_key_count");
    code("filler", [](Context& ctx, std::string, std::string) -> Task<std::string> {
        for (int round = 0; round < 2; ++round) {
            for (int i = 0; i < 100; ++i) {
                ctx.kv().set(std::to_string(round) + "." + std::to_string(i), i);
            }
            co_await ctx.sleep(1s);
            if (round == 0) {
                ctx.kv().clear();
            }
        }
        std::string said = "room for more";
        try {
            ctx.kv().set("one more", 1);
        } catch (const Failure& failure) {
            said = failure.type();
        }
        co_return said;
    });
    run_script("filler", "f");
    advance(1s);
    advance(1s);
    EXPECT_EQ(result("f"), "LimitExceeded");
    EXPECT_THAT(keys("f"), SizeIs(100));
    EXPECT_EQ(client.kv<int>("f", "1.99"), 99);
}

TEST_P(KvBehaviour, KeysAreWrittenInBranchesBetweenOtherSteps) {
    HOLDFAST_CHECK("runtime kv_works_in_select_branch");
    HOLDFAST_CHECK("runtime kv_interleaved_with_activities_and_timers");
    HOLDFAST_CHECK("runtime kv_in_fan_out_fan_in");
    code("mixed", [](Context& ctx, std::string, std::string) -> Task<std::string> {
        ctx.kv().set("step", "begun");
        std::string one = co_await ctx.activity<&work>("one", "1");
        ctx.kv().set("step", one);
        co_await ctx.sleep(1s);
        ctx.kv().set("step", "slept");
        const auto branch = [](Context& c, std::string name) -> Task<std::string> {
            std::string text = co_await c.activity<&work>(name, name);
            c.kv().set("branch " + name, text);
            co_return text;
        };
        std::vector<Task<std::string>> many;
        for (const char* name : {"x", "y", "z"}) {
            many.push_back(branch(ctx, name));
        }
        auto texts = co_await all(std::move(many));
        auto first = co_await any(ctx.activity<&work>("fast", "f"), ctx.sleep(1h));
        ctx.kv().set("winner", first.index() == 0 ? "activity" : "timer");
        co_return texts[0] + texts[1] + texts[2];
    });
    run_script("mixed", "m");
    EXPECT_EQ(value("m", "step"), "1");
    restart();
    advance(1s);
    EXPECT_EQ(result("m"), "xyz");
    EXPECT_THAT(keys("m"), ElementsAre("branch x", "branch y", "branch z", "step", "winner"));
    EXPECT_EQ(value("m", "winner"), "activity");
}

TEST_P(KvBehaviour, AParentAndItsChildHaveTheirOwnKeys) {
    HOLDFAST_CHECK("runtime kv_parent_child_isolation");
    HOLDFAST_CHECK("runtime kv_delete_parent_cascades_child_kv");
    code("child", [](Context& ctx, std::string, std::string) -> Task<std::string> {
        std::string found = ctx.kv().get<std::string>("who").value_or("nobody");
        ctx.kv().set("who", "child");
        co_return found;
    });
    code("parent", [](Context& ctx, std::string, std::string) -> Task<std::string> {
        ctx.kv().set("who", "parent");
        std::string found = co_await ctx.child<&script>("child", "").id("c");
        co_return found + " " + ctx.kv().get<std::string>("who").value_or("nobody");
    });
    run_script("parent", "p");
    EXPECT_EQ(result("p"), "nobody parent");
    EXPECT_EQ(value("p", "who"), "parent");
    EXPECT_EQ(value("c", "who"), "child");
    client.remove("p");
    EXPECT_EQ(value("c", "who"), std::nullopt);
}

// The context has no call that erases what is older than a moment. The code does it itself: keys
// come sorted, ctx.now() is the same on replay, and what an age means is the code's own.
TEST_P(KvBehaviour, OldKeysAreErasedByTheirOwnStamps) {
    HOLDFAST_CHECK("runtime kv_prune_old_values_by_timestamp");
    HOLDFAST_CHECK("runtime kv_prune_with_zero_threshold_does_nothing");
    HOLDFAST_CHECK("runtime kv_prune_empty_returns_zero");
    HOLDFAST_CHECK("runtime kv_prune_current_turn_keys_with_max_threshold");
    HOLDFAST_CHECK("runtime kv_prune_unpersisted_current_turn_key_with_wall_clock");
    HOLDFAST_CHECK("runtime kv_prune_selective_by_age");
    code("cache", [](Context& ctx, std::string, std::string) -> Task<std::string> {
        const auto stamp = [&ctx](const char* key) {
            ctx.kv().set(key, ctx.now().time_since_epoch().count());
        };
        const auto prune_before = [&ctx](Moment moment) {
            std::vector<std::string> old;
            for (const auto& [key, value] : ctx.kv().all()) {
                if (Codec<std::int64_t>::decode(value.json) < moment.time_since_epoch().count()) {
                    old.push_back(key);
                }
            }
            for (const std::string& key : old) {
                ctx.kv().erase(key);
            }
            return std::to_string(old.size()) + " ";
        };
        std::string said = prune_before(Moment::max());  // Nothing is there.
        stamp("a");
        stamp("b");
        co_await ctx.sleep(1h);
        stamp("c");
        said += prune_before(Moment{});           // Nothing is that old.
        said += prune_before(ctx.now() - 30min);  // Those of the first turn.
        stamp("d");
        said += prune_before(ctx.now() + 1ms);  // Also those of this turn.
        stamp("e");
        co_await ctx.sleep(1h);
        co_return said + std::to_string(ctx.kv().all().size());
    });
    run_script("cache", "c");
    EXPECT_THAT(keys("c"), ElementsAre("a", "b"));
    const auto written = client.kv_all("c").at("a");
    const Moment stamped{milliseconds{Codec<std::int64_t>::decode(written.value.json)}};
    EXPECT_LT(written.updated - stamped, 10min) << "readers see when a key was written";
    restart();
    advance(1h);
    EXPECT_THAT(keys("c"), ElementsAre("e"));
    restart();
    advance(1h);
    EXPECT_EQ(result("c"), "0 0 2 2 1");
}

// The keys of another instance are read by an activity: it asks a client, and its answer is in the
// history like any other.
class KvOfOthers : public KvBehaviour {
protected:
    KvOfOthers() {
        activity("read", [this](ActivityContext&, const std::string& id) {
            return client.kv<std::string>(id, "key").value_or("nothing");
        });
        code("source", [](Context& ctx, std::string, std::string value) -> Task<std::string> {
            ctx.kv().set("key", value);
            for (;;) {
                std::string next = co_await ctx.receive(inbox);
                ctx.kv().set("key", next);
            }
        });
        code("reader", [](Context& ctx, std::string, std::string id) -> Task<std::string> {
            ctx.kv().set("key", "my own");
            std::string first = co_await ctx.activity<&work>("read", id);
            co_await ctx.receive(inbox);
            std::string second = co_await ctx.activity<&work>("read", id);
            co_return first + ", " + second;
        });
    }
};

TEST_P(KvOfOthers, AnActivityReadsThemAndItsAnswerStays) {
    HOLDFAST_CHECK("runtime kv_get_value_from_instance");
    HOLDFAST_CHECK("runtime kv_get_value_from_instance_typed_e2e");
    HOLDFAST_CHECK("runtime kv_get_value_from_instance_replay_safe");
    HOLDFAST_CHECK("runtime kv_get_value_from_instance_after_source_update");
    HOLDFAST_CHECK("runtime sample_kv_cross_orchestration_read");
    run_script("source", "s", "old");
    run_script("reader", "r", "s");
    EXPECT_EQ(seen.of("read"), 1);
    tell("s", inbox, std::string("new"));
    restart();  // The reader is replayed, and must not see the new value where it saw the old one.
    tell("r", inbox, std::string("go on"));
    EXPECT_EQ(result("r"), "old, new");
    EXPECT_EQ(seen.of("read"), 2);
}

TEST_P(KvOfOthers, WhatIsNotThereIsNoError) {
    HOLDFAST_CHECK("runtime kv_get_value_from_instance_key_missing");
    HOLDFAST_CHECK("runtime kv_get_value_from_instance_unknown_instance");
    HOLDFAST_CHECK("runtime kv_get_value_from_instance_self");
    code("idle", [](Context& ctx, std::string, std::string) -> Task<std::string> {
        co_await ctx.sleep(1h);
        co_return "";
    });
    run_script("idle", "keyless");
    for (const char* of : {"keyless", "nobody", "r-self"}) {
        const std::string reader = of == std::string("r-self") ? of : "r-" + std::string(of);
        run_script("reader", reader, of);
        tell(reader, inbox, std::string("go on"));
    }
    EXPECT_EQ(result("r-keyless"), "nothing, nothing");
    EXPECT_EQ(result("r-nobody"), "nothing, nothing");
    EXPECT_EQ(result("r-self"), "my own, my own");
}

INSTANTIATE_TEST_SUITE_P(Every, KvBehaviour, test::every_backend(), test::backend_name);
INSTANTIATE_TEST_SUITE_P(Every, KvOfOthers, test::every_backend(), test::backend_name);

}  // namespace
}  // namespace holdfast::flow::tests
