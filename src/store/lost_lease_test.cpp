// A process that wakes up late: every write for a shard or a queue proves its lease in the
// transaction that writes.
#include "execution/test/run_fixture.hpp"

#include <holdfast/store/task_queue.hpp>
#include <holdfast/store/visibility.hpp>

namespace holdfast::store::tests {
namespace {

class LostLease : public RunStory {
public:
    LostLease() {
        made_.visibility = VisibilityRecord{.ns = ns,
                                            .run = made_.current.run,
                                            .workflow_id = made_.workflow.workflow_id,
                                            .workflow_type = "order",
                                            .start_time = at(1s),
                                            .execution_time = at(1s)};
        executions.create({.lease = lease, .snapshot = made_, .history = {node(1, true)}});
        history.append(lease, node(2, false));
        tasks.add(lease, {{Category::transfer, {task_}}, {Category::timer, {task_}}});
        tasks.put_to_dlq(lease, "east", task_);
    }

    [[nodiscard]] AppendRequest node(std::int64_t txn, bool first) const {
        return {.branch = branch_,
                .is_new_branch = first,
                .node = {.id = 1, .txn_id = txn, .events = blob("e")}};
    }
    // How many rows each table has.
    std::vector<std::int64_t> rows() {
        std::vector<std::int64_t> counted;
        for (const std::string table : {"executions",
                                        "current_executions",
                                        "activity_info_maps",
                                        "signals_requested_sets",
                                        "buffered_events",
                                        "transfer_tasks",
                                        "timer_tasks",
                                        "visibility_tasks",
                                        "replication_tasks_dlq",
                                        "history_node",
                                        "history_tree",
                                        "executions_visibility",
                                        "task_queues",
                                        "tasks"}) {
            counted.push_back(db.number("SELECT count(*) FROM " + table));
        }
        return counted;
    }

    using Write = std::pair<std::string_view, std::function<void()>>;
    std::vector<Write> writes_of_runs() {
        const WorkflowKey& key = made_.workflow;
        const RunId run = made_.current.run;
        Mutation change = mutation(made_);
        change.done = {{.category = Category::transfer, .key = task_.key}};
        change.visibility = made_.visibility;
        change.visibility->workflow_type = "never";
        const Snapshot other = snapshot(workflow("another"), RunId::random());
        const Snapshot follower = snapshot(key, RunId::random());
        Mutation closed = change;
        closed.current.state = RunState::completed;
        return {{"create", [=, this] { executions.create({.lease = stale, .snapshot = other}); }},
                {"update", [=, this] { executions.update({.lease = stale, .mutation = change}); }},
                {"resolve_conflict",
                 [=, this] {
                     executions.resolve_conflict({.lease = stale, .reset = next(made_, "")});
                 }},
                {"set", [=, this] { executions.set(stale, next(made_, "")); }},
                {"reset",
                 [=, this] {
                     executions.reset({.lease = stale,
                                       .expected_current = run,
                                       .base = closed,
                                       .new_run = follower});
                 }},
                {"remove",
                 [=, this] { executions.remove({.lease = stale, .workflow = key, .run = run}); }},
                {"remove_items", [=, this] { executions.remove_items(stale, key, run); }},
                {"remove_current", [=, this] { executions.remove_current(stale, key, run); }}};
    }
    std::vector<Write> writes_of_tasks_and_history() {
        const TaskRange all{.min = {}, .max = {.fire = at(1h), .id = 100}};
        const Task other{.key = {.fire = {}, .id = 2}, .blob = blob("t")};
        const std::vector<TaskKey> keys{task_.key, other.key};
        return {{"add", [=, this] { tasks.add(stale, {{Category::transfer, {other}}}); }},
                {"complete", [=, this] { tasks.complete(stale, Category::transfer, task_.key); }},
                {"complete several", [=, this] { tasks.complete(stale, Category::timer, keys); }},
                {"complete_range",
                 [=, this] { (void)tasks.complete_range(stale, Category::transfer, all); }},
                {"complete_range of timers",
                 [=, this] { (void)tasks.complete_range(stale, Category::timer, all); }},
                {"put_to_dlq", [=, this] { tasks.put_to_dlq(stale, "east", other); }},
                {"delete_from_dlq", [=, this] { tasks.delete_from_dlq(stale, "east", 1); }},
                {"delete_range_from_dlq",
                 [=, this] { (void)tasks.delete_range_from_dlq(stale, "east", all); }},
                {"append", [=, this] { history.append(stale, node(3, false)); }},
                {"append to a new branch",
                 [=, this] {
                     history.append(stale,
                                    {.branch = History::fork_of(branch_, 2),
                                     .is_new_branch = true,
                                     .forked_from = branch_.id,
                                     .node = {.id = 2, .txn_id = 3, .events = blob("e")}});
                 }},
                {"fork", [=, this] { (void)history.fork(stale, branch_, 2, ""); }},
                {"trim", [=, this] { (void)history.trim(stale, branch_, 1, 2); }},
                {"delete_node", [=, this] { history.delete_node(stale, branch_, 1, 1); }},
                {"remove branch", [=, this] { history.remove(stale, branch_); }}};
    }

