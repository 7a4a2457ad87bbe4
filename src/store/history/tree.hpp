// Branches as rows, and what of them others need.
#pragma once

#include <vector>

#include <holdfast/sql/value.hpp>
#include <holdfast/store/history.hpp>

namespace holdfast::store {

// A branch's ancestors and itself, in order.
[[nodiscard]] std::vector<BranchRange> ranges_of(const Branch& branch);

// The ranges of a branch that ends before `node`, as the ancestors of its fork.
[[nodiscard]] std::vector<BranchRange> ancestors_of_fork(const Branch& parent, std::int64_t node);

[[nodiscard]] Blob encode_branch(const BranchRecord& record);
[[nodiscard]] BranchRecord decode_branch(ShardId shard,
                                         TreeId tree,
                                         BranchId branch,
                                         const Blob& blob);

// Which nodes go with a branch: in each range all from `begin` on, also behind its end. What one of
// `others` has as its own or as an ancestor's stays; others that are being deleted need nothing.
[[nodiscard]] std::vector<BranchRange> ranges_to_delete(const Branch& branch,
                                                        const std::vector<BranchRecord>& others);

}  // namespace holdfast::store
