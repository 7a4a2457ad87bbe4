// Versions of a workflow's code: which one a start takes, and that an execution keeps its own.
#include "behaviour/test/behaviour_fixture.hpp"

#include <holdfast/base/error.hpp>

namespace holdfast::flow::tests {
namespace {

// What the two versions have in common. An argument that is not empty is said with the version.
Task<std::string> say_version(Context& ctx, std::string version, std::string arg) {
    const std::string heard = co_await ctx.receive(inbox);
    const std::string done = co_await ctx.activity<&work>("step", version + " " + arg + heard);
    co_return done + " as " + ctx.version();
}

template <int V>
Workflow<std::string> speaks(Context& ctx, std::string arg) {
    return say_version(ctx, "v" + std::to_string(V), std::move(arg));
}
// Takes a version of its child's code, or leaves it to the registry.
template <int V>
Workflow<std::string> greeter(Context& ctx, std::string arg) {
    co_return "v" + std::to_string(V) + " " + arg + " as " + ctx.version();
}
// Eternal: the first version continues, the second one ends.
template <int V>
Workflow<std::string> eternal(Context& ctx, std::string arg) {
    const std::string heard = co_await ctx.receive(inbox);
    if (heard == "end") {
        co_return "v" + std::to_string(V) + " " + arg;
    }
    if (heard == "to 3.0.0") {
        co_return again(arg + "+").version("3.0.0");
    }
    co_return again(arg + "+");
}

}  // namespace
}  // namespace holdfast::flow::tests

HOLDFAST_NAME(holdfast::flow::tests::speaks<1>, "test.speaks");
HOLDFAST_NAME(holdfast::flow::tests::speaks<2>, "test.speaks");
HOLDFAST_NAME(holdfast::flow::tests::greeter<1>, "test.greeter");
HOLDFAST_NAME(holdfast::flow::tests::greeter<2>, "test.greeter");
HOLDFAST_NAME(holdfast::flow::tests::eternal<1>, "test.eternal");
HOLDFAST_NAME(holdfast::flow::tests::eternal<2>, "test.eternal");

namespace holdfast::flow::tests {
namespace {

class VersionBehaviour : public Behaviour {
protected:
    VersionBehaviour() { restart(both()); }

