#include "history/tree.hpp"
#include "test/store_fixture.hpp"
#include <gmock/gmock.h>

namespace holdfast::store::tests {
namespace {

constexpr ShardId shard{7};

class HistoryStory : public testing::TestWithParam<test::Backend> {
public:
    HistoryStory() { (void)shards.get_or_create({.id = shard, .range = lease.range, .info = {}}); }

    Branch begin(TreeId tree = TreeId::random()) { return History::new_branch(tree); }

    void append(const Branch& branch,
                std::int64_t node,
                std::int64_t txn,
                std::int64_t previous,
                bool is_new = false) {
        history.append(lease,
                       {.branch = branch,
                        .is_new_branch = is_new,
                        .info = "made by a test",
                        .node = node_of(node, txn, previous)});
    }
    static Node node_of(std::int64_t node, std::int64_t txn, std::int64_t previous) {
        return {.id = node,
                .txn_id = txn,
                .previous_txn_id = previous,
                .events = blob("events " + std::to_string(node) + " of " + std::to_string(txn))};
    }
    // What a reader sees, as transactions, in pages of one.
    std::vector<std::int64_t> read(const Branch& branch,
                                   std::int64_t min = first_event,
                                   std::int64_t max = no_event_after) {
        ReadRequest request{
            .shard = shard, .branch = branch, .min_event = min, .max_event = max, .page_size = 1};
        return walk(request, [&] { return history.read(request); });
    }
    std::vector<std::int64_t> read_back(const Branch& branch, std::int64_t last_txn) {
        ReadRequest request{.shard = shard, .branch = branch, .page_size = 1};
        return walk(request, [&] { return history.read_back(request, last_txn); });
    }
    template <class NextPage>
    std::vector<std::int64_t> walk(ReadRequest& request, const NextPage& next_page) {
        std::vector<std::int64_t> seen;
        for (;;) {
            const HistoryPage page = next_page();
            for (const Node& node : page.nodes) {
                EXPECT_EQ(node, node_of(node.id, node.txn_id, node.previous_txn_id));
                seen.push_back(node.txn_id);
            }
            if (!page.next) {
                return seen;
            }
            request.after = page.next;
        }
    }
    std::optional<Code> code_of_reading(const Branch& branch) {
        return test::code_of([&] { (void)read(branch); });
    }
    [[nodiscard]] std::int64_t nodes_stored() const {
        return db.number("SELECT count(*) FROM history_node");
    }

