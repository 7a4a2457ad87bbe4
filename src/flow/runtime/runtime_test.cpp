// Whole workflows on every backend, on one thread, with a clock that the test moves.
#include <thread>

#include "runtime/test/runtime_fixture.hpp"

#include <holdfast/base/error.hpp>

namespace holdfast::flow::tests {

Workflow<std::int64_t> rounds(Context& ctx);

}  // namespace holdfast::flow::tests

HOLDFAST_NAME(holdfast::flow::tests::rounds, "test.rounds");

namespace holdfast::flow::tests {

// What it does depends on what the execution before left.
Workflow<std::int64_t> rounds(Context& ctx) {
    const std::int64_t round = ctx.kv().get<std::int64_t>("round").value_or(0) + 1;
    ctx.kv().set("round", round);
    co_await ctx.activity<&greet>(std::to_string(round));
    if (round == 3) {
        co_return round;
    }
    co_return again();
}

namespace {

class RuntimeStory : public testing::TestWithParam<test::Backend> {
protected:
    StoreFixture place{GetParam()};
    Store& store = *place.store;
    Client client{store};
    std::optional<Runtime> runtime{std::in_place, store, registry(), manual_options()};

    static Registry registry() {
        Registry registry = test_registry();
        registry.workflow<&rounds>();
        return registry;
    }

