// A run that has more rows than one transaction may change.
#include "execution/test/run_fixture.hpp"

#include <holdfast/store/visibility.hpp>

namespace holdfast::store::tests {
namespace {

class LargeRun : public RunStory {
public:
    // Past everything that is tested: no writer could do it in one transaction either.
    void fill(const std::string& table, const std::string& columns, const std::string& values) {
        const bool sqlite = GetParam() == test::Backend::sqlite;
        const std::string numbers =
            sqlite ? "WITH RECURSIVE s (n) AS (SELECT 1000 UNION ALL SELECT n + 1 FROM s "
                     "WHERE n < 4200) "
                   : "WITH s (n) AS (SELECT generate_series(1000, 4200)) ";
        db.execute("INSERT INTO " + table + " (shard_id, run_id, " + columns + ") " + numbers +
                   "SELECT e.shard_id, e.run_id, " + values +
                   " FROM s, executions e WHERE e.workflow_id = 'large'");
    }
    [[nodiscard]] std::int64_t count(const std::string& table) {
        return db.number("SELECT count(*) FROM " + table);
    }
};

TEST_P(LargeRun, IsDeletedWhole) {
    const Snapshot large = create(workflow("large"));
    const Snapshot small = create(workflow("small"));
    fill("activity_info_maps", "schedule_id, data, data_encoding", "n, e.data, ''");
    fill("signals_requested_sets",
         "signal_digest, signal_id",
         GetParam() == test::Backend::sqlite ? "randomblob(16), 'signal-' || n"
                                             : "gen_random_uuid(), 'signal-' || n");
    fill("buffered_events", "id, data, data_encoding", "n, e.data, ''");
    ASSERT_GT(count("activity_info_maps"), 3'000);

    remove(large);
    EXPECT_EQ(find(large), std::nullopt);
    EXPECT_EQ(find(small), stored(small)) << "nobody else's rows";
    EXPECT_EQ(count("executions"), 1);
    EXPECT_EQ(count("activity_info_maps"), std::ssize(small.items.activities));
    EXPECT_EQ(count("timer_info_maps"), std::ssize(small.items.timers));
    EXPECT_EQ(count("child_execution_info_maps"), std::ssize(small.items.children));
    EXPECT_EQ(count("request_cancel_info_maps"), std::ssize(small.items.request_cancels));
    EXPECT_EQ(count("signal_info_maps"), std::ssize(small.items.signals));
    EXPECT_EQ(count("signals_requested_sets"), std::ssize(small.items.signals_requested));
    EXPECT_EQ(count("chasm_node_maps"), std::ssize(small.items.chasm));
    EXPECT_EQ(count("buffered_events"), 0);
}

// It was interrupted after the run itself was gone: the second call finds the rest.
TEST_P(LargeRun, IsDeletedByASecondCallIfTheFirstWasInterrupted) {
    const Snapshot large = create(workflow("large"));
    fill("activity_info_maps", "schedule_id, data, data_encoding", "n, e.data, ''");
    db.execute("DELETE FROM executions");
    executions.remove_items(lease, large.workflow, large.current.run);
    EXPECT_EQ(count("activity_info_maps"), 0);
    EXPECT_EQ(count("timer_info_maps"), 0);
}

TEST_P(LargeRun, KeepsItsItemsAsLongAsItIsThere) {
    HOLDFAST_CHECK("store 225");
    const Snapshot made = create(workflow("large"));
    EXPECT_THROW(executions.remove_items(lease, made.workflow, made.current.run), ConditionFailed);
    EXPECT_EQ(find(made), stored(made));
}

INSTANTIATE_TEST_SUITE_P(Every, LargeRun, test::every_backend(), test::backend_name);

class RemoveStory : public RunStory {
public:
    Snapshot create_visible(std::string id) {
        Snapshot made = snapshot(workflow(std::move(id)), RunId::random());
        made.visibility = VisibilityRecord{.ns = ns,
                                           .run = made.current.run,
                                           .workflow_id = made.workflow.workflow_id,
                                           .workflow_type = "order",
                                           .start_time = at(1s),
                                           .execution_time = at(1s),
                                           .search_attributes = {{"level", {"3"}}}};
        executions.create({.lease = lease, .snapshot = made});
        return made;
    }
    [[nodiscard]] std::vector<Task> transfers() const {
        const TaskRange all{.min = {}, .max = {.fire = {}, .id = 100}};
        return tasks.read(lease.shard, Category::transfer, all, 100).tasks;
    }

    HistoryTasks tasks{shards};
    Visibility visibility{db};
};

TEST_P(RemoveStory, ARunIsGoneAtOnceAndATaskRemembersTheRest) {
    HOLDFAST_CHECK("store 224");
    const Snapshot made = create_visible("order");
    const Snapshot other = create_visible("another");
    const Task due{.key = {.fire = {}, .id = 1}, .blob = blob("delete it")};
    const Task rest{.key = {.fire = {}, .id = 2}, .blob = blob("delete the rest")};
    tasks.add(lease, {{Category::transfer, {due}}});
    executions.remove({.lease = lease,
                       .workflow = made.workflow,
                       .run = made.current.run,
                       .done = {{.category = Category::transfer, .key = due.key}},
                       .tasks = {{Category::transfer, {rest}}}});
    EXPECT_EQ(find(made), std::nullopt);
    EXPECT_EQ(current(made.workflow), std::nullopt);
    EXPECT_EQ(visibility.find(ns, made.current.run), std::nullopt);
    EXPECT_THAT(transfers(), ElementsAre(rest));
    EXPECT_EQ(visibility.count(ns, {}), 1) << "the other run's row stays";

    HOLDFAST_CHECK("store 225");
    for (int i = 0; i < 2; ++i) {  // It may have been cut off.
        executions.remove_items(lease, made.workflow, made.current.run);
    }
    EXPECT_EQ(db.number("SELECT count(*) FROM activity_info_maps"),
              std::ssize(other.items.activities));
    EXPECT_EQ(find(other), stored(other));
}

TEST_P(RemoveStory, AnEarlierRunIsRemovedAndTheCurrentOneStays) {
    HOLDFAST_CHECK("store 224");
    const Snapshot made = create_visible("order");
    const Snapshot follower = snapshot(made.workflow, RunId::random());
    executions.update({.lease = lease, .mutation = mutation(completed(made)), .new_run = follower});
    executions.remove({.lease = lease, .workflow = made.workflow, .run = made.current.run});
    EXPECT_EQ(find(made), std::nullopt);
    EXPECT_EQ(current(made.workflow), follower.current);
    EXPECT_EQ(find(follower), stored(follower));
}

INSTANTIATE_TEST_SUITE_P(Every, RemoveStory, test::every_backend(), test::backend_name);

}  // namespace
}  // namespace holdfast::store::tests
