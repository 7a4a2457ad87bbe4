// Branches that share nodes, deleted at the same moment.
#include "test/store_fixture.hpp"

#include <holdfast/testing/fault_proxy.hpp>

namespace holdfast::store::tests {
namespace {

constexpr ShardLease lease{.shard = ShardId{7}, .range = RangeId{1}};

// A branch of two nodes, and one that forks after the first.
struct Fork {
    explicit Fork(History& history) : base(History::new_branch(TreeId::random())) {
        const auto append =
            [&](const Branch& branch, std::int64_t id, std::int64_t txn, bool first) {
                history.append(lease,
                               {.branch = branch,
                                .is_new_branch = first,
                                .node = {.id = id, .txn_id = txn, .events = blob("e")}});
            };
        append(base, 1, 1, true);
        append(base, 2, 2, false);
        fork = history.fork(lease, base, 2, "");
        append(fork, 2, 3, false);
    }
    Branch base;
    Branch fork;
};

// The worst moment: each has decided to go, and does not know it of the other.
TEST(BranchesThatGoTogether, LeaveNothingIfOneOfThemIsDecidedButNotYetCommitted) {
    MigratedDatabase direct{test::Backend::postgres};
    test::FaultProxy proxy{test::shared_postgres()};
    sql::Database through{proxy.address().url(direct.name()) + "&pool=1", direct.options()};
    Shards shards{direct};
    (void)shards.get_or_create({.id = lease.shard, .range = lease.range, .info = {}});
    History history{shards};
    Shards shards_through{through};
    History slow{shards_through};
    const Fork tree(history);

    proxy.arm({.from = test::Side::client, .containing = "COMMIT"}, test::Fault::stall);
    std::jthread ann([&] { slow.remove(lease, tree.base); });
    ASSERT_TRUE(proxy.wait_struck(Deadline::after(20s)));
    history.remove(lease, tree.fork);  // Bob's, from beginning to end.
    proxy.release();
    ann.join();
    EXPECT_EQ(direct.number("SELECT count(*) FROM history_tree"), 0);
    EXPECT_EQ(direct.number("SELECT count(*) FROM history_node"), 0);
}

class BranchRace : public testing::TestWithParam<test::Backend> {
public:
    BranchRace() {
        (void)shards.get_or_create({.id = lease.shard, .range = lease.range, .info = {}});
    }
    MigratedDatabase db{GetParam()};
    Shards shards{db};
    History history{shards};
};

TEST_P(BranchRace, WhoeverIsLaterDeletesWhatBranchesHadInCommon) {
    for (int round = 0; round < 10; ++round) {
        const Fork tree(history);
        all_at_once(2, [&](int i) { history.remove(lease, i == 0 ? tree.base : tree.fork); });
    }
    EXPECT_EQ(db.number("SELECT count(*) FROM history_tree"), 0);
    EXPECT_EQ(db.number("SELECT count(*) FROM history_node"), 0);
}

INSTANTIATE_TEST_SUITE_P(Every, BranchRace, test::every_backend(), test::backend_name);

}  // namespace
}  // namespace holdfast::store::tests
