#include "history/tree.hpp"

#include <algorithm>
#include <map>

#include "codec.hpp"

namespace holdfast::store {

using nlohmann::json;

std::vector<BranchRange> ranges_of(const Branch& branch) {
    std::vector<BranchRange> ranges = branch.ancestors;
    ranges.push_back({.branch = branch.id, .begin = branch.begin(), .end = no_event_after});
    return ranges;
}

std::vector<BranchRange> ancestors_of_fork(const Branch& parent, std::int64_t node) {
    std::vector<BranchRange> ancestors;
    for (BranchRange range : ranges_of(parent)) {
        if (range.begin >= node) {
            break;
        }
        range.end = std::min(range.end, node);
        ancestors.push_back(range);
    }
    return ancestors;
}

Blob encode_branch(const BranchRecord& record) {
    json ancestors = json::array();
    for (const BranchRange& range : record.branch.ancestors) {
        ancestors.push_back({range.branch.text(), range.begin, range.end});
    }
    return to_blob({{"ancestors", std::move(ancestors)},
                    {"forked_at_us", record.forked_at.time_since_epoch().count()},
                    {"info", record.info},
                    {"deleting", record.deleting}});
}

BranchRecord decode_branch(ShardId shard, TreeId tree, BranchId branch, const Blob& blob) {
    const std::string what = "branch " + branch.text();
    return decode(blob, what, [&](const json& value) {
        BranchRecord record{.shard = shard,
                            .branch = {.tree = tree, .id = branch, .ancestors = {}},
                            .forked_at = sql::Timestamp{std::chrono::microseconds{
                                value.at("forked_at_us").get<std::int64_t>()}},
                            .info = value.at("info").get<std::string>(),
                            .deleting = value.at("deleting").get<bool>()};
        for (const json& range : value.at("ancestors")) {
            record.branch.ancestors.push_back({.branch = BranchId{uuid_of(range.at(0), what)},
                                               .begin = range.at(1).get<std::int64_t>(),
                                               .end = range.at(2).get<std::int64_t>()});
        }
        return record;
    });
}

std::vector<BranchRange> ranges_to_delete(const Branch& branch,
                                          const std::vector<BranchRecord>& others) {
    std::map<BranchId, std::int64_t> needed_before;  // Nodes of a branch that other branches read.
    for (const BranchRecord& other : others) {
        if (other.branch.id == branch.id || other.deleting) {
            continue;
        }
        for (const BranchRange& range : ranges_of(other.branch)) {
            std::int64_t& end = needed_before[range.branch];
            end = std::max(end, range.end);
        }
    }
    std::vector<BranchRange> ranges = ranges_of(branch);
    std::vector<BranchRange> to_delete;
    for (auto range = ranges.rbegin(); range != ranges.rend(); ++range) {
        const auto needed = needed_before.find(range->branch);
        if (needed == needed_before.end()) {
            to_delete.push_back(*range);
            continue;
        }
        // A branch that needs a part of this one needs all nodes before it.
        if (needed->second != no_event_after) {
            range->begin = needed->second;
            to_delete.push_back(*range);
        }
        break;
    }
    return to_delete;
}

}  // namespace holdfast::store
