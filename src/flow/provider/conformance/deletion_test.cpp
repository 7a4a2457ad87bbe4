// Deleting instances with all they have, and pruning executions that are past.
#include <algorithm>

#include "provider/test/provider_fixture.hpp"

namespace holdfast::flow::tests {

namespace {

class ProviderDeletion : public ProviderStory {
protected:
    // a, its children a/1 and a/2, and a/1/1 below the first.
    void plant_tree() {
        begin("a", [](ClaimedTurn& first) { first.starts_child(2, "a/1").starts_child(3, "a/2"); });
        for (const auto& claim : provider.claim_instances({.count = 2})) {
            ClaimedTurn first = turn(claim);
            if (claim.instance == "a/1") {
                first.starts_child(2, "a/1/1");
            }
            ASSERT_EQ(commit(first), Committed::yes);
        }
        ASSERT_EQ(commit(turn(claimed("a/1/1"))), Committed::yes);
    }
    void finish_all(const std::vector<std::string>& instances) {
        for (const auto& instance : instances) {
            finish(instance);
        }
    }
    [[nodiscard]] std::int64_t rows_everywhere(const std::string& instance) const {
        std::int64_t all = 0;
        for (const char* table : {"flow_instances",
                                  "flow_executions",
                                  "flow_history",
                                  "flow_mailboxes",
                                  "flow_messages",
                                  "flow_activities",
                                  "flow_kv",
                                  "flow_attributes"}) {
            all += rows(table, instance);
        }
        return all;
    }
    std::vector<std::string> left() {
        std::vector<std::string> names;
        for (const auto& one : provider.list({}).instances) {
            names.push_back(one.instance);
        }
        std::ranges::sort(names);
        return names;
    }
    std::vector<ExecutionId> executions(const std::string& instance) {
        std::vector<ExecutionId> ids;
        for (const auto& one : provider.executions(instance)) {
            ids.push_back(one.execution);
        }
        return ids;
    }

