// The worst moment of a shard: it changes hands while its former owner is about to commit.
#include <future>
#include <thread>

#include "execution/lease.hpp"
#include "execution/task_rows.hpp"
#include "execution/test/run_fixture.hpp"

#include <holdfast/testing/fault_proxy.hpp>

namespace holdfast::store::tests {
namespace {

constexpr ShardLease owned{.shard = ShardId{7}, .range = RangeId{5}};
Shard taken() {
    return {.id = owned.shard, .range = RangeId{6}, .info = {}};
}

Tasks one_task(std::int64_t id) {
    return {{Category::transfer, {{.key = {.fire = {}, .id = id}, .blob = blob("t")}}}};
}

// All that is written for the shard.
constexpr std::string_view everything =
    "SELECT (SELECT count(*) FROM transfer_tasks) + (SELECT count(*) FROM executions) + "
    "(SELECT coalesce(sum(db_record_version), 0) FROM executions)";

// Where locks wait: the new owner has the shard when all who were about to commit have done so.
class StalledOwner : public testing::Test {
public:
    StalledOwner() {
        (void)shards.get_or_create({.id = owned.shard, .range = owned.range, .info = {}});
        executions.create({.lease = owned, .snapshot = made});
        Snapshot of_zombie = zombie;
        of_zombie.current.state = RunState::zombie;
        executions.create(
            {.lease = owned, .mode = CreateMode::bypass_current, .snapshot = of_zombie});
    }

    // `write` is stopped when it commits, and a new owner takes the shard. What it finds is all
    // that there will ever be of the former owner.
    void expect_heard_before_or_never(const std::function<void()>& write) {
        proxy.arm({.from = test::Side::client, .containing = "COMMIT"}, test::Fault::stall);
        std::jthread former([&] { EXPECT_EQ(test::code_of(write), std::nullopt); });
        ASSERT_TRUE(proxy.wait_struck(Deadline::after(20s)));
        std::future<std::int64_t> taker = std::async(std::launch::async, [&] {
            shards.update(taken(), owned.range);
            return db.number(everything);
        });
        const Deadline patience = Deadline::after(20s);
        bool waits = false;
        while (!waits && taker.wait_for(0s) != std::future_status::ready && !patience.passed()) {
            waits = db.number(
                        "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' "
                        "AND datname = current_database()") > 0;
        }
        EXPECT_TRUE(waits) << "the shard was taken from under a writer";
        proxy.release();
        former.join();
        EXPECT_EQ(taker.get(), db.number(everything)) << "the former owner was heard afterwards";
        EXPECT_THROW(write(), ShardOwnershipLost);
    }

    MigratedDatabase db{test::Backend::postgres};
    Shards shards{db};
    Executions executions{shards};
    test::FaultProxy proxy{test::shared_postgres()};
    sql::Database through{proxy.address().url(db.name()) + "&pool=1", db.options()};
    Shards slow_shards{through};
    Executions slow{slow_shards};
    HistoryTasks slow_tasks{slow_shards};
    const WorkflowKey workflow{.ns = NamespaceId::random(), .workflow_id = "order"};
    const Snapshot made = RunStory::snapshot(workflow, RunId::random());
    const Snapshot zombie = RunStory::snapshot(workflow, RunId::random());
};

TEST_F(StalledOwner, WhoAddsTasksIsHeardBeforeTheShardChangesHandsOrNever) {
    HOLDFAST_CHECK("store 163");
    expect_heard_before_or_never([&] { slow_tasks.add(owned, one_task(1)); });
}
TEST_F(StalledOwner, SoIsWhoCreatesARun) {
    const Snapshot created =
        RunStory::snapshot({.ns = workflow.ns, .workflow_id = "another"}, RunId::random());
    expect_heard_before_or_never([&] { slow.create({.lease = owned, .snapshot = created}); });
}
TEST_F(StalledOwner, SoIsWhoUpdatesARun) {
    expect_heard_before_or_never(
        [&] { slow.update({.lease = owned, .mutation = RunStory::mutation(made)}); });
}
TEST_F(StalledOwner, SoIsWhoReplacesARun) {
    expect_heard_before_or_never([&] { slow.set(owned, RunStory::next(made, "set")); });
}
TEST_F(StalledOwner, SoIsWhoResolvesAConflict) {
    expect_heard_before_or_never([&] {
        slow.resolve_conflict({.lease = owned,
                               .reset = RunStory::next(zombie, "reset"),
                               .current = RunStory::mutation(made)});
    });
}

// Where locks do not wait: an owner about to commit is refused, and finds the new owner.
TEST(OvertakenOwner, IsRefusedAtItsCommitAndThenSeesTheNewOne) {
    HOLDFAST_CHECK("store 163");
    MigratedDatabase db{test::Backend::dsql};
    Shards shards{db};
    (void)shards.get_or_create({.id = owned.shard, .range = owned.range, .info = {}});
    int runs = 0;
    const auto lost = error_of<ShardOwnershipLost>([&] {
        db->transact("Test", {}, [&](sql::Tx& tx) {
            LeaseProof(tx, owned).require();
            if (++runs == 1) {
                shards.update(taken(), owned.range);
            }
            insert_tasks(tx, owned.shard, one_task(1));
        });
    });
    EXPECT_EQ(lost.found(), taken().range);
    EXPECT_EQ(runs, 1) << "the second run ended at the lease";
    EXPECT_EQ(db.number("SELECT count(*) FROM transfer_tasks"), 0);
}

// A run is read by nine statements, while another thread writes it all the time.
class RunSnapshots : public RunStory {};

TEST_P(RunSnapshots, ARunIsReadAsItWasAtOneMoment) {
    const Snapshot made = create(workflow("order"));
    constexpr std::int64_t writes = 60;
    const std::jthread writer([&] {
        for (std::int64_t n = 1; n <= writes; ++n) {
            Mutation change = mutation(made, n);
            change.opened.activities = {{100 + n, blob("activity")}};
            change.opened.chasm = {{std::to_string(n), {.metadata = blob("m"), .data = {}}}};
            change.buffered = blob("event");
            executions.update({.lease = lease, .mutation = change});
        }
    });
    for (std::int64_t version = 0; version <= writes;) {
        const Execution read = executions.get(lease.shard, made.workflow, made.current.run);
        version = read.record.db_record_version;
        const std::int64_t n = version - 1;
        ASSERT_EQ(std::ssize(read.items.activities), std::ssize(made.items.activities) + n);
        ASSERT_EQ(std::ssize(read.items.chasm), std::ssize(made.items.chasm) + n);
        ASSERT_EQ(std::ssize(read.buffered), n);
    }
}

INSTANTIATE_TEST_SUITE_P(Every, RunSnapshots, test::every_backend(), test::backend_name);

}  // namespace
}  // namespace holdfast::store::tests