    static Registry first() {
        Registry registry = behaviour_registry();
        registry.workflow<&speaks<1>>("1.0.0").workflow<&greeter<1>>("1.0.0").workflow<&eternal<1>>(
            "1.0.0");
        return registry;
    }
    static Registry both() {
        Registry registry = first();
        registry.workflow<&speaks<2>>("2.0.0").workflow<&greeter<2>>("2.0.0").workflow<&eternal<2>>(
            "2.0.0");
        return registry;
    }
};

TEST_F(VersionBehaviour, AStartTakesTheNewestThePinnedOrTheOneItNames) {
    HOLDFAST_CHECK("runtime start_uses_latest_version");
    HOLDFAST_CHECK("runtime policy_exact_pins_start");
    HOLDFAST_CHECK("runtime runtime_start_versioned_string_uses_explicit_version");
    HOLDFAST_CHECK("runtime runtime_start_versioned_typed_uses_explicit_version");
    HOLDFAST_CHECK("runtime sample_versioning_start_latest_vs_exact_fs");
    client.start<&greeter<1>>("newest", "a");
    client.start_with<&greeter<1>>({.version = "1.0.0"}, "named", "a");
    client.start_by_name({.version = "1.0.0"}, "test.greeter", "by name", Payload{R"(["a"])"});
    run();
    EXPECT_EQ(result("newest"), "v2 a as 2.0.0");
    EXPECT_EQ(result("named"), "v1 a as 1.0.0");
    EXPECT_EQ(result("by name"), "v1 a as 1.0.0");
    restart(both().pin("test.greeter", "1.0.0"));
    client.start<&greeter<1>>("pinned", "a");
    client.start_with<&greeter<1>>({.version = "2.0.0"}, "all the same", "a");
    run();
    EXPECT_EQ(result("pinned"), "v1 a as 1.0.0");
    EXPECT_EQ(result("all the same"), "v2 a as 2.0.0");
    EXPECT_EQ(info("pinned").version, "1.0.0");
}

TEST_F(VersionBehaviour, ChildrenAndDetachedOnesLikewise) {
    HOLDFAST_CHECK("runtime sub_orchestration_versioned_explicit_and_policy");
    HOLDFAST_CHECK("runtime sample_versioning_sub_orchestration_explicit_vs_policy_fs");
    HOLDFAST_CHECK("runtime detached_versioned_uses_policy_latest");
    code("parent", [](Context& ctx, std::string, std::string) -> Task<std::string> {
        const std::string named = co_await ctx.child<&greeter<1>>("a").version("1.0.0");
        const std::string newest = co_await ctx.child<&greeter<1>>("b");
        ctx.detach<&greeter<1>>("d-newest", "c");
        ctx.detach_by_name("test.greeter", "d-named", Payload{R"(["d"])"}, "1.0.0");
        co_return named + ", " + newest;
    });
    run_script("parent", "p");
    EXPECT_EQ(result("p"), "v1 a as 1.0.0, v2 b as 2.0.0");
    EXPECT_EQ(result("d-newest"), "v2 c as 2.0.0");
    EXPECT_EQ(result("d-named"), "v1 d as 1.0.0");
}

TEST_F(VersionBehaviour, AParentFindsTheNewVersionOfItsChildWithoutAChange) {
    HOLDFAST_CHECK("runtime parent_calls_child_upgrade_child_and_verify_latest_used");
    HOLDFAST_CHECK("runtime e2e_rolling_deployment_version_upgrade");
    code("parent", [](Context& ctx, std::string, std::string) -> Task<std::string> {
        const std::string before = co_await ctx.child<&greeter<1>>("a");
        co_await ctx.receive(inbox);
        const std::string after = co_await ctx.child<&greeter<1>>("b");
        co_return before + ", " + after;
    });
    restart(first());
    run_script("parent", "p");
    restart(both());
    tell("p", inbox, std::string("go on"));
    EXPECT_EQ(result("p"), "v1 a as 1.0.0, v2 b as 2.0.0");
}

// The batch has only a completion in it: nothing but the history says which version this is.
TEST_F(VersionBehaviour, AnExecutionKeepsItsVersionAndItsInput) {
    HOLDFAST_CHECK("runtime e2e_replay_completion_only_must_use_version_from_history");
    HOLDFAST_CHECK("runtime unit_workitem_reader_completion_only_must_preserve_version");
    HOLDFAST_CHECK("runtime unit_workitem_reader_completion_only_tuple_field_analysis");
    HOLDFAST_CHECK("runtime unit_input_comes_from_extract_context_not_workitem_reader");
    restart(first());
    client.start<&speaks<1>>("s", "input");
    run();
    restart(both());
    client.signal("s", inbox, std::string("!"));
    {
        const auto claims = client.provider().claim_instances({});
        ASSERT_EQ(claims.size(), 1U);
        EXPECT_EQ(claims[0].name, "test.speaks");
        EXPECT_EQ(claims[0].version, "1.0.0");
        EXPECT_EQ(claims[0].execution, 1U);
        ASSERT_EQ(claims[0].messages.size(), 1U) << "no start among them";
        client.provider().abandon_instance(claims[0], 0ms, true);
    }
    run();
    EXPECT_EQ(result("s"), "v1 input! as 1.0.0");
}

TEST_F(VersionBehaviour, AlsoTheExecutionsThatFollow) {
    HOLDFAST_CHECK("runtime continue_as_new_upgrades_version_deterministically");
    HOLDFAST_CHECK("runtime sample_versioning_continue_as_new_upgrade_fs");
    HOLDFAST_CHECK("runtime e2e_replay_completion_only_after_can_must_use_version_from_history");
    HOLDFAST_CHECK("runtime unit_workitem_reader_nth_execution_must_preserve_version");
    HOLDFAST_CHECK("runtime unit_nth_execution_history_starts_with_orchestration_started");
    HOLDFAST_CHECK("runtime e2e_can_input_preserved_during_completion_only_replay");
    HOLDFAST_CHECK("runtime unit_completion_only_replay_uses_nth_execution_input");
    restart(first());
    client.start<&eternal<1>>("e", "x");
    run();
    tell("e", inbox, std::string("again"));
    EXPECT_EQ(info("e").version, "1.0.0");
    restart(both());
    run();
    EXPECT_EQ(info("e").version, "1.0.0") << "the second execution had begun with it";
    tell("e", inbox, std::string("again"));
    EXPECT_EQ(info("e").version, "2.0.0") << "the third takes the newest";
    restart(both());
    const auto started = events<WorkflowStarted>("e", 3);
    ASSERT_EQ(started.size(), 1U);
    EXPECT_TRUE(std::holds_alternative<WorkflowStarted>(client.history("e", 3)[0].body));
    EXPECT_EQ(started[0].input.json, R"(["x++"])");
    EXPECT_EQ(started[0].version, "2.0.0");
    tell("e", inbox, std::string("end"));
    EXPECT_EQ(result("e"), "v2 x++");
    EXPECT_EQ(client.executions("e")[1].version, "1.0.0");
}

// A second start with another version cannot change the code under a running instance, either.
TEST_F(VersionBehaviour, ASecondStartChangesNothing) {
    restart(first());
    client.start<&speaks<1>>("s", "input");
    run();
    restart(both());
    EXPECT_FALSE(client.start_with<&speaks<1>>(
        {.version = "2.0.0", .duplicate = DuplicatePolicy::use_existing}, "s", "other"));
    tell("s", inbox, std::string("!"));
    EXPECT_EQ(result("s"), "v1 input! as 1.0.0");
}

TEST_F(VersionBehaviour, AVersionThatNoWorkerHasIsWaitedFor) {
    HOLDFAST_CHECK("runtime continue_as_new_to_missing_version_fails_with_poison");
    HOLDFAST_CHECK("runtime backoff_custom_config");
    HOLDFAST_CHECK("runtime delete_poisoned_orchestration");
    RuntimeOptions options = manual_options();
    options.max_attempts = 3;
    options.unregistered_first = 10min;
    options.unregistered_max = 15min;
    restart(both(), options);
    client.start<&eternal<1>>("e", "x");
    run();
    tell("e", inbox, std::string("to 3.0.0"));
    EXPECT_EQ(status("e"), Status::running) << "a process that has it may come";
    int tries = 1;
    for (const auto pause : {10min, 15min, 15min, 15min, 15min}) {
        EXPECT_EQ(info("e").blocked.value().tries, tries);
        advance(pause - 1min);
        EXPECT_EQ(info("e").blocked.value().tries, tries) << "too early";
        advance(1min);
        ++tries;
    }
    EXPECT_EQ(status("e"), Status::running);
    EXPECT_EQ(info("e").blocked->kind, BlockKind::unregistered);
    EXPECT_THAT(info("e").blocked->reason, HasSubstr("test.eternal 3.0.0"));
    client.terminate("e", "not wanted");
    run();
    EXPECT_EQ(status("e"), Status::cancelled) << "that needs no code";
    EXPECT_EQ(client.remove("e").executions, 2);
    EXPECT_FALSE(client.info("e"));
}

// --- code that changes under instances that live

// The old code waited for a signal, which has no memory; the new one reads a channel. One build
// serves both sorts of histories.
TEST_F(VersionBehaviour, OldAndNewHistoriesAreServedByOneBuild) {
    HOLDFAST_CHECK("runtime e2e_upgrade_with_preexisting_v1_history");
    HOLDFAST_CHECK("runtime e2e_eternal_orch_v1_to_v2_event_upgrade");
    code("waits", [](Context& ctx, std::string self, std::string round) -> Task<std::string> {
        const std::string rung = co_await ctx.await_signal(bell);
        co_return again(self, round + "(" + rung + ")");
    });
    run_script("waits", "w", "");
    runtime.reset();
    code("waits", [](Context& ctx, std::string self, std::string round) -> Task<std::string> {
        std::string heard;
        if (ctx.patched("channels")) {
            heard = co_await ctx.receive(inbox);
        } else {
            heard = co_await ctx.await_signal(bell);
        }
        if (heard == "end") {
            co_return round;
        }
        co_return again(self, round + "(" + heard + ")");
    });
    restart();
    client.signal("w", bell, std::string("old"));
    run();
    ASSERT_EQ(info("w").execution, 2U) << "the old history was gone through with the old wait";
    tell("w", inbox, std::string("new"));
    tell("w", inbox, std::string("end"));
    EXPECT_EQ(result("w"), "(old)(new)");
    EXPECT_THAT(events<PatchRecorded>("w", 1), IsEmpty());
    EXPECT_THAT(events<PatchRecorded>("w", 2), SizeIs(1));
}

TEST_F(VersionBehaviour, ANewActivityRunsOnTheNodesThatHaveIt) {
    HOLDFAST_CHECK("runtime e2e_rolling_deployment_three_nodes");
    code("order", [](Context& ctx, std::string, std::string arg) -> Task<std::string> {
        const Payload input{R"(["new"])"};
        const Payload answer = co_await ctx.activity("test.greet", input);
        co_return arg + Codec<std::string>::decode(answer.json);
    });
    runtime.reset();
    Registry old;  // Without the activity.
    old.workflow<&script>();
    RuntimeOptions options = manual_options();
    options.unregistered_first = 1s;
    Runtime one(store, old, options);
    Runtime two(store, old, options);
    start("order", "o", "done: ");
    for (int i = 0; i < 3; ++i) {
        one.run_until_idle();
        two.run_until_idle();
        place.db.advance_clock(4s);
    }
    EXPECT_EQ(status("o"), Status::running);
    EXPECT_EQ(seen.of("greet new"), 0);
    Runtime three(store, behaviour_registry(), options);  // The first node of the new build.
    three.run_until_idle();
    EXPECT_EQ(seen.of("greet new"), 1);
    one.run_until_idle();
    EXPECT_EQ(result("o"), "done: hello new");
}

}  // namespace
}  // namespace holdfast::flow::tests
