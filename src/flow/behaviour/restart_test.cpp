// Processes that die, and work that is tried too often: what they leave is taken over, or ended.
#include <algorithm>

#include "behaviour/test/behaviour_fixture.hpp"

namespace holdfast::flow::tests {
namespace {

class RestartBehaviour : public StoredBehaviour {
protected:
    RestartBehaviour() {
        code("steps", [](Context& ctx, std::string, std::string arg) -> Task<std::string> {
            const std::string one = co_await ctx.activity<&work>("one", arg + "1");
            const std::string heard = co_await ctx.receive(inbox);
            std::string two = co_await ctx.activity<&work>("two", one + heard);
            co_return two;
        });
        code("fragile", [](Context& ctx, std::string, std::string arg) -> Task<std::string> {
            std::string text = co_await ctx.activity<&work>("fragile", arg).tag("fragile");
            co_return text;
        });
    }
    static RuntimeOptions fragile_worker(int max_attempts = 10) {
        RuntimeOptions options = manual_options();
        options.tags = TagFilter::default_and({"fragile"});
        options.max_attempts = max_attempts;
        return options;
    }
    // So many workers take what there is, and die with it.
    void workers_die(int times) {
        for (int i = 0; i < times; ++i) {
            EXPECT_FALSE(client.provider()
                             .claim_activities({.count = 100, .tags = TagFilter::everything()})
                             .empty());
            place.db.advance_clock(1min);
        }
    }
    // Requires: no runtime has the instances in hand.
    void dispatchers_die(int times) {
        for (int i = 0; i < times; ++i) {
            EXPECT_FALSE(client.provider().claim_instances({.count = 100}).empty());
            place.db.advance_clock(1min);
        }
    }
};

TEST_P(RestartBehaviour, UnfinishedInstancesGoOnInTheNextProcess) {
    HOLDFAST_CHECK("runtime recovery_across_restart_sqlite_provider");
    HOLDFAST_CHECK("runtime recovery_multiple_orchestrations_sqlite_provider");
    HOLDFAST_CHECK("runtime sqlite_basic_persistence");
    for (const char* id : {"a", "b", "c"}) {
        run_script("steps", id, id);
    }
    runtime.reset();
    sql::Database elsewhere(place.db.url(), place.db.options());
    Store next(elsewhere);  // The file, or the server, is all that they share.
    Client caller(next);
    Runtime again(next, behaviour_registry(), manual_options());
    for (const char* id : {"a", "b", "c"}) {
        caller.signal(id, inbox, std::string("!"));
    }
    again.run_until_idle();
    for (const std::string id : {"a", "b", "c"}) {
        EXPECT_EQ(*caller.result<&script>(id, 0ms), id + "1!");
    }
    EXPECT_EQ(seen.of("one"), 3) << "what was done is not done again";
}

TEST(RestartInMemory, ADatabaseInMemoryOutlivesItsRuntimes) {
    HOLDFAST_CHECK("runtime recovery_across_restart_sqlite_memory");
    seen.reset();
    Store memory("sqlite::memory:");
    Client client(memory);
    client.start<&counter>("c");
    for (int i = 0; i < 3; ++i) {
        Runtime runtime(memory, test_registry(), manual_options());
        runtime.run_until_idle();
        client.signal("c", inbox, std::string(i < 2 ? "count" : "stop"));
        runtime.run_until_idle();
    }
    EXPECT_EQ(*client.result<&counter>("c", 0ms), 2);
    EXPECT_EQ(seen.of("add"), 2);
}

TEST_P(RestartBehaviour, WhatADeadDispatcherHadTakenIsTakenAgain) {
    HOLDFAST_CHECK("runtime crash_after_dequeue_before_append_completion");
    HOLDFAST_CHECK("runtime sqlite_provider_transactional");
    run_script("steps", "s", "x");
    runtime.reset();
    client.signal("s", inbox, std::string("!"));
    dispatchers_die(1);
    restart();
    run();
    EXPECT_EQ(result("s"), "x1!");
    EXPECT_THAT(events<MessageReceived>("s"), SizeIs(1));
}

TEST_P(RestartBehaviour, TimersOutliveTheirProcess) {
    HOLDFAST_CHECK("runtime timer_tests.timer_recovery_after_crash_before_fire");
    HOLDFAST_CHECK("runtime multiple_timers_recovery_after_crash");
    HOLDFAST_CHECK("runtime crash_after_append_before_ack_timer");
    HOLDFAST_CHECK("runtime dispatcher_enqueues_timer_schedule_then_completes");
    HOLDFAST_CHECK("runtime sqlite_provider_timer_queue");
    HOLDFAST_CHECK("runtime timer_fires_at_correct_time_regression");
    code("timers", [](Context& ctx, std::string, std::string) -> Task<std::string> {
        co_await ctx.sleep(1h);
        std::string text = co_await ctx.activity<&work>("one", "between");
        auto [a, b, c] = co_await all(ctx.sleep(3h), ctx.sleep(2h), ctx.sleep(1h));
        (void)a;
        (void)b;
        (void)c;
        co_return text;
    });
    run_script("timers", "t");
    EXPECT_EQ(client.stats().messages, 1) << "a timer is mail to oneself, not visible yet";
    restart();
    advance(30min);
    EXPECT_EQ(kinds("t").back(), "timer_created");
    runtime.reset();
    place.db.advance_clock(1h);
    dispatchers_die(1);  // One takes the timer that fired, and dies before its turn is committed.
    restart();
    run();
    EXPECT_THAT(events<TimerFired>("t"), SizeIs(1)) << "a turn is there as a whole or not at all";
    EXPECT_EQ(client.stats().messages, 3);
    const auto created = events<TimerCreated>("t");
    ASSERT_EQ(created.size(), 4U);
    EXPECT_EQ(created[1].fire_at_ms - created[3].fire_at_ms, 2 * 3'600'000);
    for (const Event& event : client.history("t")) {
        if (event.body == EventBody(created[3])) {
            EXPECT_EQ(created[3].fire_at_ms - event.time_ms, 3'600'000)
                << "from when it was asked for, not from when the workflow began";
        }
    }
    restart();
    advance(150min);
    EXPECT_EQ(status("t"), Status::running);
    EXPECT_THAT(events<TimerFired>("t"), SizeIs(3));
    advance(1h);
    EXPECT_EQ(result("t"), "between");
}

TEST_P(RestartBehaviour, WhatADeadWorkerHadTakenRunsAgain) {
    HOLDFAST_CHECK("runtime activity_reliability_after_crash_before_completion_enqueue");
    HOLDFAST_CHECK("runtime multiple_activities_reliability_after_crash");
    activity("fragile", [](ActivityContext& ctx, const std::string& arg) {
        return arg + " at " + std::to_string(ctx.attempt());
    });
    for (const char* id : {"a", "b", "c"}) {
        run_script("fragile", id, id);
    }
    workers_die(1);
    restart(behaviour_registry(), fragile_worker());
    run();
    for (const std::string id : {"a", "b", "c"}) {
        EXPECT_EQ(result(id), id + " at 2");
    }
}

// --- too often

TEST_P(RestartBehaviour, AnActivityThatKillsItsWorkersIsPoison) {
    HOLDFAST_CHECK("runtime e2e_activity_item_poison_fails_orchestration");
    HOLDFAST_CHECK("runtime poison_message_type_activity");
    HOLDFAST_CHECK("runtime runtime_options_default_max_attempts");
    HOLDFAST_CHECK("runtime poison_message_tests.worker_attempt_count_increments_on_lock_expiry");
    EXPECT_EQ(RuntimeOptions{}.max_attempts, 10);
    run_script("fragile", "ann", "x");
    run_script("fragile", "bob", "x");
    workers_die(9);
    restart(behaviour_registry(), fragile_worker());
    // The tenth attempt of one of them is its last chance, and it takes it.
    const auto claims =
        client.provider().claim_activities({.count = 1, .tags = TagFilter::everything()});
    ASSERT_EQ(claims.size(), 1U);
    EXPECT_EQ(claims.at(0).attempt, 10);
    const std::string kills = claims.at(0).task.key.instance;
    const std::string nearly = kills == "ann" ? "bob" : "ann";
    run();
    EXPECT_EQ(result(nearly), "x");
    place.db.advance_clock(1min);
    run();
    EXPECT_EQ(status(kills), Status::failed);
    EXPECT_EQ(failure(kills).kind, FailureKind::poison);
    EXPECT_THAT(failure(kills).message, HasSubstr("test.work#2 was tried 10 times (at most 10)"));
    EXPECT_EQ(seen.of("fragile"), 1) << "poison is not run";
    EXPECT_EQ(client.stats().activities, 0);
}

TEST_P(RestartBehaviour, HowOftenIsTooOftenCanBeChosen) {
    HOLDFAST_CHECK("runtime runtime_options_configurable_max_attempts");
    HOLDFAST_CHECK("runtime e2e_custom_max_attempts_respected");
    run_script("fragile", "f", "x");
    workers_die(3);
    restart(behaviour_registry(), fragile_worker(4));
    run();
    EXPECT_EQ(result("f"), "x");
    restart();
    run_script("fragile", "g", "x");
    workers_die(3);
    restart(behaviour_registry(), fragile_worker(3));
    run();
    EXPECT_EQ(failure("g").kind, FailureKind::poison);
}

TEST_P(RestartBehaviour, OnePoisonedActivityAmongManyEndsItsWorkflow) {
    HOLDFAST_CHECK("runtime e2e_one_poisoned_activity_among_many");
    code("many", [](Context& ctx, std::string, std::string) -> Task<std::string> {
        auto [a, b, c] = co_await all(ctx.activity<&work>("good", "a"),
                                      ctx.activity<&work>("fragile", "b").tag("fragile"),
                                      ctx.activity<&work>("good", "c"));
        co_return a + b + c;
    });
    run_script("many", "m");
    EXPECT_EQ(seen.of("good"), 2);
    workers_die(2);
    restart(behaviour_registry(), fragile_worker(2));
    run();
    EXPECT_EQ(status("m"), Status::failed);
    EXPECT_EQ(failure("m").kind, FailureKind::poison);
    EXPECT_THAT(events<ActivityCompleted>("m"), SizeIs(2)) << "the others had answered";
}

TEST_P(RestartBehaviour, AWorkflowThatKillsItsDispatchersIsPoison) {
    HOLDFAST_CHECK("runtime e2e_orchestration_item_poison_fails_orchestration");
    HOLDFAST_CHECK("runtime poison_message_type_orchestration");
    HOLDFAST_CHECK("runtime orchestration_attempt_count_increments_on_abandon");
    run_script("steps", "s", "x");
    runtime.reset();
    client.signal("s", inbox, std::string("!"));
    dispatchers_die(9);
    const auto last = client.provider().claim_instances({});
    ASSERT_EQ(last.size(), 1U);
    EXPECT_EQ(last[0].attempt, 10);
    client.provider().abandon_instance(last[0], 0ms, false);
    restart();
    run();
    EXPECT_EQ(status("s"), Status::failed);
    EXPECT_EQ(failure("s").kind, FailureKind::poison);
    EXPECT_THAT(failure("s").message, HasSubstr("the workflow s was tried 10 times (at most 10)"));
    EXPECT_EQ(client.stats().messages, 0);
}

// Each time a process dies of one of them, it had claimed all of them.
TEST_P(RestartBehaviour, OnlyTheWorkflowThatKillsItsDispatchersIsPoison) {
    code("quick",
         [](Context&, std::string, std::string arg) -> Task<std::string> { co_return arg; });
    runtime.reset();
    for (const char* id : {"guilty", "a", "b", "c", "d"}) {
        start("quick", id, id);
    }
    dispatchers_die(5);
    ClaimInstances ask{.count = 100, .attempts_shared_max = 3};
    EXPECT_TRUE(
        std::ranges::none_of(client.provider().claim_instances(ask), &ClaimedInstance::claimed));
    ask.alone = true;
    for (int deaths = 0; deaths < 6;) {
        const auto claims = client.provider().claim_instances(ask);
        ASSERT_EQ(claims.size(), 1U);
        if (claims[0].instance == "guilty") {
            ++deaths;
            place.db.advance_clock(1min);
        } else {  // It would have been run; here it steps aside.
            client.provider().abandon_instance(claims[0], 30s, true);
        }
    }
    restart();
    run();
    EXPECT_EQ(failure("guilty").kind, FailureKind::poison);
    for (const char* id : {"a", "b", "c", "d"}) {
        EXPECT_EQ(result(id), id);
    }
}

TEST_P(RestartBehaviour, AnInstancePoisonedBeforeItsFirstTurnIsThereAllTheSame) {
    HOLDFAST_CHECK("runtime e2e_poison_message_creates_instance_if_missing");
    runtime.reset();
    start("steps", "s", "x");
    dispatchers_die(10);
    restart();
    run();
    EXPECT_EQ(status("s"), Status::failed);
    EXPECT_THAT(kinds("s"), ElementsAre("workflow_started", "workflow_failed"));
    EXPECT_EQ(events<WorkflowStarted>("s")[0].input.json, R"(["steps","x"])");
}

TEST_P(RestartBehaviour, PoisonReachesTheParent) {
    HOLDFAST_CHECK("runtime e2e_sub_orchestration_poison_fails_parent");
    HOLDFAST_CHECK("runtime e2e_activity_poisons_suborchestration_poisons_parent");
    code("parent", [](Context& ctx, std::string, std::string child) -> Task<std::string> {
        const std::string id = ctx.instance() + "/child";
        std::string text = co_await ctx.child<&script>(child, "x").id(id);
        co_return text;
    });
    run_script("parent", "p", "fragile");
    workers_die(2);
    restart(behaviour_registry(), fragile_worker(2));
    run();
    for (const char* id : {"p/child", "p"}) {
        EXPECT_EQ(status(id), Status::failed) << id;
        EXPECT_EQ(failure(id).kind, FailureKind::poison) << id;
    }
}

// The worst case: the child never got through its first turn, and only its start says whose it is.
TEST_P(RestartBehaviour, AChildPoisonedBeforeItsFirstTurnStaysItsParents) {
    code("parent", [](Context& ctx, std::string, std::string) -> Task<std::string> {
        const Payload input{"[]"};
        const Payload answer = co_await ctx.child("test.nobody", input).id("c");
        co_return answer.json;
    });
    run_script("parent", "p");
    runtime.reset();
    place.db.advance_clock(1min);
    dispatchers_die(2);
    RuntimeOptions options = manual_options();
    options.max_attempts = 2;
    restart(behaviour_registry(), options);
    run();
    EXPECT_EQ(failure("c").kind, FailureKind::poison);
    EXPECT_EQ(failure("p").kind, FailureKind::poison);
    EXPECT_EQ(info("c").parent, (ParentLink{.instance = "p", .execution = 1, .event = 2}));
    EXPECT_EQ(events<WorkflowStarted>("c")[0].parent, info("c").parent);
    EXPECT_EQ(client.remove("p").instances, 2);
}

INSTANTIATE_TEST_SUITE_P(Every, RestartBehaviour, test::every_backend(), test::backend_name);

}  // namespace
}  // namespace holdfast::flow::tests
