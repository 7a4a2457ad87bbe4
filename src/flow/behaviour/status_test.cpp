// What others see of an instance: its status, its own words about it, its executions.
#include "behaviour/test/behaviour_fixture.hpp"

#include <holdfast/base/error.hpp>

namespace holdfast::flow::tests {
namespace {

using StatusBehaviour = StoredBehaviour;

Task<std::string> ends(Context& ctx, std::string, std::string) {
    std::string how = co_await ctx.receive(inbox);
    if (how == "badly") {
        throw permanent("Sad", "no stock");
    }
    co_return "fine";
}

TEST_P(StatusBehaviour, AnInstanceIsPendingUntilItsFirstTurnAndThenRuns) {
    HOLDFAST_CHECK("runtime status_not_found");
    HOLDFAST_CHECK("runtime status_running");
    HOLDFAST_CHECK("runtime dispatcher_enqueues_start_orchestration_to_orch_queue");
    code("ends", &ends);
    EXPECT_FALSE(client.info("well"));
    EXPECT_EQ(test::code_of([&] { (void)client.wait("well", 1s); }), Code::not_found);
    for (const char* id : {"well", "badly", "cancelled"}) {
        start("ends", id);
        EXPECT_EQ(status(id), Status::pending) << id;
        EXPECT_EQ(client.stats().messages, 1) << "its start waits in its mailbox";
        run();
        EXPECT_EQ(status(id), Status::running) << id;
        EXPECT_EQ(client.stats().messages, 0);
    }
}

TEST_P(StatusBehaviour, EveryEndOfAnInstanceHasAStatusOfItsOwn) {
    HOLDFAST_CHECK("runtime status_completed");
    HOLDFAST_CHECK("runtime status_failed");
    HOLDFAST_CHECK("runtime status_cancelled");
    HOLDFAST_CHECK("runtime status_lifecycle_transitions");
    HOLDFAST_CHECK("runtime orchestration_status_apis");
    HOLDFAST_CHECK("runtime sample_status_polling_fs");
    HOLDFAST_CHECK("runtime management_all_status_types");
    code("ends", &ends);
    for (const char* id : {"well", "badly", "cancelled"}) {
        start("ends", id);
        EXPECT_EQ(status(id), Status::pending) << id;
        run();
        EXPECT_EQ(status(id), Status::running) << id;
    }
    EXPECT_EQ(test::code_of([&] { (void)client.wait("well", 0ms); }), Code::deadline);
    tell("well", inbox, std::string("well"));
    tell("badly", inbox, std::string("badly"));
    client.cancel("cancelled", "enough");
    run();
    EXPECT_EQ(client.wait("well", 0ms).status, Status::completed);
    EXPECT_EQ(result("well"), "fine");
    EXPECT_EQ(status("badly"), Status::failed);
    EXPECT_EQ(failure("badly").type, "Sad");
    EXPECT_EQ(status("cancelled"), Status::cancelled);
    EXPECT_EQ(failure("cancelled").kind, FailureKind::cancelled);
    EXPECT_EQ(failure("cancelled").message, "enough");
}

TEST_P(StatusBehaviour, InstancesHaveTheirOwnStatus) {
    HOLDFAST_CHECK("runtime status_independence");
    code("once", [](Context& ctx, std::string, std::string text) -> Task<std::string> {
        std::string said = co_await ctx.receive(inbox);
        co_return text + said;
    });
    run_script("once", "a", "A");
    run_script("once", "b", "B");
    tell("a", inbox, std::string("!"));
    EXPECT_EQ(result("a"), "A!");
    EXPECT_EQ(status("b"), Status::running);
    EXPECT_EQ(client.list({.status = Status::running}).instances.size(), 1U);
}

TEST_P(StatusBehaviour, AContinuedInstanceRunsUntilItsLastExecutionEnds) {
    HOLDFAST_CHECK("runtime status_after_continue_as_new");
    HOLDFAST_CHECK("runtime providers_fs_multi_execution_persistence_and_latest_read");
    HOLDFAST_CHECK("runtime multi_execution_support");
    HOLDFAST_CHECK("runtime management_read_execution_specific");
    code("rounds", [](Context& ctx, std::string self, std::string round) -> Task<std::string> {
        std::string said = co_await ctx.receive(inbox);
        if (said == "again") {
            co_return again(self, round + "I");
        }
        co_return round;
    });
    run_script("rounds", "r", "I");
    tell("r", inbox, std::string("again"));
    EXPECT_EQ(status("r"), Status::running);
    EXPECT_EQ(info("r").execution, 2U);
    tell("r", inbox, std::string("again"));
    tell("r", inbox, std::string("end"));
    EXPECT_EQ(result("r"), "III");
    sql::Database elsewhere(place.db.url(), place.db.options());  // All of it is in the database.
    Store reopened(elsewhere);
    Client reader(reopened);
    EXPECT_EQ(reader.info("r")->execution, 3U);
    const auto first_input = [&](ExecutionId execution) {
        return std::get<WorkflowStarted>(reader.history("r", execution).front().body).input.json;
    };
    EXPECT_EQ(first_input(1), R"(["rounds","I"])");
    EXPECT_EQ(first_input(2), R"(["rounds","II"])");
    EXPECT_EQ(first_input(0), R"(["rounds","III"])") << "without a number: the latest";
    EXPECT_TRUE(std::holds_alternative<WorkflowContinued>(reader.history("r", 1).back().body));
    EXPECT_THAT(reader.history("r", 7), IsEmpty());
}

TEST(StatusInMemory, ADatabaseInMemoryKeepsExecutionsAsWell) {
    HOLDFAST_CHECK("runtime providers_inmem_multi_execution_persistence_and_latest_read");
    seen.reset();
    Store memory("sqlite::memory:");
    Runtime runtime(memory, test_registry(), manual_options());
    Client client(memory);
    client.start<&loop>("l", 1, 3);
    runtime.run_until_idle();
    EXPECT_EQ(*client.result<&loop>("l", 1s), 3);
    for (ExecutionId execution = 1; execution <= 3; ++execution) {
        const auto history = client.history("l", execution);
        EXPECT_EQ(std::get<WorkflowStarted>(history.front().body).input.json,
                  "[" + std::to_string(execution) + ",3]");
    }
    EXPECT_EQ(client.history("l"), client.history("l", 3));
}

// --- the custom status

TEST_P(StatusBehaviour, WhatACodeSaysOfItselfStaysWhateverItsEnd) {
    HOLDFAST_CHECK("runtime custom_status_set_visible_on_completion");
    HOLDFAST_CHECK("runtime custom_status_visible_on_failure");
    HOLDFAST_CHECK("runtime custom_status_none_when_not_set");
    HOLDFAST_CHECK("runtime custom_status_persists_across_turns");
    HOLDFAST_CHECK("runtime custom_status_tests.custom_status_version_increments");
    code("speaks", [](Context& ctx, std::string, std::string how) -> Task<std::string> {
        if (how != "silent") {
            ctx.status("half way");
        }
        co_await ctx.receive(inbox);
        co_await ctx.receive(inbox);
        if (how == "fails") {
            throw permanent("Sad", "no stock");
        }
        if (how == "speaks") {
            ctx.status("there");
        }
        co_return how;
    });
    for (const char* how : {"speaks", "fails", "silent"}) {
        run_script("speaks", how, how);
        tell(how, inbox, std::string("a turn that says nothing"));
        if (how != std::string("silent")) {
            EXPECT_EQ(info(how).custom_status->json, R"("half way")") << how;
            EXPECT_EQ(info(how).status_version, 1) << how;
        }
        tell(how, inbox, std::string("end"));
    }
    EXPECT_EQ(info("speaks").custom_status->json, R"("there")");
    EXPECT_EQ(info("speaks").status_version, 2);
    EXPECT_EQ(status("fails"), Status::failed);
    EXPECT_EQ(info("fails").custom_status->json, R"("half way")");
    EXPECT_FALSE(info("silent").custom_status);
    EXPECT_EQ(info("silent").status_version, 0);
}

TEST_P(StatusBehaviour, TheNextExecutionIsLeftTheStatusAndMayClearIt) {
    HOLDFAST_CHECK("runtime custom_status_persists_across_continue_as_new");
    HOLDFAST_CHECK("runtime custom_status_reset_across_continue_as_new");
    code("rounds", [](Context& ctx, std::string self, std::string round) -> Task<std::string> {
        if (round == "1") {
            ctx.status("from the first");
            co_return again(self, "2");
        }
        std::string left = ctx.current_status() ? ctx.current_status()->json : "nothing";
        co_await ctx.receive(inbox);
        ctx.clear_status();
        co_return left;
    });
    run_script("rounds", "r", "1");
    EXPECT_EQ(info("r").custom_status->json, R"("from the first")");
    restart();
    tell("r", inbox, std::string("clear"));
    EXPECT_EQ(result("r"), R"("from the first")");
    EXPECT_FALSE(info("r").custom_status);
    EXPECT_EQ(info("r").status_version, 2) << "a clear is a change too";
}

// --- what an instance is

TEST_P(StatusBehaviour, AnInstanceSaysWhatItIsAndWhoseChild) {
    HOLDFAST_CHECK("runtime orchestration_descriptor_root_and_child");
    HOLDFAST_CHECK("runtime orchestration_context_metadata_accessors");
    HOLDFAST_CHECK("runtime instance_info");
    HOLDFAST_CHECK("runtime execution_info");
    HOLDFAST_CHECK("runtime activity_context_metadata");
    code("child", [](Context& ctx, std::string, std::string) -> Task<std::string> {
        co_return ctx.workflow() + " " + ctx.version() + " " + ctx.instance() + " " +
            std::to_string(ctx.execution());
    });
    code("parent", [](Context& ctx, std::string self, std::string round) -> Task<std::string> {
        if (round == "1") {
            co_return again(self, "2");
        }
        std::string about_child = co_await ctx.child<&script>("child", "").id("c");
        std::string about_activity = co_await ctx.activity<&work>("about", "");
        co_return about_child + ", " + ctx.workflow() + " " + ctx.version() + " " + ctx.instance() +
            " " + std::to_string(ctx.execution()) + ", " + about_activity;
    });
    activity("about", [](ActivityContext& ctx, const std::string&) {
        return ctx.name() + " " + ctx.workflow() + " " + ctx.workflow_version() + " " +
               ctx.instance() + " " + std::to_string(ctx.execution()) + " " +
               std::to_string(ctx.attempt());
    });
    run_script("parent", "p", "1");
    EXPECT_EQ(result("p"),
              "test.script 1.0.0 c 1, test.script 1.0.0 p 2, test.work test.script 1.0.0 p 2 1");
    const InstanceInfo parent = info("p");
    EXPECT_EQ(parent.name, "test.script");
    EXPECT_EQ(parent.version, "1.0.0");
    EXPECT_EQ(parent.execution, 2U);
    EXPECT_FALSE(parent.parent);
    EXPECT_GE(parent.completed.value(), parent.created);
    EXPECT_EQ(parent.last_event, client.history("p").back().id);
    const InstanceInfo child = info("c");
    EXPECT_EQ(child.parent, (ParentLink{.instance = "p", .execution = 2, .event = 2}));
    const auto executions = client.executions("p");
    ASSERT_EQ(executions.size(), 2U);
    EXPECT_EQ(executions[0].status, Status::continued);
    EXPECT_EQ(executions[1].output, parent.output);
    EXPECT_GE(executions[1].completed.value(), executions[1].started.value());
}

TEST_P(StatusBehaviour, AStartThatIsThereAlreadyRunsOnce) {
    HOLDFAST_CHECK("runtime runtime_duplicate_orchestration_deduped_single_execution");
    HOLDFAST_CHECK("runtime instance_id_idempotence");
    code("once", [](Context& ctx, std::string, std::string arg) -> Task<std::string> {
        std::string text = co_await ctx.activity<&work>("step", arg);
        co_return text;
    });
    const StartOptions mildly{.duplicate = DuplicatePolicy::use_existing};
    EXPECT_TRUE(client.start_with<&script>(mildly, "o", "once", "first"));
    EXPECT_FALSE(client.start_with<&script>(mildly, "o", "once", "second")) << "not run yet";
    run();
    EXPECT_FALSE(client.start_with<&script>(mildly, "o", "once", "third")) << "it has ended";
    run();
    EXPECT_EQ(result("o"), "first");
    EXPECT_EQ(seen.of("step"), 1);
    EXPECT_EQ(client.executions("o").size(), 1U);
    EXPECT_EQ(test::code_of([&] { start("once", "o", "fourth"); }), Code::already_exists);
}

INSTANTIATE_TEST_SUITE_P(Every, StatusBehaviour, test::every_backend(), test::backend_name);

}  // namespace
}  // namespace holdfast::flow::tests