    using Ids = std::vector<std::string>;
};

// --- one tree -----------------------------------------------------------------------------------

TEST_P(ProviderDeletion, AnEndedInstanceIsDeletedAndCounted) {
    HOLDFAST_CHECK("runtime delete_terminal_instances");
    begin("a");
    renew_execution("a");
    finish("a");
    begin("b", [](ClaimedTurn& only) { only.fails(); });

    const DeleteCounts of_a = provider.delete_tree("a", false);
    EXPECT_EQ(of_a.instances, 1);
    EXPECT_EQ(of_a.executions, 2);
    EXPECT_EQ(of_a.events, 4);
    EXPECT_EQ(of_a.messages, 0);
    EXPECT_EQ(provider.delete_tree("b", false).events, 2);
    EXPECT_TRUE(left().empty());
}

TEST_P(ProviderDeletion, ALiveInstanceIsDeletedOnlyByForce) {
    HOLDFAST_CHECK("runtime delete_running_rejected_force_succeeds");
    begin("a");
    start("b");
    for (const char* id : {"a", "b"}) {
        EXPECT_EQ(test::code_of([&] { provider.delete_tree(id, false); }), Code::condition_failed);
        EXPECT_TRUE(provider.info(id));
        EXPECT_EQ(provider.delete_tree(id, true).instances, 1);
        EXPECT_FALSE(provider.info(id));
    }
    EXPECT_TRUE(idle());
}

TEST_P(ProviderDeletion, WhatIsNotThereCannotBeDeleted) {
    HOLDFAST_CHECK("runtime delete_nonexistent_instance");
    EXPECT_EQ(test::code_of([&] { provider.delete_tree("nobody", false); }), Code::not_found);
    EXPECT_EQ(test::code_of([&] { provider.delete_tree("nobody", true); }), Code::not_found);
}

TEST_P(ProviderDeletion, NothingOfADeletedInstanceStaysAndItsNameIsFree) {
    HOLDFAST_CHECK("runtime delete_cleans_queues_and_locks");
    HOLDFAST_CHECK("runtime kv_delete_instance_cascades");
    HOLDFAST_CHECK("runtime kv_delta_delete_instance_cascades");
    begin("a", [](ClaimedTurn& first) { first.sets("old", "1"); });
    renew_execution("a");
    proceed("a", [](ClaimedTurn& next) {
        next.schedules(2, "charge").schedules(3, "ship").sets("new", "2");
        next.commit.attributes = {{"city", text("Bonn")}};
    });
    signal("a");
    (void)claimed("a");
    signal("a");
    const DeleteCounts counts = provider.delete_tree("a", true);
    EXPECT_EQ(counts.messages, 2);
    EXPECT_EQ(rows_everywhere("a"), 0);
    EXPECT_TRUE(keys("a").empty());

    EXPECT_TRUE(start("a").created);
    const auto claim = claimed("a");
    EXPECT_EQ(claim.execution, 1U);
    EXPECT_EQ(claim.messages.size(), 1U);
    EXPECT_EQ(claim.attempt, 1);
    EXPECT_TRUE(provider.load_history("a", 1).kv.empty());
}

TEST_P(ProviderDeletion, ATreeGoesWithItsRootAndOnlyWithIt) {
    HOLDFAST_CHECK("runtime cascade_delete_hierarchy");
    HOLDFAST_CHECK("runtime kv_delete_instance_with_children");
    plant_tree();
    proceed("a/1/1", [](ClaimedTurn& next) { next.sets("k", "v"); });
    EXPECT_EQ(test::code_of([&] { provider.delete_tree("a/1", true); }), Code::condition_failed);
    finish_all({"a", "a/1", "a/2"});
    EXPECT_EQ(test::code_of([&] { provider.delete_tree("a", false); }), Code::condition_failed)
        << "a descendant is alive";
    finish("a/1/1");
    EXPECT_EQ(provider.delete_tree("a", false).instances, 4);
    EXPECT_TRUE(left().empty());
    EXPECT_TRUE(keys("a/1/1").empty());
    EXPECT_EQ(rows_everywhere("a/1/1"), 0);
}

TEST_P(ProviderDeletion, ATurnOfADeletedInstanceBringsNothingBack) {
    HOLDFAST_CHECK("runtime force_delete_prevents_ack_recreation");
    start("a");
    const auto claim = claimed("a");
    provider.delete_tree("a", true);
    const ClaimedTurn late =
        turn(claim).schedules(2, "charge").starts_child(3, "a/1").sends("a", SignalMessage{});
    EXPECT_EQ(commit(late), Committed::lost);
    EXPECT_FALSE(provider.renew_instance("a", claim.token, 5s));
    EXPECT_FALSE(provider.abandon_instance(claim, 0ms, false));
    EXPECT_EQ(rows_everywhere("a"), 0);
    EXPECT_FALSE(provider.info("a/1"));

    start("a");
    EXPECT_EQ(commit(late), Committed::lost) << "a namesake is somebody else";
    EXPECT_TRUE(history("a").empty());
}

TEST_P(ProviderDeletion, AFamilyIsKnown) {
    HOLDFAST_CHECK("runtime list_children");
    HOLDFAST_CHECK("runtime delete_get_parent_id");
    HOLDFAST_CHECK("runtime delete_get_instance_tree");
    plant_tree();
    auto children = provider.children("a");
    std::ranges::sort(children);
    EXPECT_EQ(children, (Ids{"a/1", "a/2"})) << "direct ones only";
    EXPECT_EQ(provider.children("a/1"), Ids{"a/1/1"});
    EXPECT_TRUE(provider.children("a/2").empty());

    // The parent is part of what is known of an instance; there is no call of its own for it.
    EXPECT_EQ(found(info("a/1/1").parent, "parent").instance, "a/1");
    EXPECT_FALSE(info("a").parent);

    auto tree = provider.tree("a");
    ASSERT_EQ(tree.size(), 4U);
    EXPECT_EQ(tree.front(), "a") << "parents first";
    EXPECT_LT(std::ranges::find(tree, "a/1"), std::ranges::find(tree, "a/1/1"));
    EXPECT_EQ(provider.tree("a/1"), (Ids{"a/1", "a/1/1"}));
    EXPECT_EQ(provider.tree("a/2"), Ids{"a/2"});
}

// --- a list -------------------------------------------------------------------------------------

TEST_P(ProviderDeletion, AListIsDeletedAsOne) {
    HOLDFAST_CHECK("runtime delete_instances_atomic");
    HOLDFAST_CHECK("runtime delete_instances_atomic_force");
    begin_and_finish("a");
    begin_and_finish("b");
    begin("c");
    const Ids all{"a", "b", "c"};
    EXPECT_EQ(test::code_of([&] { provider.delete_exactly(all, false); }), Code::condition_failed);
    EXPECT_EQ(left(), all) << "one that lives keeps them all";

    const DeleteCounts counts = provider.delete_exactly(all, true);
    EXPECT_EQ(counts.instances, 3);
    EXPECT_EQ(counts.executions, 3);
    EXPECT_EQ(counts.events, 2 + 2 + 1);
    EXPECT_TRUE(left().empty());
}

TEST_P(ProviderDeletion, AListThatLeavesOutAChildIsRefused) {
    HOLDFAST_CHECK("runtime delete_instances_atomic_orphan_detection");
    plant_tree();
    EXPECT_EQ(test::code_of([&] { provider.delete_exactly(Ids{"a", "a/1", "a/1/1"}, true); }),
              Code::condition_failed);
    EXPECT_EQ(left(), (Ids{"a", "a/1", "a/1/1", "a/2"}));
    EXPECT_EQ(provider.delete_exactly(Ids{"a", "a/1", "a/1/1", "a/2"}, true).instances, 4);
}

// A child that began after the list was made.
TEST_P(ProviderDeletion, AChildThatStartedMeanwhileSavesItsParent) {
    HOLDFAST_CHECK("runtime +delete_against_a_concurrent_child_start");
    start("a");
    const auto claim = claimed("a");
    const auto listed = provider.tree("a");
    EXPECT_EQ(commit(turn(claim).starts_child(2, "a/1")), Committed::yes);
    EXPECT_EQ(test::code_of([&] { provider.delete_exactly(listed, true); }),
              Code::condition_failed);
    EXPECT_EQ(left(), (Ids{"a", "a/1"}));
    EXPECT_EQ(provider.delete_tree("a", true).instances, 2);
}

// The worker of the first instance ends its activity when a namesake has the same one.
TEST_P(ProviderDeletion, AnOldWorkersAnswerDoesNotReachANamesake) {
    HOLDFAST_CHECK("runtime stale_activity_after_delete_recreate");
    queue("a", {"charge"});
    const auto old = taken("charge");
    provider.delete_tree("a", true);
    queue("a", {"charge"});
    EXPECT_FALSE(end(old));
    EXPECT_FALSE(renew(old));
    EXPECT_TRUE(idle());
    EXPECT_EQ(taken("charge").attempt, 1);
}

// --- by filter ----------------------------------------------------------------------------------

TEST_P(ProviderDeletion, AFilterDeletesWhatFitsAllItsConditions) {
    HOLDFAST_CHECK("runtime delete_instance_bulk_filter_combinations");
    HOLDFAST_CHECK("runtime delete_instance_bulk_completed_before_filter");
    begin_and_finish("a");
    begin_and_finish("b");
    db.advance_clock(1h);
    begin_and_finish("c");
    begin_and_finish("d");
    const Moment between = found(info("b").completed, "end") + 1min;

    EXPECT_EQ(provider.delete_ended({.ids = {"nobody"}}).instances, 0);
    EXPECT_EQ(provider.delete_ended({.ids = {"c"}, .completed_before = between}).instances, 0);
    EXPECT_EQ(provider.delete_ended({.ids = {"a", "c"}, .completed_before = between}).instances, 1);
    EXPECT_EQ(left(), (Ids{"b", "c", "d"}));
    EXPECT_EQ(provider.delete_ended({.completed_before = between}).instances, 1);
    EXPECT_EQ(left(), (Ids{"c", "d"}));
    EXPECT_EQ(provider.delete_ended({.ids = {"d", "nobody"}}).instances, 1);
    EXPECT_EQ(provider.delete_ended({}).instances, 1);
    EXPECT_TRUE(left().empty());
}

TEST_P(ProviderDeletion, AFilterPassesOverWhatLivesAndStopsAtItsLimit) {
    HOLDFAST_CHECK("runtime delete_instance_bulk_safety_and_limits");
    for (const char* id : {"a", "b", "c", "d", "e"}) {
        begin_and_finish(id);
    }
    begin("alive");
    start("pending");
    EXPECT_EQ(provider.delete_ended({.ids = {"alive", "pending"}}).instances, 0);
    EXPECT_EQ(provider.delete_ended({.limit = 2}).instances, 2);
    EXPECT_EQ(provider.delete_ended({.limit = 2}).instances, 2);
    EXPECT_EQ(provider.delete_ended({.limit = 2}).instances, 1);
    EXPECT_EQ(provider.delete_ended({.limit = 2}).instances, 0);
    EXPECT_EQ(left(), (Ids{"alive", "pending"}));
}

TEST_P(ProviderDeletion, ChildrenFollowTheirRootsAndNeverGoAlone) {
    HOLDFAST_CHECK("runtime delete_instance_bulk_cascades_to_children");
    plant_tree();
    finish_all({"a/1/1", "a/1", "a/2"});
    EXPECT_EQ(provider.delete_ended({}).instances, 0) << "their root lives";
    finish("a");
    EXPECT_EQ(provider.delete_ended({}).instances, 4);
    EXPECT_TRUE(left().empty());
}

// --- pruning ------------------------------------------------------------------------------------

TEST_P(ProviderDeletion, PruningKeepsWhatItIsTold) {
    HOLDFAST_CHECK("runtime prune_options_combinations");
    using Executions = std::vector<ExecutionId>;
    begin("a");
    renew_execution("a");
    renew_execution("a");
    db.advance_clock(1h);
    const Moment between = found(provider.executions("a").at(1).completed, "end") + 1min;
    renew_execution("a");
    renew_execution("a");
    ASSERT_EQ(executions("a"), (Executions{1, 2, 3, 4, 5}));

    EXPECT_EQ(provider.prune("a", {.keep_last = 5}).executions, 0);
    EXPECT_EQ(provider.prune("a", {.keep_last = 4, .completed_before = between}).executions, 1);
    EXPECT_EQ(executions("a"), (Executions{2, 3, 4, 5}));
    const DeleteCounts counts = provider.prune("a", {.completed_before = between});
    EXPECT_EQ(counts.executions, 1);
    EXPECT_EQ(counts.events, 2);
    EXPECT_EQ(counts.instances, 0);
    EXPECT_EQ(executions("a"), (Executions{3, 4, 5}));
    EXPECT_TRUE(history("a", 2).empty());
    EXPECT_EQ(provider.prune("a", {}).executions, 2);
    EXPECT_EQ(executions("a"), Executions{5});
    EXPECT_EQ(history("a", 5), Executions{1});
}

TEST_P(ProviderDeletion, TheCurrentExecutionIsNeverPruned) {
    HOLDFAST_CHECK("runtime prune_safety");
    begin("a");
    for (const int keep : {0, 1}) {
        renew_execution("a");
        EXPECT_EQ(provider.prune("a", {.keep_last = keep}).executions, 1);
        EXPECT_EQ(provider.prune("a", {.keep_last = keep}).executions, 0);
        EXPECT_EQ(executions("a").size(), 1U);
    }
    finish("a");
    EXPECT_EQ(provider.prune("a", {.keep_last = 0}).executions, 0) << "current, though ended";
    EXPECT_EQ(history("a", 3).size(), 2U);
    EXPECT_EQ(test::code_of([&] { provider.prune("nobody", {}); }), Code::not_found);
}

TEST_P(ProviderDeletion, ManyArePrunedTogetherAlsoThoseThatRun) {
    HOLDFAST_CHECK("runtime prune_bulk");
    HOLDFAST_CHECK("runtime prune_bulk_includes_running_instances");
    for (const char* id : {"a", "b", "c"}) {
        begin(id);
        renew_execution(id);
    }
    finish("b");
    const Moment long_ago = provider.now() - 1h;
    EXPECT_EQ(provider.prune_ended(long_ago, 10).executions, 0) << "none is that old";
    db.advance_clock(1s);
    EXPECT_EQ(provider.prune_ended(provider.now(), 2).executions, 2) << "of two instances";
    EXPECT_EQ(provider.prune_ended(provider.now(), 10).executions, 1) << "and the rest";
    EXPECT_EQ(provider.prune_ended(provider.now(), 10).executions, 0);
    EXPECT_EQ(executions("a"), std::vector<ExecutionId>{2});
    EXPECT_EQ(info("a").status, Status::running);
    proceed("a", [](ClaimedTurn& next) { next.completes(); });
}

INSTANTIATE_TEST_SUITE_P(Every, ProviderDeletion, every_setting(), setting_name);

}  // namespace

}  // namespace holdfast::flow::tests
