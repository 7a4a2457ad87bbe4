// A shard with workflows in it.
#pragma once

#include "test/store_fixture.hpp"

namespace holdfast::store::tests {

class RunStory : public testing::TestWithParam<test::Backend> {
public:
    RunStory() {
        (void)shards.get_or_create({.id = lease.shard, .range = lease.range, .info = {}});
    }

    [[nodiscard]] WorkflowKey workflow(std::string id, Archetype kind = workflow_archetype) const {
        return {.ns = ns, .workflow_id = std::move(id), .archetype = kind};
    }

    // A run with something in every map. `version` is its db_record_version.
    static Snapshot snapshot(const WorkflowKey& key,
                             RunId run,
                             std::int64_t version = 1,
                             std::string_view salt = "") {
        const auto salted = [&](std::string_view text) {
            return blob(std::string(text) + std::string(salt));
        };
        Snapshot made;
        made.workflow = key;
        made.current = {.run = run,
                        .create_request_id = "request-" + run.text(),
                        .state = RunState::running,
                        .status = RunStatus::running,
                        .start_time = at(1'700'000'000'000'000us),
                        .last_write_version = 100,
                        .request_ids = {{"request-" + run.text(), started_event},
                                        {"signal", {.event_type = 9, .event_id = 4}}},
                        .first_run = run};
        made.record = {.next_event_id = 3,
                       .last_write_version = 100,
                       .db_record_version = version,
                       .state = salted("state")};
        made.info = salted("info");
        made.items = {.activities = {{5, salted("activity")}, {6, salted("another")}},
                      .timers = {{"timer", salted("timer")}},
                      .children = {{7, salted("child")}},
                      .request_cancels = {{8, salted("cancel")}},
                      .signals = {{9, salted("signal")}},
                      .signals_requested = {"s1", "s2"},
                      .chasm = {{"a/b", {.metadata = salted("meta"), .data = salted("data")}},
                                {"a/c", {.metadata = salted("meta"), .data = std::nullopt}}}};
        return made;
    }
    static Snapshot completed(Snapshot made) {
        made.current.state = RunState::completed;
        made.current.status = RunStatus::completed;
        return made;
    }
    // What `made` becomes when it is stored.
    static Execution stored(const Snapshot& made) {
        return {.record = made.record, .info = made.info, .items = made.items, .buffered = {}};
    }
    // The next write of a run: one version on, nothing else changed.
    static Mutation mutation(const Snapshot& before, std::int64_t by = 1) {
        Mutation made;
        static_cast<RunWrite&>(made) = before;
        made.done.clear();
        made.wake = {};
        made.tasks.clear();
        made.visibility.reset();
        made.record.db_record_version += by;
        return made;
    }
    static Snapshot next(const Snapshot& before, std::string_view salt) {
        Snapshot made = snapshot(
            before.workflow, before.current.run, before.record.db_record_version + 1, salt);
        made.items.activities = {{50, blob("reset")}};
        return made;
    }

    Snapshot create(const WorkflowKey& key) {
        const Snapshot made = snapshot(key, RunId::random());
        executions.create({.lease = lease, .snapshot = made});
        return made;
    }
    // Beside the current run.
    Snapshot create_zombie(const WorkflowKey& key) {
        Snapshot made = snapshot(key, RunId::random());
        made.current.state = RunState::zombie;
        executions.create({.lease = lease, .mode = CreateMode::bypass_current, .snapshot = made});
        return made;
    }
    // The run, and all that it had open.
    void remove(const RunWrite& write) {
        executions.remove({.lease = lease, .workflow = write.workflow, .run = write.current.run});
        executions.remove_items(lease, write.workflow, write.current.run);
    }
    [[nodiscard]] std::optional<Execution> find(const RunWrite& write) const {
        return executions.find(lease.shard, write.workflow, write.current.run);
    }
    [[nodiscard]] std::optional<CurrentRun> current(const WorkflowKey& key) const {
        return executions.find_current(lease.shard, key);
    }

    // History is appended before its run is written. The branch is made with the first node.
    void append(const Branch& branch, std::int64_t node, std::int64_t txn, std::int64_t previous) {
        history.append(lease,
                       {.branch = branch,
                        .is_new_branch = previous == 0,
                        .node = {.id = node,
                                 .txn_id = txn,
                                 .previous_txn_id = previous,
                                 .events = blob("events")}});
    }
    // The transactions of what a reader sees who stops where the run says.
    [[nodiscard]] std::vector<std::int64_t> history_of(const Branch& branch,
                                                       const RunWrite& run) const {
        std::vector<std::int64_t> seen;
        for (const Node& node : history
                                    .read({.shard = lease.shard,
                                           .branch = branch,
                                           .max_event = find(run).value().record.next_event_id})
                                    .nodes) {
            seen.push_back(node.txn_id);
        }
        return seen;
    }

    const NamespaceId ns = NamespaceId::random();
    const ShardLease lease{.shard = ShardId{7}, .range = RangeId{5}};
    const ShardLease stale{.shard = ShardId{7}, .range = RangeId{4}};
    const Archetype scheduler{42};
    MigratedDatabase db{GetParam()};
    Shards shards{db};
    Executions executions{shards};
    History history{shards};
};

}  // namespace holdfast::store::tests
