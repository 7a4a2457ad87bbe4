#include <holdfast/store/error.hpp>

#include <fmt/core.h>

namespace holdfast::store {
namespace {

std::string lost(const ShardLease& lease, std::optional<RangeId> found) {
    const auto shard = static_cast<std::int32_t>(lease.shard);
    if (!found) {
        return fmt::format("there is no shard {}; create it before it is written for", shard);
    }
    return fmt::format("shard {} is owned under range {}, no longer under {}; stop writing for it",
                       shard,
                       static_cast<std::int64_t>(*found),
                       static_cast<std::int64_t>(lease.range));
}

}  // namespace

ShardOwnershipLost::ShardOwnershipLost(ShardLease lease,
                                       std::optional<RangeId> found,
                                       std::source_location where)
    : ConditionFailed(lost(lease, found), where), lease_(lease), found_(found) {}

}  // namespace holdfast::store
