// What it costs to read a branch whose nodes lie in several others.
#include <numeric>

#include "test/store_fixture.hpp"

namespace holdfast::store::tests {
namespace {

class ForkedHistory : public testing::TestWithParam<test::Backend> {
public:
    ForkedHistory() { (void)shards.get_or_create({.id = shard, .range = lease.range, .info = {}}); }

    static constexpr ShardId shard{7};
    static constexpr std::int64_t forks = 4;

    // Every branch has three nodes of its own, and all the nodes before them in its ancestors.
    Branch grow() {
        Branch branch = History::new_branch(TreeId::random());
        std::int64_t node = 1;
        for (std::int64_t fork = 0; fork <= forks; ++fork) {
            if (fork > 0) {
                branch = history.fork(lease, branch, node, "");
            }
            for (int i = 0; i < 3; ++i, ++node) {
                history.append(lease,
                               {.branch = branch,
                                .is_new_branch = node == 1,
                                .node = {.id = node,
                                         .txn_id = node,
                                         .previous_txn_id = node - 1,
                                         .events = blob("e")}});
            }
        }
        last_ = node - 1;
        return branch;
    }
    [[nodiscard]] std::vector<std::int64_t> read(const Branch& branch, std::int64_t page_size) {
        return all_of({.shard = shard, .branch = branch, .page_size = page_size},
                      [&](const ReadRequest& request) { return history.read(request); });
    }
    [[nodiscard]] std::vector<std::int64_t> read_back(const Branch& branch,
                                                      std::int64_t page_size) {
        return all_of(
            {.shard = shard, .branch = branch, .max_event = last_ + 1, .page_size = page_size},
            [&](const ReadRequest& request) { return history.read_back(request, last_); });
    }

    const ShardLease lease{.shard = shard, .range = RangeId{1}};
    MigratedDatabase db{GetParam()};
    Shards shards{db};
    History history{shards};

private:
    template <class Read>
    static std::vector<std::int64_t> all_of(ReadRequest request, const Read& read) {
        std::vector<std::int64_t> seen;
        do {
            const HistoryPage page = read(request);
            EXPECT_LE(std::ssize(page.nodes), request.page_size);
            for (const Node& node : page.nodes) {
                seen.push_back(node.id);
            }
            request.after = page.next;
        } while (request.after);
        return seen;
    }
    std::int64_t last_ = 0;
};

TEST_P(ForkedHistory, IsReadWholeByPagesOfAnySizeAndAncestorsCostNoRoundTrip) {
    const Branch branch = grow();
    std::vector<std::int64_t> forward((forks + 1) * 3);
    std::iota(forward.begin(), forward.end(), 1);
    const std::vector<std::int64_t> backward(forward.rbegin(), forward.rend());
    for (const std::int64_t page_size : {1, 2, 3, 4, 7, 14, 15, 16, 100}) {
        EXPECT_EQ(read(branch, page_size), forward) << page_size;
        EXPECT_EQ(read_back(branch, page_size), backward) << page_size;
    }
    if (GetParam() == test::Backend::postgres) {
        const auto trips = [&](const auto& work) {
            const std::int64_t before = db->driver_stats().round_trips;
            (void)work();
            return db->driver_stats().round_trips - before;
        };
        EXPECT_LE(trips([&] { return read(branch, 100); }), 2);
        EXPECT_LE(trips([&] { return read_back(branch, 100); }), 2);
    }
}

INSTANTIATE_TEST_SUITE_P(Every, ForkedHistory, test::every_backend(), test::backend_name);

}  // namespace
}  // namespace holdfast::store::tests
