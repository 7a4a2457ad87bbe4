// Every transaction of the store, each once.
#pragma once

#include "run_fixture.hpp"

#include <holdfast/store/cluster.hpp>
#include <holdfast/store/namespace.hpp>
#include <holdfast/store/nexus.hpp>
#include <holdfast/store/queue.hpp>
#include <holdfast/store/task_queue.hpp>
#include <holdfast/store/visibility.hpp>

namespace holdfast::store::stories {

class Tour {
public:
    explicit Tour(sql::Database& db) : db_(db) {}

    void see_all() {
        see_runs();
        see_tasks();
        see_history();
        see_matching();
        see_cluster();
        see_queues();
        see_visibility();
    }

private:
    void see_runs() {
        (void)shards_.get_or_create({.id = lease_.shard, .range = RangeId{1}, .info = {}});
        shards_.update({.id = lease_.shard, .range = lease_.range, .info = {}}, RangeId{1});
        shards_.assert_ownership(lease_);
        Executions executions{shards_};
        const Snapshot made = RunStory::snapshot(workflow_, RunId::random());
        executions.create({.lease = lease_, .snapshot = made});
        Mutation change = RunStory::mutation(made);
        change.buffered = blob("event");
        executions.update({.lease = lease_,
                           .mutation = change,
                           .history = {{.shard = lease_.shard,
                                        .branch = History::new_branch(TreeId::random()),
                                        .is_new_branch = true,
                                        .node = {.id = 1, .txn_id = 1, .events = blob("e")}}}});
        Snapshot reset = RunStory::next(made, "reset");
        reset.record.db_record_version = 3;
        executions.resolve_conflict({.lease = lease_, .reset = reset});
        reset.record.db_record_version = 4;
        executions.set(lease_, reset);
        (void)executions.find(lease_.shard, workflow_, made.current.run);
        (void)executions.find_current(lease_.shard, workflow_);
        executions.remove_current(lease_.shard, workflow_, made.current.run);
        executions.remove(lease_.shard, workflow_, made.current.run);
    }
    void see_tasks() {
        HistoryTasks tasks{shards_};
        const Task task{.key = {.fire = {}, .id = 1}, .blob = blob("task")};
        const TaskRange all{.min = {}, .max = {.fire = {}, .id = 9}};
        tasks.add(lease_, {{Category::transfer, {task}}});
        (void)tasks.read(lease_.shard, Category::transfer, all, 10);
        tasks.complete(lease_.shard, Category::transfer, task.key);
        tasks.complete_range(lease_.shard, Category::transfer, all);
        tasks.put_to_dlq(lease_.shard, "east", task);
        (void)tasks.read_dlq(lease_.shard, "east", all, 10);
        tasks.delete_from_dlq(lease_.shard, "east", 1);
        tasks.delete_range_from_dlq(lease_.shard, "east", all);
    }
    void see_history() {
        History history{db_};
        const Branch branch = History::new_branch(TreeId::random());
        history.append({.shard = lease_.shard,
                        .branch = branch,
                        .is_new_branch = true,
                        .node = {.id = 1, .txn_id = 1, .events = blob("e")}});
        (void)history.read({.shard = lease_.shard, .branch = branch});
        (void)history.fork(lease_.shard, branch, 2, "");
        history.delete_node(lease_.shard, branch, 5, 5);
        (void)history.branches(lease_.shard, branch.tree);
        (void)history.scan(10);
        history.remove(lease_.shard, branch);
    }
    void see_matching() {
        TaskQueues queues{db_};
        const TaskQueueKey key{.ns = workflow_.ns, .name = "orders"};
        queues.create(key, {.range = RangeId{1}, .info = {}});
        (void)queues.find(key);
        queues.update(key, {.range = RangeId{2}, .info = {}}, RangeId{1});
        queues.add(key, RangeId{2}, {{.place = {}, .blob = blob("t")}});
        (void)queues.read(key, {}, 10);
        queues.complete_before(key, {.pass = 0, .id = 9}, 10);
        (void)queues.list(10);
        queues.remove(key, RangeId{2});
        TaskQueueUserData user_data{db_};
        user_data.update(key.ns, {{"a", {.data = {.blob = blob("a")}}}});
        (void)user_data.find(key.ns, "a");
        (void)user_data.list(key.ns, 10);
        (void)user_data.queues_of_build(key.ns, "x");
    }
    void see_cluster() {
        Namespaces namespaces{db_};
        Namespace made{.id = NamespaceId::random(), .name = "orders", .info = blob("i")};
        namespaces.create(made);
        made.notification_version = namespaces.notification_version();
        namespaces.update(made);
        (void)namespaces.find(made.id);
        (void)namespaces.list(10);
        namespaces.remove(made.id);
        Cluster cluster{db_};
        cluster.save("east", {.blob = blob("e"), .version = 0});
        (void)cluster.find("east");
        (void)cluster.list(10);
        cluster.remove("east");
        cluster.heartbeat({.host = HostId::random(), .rpc_address = "a"}, 1s);
        (void)cluster.members({}, 10);
        cluster.prune(10);
        NexusEndpoints endpoints{db_};
        const EndpointId endpoint = EndpointId::random();
        endpoints.put({.id = endpoint, .blob = blob("e"), .version = 0}, 0);
        (void)endpoints.find(endpoint);
        (void)endpoints.list(10);
        endpoints.remove(endpoint, 1);
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
        const VisibilityRecord made{.ns = workflow_.ns,
                                    .run = RunId::random(),
                                    .version = 1,
                                    .workflow_id = workflow_.workflow_id,
                                    .workflow_type = "order"};
        visibility.insert(made);
        visibility.replace(made);
        (void)visibility.find(made.ns, made.run);
        (void)visibility.list(made.ns, {}, 10);
        (void)visibility.count(made.ns, {});
        visibility.remove(made.ns, made.run);
    }

    sql::Database& db_;
    Shards shards_{db_};
    const ShardLease lease_{.shard = ShardId{7}, .range = RangeId{2}};
    const WorkflowKey workflow_{.ns = NamespaceId::random(), .workflow_id = "order"};
};

}  // namespace holdfast::store::stories
