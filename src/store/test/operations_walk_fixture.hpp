// Every transaction of the store, in every mode that it has.
#pragma once

#include "execution/lease.hpp"
#include "execution/run_rows.hpp"
#include "execution/test/run_fixture.hpp"

#include <holdfast/store/cluster.hpp>
#include <holdfast/store/namespace.hpp>
#include <holdfast/store/nexus.hpp>
#include <holdfast/store/queue.hpp>
#include <holdfast/store/task_queue.hpp>
#include <holdfast/store/visibility.hpp>

namespace holdfast::store::tests {

class OperationsWalk {
public:
    explicit OperationsWalk(sql::Database& db) : db_(db) {}

    void see_all() {
        see_shards();
        for (const Archetype kind : {workflow_archetype, Archetype{42}}) {
            see_current_runs({.ns = workflow_.ns, .workflow_id = "order", .archetype = kind});
            see_zombies({.ns = workflow_.ns, .workflow_id = "zombies", .archetype = kind});
        }
        see_tasks();
        see_history();
        see_matching();
        see_cluster();
        see_queues();
        see_visibility();
    }

private:
    void see_shards() {
        (void)shards_.get_or_create({.id = lease_.shard, .range = RangeId{1}, .info = {}});
        shards_.update({.id = lease_.shard, .range = lease_.range, .info = {}}, RangeId{1});
        shards_.assert_ownership(lease_);
    }

    // Of every table one that is deleted and one that is rewritten.
    static std::vector<TaskChange> done() {
        std::vector<TaskChange> changes;
        for (const Category category : {Category::transfer,
                                        Category::timer,
                                        Category::replication,
                                        Category::visibility,
                                        Category::archival,
                                        Category::outbound}) {
            changes.push_back({.category = category, .key = {.fire = {}, .id = 70}});
            changes.push_back(
                {.category = category, .key = {.fire = {}, .id = 71}, .rewritten = blob("rest")});
        }
        return changes;
    }
    // With as many attributes as need every statement that inserts some.
    static VisibilityRecord record_of(const RunWrite& write) {
        VisibilityRecord record{.ns = write.workflow.ns,
                                .run = write.current.run,
                                .workflow_id = write.workflow.workflow_id,
                                .workflow_type = "order"};
        for (int i = 0; i < 255; ++i) {
            record.search_attributes["level_" + std::to_string(i)] = {std::to_string(i)};
        }
        return record;
    }

    // A write with something for every table.
    Mutation change_of(const Snapshot& made, std::int64_t version) {
        Mutation change = RunStory::mutation(made);
        change.record.db_record_version = version;
        change.current.last_write_version += version;
        change.opened = made.items;
        change.closed = {.activities = {5},
                         .timers = {"timer"},
                         .children = {7},
                         .request_cancels = {8},
                         .signals = {9},
                         .signals_requested = {"s1"},
                         .chasm = {"a/b"}};
        change.clear_buffered = true;
        change.buffered = blob("event");
        change.info = blob("info");
        change.done = done();
        change.wake.remove = TaskKey{.fire = at(1s), .id = woken_};
        change.wake.insert = Task{.key = {.fire = at(1s), .id = ++woken_}, .blob = blob("t")};
        change.visibility = record_of(change);
        return change;
    }
    static Snapshot reset_of(const Snapshot& made, std::int64_t version) {
        Snapshot reset = RunStory::next(made, "reset");
        reset.record.db_record_version = version;
        return reset;
    }
    static Snapshot another(const WorkflowKey& key) {
        return RunStory::completed(RunStory::snapshot(key, RunId::random()));
    }

