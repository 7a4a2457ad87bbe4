// Histories: trees of branches, which share what they have in common.
//
// A branch is a chain of nodes, a node is a batch of events and is called after the first of them.
// A fork begins with ranges of its ancestors' nodes, which are not copied. Every node carries the
// transaction that wrote it, and the one of the node before it. Several may have the same first
// event, because the write that should have followed failed; of those the newest counts, and
// readers see no other.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <holdfast/store/error.hpp>
#include <holdfast/store/shard.hpp>
#include <holdfast/store/types.hpp>

namespace holdfast::store {

inline constexpr std::int64_t first_event = 1;
inline constexpr std::int64_t no_event_after = std::numeric_limits<std::int64_t>::max();

// Nodes of a branch from `begin` on and before `end`.
struct BranchRange {
    BranchId branch{};
    std::int64_t begin = first_event;
    std::int64_t end = no_event_after;

    friend bool operator==(const BranchRange&, const BranchRange&) = default;
};

// How a branch is found again: its owner keeps it.
struct Branch {
    TreeId tree{};
    BranchId id{};
    std::vector<BranchRange> ancestors{};  // In order, without a gap.

    // Its first own node.
    [[nodiscard]] std::int64_t begin() const noexcept {
        return ancestors.empty() ? first_event : ancestors.back().end;
    }
    friend bool operator==(const Branch&, const Branch&) = default;
};

struct Node {
    std::int64_t id = first_event;     // Of its first event.
    std::int64_t txn_id = 0;           // Grows within a shard.
    std::int64_t previous_txn_id = 0;  // Of the node before it; 0 for the first.
    Blob events{};

    friend bool operator==(const Node&, const Node&) = default;
};

struct AppendRequest {
    Branch branch{};
    // The branch has no node yet: it is made known together with this one.
    bool is_new_branch = false;
    // Of a new branch that is a fork: its parent, see History::fork_of. NotFound if the parent is
    // not known or is being deleted; it is locked until the commit.
    std::optional<BranchId> forked_from{};
    std::string info{};  // About a new branch, for people.
    Node node{};
};

// Where a page ended; to be handed back as it is.
struct HistoryCursor {
    std::int64_t node = 0;
    std::int64_t txn = 0;
    std::int64_t valid_node = 0;
    std::int64_t valid_txn = 0;
};

struct ReadRequest {
    ShardId shard{};
    Branch branch{};
    std::int64_t min_event = first_event;
    std::int64_t max_event = no_event_after;  // Not included.
    std::int64_t page_size = 100;
    std::optional<HistoryCursor> after{};  // Empty: the first page.
};

struct HistoryPage {
    std::vector<Node> nodes{};            // May be fewer than asked for, also none, before the end.
    std::optional<HistoryCursor> next{};  // Empty after the last page.
};

struct BranchRecord {
    ShardId shard{};
    Branch branch{};
    sql::Timestamp forked_at{};  // When it was made known.
    std::string info{};
    bool deleting = false;  // Its nodes are being deleted.
};

// Safe to share between threads. Every write proves its lease in each of its transactions: a lost
// one throws ShardOwnershipLost. On PostgreSQL such a transaction makes two round trips at most.
class History {
public:
    // Requires: `shards` outlives this object.
    explicit History(Shards& shards) noexcept : shards_(shards) {}
    History(const History&) = delete;
    History& operator=(const History&) = delete;

    // A branch that is not stored before its first node is appended.
    [[nodiscard]] static Branch new_branch(TreeId tree);

    // To append the same node again is harmless, so AppendHistoryTimeout may be retried blindly.
    // Requires: the node is the branch's own, else InvalidPersistenceRequest; at most
    // append_bytes_max bytes, else TransactionSizeLimit.
    void append(const ShardLease& lease, const AppendRequest& request, const Call& call = {});
    static constexpr std::size_t append_bytes_max = std::size_t{4} << 20U;

    // Whole nodes that begin in the range. The first page throws NotFound if there is none.
    [[nodiscard]] HistoryPage read(const ReadRequest& request, const Call& call = {}) const;
    // The same, the last first. Requires: `last_txn` is the transaction of the last node that
    // counts; it leads from one to the one before.
    [[nodiscard]] HistoryPage read_back(const ReadRequest& request,
                                        std::int64_t last_txn,
                                        const Call& call = {}) const;

    // A branch that has all before `node` in common with its parent. It is not stored before its
    // first node is appended, and until then nothing keeps what it has in common.
    // Requires: first_event < node, else InvalidPersistenceRequest.
    [[nodiscard]] static Branch fork_of(const Branch& parent, std::int64_t node);
    // The same, stored at once. Throws NotFound if the parent is not known or is being deleted.
    [[nodiscard]] Branch fork(const ShardLease& lease,
                              const Branch& parent,
                              std::int64_t node,
                              const std::string& info,
                              const Call& call = {});

    // Deletes what does not lead to the node (`last_node`, `last_txn`), which is the last that
    // counts. Returns how many nodes.
    std::int64_t trim(const ShardLease& lease,
                      const Branch& branch,
                      std::int64_t last_node,
                      std::int64_t last_txn,
                      const Call& call = {});
    void delete_node(const ShardLease& lease,
                     const Branch& branch,
                     std::int64_t node,
                     std::int64_t txn_id,
                     const Call& call = {});

    // Deletes the branch, and of its ancestors what no other branch needs. In several transactions;
    // if it was interrupted, call it again.
    void remove(const ShardLease& lease, const Branch& branch, const Call& call = {});

    // All branches of a tree; none if it is not known.
    [[nodiscard]] std::vector<BranchRecord> branches(ShardId shard,
                                                     TreeId tree,
                                                     const Call& call = {}) const;
    // All branches of all trees, after `after`, which is the last one of the page before.
    [[nodiscard]] std::vector<BranchRecord> scan(std::int64_t page_size,
                                                 const std::optional<BranchRecord>& after = {},
                                                 const Call& call = {}) const;

private:
    Shards& shards_;
};

}  // namespace holdfast::store