    HistoryTasks tasks{shards};
    Visibility visibility{db};
    Branch branch_ = History::new_branch(TreeId::random());
    Task task_{.key = {.fire = {}, .id = 1}, .blob = blob("t")};
    Snapshot made_ = snapshot(workflow("order"), RunId::random());
};

TEST_P(LostLease, WritesNothingForItsShard) {
    HOLDFAST_CHECK("store 221");
    const std::vector<std::int64_t> before = rows();
    std::vector<Write> writes = writes_of_runs();
    std::ranges::move(writes_of_tasks_and_history(), std::back_inserter(writes));
    for (const auto& [name, write] : writes) {
        SCOPED_TRACE(name);
        const auto lost = error_of<ShardOwnershipLost>(write);
        EXPECT_EQ(lost.found(), lease.range);
        EXPECT_EQ(rows(), before);
    }
    EXPECT_EQ(find(made_), stored(made_));
    EXPECT_EQ(current(made_.workflow), made_.current);
    EXPECT_EQ(visibility.find(ns, made_.current.run).value().workflow_type, "order");
}

// A shard that was never taken has no owner.
TEST_P(LostLease, IsLostToAShardThatDoesNotExist) {
    const ShardLease nowhere{.shard = ShardId{99}, .range = RangeId{1}};
    const auto lost = error_of<ShardOwnershipLost>(
        [&] { tasks.complete(nowhere, Category::transfer, task_.key); });
    EXPECT_EQ(lost.found(), std::nullopt);
}

TEST_P(LostLease, WritesNothingForItsQueue) {
    HOLDFAST_CHECK("store 221");
    for (const Fairness fairness : {Fairness::plain, Fairness::fair}) {
        TaskQueues queues{db, fairness};
        const TaskQueueKey key{.ns = ns, .name = "orders"};
        const TaskQueueKey subqueue{.ns = ns, .name = "orders", .subqueue = 3};
        const std::int64_t pass = fairness == Fairness::fair ? 1 : 0;
        const QueueTask task{.place = {.pass = pass, .id = 1}, .blob = blob("t")};
        const QueueTask aside{.place = {.pass = pass, .id = 1}, .blob = blob("t"), .subqueue = 3};
        const TaskPlace end{.pass = pass, .id = 9};
        const RangeId range{2};
        queues.create(key, {.range = range, .info = {}});
        queues.add(key, range, {task, aside});
        const RangeId former{1};
        for (const auto& write : std::vector<std::function<void()>>{
                 [&] { queues.update(key, {.range = range, .info = blob("i")}, former); },
                 [&] { queues.remove(key, former); },
                 [&] { queues.add(key, former, {task}); },
                 [&] { (void)queues.complete_before(key, former, end, 10); },
                 [&] { (void)queues.complete_before(subqueue, former, end, 10); }}) {
            EXPECT_THROW(write(), ConditionFailed);
        }
        EXPECT_EQ(queues.find(key), (TaskQueue{.range = range, .info = {}}));
        EXPECT_THAT(queues.read(key, task.place, 10).tasks, ElementsAre(task));
        EXPECT_EQ(queues.complete_before(subqueue, range, end, 10), 1)
            << "the queue itself has the lease of its subqueues";
    }
}

INSTANTIATE_TEST_SUITE_P(Every, LostLease, test::every_backend(), test::backend_name);

}  // namespace
}  // namespace holdfast::store::tests