    void see_current_runs(const WorkflowKey& key) {
        const Snapshot first = another(key);
        const Snapshot second = another(key);
        const Snapshot third = another(key);
        const Snapshot fourth = another(key);
        executions_.create({.lease = lease_, .snapshot = first});
        executions_.create({.lease = lease_,
                            .mode = CreateMode::update_current,
                            .previous_run = first.current.run,
                            .previous_last_write_version = 100,
                            .snapshot = second});
        executions_.update({.lease = lease_,
                            .mutation = change_of(second, 2),
                            .new_run = third,
                            .history = {{.branch = History::new_branch(TreeId::random()),
                                         .is_new_branch = true,
                                         .node = {.id = 1, .txn_id = 1, .events = blob("e")}}}});
        executions_.update(
            {.lease = lease_, .mode = UpdateMode::ignore_current, .mutation = change_of(first, 2)});
        executions_.update({.lease = lease_,
                            .mode = UpdateMode::ignore_current,
                            .mutation = RunStory::mutation(first, 2)});
        executions_.resolve_conflict({.lease = lease_,
                                      .reset = reset_of(second, 3),
                                      .current = change_of(third, 2),
                                      .new_run = fourth});
        executions_.set(lease_, reset_of(fourth, 2));
        (void)executions_.find(lease_.shard, key, fourth.current.run);
        (void)executions_.find_current(lease_.shard, key);
        executions_.remove_current(lease_, key, fourth.current.run);
        executions_.remove({.lease = lease_, .workflow = key, .run = fourth.current.run});
        executions_.remove_items(lease_, key, fourth.current.run);
        see_reset(key);
    }
    void see_reset(const WorkflowKey& key) {
        const Snapshot base = another(key);
        const Snapshot current = another(key);
        const Branch branch = History::new_branch(TreeId::random());
        executions_.create({.lease = lease_,
                            .snapshot = base,
                            .history = {{.branch = branch,
                                         .is_new_branch = true,
                                         .node = {.id = 1, .txn_id = 1, .events = blob("e")}}}});
        executions_.create({.lease = lease_,
                            .mode = CreateMode::update_current,
                            .previous_run = base.current.run,
                            .previous_last_write_version = 100,
                            .snapshot = current});
        executions_.reset({.lease = lease_,
                           .expected_current = current.current.run,
                           .base = change_of(base, 2),
                           .current = change_of(current, 2),
                           .new_run = another(key),
                           .history = {{.branch = History::fork_of(branch, 2),
                                        .is_new_branch = true,
                                        .forked_from = branch.id,
                                        .node = {.id = 2, .txn_id = 2, .events = blob("e")}}}});
        // As of a run that has more than one transaction may change.
        const auto shed = [&](sql::Tx& tx, LeaseProof&) {
            for (const sql::Statement* const statement : item_sheds()) {
                (void)shed_items(tx, *statement, key_of(lease_.shard, base));
            }
        };
        transact_under(shards_, lease_, operation::delete_items, Call{}, shed);
    }
    void see_zombies(const WorkflowKey& key) {
        const Snapshot first = another(key);
        const Snapshot second = another(key);
        const Snapshot third = another(key);
        for (const Snapshot& zombie : {first, second}) {
            executions_.create(
                {.lease = lease_, .mode = CreateMode::bypass_current, .snapshot = zombie});
        }
        executions_.update({.lease = lease_,
                            .mode = UpdateMode::bypass_current,
                            .mutation = change_of(first, 2),
                            .new_run = third});
        executions_.resolve_conflict({.lease = lease_,
                                      .mode = ResolveMode::bypass_current,
                                      .reset = reset_of(first, 3),
                                      .current = change_of(second, 2)});
    }

