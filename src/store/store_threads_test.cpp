// Several who want the same at once: one gets it, and the others are told.
#include <atomic>
#include <mutex>

#include "execution/test/run_fixture.hpp"

namespace holdfast::store::tests {
namespace {

constexpr int racers = 8;

class StoreRace : public RunStory {
public:
    HistoryTasks tasks{shards};
};

TEST_P(StoreRace, OfManyWhoTakeAShardOneDoes) {
    HOLDFAST_CHECK("store 128");
    std::atomic<int> won = 0;
    std::atomic<int> lost = 0;
    all_at_once(racers, [&](int i) {
        try {
            shards.update({.id = lease.shard, .range = RangeId{6}, .info = blob(std::to_string(i))},
                          lease.range);
            ++won;
        } catch (const ShardOwnershipLost& error) {
            EXPECT_EQ(error.found(), RangeId{6});
            ++lost;
        }
    });
    EXPECT_EQ(won, 1);
    EXPECT_EQ(lost, racers - 1);
}

TEST_P(StoreRace, OfManyWhoCreateAWorkflowOneDoesAndTheOthersLearnWho) {
    HOLDFAST_CHECK("store 138");
    const WorkflowKey key = workflow("order");
    std::mutex mutex;
    std::vector<RunId> winners;
    std::vector<RunId> told;
    all_at_once(racers, [&](int) {
        const Snapshot made = snapshot(key, RunId::random());
        try {
            executions.create({.lease = lease, .snapshot = made});
            const std::lock_guard lock(mutex);
            winners.push_back(made.current.run);
        } catch (const CurrentWorkflowConditionFailed& error) {
            const std::lock_guard lock(mutex);
            told.push_back(error.current().value().run);
        }
    });
    ASSERT_EQ(winners.size(), 1U);
    EXPECT_EQ(told.size(), racers - 1U);
    EXPECT_THAT(told, testing::Each(winners[0]));
    EXPECT_EQ(current(key).value().run, winners[0]);
    EXPECT_EQ(db.number("SELECT count(*) FROM executions"), 1);
}

// The worst moment: the shard changes hands between a writer's look at it and its commit.
TEST_P(StoreRace, NoTaskOfAFormerOwnerIsSeenAfterTheShardHasChangedHands) {
    HOLDFAST_CHECK("store 163");
    std::atomic<bool> taken = false;
    std::atomic<std::int64_t> added_after = 0;
    constexpr int writers = 4;
    all_at_once(writers + 1, [&](int i) {
        if (i == writers) {
            shards.update({.id = lease.shard, .range = RangeId{6}, .info = {}}, lease.range);
            taken = true;
            return;
        }
        for (std::int64_t n = 1;; ++n) {
            const bool before = taken;
            try {
                tasks.add(lease,
                          {{Category::transfer,
                            {{.key = {.fire = {}, .id = std::int64_t{i} * 1'000'000 + n},
                              .blob = blob("t")}}}});
            } catch (const ShardOwnershipLost&) {
                return;
            }
            added_after += before ? 1 : 0;
        }
    });
    EXPECT_EQ(added_after, 0);
    EXPECT_EQ(shards.find(lease.shard).value().range, RangeId{6});
}

TEST_P(StoreRace, BranchesOfOneTreeGrowAndForkAtTheSameTime) {
    HOLDFAST_CHECK("store 170");
    const TreeId tree = TreeId::random();
    const Branch base = History::new_branch(tree);
    const auto node = [](std::int64_t id, std::int64_t txn, std::int64_t previous) {
        return Node{.id = id, .txn_id = txn, .previous_txn_id = previous, .events = blob("e")};
    };
    history.append(lease, {.branch = base, .is_new_branch = true, .node = node(1, 1, 0)});
    std::vector<Branch> made(racers);
    all_at_once(racers, [&](int i) {
        Branch& branch = made[static_cast<std::size_t>(i)];
        const bool forked = i % 2 == 0;
        branch = forked ? history.fork(lease, base, 2, "fork") : History::new_branch(tree);
        for (std::int64_t n = 0; n < 5; ++n) {
            const std::int64_t first = forked ? 2 : 1;
            history.append(
                lease,
                {.branch = branch,
                 .is_new_branch = !forked && n == 0,
                 .node = node(first + n, std::int64_t{100} * (i + 1) + n, n == 0 ? 0 : 1)});
        }
    });
    for (int i = 0; i < racers; ++i) {
        const HistoryPage page = history.read(
            {.shard = lease.shard, .branch = made[static_cast<std::size_t>(i)], .page_size = 50});
        EXPECT_EQ(page.nodes.size(), i % 2 == 0 ? 6U : 5U);
    }
    EXPECT_EQ(history.branches(lease.shard, tree).size(), racers + 1U);
}

TEST_P(StoreRace, EventsBufferedAtOneMomentAreAllKept) {
    HOLDFAST_CHECK("store 44");
    std::vector<Snapshot> runs;
    runs.reserve(2);
    for (int i = 0; i < 2; ++i) {
        runs.push_back(create(workflow("order-" + std::to_string(i))));
    }
    all_at_once(2, [&](int i) {
        for (std::int64_t n = 1; n <= 10; ++n) {
            Mutation change = mutation(runs[static_cast<std::size_t>(i)], n);
            change.buffered = blob(std::to_string(n));
            executions.update({.lease = lease, .mutation = change});
        }
    });
    for (const Snapshot& made : runs) {
        const std::vector<Blob> buffered = find(made).value().buffered;
        ASSERT_EQ(buffered.size(), 10U);
        for (std::size_t n = 0; n < buffered.size(); ++n) {
            EXPECT_EQ(buffered[n], blob(std::to_string(n + 1)));
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Every, StoreRace, test::every_backend(), test::backend_name);

}  // namespace
}  // namespace holdfast::store::tests