    const ShardLease lease{.shard = shard, .range = RangeId{1}};
    MigratedDatabase db{GetParam()};
    Shards shards{db};
    History history{shards};
};

TEST_P(HistoryStory, OfNodesWithOneFirstEventTheNewestCounts) {
    HOLDFAST_CHECK("store 164");
    const Branch branch = begin();
    append(branch, 1, 10, 0, true);
    HOLDFAST_CHECK("store 57");  // The sign is turned in the database and nowhere else.
    EXPECT_THAT(read(branch), ElementsAre(10));
    append(branch, 3, 11, 10);
    append(branch, 5, 12, 11);
    EXPECT_THAT(read(branch), ElementsAre(10, 11, 12));
    append(branch, 3, 20, 10);  // The events from 3 on were written again, in one node.
    EXPECT_THAT(read(branch), ElementsAre(10, 20)) << "what is older than 20 is stale";
    append(branch, 8, 21, 20);
    EXPECT_THAT(read(branch), ElementsAre(10, 20, 21));
    EXPECT_THAT(read_back(branch, 21), ElementsAre(21, 20, 10));

    HOLDFAST_CHECK("store 169");
    EXPECT_THAT(read(branch, 3), ElementsAre(20, 21));
    EXPECT_THAT(read(branch, 5), ElementsAre(21)) << "the stale node 5 is no beginning, either";
    EXPECT_THAT(read(branch, 1, 3), ElementsAre(10));
    EXPECT_EQ(test::code_of([&] { (void)read(branch, 9); }), Code::not_found);
    const HistoryPage last = history.read(
        {.shard = shard,
         .branch = branch,
         .page_size = 100,
         .after = HistoryCursor{.node = 8, .txn = 21, .valid_node = 8, .valid_txn = 21}});
    EXPECT_THAT(last.nodes, IsEmpty());
    EXPECT_FALSE(last.next);

    HOLDFAST_CHECK("store 167");  // A node is a batch of bytes: there is no other way to append.
    append(branch, 8, 21, 20);
    EXPECT_THAT(read(branch), ElementsAre(10, 20, 21)) << "again is harmless";
}

TEST_P(HistoryStory, AForkReadsItsAncestorsUpToWhereItForked) {
    HOLDFAST_CHECK("store 165");
    const Branch base = begin();
    append(base, 1, 10, 0, true);
    append(base, 3, 11, 10);
    append(base, 3, 12, 10);  // Shadows, in the ancestor.
    append(base, 5, 13, 12);
    const Branch fork = history.fork(lease, base, 5, "reset");
    EXPECT_THAT(fork.ancestors, ElementsAre(BranchRange{base.id, 1, 5}));
    EXPECT_THAT(read(fork), ElementsAre(10, 12));
    append(fork, 5, 20, 12);
    append(fork, 7, 21, 20);
    append(fork, 7, 22, 20);  // Shadows, in the fork.
    EXPECT_THAT(read(fork), ElementsAre(10, 12, 20, 22));
    EXPECT_THAT(read_back(fork, 22), ElementsAre(22, 20, 12, 10));
    EXPECT_THAT(read(base), ElementsAre(10, 12, 13));
    // A fork of a fork, behind and before where that one forked.
    const Branch behind = history.fork(lease, fork, 7, "");
    EXPECT_THAT(read(behind), ElementsAre(10, 12, 20));
    const Branch before = history.fork(lease, fork, 3, "");
    EXPECT_THAT(before.ancestors, ElementsAre(BranchRange{base.id, 1, 3}));
    EXPECT_THAT(read(before), ElementsAre(10));

    EXPECT_THROW((void)history.fork(lease, base, 1, ""), InvalidPersistenceRequest);
    EXPECT_THROW((void)history.fork(lease, begin(), 5, ""), NotFound);
    EXPECT_THROW(append(fork, 3, 30, 10), InvalidPersistenceRequest) << "the ancestor's";
    EXPECT_THROW(history.delete_node(lease, fork, 3, 12), InvalidPersistenceRequest);

    HOLDFAST_CHECK("store 171");
    std::set<BranchId> scanned;
    std::optional<BranchRecord> last;
    for (;;) {
        const auto page = history.scan(2, last);
        for (const BranchRecord& record : page) {
            EXPECT_TRUE(scanned.insert(record.branch.id).second);
            EXPECT_GT(record.forked_at, at(0s));
            last = record;
        }
        if (page.size() < 2) {
            break;
        }
    }
    EXPECT_THAT(scanned, UnorderedElementsAre(base.id, fork.id, behind.id, before.id));
    EXPECT_THROW((void)history.scan(0), InvalidPersistenceRequest);
    const auto tree = history.branches(shard, base.tree);
    ASSERT_EQ(tree.size(), 4U);
    for (const BranchRecord& record : tree) {
        EXPECT_EQ(record.info,
                  record.branch.id == base.id   ? "made by a test"
                  : record.branch.id == fork.id ? "reset"
                                                : "");
        if (record.branch.id == fork.id) {
            EXPECT_EQ(record.branch, fork);
        }
    }
}

TEST_P(HistoryStory, TrimmingDeletesWhatDoesNotLeadToTheLastNode) {
    HOLDFAST_CHECK("store 166");
    const Branch base = begin();
    append(base, 1, 10, 0, true);
    append(base, 3, 11, 10);  // Stale.
    append(base, 3, 12, 10);
    append(base, 5, 9, 11);  // Stale.
    EXPECT_EQ(history.trim(lease, base, 3, 12), 1) << "nodes behind the last are not looked at";
    EXPECT_EQ(nodes_stored(), 3);
    append(base, 5, 13, 12);
    EXPECT_EQ(history.trim(lease, base, 5, 13), 1);
    EXPECT_THAT(read(base), ElementsAre(10, 12, 13));

    append(base, 3, 8, 10);  // Stale, in what is an ancestor.
    const Branch fork = history.fork(lease, base, 5, "");
    append(fork, 5, 20, 12);
    append(fork, 5, 19, 12);  // Stale.
    EXPECT_EQ(history.trim(lease, fork, 5, 20), 2);
    EXPECT_EQ(history.trim(lease, fork, 5, 20), 0);
    EXPECT_THAT(read(fork), ElementsAre(10, 12, 20));
    EXPECT_THAT(read(base), ElementsAre(10, 12, 13));

    // What is not there leads nowhere: nothing may be taken for stale.
    EXPECT_THROW(history.trim(lease, base, 5, 99), NotFound);
    history.delete_node(lease, base, 3, 12);
    EXPECT_EQ(test::code_of([&] { history.trim(lease, base, 5, 13); }), Code::internal);
    EXPECT_EQ(nodes_stored(), 3);
}

TEST_P(HistoryStory, ABranchIsDeletedButForWhatOthersShareWithIt) {
    HOLDFAST_CHECK("store 168");
    for (const bool base_first : {true, false}) {
        const Branch base = begin();
        append(base, 1, 10, 0, true);
        append(base, 3, 11, 10);
        append(base, 5, 12, 11);
        const Branch fork = history.fork(lease, base, 5, "");
        append(fork, 5, 20, 11);
        const Branch& first = base_first ? base : fork;
        const Branch& second = base_first ? fork : base;
        history.remove(lease, first);
        history.remove(lease, first);  // Gone already.
        if (base_first) {
            EXPECT_THAT(read(fork), ElementsAre(10, 11, 20));
            EXPECT_EQ(nodes_stored(), 3) << "the base's own node has gone";
        } else {
            EXPECT_THAT(read(base), ElementsAre(10, 11, 12));
        }
        EXPECT_THROW((void)history.fork(lease, first, 3, ""), NotFound);
        history.remove(lease, second);
        EXPECT_EQ(code_of_reading(base), Code::not_found);
        EXPECT_EQ(code_of_reading(fork), Code::not_found);
        EXPECT_EQ(nodes_stored(), 0);
        EXPECT_THAT(history.branches(shard, base.tree), IsEmpty());
    }
}

TEST_P(HistoryStory, AnInterruptedDeletionIsContinuedAndLeavesNothing) {
    // More nodes than one transaction of some databases may change.
    const Branch base = begin();
    append(base, 1, 1, 0, true);
    for (int chunk = 0; chunk < 2; ++chunk) {
        std::string script =
            "INSERT INTO history_node SELECT shard_id, tree_id, branch_id, n.id + 1 + " +
            std::to_string(chunk * 1'100) +
            ", txn_id, 0, data, data_encoding FROM history_node CROSS JOIN (";
        script +=
            "WITH RECURSIVE c(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM c WHERE id < 1100) "
            "SELECT id FROM c) n WHERE node_id = 1";
        db.execute(script);
    }
    ASSERT_EQ(nodes_stored(), 2'201);
    // As if the first call had been killed after it had made its intention known.
    BranchRecord record = history.branches(shard, base.tree).at(0);
    record.deleting = true;
    const Blob marked = encode_branch(record);
    const std::string text(reinterpret_cast<const char*>(marked.data.data()), marked.data.size());
    db.execute(GetParam() == test::Backend::sqlite
                   ? "UPDATE history_tree SET data = CAST('" + text + "' AS BLOB)"
                   : "UPDATE history_tree SET data = convert_to('" + text + "', 'UTF8')");
    EXPECT_THROW((void)history.fork(lease, base, 3, ""), NotFound) << "on its way out";
    history.remove(lease, base);
    EXPECT_EQ(nodes_stored(), 0);
    EXPECT_THAT(history.branches(shard, base.tree), IsEmpty());
}

TEST_P(HistoryStory, AnAppendThatIsTooLargeOrTooLateSaysSo) {
    const Branch branch = begin();
    AppendRequest request{.branch = branch, .node = node_of(1, 10, 0)};
    const std::stop_source stop;
    stop.request_stop();
    EXPECT_THROW(history.append(lease, request, {.stop = stop.get_token()}), AppendHistoryTimeout);
    request.is_new_branch = true;
    EXPECT_THROW(history.append(lease, request, {.stop = stop.get_token()}), AppendHistoryTimeout);
    request.node.events.data.resize(History::append_bytes_max + 1);
    EXPECT_THROW(history.append(lease, request), TransactionSizeLimit);
    // A tree that cannot be read is an error: an empty answer would mean that no run needs it.
    append(branch, 1, 10, 0, true);
    db.execute("UPDATE history_tree SET data_encoding = 'Proto9'");
    EXPECT_EQ(test::code_of([&] { history.remove(lease, branch); }), Code::internal);
    EXPECT_EQ(nodes_stored(), 1);
}

INSTANTIATE_TEST_SUITE_P(Every, HistoryStory, test::every_backend(), test::backend_name);

// ---- Who needs what, without a database ---------------------------------------------------------

BranchRecord known(const Branch& branch) {
    return {.shard = shard, .branch = branch, .forked_at = {}, .info = ""};
}

TEST(HistoryTree, WhoeverIsOnHisWayOutNeedsNothing) {
    const Branch base = History::new_branch(TreeId::random());
    const Branch fork{
        .tree = base.tree, .id = BranchId::random(), .ancestors = ancestors_of_fork(base, 5)};
    BranchRecord of_fork = known(fork);
    EXPECT_THAT(ranges_to_delete(base, {known(base), of_fork}),
                ElementsAre(BranchRange{base.id, 5, no_event_after}));
    of_fork.deleting = true;
    EXPECT_THAT(ranges_to_delete(base, {known(base), of_fork}),
                ElementsAre(BranchRange{base.id, 1, no_event_after}));
}

TEST(HistoryTree, OfSeveralForksTheLongestDecides) {
    const Branch base = History::new_branch(TreeId::random());
    const Branch near{
        .tree = base.tree, .id = BranchId::random(), .ancestors = ancestors_of_fork(base, 5)};
    const Branch far{
        .tree = base.tree, .id = BranchId::random(), .ancestors = ancestors_of_fork(base, 9)};
    const Branch on_near{
        .tree = base.tree, .id = BranchId::random(), .ancestors = ancestors_of_fork(near, 7)};
    EXPECT_THAT(ranges_to_delete(base, {known(base), known(near), known(far)}),
                ElementsAre(BranchRange{base.id, 9, no_event_after}));
    // The base is gone; the last of those who shared it takes what is left.
    EXPECT_THAT(ranges_to_delete(on_near, {known(on_near)}),
                ElementsAre(BranchRange{on_near.id, 7, no_event_after},
                            BranchRange{near.id, 5, 7},
                            BranchRange{base.id, 1, 5}));
    EXPECT_THAT(ranges_to_delete(on_near, {known(on_near), known(far)}),
                ElementsAre(BranchRange{on_near.id, 7, no_event_after},
                            BranchRange{near.id, 5, 7},
                            BranchRange{base.id, 9, 5}))
        << "from 9 on: what nobody reads any more";
}

}  // namespace
}  // namespace holdfast::store::tests
