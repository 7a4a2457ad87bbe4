// Instances that no worker can advance: they wait, show why, and go on when a worker fits.
#include "behaviour/test/behaviour_fixture.hpp"

#include <holdfast/base/log_capture.hpp>

namespace holdfast::flow::tests {
namespace {

Task<std::string> hears_two(Context& ctx, std::string, std::string) {
    const std::string one = co_await ctx.receive(inbox);
    const std::string done = co_await ctx.activity<&work>("step", one);
    const std::string two = co_await ctx.receive(inbox);
    co_return done + two;
}

// Deployed by mistake: it does not do what the histories say.
Task<std::string> careless(Context& ctx, std::string, std::string) {
    const std::string one = co_await ctx.receive(inbox);
    co_await ctx.sleep(1s);
    std::string done = co_await ctx.activity<&work>("step", one);
    co_return done;
}

RuntimeOptions of_build(const std::string& build) {
    RuntimeOptions options = manual_options();
    options.build_id = build;
    return options;
}

class BlockedBehaviour : public StoredBehaviour {
protected:
    BlockedBehaviour() { code("hears", &hears_two); }
    // An instance that stands behind its first step, and a careless build that has tried it.
    void block_by_careless_build(const std::string& id) {
        runtime.emplace(store, behaviour_registry(), of_build("old"));
        run_script("hears", id);
        tell(id, inbox, std::string("a"));
        runtime.reset();
        code("hears", &careless);
        runtime.emplace(store, behaviour_registry(), of_build("new"));
        tell(id, inbox, std::string("b"));
    }
    void deploy(Body body, const std::string& build) {
        runtime.reset();
        code("hears", body);
        runtime.emplace(store, behaviour_registry(), of_build(build));
    }
};

TEST_P(BlockedBehaviour, OneCarelessDeploymentEndsNothing) {
    block_by_careless_build("w");
    EXPECT_EQ(status("w"), Status::running);
    const Blocked blocked = info("w").blocked.value();
    EXPECT_EQ(blocked.kind, BlockKind::nondeterminism);
    EXPECT_THAT(blocked.reason, HasSubstr("activity_scheduled 'test.work'"));
    EXPECT_EQ(blocked.build, "new");
    EXPECT_EQ(client.stats().blocked, 1);
    EXPECT_EQ(client.list({.blocked = true}).instances.size(), 1U);
    // No time passes: the worker that starts is the one it waits for.
    deploy(&hears_two, "old");
    run();
    EXPECT_EQ(result("w"), "ab");
    EXPECT_FALSE(info("w").blocked);
    EXPECT_EQ(seen.of("step"), 1) << "what was done is not done again";
    EXPECT_EQ(client.stats().blocked, 0);
}

TEST_P(BlockedBehaviour, ABlockedTurnWritesNothing) {
    block_by_careless_build("w");
    const std::int64_t events = place.db.number("SELECT sum(event_count) FROM flow_history");
    const std::int64_t messages = place.db.number("SELECT count(*) FROM flow_messages");
    for (int i = 0; i < 20; ++i) {
        advance(1min);
    }
    EXPECT_EQ(place.db.number("SELECT sum(event_count) FROM flow_history"), events);
    EXPECT_EQ(place.db.number("SELECT count(*) FROM flow_messages"), messages);
    EXPECT_EQ(place.db.number("SELECT max(attempts) FROM flow_messages"), 0);
    EXPECT_EQ(place.db.number("SELECT count(*) FROM flow_activities"), 0);
    EXPECT_EQ(info("w").blocked.value().tries, 21) << "once a minute at the end";
}

TEST_P(BlockedBehaviour, ItsMailIsKeptInOrder) {
    code("all", [](Context& ctx, std::string, std::string) -> Task<std::string> {
        std::string text;
        while (text.size() < 4) {
            const std::string more = co_await ctx.receive(inbox);
            text += more;
        }
        co_return text;
    });
    run_script("all", "w");
    runtime.reset();
    client.signal("w", inbox, std::string("a"));
    runtime.emplace(store, test_registry(), of_build("another-program"));
    run();
    for (const char* text : {"b", "c"}) {
        tell("w", inbox, std::string(text));
    }
    runtime.reset();
    client.signal("w", inbox, std::string("d"));
    runtime.emplace(store, behaviour_registry(), of_build("the-right-one"));
    run();
    EXPECT_EQ(result("w"), "abcd");
}

// Both builds look for work, in either order.
TEST_P(BlockedBehaviour, InAMixedFleetTheRightBuildGetsIt) {
    block_by_careless_build("w");
    runtime.reset();
    Runtime wrong(store, behaviour_registry(), of_build("new"));
    Runtime right(store, behaviour_registry(), of_build("old"));
    int rounds = 0;
    for (; rounds < 20 && !is_final(status("w")); ++rounds) {
        code("hears", &careless);
        wrong.run_until_idle();
        place.db.advance_clock(1s);
        code("hears", &hears_two);
        right.run_until_idle();
    }
    EXPECT_EQ(result("w"), "ab") << rounds;
    EXPECT_LT(rounds, 5);
}

TEST_P(BlockedBehaviour, AnOperatorMayTerminateIt) {
    block_by_careless_build("w");
    client.terminate("w", "by ann");
    run();
    EXPECT_EQ(status("w"), Status::cancelled);
    EXPECT_EQ(failure("w").message, "by ann");
    EXPECT_EQ(place.db.number("SELECT count(*) FROM flow_messages"), 0);
    EXPECT_EQ(client.stats().blocked, 0);
}

TEST_P(BlockedBehaviour, AnOperatorMayFailIt) {
    block_by_careless_build("w");
    client.fail("w", "the order is void");
    run();
    EXPECT_EQ(status("w"), Status::failed);
    EXPECT_EQ(failure("w").kind, FailureKind::application);
    EXPECT_EQ(failure("w").type, "FailedByOperator");
    EXPECT_EQ(failure("w").message, "the order is void");
    EXPECT_FALSE(info("w").blocked);
    EXPECT_EQ(place.db.number("SELECT count(*) FROM flow_messages"), 0);
    EXPECT_EQ(client.stats().blocked, 0);
    // That was not the code's end: what happened before it can go on.
    deploy(&hears_two, "old");
    client.reset("w", {.to = ResetTo::before_failure});
    run();
    EXPECT_EQ(result("w"), "ab") << "with the message that waited";
    EXPECT_EQ(seen.of("step"), 1);
}

TEST_P(BlockedBehaviour, OneThatNoWorkerHasTheCodeOfMayBeFailedToo) {
    runtime.emplace(store, test_registry(), of_build("another-program"));
    client.start_by_name({}, "test.absent", "w", Payload{"[]"});
    run();
    client.fail("w", "never deployed");
    run();
    EXPECT_EQ(status("w"), Status::failed);
    EXPECT_EQ(failure("w").message, "never deployed");
    EXPECT_THAT(kinds("w"), ElementsAre("workflow_started", "cancel_requested", "workflow_failed"));
}

TEST_P(BlockedBehaviour, AnOperatorMayResetIt) {
    block_by_careless_build("w");
    client.reset("w", {.to = ResetTo::start});
    for (int i = 0; i < 3; ++i) {
        advance(1s);
    }
    EXPECT_EQ(result("w"), "a") << "by the code of now";
    EXPECT_FALSE(info("w").blocked);
}

TEST_P(BlockedBehaviour, ARegistryMayFailThemAtOnce) {
    run_script("hears", "w");
    tell("w", inbox, std::string("a"));
    code("hears", &careless);
    Registry registry = behaviour_registry();
    registry.on_nondeterminism(NondeterminismPolicy::fail);
    restart(registry);
    tell("w", inbox, std::string("b"));
    EXPECT_EQ(status("w"), Status::failed);
    EXPECT_EQ(failure("w").kind, FailureKind::nondeterminism);
}

TEST_P(BlockedBehaviour, AWorkerThatHasTheWorkflowTakesItAtOnce) {
    runtime.emplace(store, test_registry(), of_build("another-program"));
    client.start_by_name({}, "test.script", "w", Payload{R"(["hears",""])"});
    for (int i = 0; i < 12; ++i) {
        advance(1min);
    }
    EXPECT_EQ(status("w"), Status::pending);
    EXPECT_EQ(client.stats().unserved, 1);
    EXPECT_FALSE(info("w").due) << "it does not wait for a moment";
    runtime.emplace(store, behaviour_registry(), of_build("the-right-one"));
    run();
    EXPECT_EQ(status("w"), Status::running);
    EXPECT_EQ(client.stats().unserved, 0);
}

TEST_P(BlockedBehaviour, AWorkerThatHasTheActivityTakesItAtOnce) {
    Registry no_activity;
    no_activity.workflow<&script>();
    restart(no_activity);
    run_script("hears", "w");
    tell("w", inbox, std::string("a"));
    for (int i = 0; i < 12; ++i) {
        advance(1min);
    }
    EXPECT_EQ(info("w").unserved_activity, "test.work");
    runtime.emplace(store, behaviour_registry(), manual_options());
    run();
    EXPECT_EQ(seen.of("step"), 1);
    EXPECT_FALSE(info("w").unserved_activity);
}

TEST_P(BlockedBehaviour, OneWarningAMinuteNamesWhatWaits) {
    CapturingLogger log;
    RuntimeOptions options = of_build("another-program");
    options.logger = &log;
    options.unregistered_max = 1s;
    runtime.emplace(store, test_registry(), options);
    for (int i = 0; i < 10; ++i) {
        client.start_by_name({}, "test.absent", "w" + std::to_string(i), Payload{"[]"});
    }
    for (int i = 0; i < 45; ++i) {
        advance(2s);
    }
    EXPECT_EQ(log.count("work waits for a worker that has its code"), 2U);
    EXPECT_EQ(log.count("workflow test.absent"), 2U);
    runtime.reset();
}

INSTANTIATE_TEST_SUITE_P(Every, BlockedBehaviour, test::every_backend(), test::backend_name);

}  // namespace
}  // namespace holdfast::flow::tests