    void see_tasks() {
        HistoryTasks tasks{shards_};
        const Task task{.key = {.fire = {}, .id = 1}, .blob = blob("task")};
        const TaskRange all{.min = {}, .max = {.fire = at(1s), .id = 9}};
        for (const Category category : {Category::transfer,
                                        Category::timer,
                                        Category::replication,
                                        Category::visibility,
                                        Category::archival,
                                        Category::outbound}) {
            tasks.add(lease_, {{category, {task}}});
            (void)tasks.read(lease_.shard, category, all, 10);
            tasks.complete(lease_, category, task.key);
            tasks.complete_range(lease_, category, all);
        }
        tasks.put_to_dlq(lease_, "east", task);
        (void)tasks.read_dlq(lease_.shard, "east", all, 10);
        tasks.delete_from_dlq(lease_, "east", 1);
        tasks.delete_range_from_dlq(lease_, "east", all);
    }
    void see_history() {
        History history{shards_};
        const Branch branch = History::new_branch(TreeId::random());
        history.append(lease_,
                       {.branch = branch,
                        .is_new_branch = true,
                        .node = {.id = 1, .txn_id = 1, .events = blob("e")}});
        (void)history.read({.shard = lease_.shard, .branch = branch});
        (void)history.read_back({.shard = lease_.shard, .branch = branch}, 1);
        const Branch fork = history.fork(lease_, branch, 2, "");
        history.append(lease_,
                       {.branch = fork,
                        .node = {.id = 2, .txn_id = 2, .previous_txn_id = 1, .events = blob("e")}});
        (void)history.read({.shard = lease_.shard, .branch = fork, .min_event = 2});
        history.trim(lease_, fork, 2, 2);
        history.delete_node(lease_, branch, 5, 5);
        (void)history.branches(lease_.shard, branch.tree);
        (void)history.scan(10);
        history.remove(lease_, branch);
    }
    void see_task_queues(Fairness fairness) {
        TaskQueues queues{db_, fairness};
        const TaskQueueKey key{.ns = workflow_.ns, .name = "orders"};
        const TaskPlace first{.pass = fairness == Fairness::fair ? 1 : 0, .id = 0};
        queues.create(key, {.range = RangeId{1}, .info = {}});
        (void)queues.find(key);
        queues.update(key, {.range = RangeId{2}, .info = {}}, RangeId{1});
        queues.add(key, RangeId{2}, {{.place = first, .blob = blob("t")}});
        (void)queues.read(key, first, 10);
        queues.complete_before(key, RangeId{2}, {.pass = first.pass, .id = 9}, 10);
        (void)queues.list(10);
        queues.remove(key, RangeId{2});
    }
    void see_matching() {
        see_task_queues(Fairness::plain);
        see_task_queues(Fairness::fair);
        TaskQueueUserData user_data{db_};
        const NamespaceId ns = workflow_.ns;
        user_data.update(ns, {{"a", {.data = {.blob = blob("a")}, .added_builds = {"x"}}}});
        user_data.update(
            ns, {{"a", {.data = {.blob = blob("a"), .version = 1}, .removed_builds = {"x"}}}});
        (void)user_data.find(ns, "a");
        (void)user_data.list(ns, 10);
        (void)user_data.queues_of_build(ns, "x");
        (void)user_data.count_queues_of_build(ns, "x");
    }
    void see_cluster() {
        Namespaces namespaces{db_};
        Namespace made{.id = NamespaceId::random(), .name = "orders", .info = blob("i")};
        namespaces.create(made);
        made.notification_version = namespaces.notification_version();
        namespaces.update(made);
        (void)namespaces.find(made.id);
        (void)namespaces.find(made.name);
        (void)namespaces.list(10);
        namespaces.remove(made.id);
        namespaces.remove(made.name);
        Cluster cluster{db_};
        cluster.save("east", {.blob = blob("e"), .version = 0});
        cluster.save("east", {.blob = blob("e"), .version = 1});
        (void)cluster.find("east");
        (void)cluster.list(10);
        cluster.remove("east");
        cluster.heartbeat({.host = HostId::random(), .rpc_address = "a"}, 1s);
        (void)cluster.members({}, 10);
        cluster.prune(10);
        NexusEndpoints endpoints{db_};
        const EndpointId endpoint = EndpointId::random();
        endpoints.put({.id = endpoint, .blob = blob("e"), .version = 0}, 0);
        endpoints.put({.id = endpoint, .blob = blob("e"), .version = 1}, 1);
        (void)endpoints.find(endpoint);
        (void)endpoints.list(10);
        endpoints.remove(endpoint, 2);
    }
    void see_queues() {
        Queue queue{db_, namespace_replication};
        queue.init();
        queue.enqueue(blob("m"));
        (void)queue.read(-1, 10);
        queue.acknowledge("east", 0);
        (void)queue.ack_levels();
        queue.remove(0);
        queue.remove_range(-1, 9);
        NamedQueues named{db_};
        const QueueName name{.type = 1, .name = "n"};
        named.create(name);
        named.enqueue(name, blob("m"));
        (void)named.read(name, 10);
        (void)named.list(1, 10);
        named.remove_up_to(name, 0);
    }
    void see_visibility() {
        Visibility visibility{db_};
        VisibilityRecord made{.ns = workflow_.ns,
                              .run = RunId::random(),
                              .version = 1,
                              .workflow_id = workflow_.workflow_id,
                              .workflow_type = "order",
                              .search_attributes = {{"level", {"3"}}}};
        visibility.insert(made);
        made.version = 2;
        visibility.replace(made);
        (void)visibility.find(made.ns, made.run);
        (void)visibility.list(made.ns, {}, 10);
        (void)visibility.count(made.ns, {});
        visibility.remove(made.ns, made.run);
    }

    sql::Database& db_;
    Shards shards_{db_};
    Executions executions_{shards_};
    const ShardLease lease_{.shard = ShardId{7}, .range = RangeId{2}};
    std::int64_t woken_ = 100;
    const WorkflowKey workflow_{.ns = NamespaceId::random(), .workflow_id = "order"};
};

}  // namespace holdfast::store::tests
