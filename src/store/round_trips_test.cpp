// What a transaction of the store costs on PostgreSQL: two round trips at most.
#include "execution/test/run_fixture.hpp"

#include <holdfast/store/cluster.hpp>
#include <holdfast/store/namespace.hpp>
#include <holdfast/store/nexus.hpp>
#include <holdfast/store/queue.hpp>
#include <holdfast/store/task_queue.hpp>
#include <holdfast/store/visibility.hpp>

namespace holdfast::store::tests {
namespace {

class RoundTrips : public RunStory {
public:
    // Counted, not timed.
    template <class Work>
    std::int64_t of(const Work& work) {
        const std::int64_t before = db->driver_stats().round_trips;
        work();
        return db->driver_stats().round_trips - before;
    }
    HistoryTasks tasks{shards};
};

TEST_P(RoundTrips, NoTransactionTakesMoreThanTwo) {
    Snapshot made = snapshot(workflow("order"), RunId::random());
    made.tasks[Category::transfer] = {{.key = {.fire = {}, .id = 1}, .blob = blob("t")}};
    EXPECT_LE(of([&] { executions.create({.lease = lease, .snapshot = made}); }), 2);
    Mutation change = mutation(made);
    change.tasks[Category::transfer] = {{.key = {.fire = {}, .id = 2}, .blob = blob("t")}};
    change.tasks[Category::timer] = {{.key = {.fire = at(1s), .id = 3}, .blob = blob("t")}};
    change.buffered = blob("event");
    change.info = blob("info");
    change.done = {
        {.category = Category::transfer, .key = {.fire = {}, .id = 1}},
        {.category = Category::transfer, .key = {.fire = {}, .id = 2}, .rewritten = blob("rest")}};
    change.wake = {.remove = TaskKey{.fire = at(2s), .id = 4},
                   .insert = Task{.key = {.fire = at(1s), .id = 5}, .blob = blob("w")}};
    change.visibility = VisibilityRecord{.ns = ns,
                                         .run = made.current.run,
                                         .workflow_id = made.workflow.workflow_id,
                                         .workflow_type = "order",
                                         .search_attributes = {{"level", {"[1,2,3,4,5,6,7]"}}}};
    Snapshot follower = snapshot(made.workflow, RunId::random());
    follower.visibility = change.visibility;
    follower.visibility->run = follower.current.run;
    EXPECT_LE(
        of([&] { executions.update({.lease = lease, .mutation = change, .new_run = follower}); }),
        2);
    AppendRequest node{.branch = History::new_branch(TreeId::random()),
                       .is_new_branch = true,
                       .node = {.id = 1, .txn_id = 1, .events = blob("e")}};
    Snapshot with_history = snapshot(workflow("with history"), RunId::random());
    EXPECT_LE(of([&] {
                  executions.create({.lease = lease, .snapshot = with_history, .history = {node}});
              }),
              2);
    node.is_new_branch = false;
    EXPECT_LE(of([&] {
                  executions.update(
                      {.lease = lease, .mutation = mutation(with_history), .history = {node}});
              }),
              2);
    EXPECT_LE(of([&] { executions.set(lease, next(follower, "set")); }), 2);
    const Snapshot zombie = create_zombie(made.workflow);
    const Mutation suppressed = mutation(follower, 2);
    EXPECT_LE(
        of([&] {
            executions.resolve_conflict({.lease = lease,
                                         .reset = next(zombie, "reset"),
                                         .current = suppressed,
                                         .new_run = snapshot(made.workflow, RunId::random())});
        }),
        2);
    EXPECT_LE(of([&] { (void)find(made); }), 2);
    EXPECT_EQ(of([&] { (void)current(made.workflow); }), 1);
}

TEST_P(RoundTrips, NeitherDoesOneThatRemovesOrCompletes) {
    const Snapshot made = create(workflow("order"));
    const Tasks follow_up{
        {Category::transfer, {{.key = {.fire = {}, .id = 40}, .blob = blob("rest")}}}};
    const std::vector<TaskChange> done{{.category = Category::transfer, .key = {}}};
    EXPECT_LE(of([&] {
                  executions.remove({.lease = lease,
                                     .workflow = made.workflow,
                                     .run = made.current.run,
                                     .done = done,
                                     .tasks = follow_up});
              }),
              2);
    EXPECT_LE(of([&] { executions.remove_items(lease, made.workflow, made.current.run); }), 2);
    EXPECT_LE(of([&] { executions.remove_current(lease, made.workflow, RunId{}); }), 2);
    const std::vector<TaskKey> keys{{.fire = {}, .id = 2}, {.fire = {}, .id = 3}};
    EXPECT_LE(of([&] { tasks.complete(lease, Category::transfer, keys); }), 2);
    const TaskRange all{.min = {}, .max = {.fire = at(1h), .id = 100}};
    EXPECT_LE(of([&] { tasks.complete_range(lease, Category::transfer, all); }), 2);
    EXPECT_LE(of([&] {
                  tasks.add(lease,
                            {{Category::visibility,
                              {{.key = {.fire = {}, .id = 9}, .blob = blob("t")}}}});
              }),
              2);
    EXPECT_LE(of([&] {
                  shards.update({.id = lease.shard, .range = lease.range, .info = blob("saved")},
                                lease.range);
              }),
              2);
}

TEST_P(RoundTrips, NeitherDoesOneOfAHistory) {
    const Branch branch = History::new_branch(TreeId::random());
    AppendRequest append{.branch = branch,
                         .is_new_branch = true,
                         .node = {.id = 1, .txn_id = 1, .events = blob("e")}};
    EXPECT_LE(of([&] { history.append(lease, append); }), 2);
    append.is_new_branch = false;
    EXPECT_LE(of([&] { history.append(lease, append); }), 2);
    EXPECT_LE(of([&] { (void)history.read({.shard = lease.shard, .branch = branch}); }), 2);
    EXPECT_LE(of([&] { (void)history.fork(lease, branch, 2, ""); }), 2);
    EXPECT_LE(of([&] { history.delete_node(lease, branch, 9, 9); }), 2);

    const Snapshot base = create(workflow("reset"));
    const Snapshot again = completed(base);
    EXPECT_LE(
        of([&] {
            executions.reset({.lease = lease,
                              .expected_current = base.current.run,
                              .base = mutation(again),
                              .new_run = snapshot(base.workflow, RunId::random()),
                              .history = {{.branch = History::fork_of(branch, 2),
                                           .is_new_branch = true,
                                           .forked_from = branch.id,
                                           .node = {.id = 2, .txn_id = 5, .events = blob("e")}}}});
        }),
        2);
}

TEST_P(RoundTrips, NeitherDoesOneThatHasNoShard) {
    TaskQueues queues{db};
    const TaskQueueKey key{.ns = ns, .name = "orders"};
    EXPECT_EQ(of([&] { queues.create(key, {.range = RangeId{1}, .info = {}}); }), 1);
    EXPECT_LE(of([&] { queues.update(key, {.range = RangeId{2}, .info = {}}, RangeId{1}); }), 2);
    std::vector<QueueTask> many;
    for (std::int64_t id = 1; id <= 20; ++id) {
        many.push_back({.place = {.pass = 0, .id = id}, .blob = blob("t")});
    }
    EXPECT_LE(of([&] { queues.add(key, RangeId{2}, many); }), 2);
    EXPECT_EQ(of([&] { (void)queues.read(key, {}, 10); }), 1);
    EXPECT_LE(of([&] { queues.complete_before(key, RangeId{2}, {.pass = 0, .id = 9}, 10); }), 2);
    TaskQueueUserData user_data{db};
    EXPECT_LE(of([&] {
                  user_data.update(ns,
                                   {{"a", {.data = {.blob = blob("a")}, .added_builds = {"x"}}},
                                    {"b", {.data = {.blob = blob("b")}, .added_builds = {"x"}}}});
              }),
              2);

    Namespaces namespaces{db};
    Namespace made{.id = NamespaceId::random(), .name = "orders", .info = blob("info")};
    EXPECT_LE(of([&] { namespaces.create(made); }), 2);
    made.notification_version = namespaces.notification_version();
    EXPECT_LE(of([&] { namespaces.update(made); }), 2);
    EXPECT_LE(of([&] { namespaces.remove(made.id); }), 2);
    Cluster cluster{db};
    EXPECT_LE(of([&] { cluster.save("east", {.blob = blob("e"), .version = 0}); }), 2);
    NexusEndpoints endpoints{db};
    const Endpoint endpoint{.id = EndpointId::random(), .blob = blob("e"), .version = 0};
    EXPECT_LE(of([&] { endpoints.put(endpoint, 0); }), 2);
    EXPECT_LE(of([&] { (void)endpoints.list(10); }), 2);
    Queue queue{db, namespace_replication};
    EXPECT_EQ(of([&] { queue.init(); }), 1);
    EXPECT_LE(of([&] { queue.enqueue(blob("m")); }), 2);
    EXPECT_LE(of([&] { queue.acknowledge("east", 1); }), 2);
    queue.enqueue(blob("m"));
    EXPECT_LE(of([&] { EXPECT_EQ(queue.remove_range(-1, 9), 1); }), 2);
    NamedQueues named{db};
    EXPECT_EQ(of([&] { named.create({.type = 1, .name = "n"}); }), 1);
    EXPECT_LE(of([&] { named.enqueue({.type = 1, .name = "n"}, blob("m")); }), 2);
    EXPECT_LE(of([&] { EXPECT_THAT(named.read({.type = 1, .name = "n"}, 1), SizeIs(1)); }), 2);
    EXPECT_EQ(named.remove_up_to({.type = 1, .name = "n"}, 0), 1);
    named.enqueue({.type = 1, .name = "n"}, blob("m"));
    EXPECT_LE(of([&] { EXPECT_THAT(named.read({.type = 1, .name = "n"}, 1), SizeIs(1)); }), 2)
        << "also where the highest that was deleted is still there";

    Visibility visibility{db};
    VisibilityRecord seen{.ns = ns,
                          .run = RunId::random(),
                          .version = 1,
                          .workflow_id = "order",
                          .workflow_type = "order",
                          .search_attributes = {{"customer", {"\"ann\""}}, {"level", {"3"}}}};
    EXPECT_LE(of([&] { visibility.insert(seen); }), 2);
    seen.version = 2;
    EXPECT_LE(of([&] { visibility.replace(seen); }), 2);
    EXPECT_EQ(of([&] { (void)visibility.list(ns, {}, 10); }), 1);
    EXPECT_EQ(of([&] { (void)visibility.count(ns, {}); }), 1);
    EXPECT_LE(of([&] { visibility.remove(ns, seen.run); }), 2);
}

INSTANTIATE_TEST_SUITE_P(Postgres,
                         RoundTrips,
                         testing::Values(test::Backend::postgres),
                         test::backend_name);

}  // namespace
}  // namespace holdfast::store::tests
