// What a cancellation reaches: children, activities that wait, and signals that come too early.
// Activities that run are in behaviour_threads_test.cpp.
#include "behaviour/test/behaviour_fixture.hpp"

namespace holdfast::flow::tests {
namespace {

class CancellationBehaviour : public Behaviour {
protected:
    CancellationBehaviour() {
        code("waiter", [](Context& ctx, std::string, std::string) -> Task<std::string> {
            std::string text = co_await ctx.receive(inbox);
            co_return text;
        });
    }
};

TEST_F(CancellationBehaviour, TheExecutionThatRunsIsCancelledNotTheOneBefore) {
    HOLDFAST_CHECK("runtime cancel_continue_as_new_second_exec");
    code("rounds", [](Context& ctx, std::string self, std::string round) -> Task<std::string> {
        if (round == "1") {
            co_return again(self, "2");
        }
        co_await ctx.sleep(1h);
        co_return "slept";
    });
    run_script("rounds", "r", "1");
    client.cancel("r", "enough");
    run();
    EXPECT_EQ(status("r"), Status::cancelled);
    EXPECT_EQ(failure("r").message, "enough");
    const auto executions = client.executions("r");
    ASSERT_EQ(executions.size(), 2U);
    EXPECT_EQ(executions[0].status, Status::continued);
    EXPECT_EQ(executions[1].status, Status::cancelled);
}

TEST_F(CancellationBehaviour, EveryChildOfACancelledParentIsCancelled) {
    HOLDFAST_CHECK("runtime cancel_parent_with_multiple_children");
    HOLDFAST_CHECK("runtime sample_cancellation_parent_cascades_to_children_fs");
    code("family", [](Context& ctx, std::string, std::string) -> Task<std::string> {
        std::vector<Op<std::string>> children;
        for (const char* id : {"c-1", "c-2", "c-3"}) {
            children.push_back(ctx.child<&script>("waiter", "").id(id));
        }
        auto texts = co_await all(std::move(children));
        co_return texts[0];
    });
    run_script("family", "p");
    for (const char* id : {"p", "c-1", "c-2", "c-3"}) {
        ASSERT_EQ(status(id), Status::running) << id;
    }
    client.cancel("p", "enough");
    run();
    for (const char* id : {"p", "c-1", "c-2", "c-3"}) {
        EXPECT_EQ(status(id), Status::cancelled) << id;
    }
}

TEST_F(CancellationBehaviour, CancellingNobodyHarmsNobody) {
    HOLDFAST_CHECK("runtime cancel_nonexistent_instance_is_noop");
    EXPECT_EQ(client.cancel("nobody", "enough"), Delivery::early) << "it may be about to start";
    run_script("waiter", "w");
    tell("w", inbox, std::string("here"));
    EXPECT_EQ(result("w"), "here");
    EXPECT_FALSE(client.info("nobody"));
}

// The code that waits for a child stops waiting, in one of four ways.
TEST_F(CancellationBehaviour, AChildThatNobodyWaitsForAnyMoreIsCancelled) {
    HOLDFAST_CHECK("runtime select2_loser_sub_orchestration_cancelled");
    HOLDFAST_CHECK("runtime select2_loser_sub_orchestration_explicit_id_cancelled");
    HOLDFAST_CHECK("runtime explicit_drop_sub_orchestration_cancelled");
    HOLDFAST_CHECK("runtime sub_orchestration_out_of_scope_cancelled");
    code("parent", [](Context& ctx, std::string, std::string how) -> Task<std::string> {
        if (how == "race") {
            auto first = co_await any(ctx.child<&script>("waiter", ""), ctx.sleep(1s));
            co_await ctx.sleep(1h);
            co_return std::to_string(first.index());
        }
        if (how == "named") {
            auto first =
                co_await any(ctx.child<&script>("waiter", "").id("named/c"), ctx.sleep(1s));
            co_await ctx.sleep(1h);
            co_return std::to_string(first.index());
        }
        {
            auto child = ctx.start(ctx.child<&script>("waiter", ""));
            co_await ctx.sleep(1s);
            if (how == "dropped") {
                child.cancel();
                co_await ctx.sleep(1h);
            }
        }
        co_await ctx.sleep(1h);
        co_return "slept";
    });
    for (const char* how : {"race", "named", "dropped", "scope"}) {
        run_script("parent", how, how);
        const std::vector<std::string> family = client.tree(how);
        ASSERT_EQ(family.size(), 2U) << how;
        EXPECT_EQ(status(family[1]), Status::running) << how;
        advance(1s);
        EXPECT_EQ(status(family[1]), Status::cancelled) << how;
        EXPECT_EQ(failure(family[1]).message, "the parent no longer waits") << how;
        EXPECT_EQ(status(how), Status::running) << "the parent has something else to do: " << how;
    }
    EXPECT_EQ(client.tree("named")[1], "named/c");
}

TEST_F(CancellationBehaviour, AChildCancelledTwiceEndsOnceAndForTheFirstReason) {
    // clang-format off: the mark stands in one line.
    HOLDFAST_CHECK("runtime user_cancel_instance_and_dropped_future_both_enqueue_cancelinstance_for_child");
    // clang-format on
    code("parent", [](Context& ctx, std::string, std::string) -> Task<std::string> {
        auto first = co_await any(ctx.child<&script>("waiter", "").id("c"), ctx.receive(inbox));
        co_await ctx.sleep(1s);
        co_return std::to_string(first.index());
    });
    run_script("parent", "p");
    client.signal("p", inbox, "drop it");
    client.cancel("c", "by the user");
    runtime->run_until_idle();
    EXPECT_EQ(status("c"), Status::cancelled);
    EXPECT_THAT(events<CancelRequested>("c"), SizeIs(1));
    EXPECT_THAT(events<WorkflowFailed>("c"), SizeIs(1));
    EXPECT_EQ(failure("c").message, "by the user");
    advance(1s);
    EXPECT_EQ(result("p"), "1");
}

TEST_F(CancellationBehaviour, TheAnswerOfACancelledWorkflowsActivityIsDropped) {
    HOLDFAST_CHECK("runtime activity_result_dropped_when_orchestration_cancelled");
    code("pays", [](Context& ctx, std::string, std::string) -> Task<std::string> {
        std::string paid = co_await ctx.activity<&work>("pay", "late");
        co_return paid;
    });
    activity("pay", [this](ActivityContext& ctx, const std::string& arg) {
        client.terminate(ctx.instance(), "while it runs");
        Runtime other(store, behaviour_registry(), manual_options());
        other.run_until_idle();  // The end is committed before the activity answers.
        return arg;
    });
    run_script("pays", "p");
    run();
    EXPECT_EQ(seen.of("pay"), 1);
    EXPECT_EQ(status("p"), Status::cancelled);
    EXPECT_THAT(events<ActivityCompleted>("p"), IsEmpty());
    EXPECT_EQ(client.stats().activities, 0);
    EXPECT_EQ(client.stats().messages, 0);
}

TEST_F(CancellationBehaviour, AnActivityWhoseWorkflowHasEndedIsNotTaken) {
    HOLDFAST_CHECK("runtime activity_skipped_when_orchestration_terminal_at_fetch");
    HOLDFAST_CHECK("runtime e2e_dropped_tagged_future_triggers_cancellation");
    code("tagged", [](Context& ctx, std::string, std::string how) -> Task<std::string> {
        auto first = co_await any(ctx.activity<&work>("gpu work", "").tag("gpu"), ctx.sleep(1s));
        co_await ctx.sleep(how == "waits" ? 1h : 0s);
        co_return std::to_string(first.index());
    });
    run_script("tagged", "ended", "ends");
    run_script("tagged", "lives", "waits");
    run_script("tagged", "cancelled", "waits");
    EXPECT_EQ(client.stats().activities, 3);
    client.terminate("cancelled", "enough");
    advance(1s);
    run();
    EXPECT_EQ(status("ended"), Status::completed);
    EXPECT_EQ(status("lives"), Status::running);
    RuntimeOptions gpu = manual_options();
    gpu.tags = TagFilter::only({"gpu"});
    Runtime worker(store, behaviour_registry(), gpu);
    worker.run_until_idle();
    EXPECT_EQ(seen.of("gpu work"), 0) << "all three are called back";
    EXPECT_EQ(client.stats().activities, 0);
}

TEST_F(CancellationBehaviour, ASignalThatNobodyWaitsForIsGone) {
    HOLDFAST_CHECK("runtime positional_arrival_before_sub_outstanding");
    HOLDFAST_CHECK("runtime continue_as_new_event_drop_then_process");
    code("listens", [](Context& ctx, std::string self, std::string round) -> Task<std::string> {
        co_await ctx.receive(inbox);
        std::string rung = co_await ctx.await_signal(bell);
        if (round == "1") {
            co_return again(self, "2");
        }
        co_return rung;
    });
    run_script("listens", "l", "1");
    client.signal("l", bell, std::string("too early"));
    run();
    tell("l", inbox, std::string("listen"));
    EXPECT_EQ(info("l").execution, 1U) << "it waits for another one";
    client.signal("l", bell, std::string("in time"));
    run();
    ASSERT_EQ(info("l").execution, 2U);
    // The same again, in the execution that followed.
    client.signal("l", bell, std::string("too early again"));
    run();
    tell("l", inbox, std::string("listen"));
    EXPECT_EQ(status("l"), Status::running);
    client.signal("l", bell, std::string("at last"));
    run();
    EXPECT_EQ(result("l"), "at last");
}

}  // namespace
}  // namespace holdfast::flow::tests
