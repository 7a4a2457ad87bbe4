// Instances that are deleted and executions that are pruned, while a runtime works on them.
#include <algorithm>
#include <thread>

#include "behaviour/test/behaviour_fixture.hpp"

#include <holdfast/base/error.hpp>

namespace holdfast::flow::tests {
namespace {

class DeletionBehaviour : public StoredBehaviour {
protected:
    DeletionBehaviour() {
        code("quick", [](Context&, std::string, std::string arg) -> Task<std::string> {
            if (arg == "fails") {
                throw permanent("Sad", "no stock");
            }
            co_return arg;
        });
        code("waits", [](Context& ctx, std::string, std::string) -> Task<std::string> {
            std::string text = co_await ctx.receive(inbox);
            co_return text;
        });
        code("family", [](Context& ctx, std::string, std::string leaf) -> Task<std::string> {
            const std::string child = ctx.instance() + "/child";
            std::string text = co_await ctx.child<&script>("middle", leaf).id(child);
            co_return text;
        });
        code("middle", [](Context& ctx, std::string, std::string leaf) -> Task<std::string> {
            const std::string child = ctx.instance() + "/child";
            std::string text = co_await ctx.child<&script>(leaf, "x").id(child);
            co_return text;
        });
        code("rounds", [](Context& ctx, std::string self, std::string left) -> Task<std::string> {
            if (left == "0") {
                co_return "done";
            }
            if (left == "waits") {
                co_await ctx.receive(inbox);
            }
            co_return again(self, left == "waits" ? "0" : std::to_string(std::stoi(left) - 1));
        });
    }
    std::optional<Code> refusal(const std::string& id, bool force = false) {
        return test::code_of([&] { client.remove(id, force); });
    }
};

TEST_P(DeletionBehaviour, WhatHasEndedIsDeletedWhateverItsEnd) {
    HOLDFAST_CHECK("runtime delete_terminal_orchestrations");
    HOLDFAST_CHECK("runtime delete_error_cases");
    run_script("quick", "completed", "x");
    run_script("quick", "failed", "fails");
    run_script("waits", "cancelled");
    client.cancel("cancelled", "enough");
    run();
    run_script("waits", "running");
    for (const char* id : {"completed", "failed", "cancelled"}) {
        EXPECT_EQ(client.remove(id).instances, 1) << id;
        EXPECT_FALSE(client.info(id)) << id;
        EXPECT_EQ(refusal(id), Code::not_found) << id;
    }
    EXPECT_EQ(refusal("running"), Code::condition_failed);
    EXPECT_EQ(status("running"), Status::running);
}

TEST_P(DeletionBehaviour, ByForceGoesAlsoWhatRunsWithAllItsWork) {
    HOLDFAST_CHECK("runtime force_delete_in_flight_work");
    HOLDFAST_CHECK("runtime dispatcher_resilience_after_delete");
    code("busy", [](Context& ctx, std::string, std::string) -> Task<std::string> {
        auto [text, nothing] =
            co_await all(ctx.activity<&work>("step", "").tag("nobody"), ctx.sleep(1h));
        (void)nothing;
        co_return text;
    });
    run_script("busy", "b");
    EXPECT_EQ(client.stats().activities, 1);
    // The worst moment: the runtime has its coroutine in memory, and mail is on its way.
    client.signal("b", inbox, std::string("on its way"));
    client.remove("b", true);
    EXPECT_EQ(client.stats().activities, 0);
    EXPECT_EQ(client.stats().messages, 0);
    run();
    advance(2h);
    EXPECT_FALSE(client.info("b")) << "nothing brings it back";
    run_script("quick", "next", "works on");
    EXPECT_EQ(result("next"), "works on");
}

TEST_P(DeletionBehaviour, ATreeGoesWithItsRoot) {
    HOLDFAST_CHECK("runtime cascade_delete_real_sub_orchestrations");
    HOLDFAST_CHECK("runtime get_instance_tree");
    HOLDFAST_CHECK("runtime list_children_primitive");
    HOLDFAST_CHECK("runtime get_parent_id_primitive");
    HOLDFAST_CHECK("runtime management_get_instance_tree");
    run_script("family", "root", "quick");
    EXPECT_THAT(client.tree("root"), ElementsAre("root", "root/child", "root/child/child"));
    EXPECT_THAT(client.tree("root/child"), ElementsAre("root/child", "root/child/child"));
    EXPECT_THAT(client.tree("nobody"), IsEmpty());
    EXPECT_THAT(client.provider().children("root"), ElementsAre("root/child"));
    EXPECT_THAT(client.provider().children("root/child/child"), IsEmpty());
    EXPECT_EQ(info("root/child/child").parent->instance, "root/child");
    EXPECT_FALSE(info("root").parent);
    EXPECT_EQ(refusal("root/child"), Code::condition_failed) << "only with its root";
    EXPECT_EQ(client.remove("root").instances, 3);
    for (const char* id : {"root", "root/child", "root/child/child"}) {
        EXPECT_FALSE(client.info(id)) << id;
    }
}

TEST_P(DeletionBehaviour, ATreeThatStillRunsIsDeletedByForce) {
    HOLDFAST_CHECK("runtime delete_orphan_race_condition_detection");
    run_script("family", "root", "waits");
    EXPECT_EQ(refusal("root"), Code::condition_failed);
    // A tree that is listed by hand may lack a child that started meanwhile.
    const std::vector<std::string> without_the_leaf{"root", "root/child"};
    EXPECT_EQ(test::code_of([&] { client.provider().delete_exactly(without_the_leaf, true); }),
              Code::condition_failed);
    EXPECT_THAT(client.tree("root"), SizeIs(3)) << "nothing is torn apart";
    EXPECT_EQ(client.remove("root", true).instances, 3);
    EXPECT_EQ(client.signal("root/child/child", inbox, std::string("x")), Delivery::early);
    run();
    EXPECT_EQ(client.stats().instances, 0);
}

TEST_P(DeletionBehaviour, AnIdIsFreeAgainAndItsNamesakeKnowsNothing) {
    HOLDFAST_CHECK("runtime identity_reuse_after_delete");
    code("remembers", [](Context& ctx, std::string, std::string arg) -> Task<std::string> {
        std::string old = ctx.kv().get<std::string>("arg").value_or("nothing");
        ctx.kv().set("arg", arg);
        ctx.status(arg);
        co_return old;
    });
    for (const char* arg : {"first", "second"}) {
        run_script("remembers", "same", arg);
        EXPECT_EQ(result("same"), "nothing") << arg;
        EXPECT_EQ(info("same").status_version, 1) << arg;
        client.remove("same");
    }
}

TEST_P(DeletionBehaviour, SeveralDeleteAtOnceAndEachInstanceGoesOnce) {
    HOLDFAST_CHECK("runtime concurrent_delete_operations");
    constexpr int instances = 8;
    for (int i = 0; i < instances; ++i) {
        run_script("quick", "q-" + std::to_string(i), "x");
    }
    std::atomic<int> deleted = 0;
    std::atomic<int> missed = 0;
    {
        std::vector<std::jthread> threads;
        for (int t = 0; t < 4; ++t) {
            threads.emplace_back([&] {
                for (int i = 0; i < instances; ++i) {
                    const auto refused = refusal("q-" + std::to_string(i));
                    ++(refused == Code::not_found ? missed : deleted);
                }
            });
        }
    }
    EXPECT_EQ(deleted, instances);
    EXPECT_EQ(missed, 3 * instances);
}

TEST_P(DeletionBehaviour, RetentionTakesWhatEndedLongAgo) {
    HOLDFAST_CHECK("runtime delete_instance_bulk_retention_policies");
    HOLDFAST_CHECK("runtime delete_instance_bulk_safety");
    run_script("quick", "old-1", "x");
    run_script("family", "old-family", "quick");
    run_script("waits", "old-but-running");
    advance(24h);
    run_script("quick", "new", "x");
    const Moment yesterday = info("new").completed.value() - 12h;
    EXPECT_EQ(client.remove_ended({.completed_before = yesterday, .limit = 1}).instances, 1)
        << "no more than asked for";
    client.remove_ended({.completed_before = yesterday});
    EXPECT_FALSE(client.info("old-1"));
    EXPECT_THAT(client.tree("old-family"), IsEmpty()) << "with its children";
    EXPECT_EQ(status("new"), Status::completed);
    EXPECT_EQ(status("old-but-running"), Status::running) << "what runs is safe";
    EXPECT_EQ(client.remove_ended({.ids = {"new", "old-but-running", "nobody"}}).instances, 1);
    EXPECT_EQ(client.stats().instances, 1);
}

// --- pruning

TEST_P(DeletionBehaviour, OldExecutionsArePrunedAndTheCurrentOneStays) {
    HOLDFAST_CHECK("runtime prune_continue_as_new_chain");
    HOLDFAST_CHECK("runtime prune_integration_tests.prune_safety");
    run_script("rounds", "r", "4");
    ASSERT_EQ(client.executions("r").size(), 5U);
    EXPECT_EQ(client.prune("r", {.keep_last = 3}).executions, 2);
    EXPECT_EQ(client.executions("r").front().execution, 3U);
    EXPECT_EQ(client.prune("r", {.keep_last = 0}).executions, 2) << "the current one always stays";
    EXPECT_EQ(client.prune("r", {.keep_last = 1}).executions, 0) << "again: nothing to do";
    EXPECT_EQ(result("r"), "done");
    EXPECT_THAT(kinds("r"), ElementsAre("workflow_started", "workflow_completed"));
    EXPECT_EQ(test::code_of([&] { client.prune("nobody", {}); }), Code::not_found);
}

TEST_P(DeletionBehaviour, ManyArePrunedOneByOneAlsoThoseThatRun) {
    HOLDFAST_CHECK("runtime prune_bulk_operations");
    HOLDFAST_CHECK("runtime prune_integration_tests.prune_bulk_includes_running_instances");
    code("three", [](Context& ctx, std::string self, std::string n) -> Task<std::string> {
        if (n != "3") {
            co_return again(self, std::to_string(std::stoi(n) + 1));
        }
        std::string text = co_await ctx.receive(inbox);
        co_return text;
    });
    for (const char* id : {"a", "b", "c"}) {
        run_script("three", id, "1");
    }
    tell("a", inbox, std::string("ended"));
    EXPECT_EQ(client.prune_ended(client.provider().now() + 1s).executions, 3 * 2);
    tell("b", inbox, std::string("goes on"));
    EXPECT_EQ(result("b"), "goes on") << "the execution that ran was not touched";
    EXPECT_EQ(status("c"), Status::running);
}

INSTANTIATE_TEST_SUITE_P(Every, DeletionBehaviour, test::every_backend(), test::backend_name);

}  // namespace
}  // namespace holdfast::flow::tests