    // Time passes, and whatever is due by then is done.
    void advance(std::chrono::microseconds by) {
        place.db.advance_clock(by);
        runtime->run_until_idle();
    }
    // The process dies: nothing is given back, and its leases run out. Another one starts.
    void crash_and_restart(const RuntimeOptions& options = manual_options()) {
        runtime.reset();
        place.db.advance_clock(1min);
        runtime.emplace(store, registry(), options);
    }
    Status status(std::string_view id) { return client.info(id)->status; }
};

TEST_P(RuntimeStory, AWorkflowRunsItsActivityAndEnds) {
    HOLDFAST_CHECK("runtime sample_hello_world_fs");
    client.start<&hello>("ann", "Ann");
    EXPECT_EQ(status("ann"), Status::pending) << "it must be visible before anybody looked at it";
    runtime->run_until_idle();
    EXPECT_EQ(*client.result<&hello>("ann", 1s), "hello Ann");
    EXPECT_EQ(seen.of("greet Ann"), 1);
}

TEST_P(RuntimeStory, AChainOfStepsTakesOneCommitForEachStepAndTwoMore) {
    client.start<&chain>("warm", 1);
    runtime->run_until_idle();
    constexpr int steps = 5;
    const auto before = place.db->driver_stats();
    client.start<&chain>("chain", steps);
    runtime->run_until_idle();
    const auto after = place.db->driver_stats();
    ASSERT_EQ(*client.result<&chain>("chain", 1s), steps);
    if (GetParam() == test::Backend::sqlite) {
        EXPECT_LE(after.commits - before.commits, steps + 2);
    }
    EXPECT_EQ(runtime->stats().turns_lost, 0);
}

TEST_P(RuntimeStory, ChildrenAnswerTheirParent) {
    HOLDFAST_CHECK("runtime sample_sub_orchestration_fanout_fs");
    client.start<&parent>("family", 4);
    runtime->run_until_idle();
    EXPECT_EQ(*client.result<&parent>("family", 1s), 1 + 2 + 3 + 4);
    EXPECT_EQ(client.tree("family").size(), 5U);
}

TEST_P(RuntimeStory, ContinuingAsNewKeepsTheInstanceAndItsKeys) {
    HOLDFAST_CHECK("runtime continue_as_new_multiexec");
    HOLDFAST_CHECK("runtime kv_survives_continue_as_new");
    client.start<&loop>("loop", 1, 4);
    runtime->run_until_idle();
    EXPECT_EQ(*client.result<&loop>("loop", 1s), 4);
    const auto executions = client.executions("loop");
    ASSERT_EQ(executions.size(), 4U);
    EXPECT_EQ(executions[0].status, Status::continued);
    EXPECT_EQ(executions[3].status, Status::completed);
    EXPECT_EQ(client.kv<std::int64_t>("loop", "round"), 4);
}

TEST_P(RuntimeStory, ATimerFiresWhenItsTimeHasComeAndNotBefore) {
    HOLDFAST_CHECK("runtime single_timer_fires");
    client.start<&sleeper>("sleeper", 60);
    runtime->run_until_idle();
    advance(59s);
    EXPECT_EQ(status("sleeper"), Status::running);
    advance(2s);
    EXPECT_EQ(*client.result<&sleeper>("sleeper", 1s), "awake");
}

TEST_P(RuntimeStory, ATimerFiresAfterACrash) {
    HOLDFAST_CHECK("runtime timer_recovery_after_crash_before_fire");
    HOLDFAST_CHECK("runtime timer_recovery_after_crash_after_fire");
    client.start<&sleeper>("early", 3600);
    client.start<&sleeper>("late", 10);
    runtime->run_until_idle();
    crash_and_restart();  // A minute passes: the short one is overdue.
    runtime->run_until_idle();
    EXPECT_EQ(status("late"), Status::completed);
    EXPECT_EQ(status("early"), Status::running);
    advance(1h);
    EXPECT_EQ(status("early"), Status::completed);
}

TEST_P(RuntimeStory, MessagesAreTakenInOrderAlsoThoseThatCameBeforeTheStart) {
    EXPECT_EQ(client.signal("listener", inbox, std::string("a")), Delivery::early);
    client.start<&listener>("listener", 3);
    EXPECT_EQ(client.signal("listener", inbox, std::string("b")), Delivery::delivered);
    runtime->run_until_idle();
    EXPECT_EQ(status("listener"), Status::running);
    client.signal("listener", inbox, std::string("c"));
    runtime->run_until_idle();
    EXPECT_EQ(*client.result<&listener>("listener", 1s), "abc");
    EXPECT_EQ(client.signal("listener", inbox, std::string("d")), Delivery::ended);
}

TEST_P(RuntimeStory, TheCustomStatusCanBeWaitedFor) {
    HOLDFAST_CHECK("runtime custom_status_updated_in_later_turn");
    client.start<&listener>("listener", 2);
    runtime->run_until_idle();
    EXPECT_EQ(client.info("listener")->status_version, 0);
    client.signal("listener", inbox, std::string("a"));
    runtime->run_until_idle();
    const InstanceInfo info = client.wait_for_status("listener", 0, 1s);
    EXPECT_EQ(info.status_version, 1);
    EXPECT_EQ(info.custom_status->json, "\"a\"");
}

TEST_P(RuntimeStory, ACancelledWorkflowCleansUp) {
    client.start<&cleaner>("cleaner");
    runtime->run_until_idle();
    client.cancel("cleaner", "enough");
    runtime->run_until_idle();
    EXPECT_EQ(*client.result<&cleaner>("cleaner", 1s), "hello clean-up");
}

TEST_P(RuntimeStory, ATerminatedWorkflowGetsNoChance) {
    client.start<&cleaner>("cleaner");
    runtime->run_until_idle();
    client.terminate("cleaner", "now");
    runtime->run_until_idle();
    EXPECT_EQ(status("cleaner"), Status::cancelled);
    EXPECT_EQ(Client::failure_of(*client.info("cleaner")).message, "now");
    EXPECT_EQ(seen.of("greet clean-up"), 0);
}

TEST_P(RuntimeStory, CancellingAParentReachesItsChildren) {
    HOLDFAST_CHECK("runtime cancel_parent_down_propagates_to_child");
    seen.meanwhile = nullptr;
    client.start<&parent>("family", 2);
    // The children wait for nothing: cancel at once, before they run.
    client.cancel("family", "no");
    runtime->run_until_idle();
    EXPECT_EQ(status("family"), Status::cancelled);
    for (const std::string& id : client.tree("family")) {
        EXPECT_TRUE(is_final(status(id))) << id;
    }
}

TEST_P(RuntimeStory, AFailedActivityIsTriedAgainAfterAPause) {
    HOLDFAST_CHECK("runtime activity_fails_then_succeeds");
    client.start<&retrier>("retrier", 2, 5);
    runtime->run_until_idle();
    EXPECT_EQ(seen.of("refuse"), 1);
    advance(10s);
    EXPECT_EQ(seen.of("refuse"), 2);
    advance(20s);
    EXPECT_EQ(*client.result<&retrier>("retrier", 1s), 3);
}

TEST_P(RuntimeStory, AnActivityThatKeepsFailingFailsItsWorkflow) {
    HOLDFAST_CHECK("runtime activity_exhausts_all_attempts");
    client.start<&retrier>("retrier", 9, 2);
    runtime->run_until_idle();
    advance(10s);
    const auto result = client.result<&retrier>("retrier", 1s);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.failure().type, "Refused");
    EXPECT_EQ(seen.of("refuse"), 2);
}

TEST_P(RuntimeStory, QueriesLookAndUpdatesChange) {
    client.start<&teller>("teller");
    runtime->run_until_idle();
    const auto ask = [&](auto&& question) {
        std::jthread answering([&](const std::stop_token& stop) {
            while (!stop.stop_requested()) {
                runtime->run_until_idle();
            }
        });
        return question();
    };
    EXPECT_EQ(ask([&] { return client.query("teller", 10s, what_now); }), "waiting at 0");
    EXPECT_EQ(ask([&] { return client.update("teller", 10s, raise_to, 7); }), 7);
    EXPECT_THROW(ask([&] { return client.update("teller", 10s, raise_to, 3); }), Failure);
    EXPECT_EQ(ask([&] { return client.query("teller", 10s, what_now); }), "waiting at 7");
    crash_and_restart();
    client.signal("teller", inbox, std::string("done"));
    runtime->run_until_idle();
    EXPECT_EQ(*client.result<&teller>("teller", 1s), "done 7") << "an update survives a crash";
}

TEST_P(RuntimeStory, ASuspendedWorkflowRestsUntilItIsResumed) {
    client.start<&listener>("listener", 1);
    runtime->run_until_idle();
    client.suspend("listener", "audit");
    runtime->run_until_idle();
    EXPECT_TRUE(client.info("listener")->suspended);
    client.signal("listener", inbox, std::string("a"));
    runtime->run_until_idle();
    EXPECT_EQ(status("listener"), Status::running);
    EXPECT_TRUE(client.resume("listener"));
    runtime->run_until_idle();
    EXPECT_EQ(*client.result<&listener>("listener", 1s), "a");
}

TEST_P(RuntimeStory, ASuspendedWorkflowCanBeEnded) {
    client.start<&listener>("listener", 1);
    runtime->run_until_idle();
    client.suspend("listener", "audit");
    runtime->run_until_idle();
    ASSERT_TRUE(client.info("listener")->suspended);
    client.terminate("listener", "enough");
    runtime->run_until_idle();
    EXPECT_EQ(status("listener"), Status::cancelled);
}

TEST_P(RuntimeStory, AnActivityKnowsWhoItWorksFor) {
    HOLDFAST_CHECK("runtime session_id_visible_in_activity_context");
    client.start<&identity>("plain", "", "");
    client.start<&identity>("pinned", "", "s1");
    runtime->run_until_idle();
    EXPECT_EQ(*client.result<&identity>("plain", 1s), "plain/1/2 test.identity 1.0.0 1 - -");
    EXPECT_EQ(*client.result<&identity>("pinned", 1s), "pinned/1/2 test.identity 1.0.0 1 - s1");
}

TEST_P(RuntimeStory, ATaggedActivityWaitsForAWorkerThatServesItsTag) {
    HOLDFAST_CHECK("runtime e2e_tagged_activity_runs_on_matching_worker");
    client.start<&identity>("tagged", "gpu", "");
    runtime->run_until_idle();
    EXPECT_EQ(status("tagged"), Status::running);
    RuntimeOptions gpu = manual_options();
    gpu.tags = TagFilter::only({"gpu"});
    Runtime worker(store, test_registry(), gpu);
    worker.run_until_idle();
    runtime->run_until_idle();
    EXPECT_EQ(*client.result<&identity>("tagged", 1s), "tagged/1/2 test.identity 1.0.0 1 gpu -");
}

TEST_P(RuntimeStory, ASecondStartIsRefusedOrIgnoredOrRestarts) {
    client.start<&sleeper>("one", 60);
    runtime->run_until_idle();
    EXPECT_EQ(test::code_of([&] { client.start<&sleeper>("one", 60); }), Code::already_exists);
    EXPECT_FALSE(
        client.start_with<&hello>({.duplicate = DuplicatePolicy::use_existing}, "one", "Bob"));
    EXPECT_TRUE(client.start_with<&hello>({.duplicate = DuplicatePolicy::restart}, "one", "Bob"));
    runtime->run_until_idle();
    EXPECT_EQ(*client.result<&hello>("one", 1s), "hello Bob");
}

TEST_P(RuntimeStory, AWorkflowThatNoWorkerHasWaitsHoweverLong) {
    HOLDFAST_CHECK("runtime unknown_orchestration_fails_with_poison");
    client.start_by_name({}, "test.unknown", "lost", Payload{"[]"});
    for (int i = 0; i < 30; ++i) {
        runtime->run_until_idle();
        ASSERT_EQ(status("lost"), Status::pending) << i;
        place.db.advance_clock(2min);
    }
    EXPECT_EQ(client.info("lost")->blocked.value().tries, 30);
    EXPECT_EQ(place.db.number("SELECT max(attempts) FROM flow_messages"), 0);
}

TEST_P(RuntimeStory, AHistoryCanBeExportedCheckedAndImported) {
    client.start<&chain>("chain", 3);
    runtime->run_until_idle();
    const ExportedHistory history = decode_export(client.export_history("chain"));
    EXPECT_EQ(history.instance, "chain");
    EXPECT_EQ(check_replay("chain", &detail::run_program<&chain>, history.events), std::nullopt);
    EXPECT_NE(check_replay("chain", &detail::run_program<&sleeper>, history.events), std::nullopt);
    client.import_history("copy", encode(history));
    EXPECT_EQ(status("copy"), Status::completed);
    EXPECT_EQ(client.history("copy"), history.events);
}

// A later execution reads what the ones before it left: without that, its code would seem to have
// changed.
TEST_P(RuntimeStory, AnExportOfALaterExecutionHasTheKeysItBeganWith) {
    client.start<&rounds>("rounds");
    runtime->run_until_idle();
    ASSERT_EQ(*client.result<&rounds>("rounds", 1s), 3);
    for (const ExecutionId execution : {1U, 2U, 3U}) {
        const ExportedHistory history = decode_export(client.export_history("rounds", execution));
        EXPECT_EQ(history.execution, execution);
        EXPECT_EQ(history.kv.size(), execution == 1 ? 0U : 1U);
        EXPECT_EQ(check_replay("rounds",
                               &detail::run_program<&rounds>,
                               history.events,
                               history.kv,
                               history.execution),
                  std::nullopt)
            << execution;
    }
    client.import_history("copy", client.export_history("rounds"));
    EXPECT_EQ(client.info("copy")->execution, 3U);
    EXPECT_EQ(client.kv<std::int64_t>("copy", "round"), 3);
    EXPECT_EQ(decode_export(client.export_history("copy")).kv,
              decode_export(client.export_history("rounds")).kv);
}

// Whatever happens to memory, the store knows: a new process carries on from every point.
TEST_P(RuntimeStory, ACrashAfterEveryTurnChangesNothing) {
    HOLDFAST_CHECK("runtime same_activity_name_and_input_routes_correctly_across_restart");
    client.start<&counter>("counter");
    for (int i = 0; i < 5; ++i) {
        runtime->run_until_idle();
        crash_and_restart();
        client.signal("counter", inbox, std::string("count"));
    }
    runtime->run_until_idle();
    client.signal("counter", inbox, std::string("stop"));
    runtime->run_until_idle();
    EXPECT_EQ(*client.result<&counter>("counter", 1s), 5);
}

INSTANTIATE_TEST_SUITE_P(Every, RuntimeStory, test::every_backend(), test::backend_name);

}  // namespace
}  // namespace holdfast::flow::tests
