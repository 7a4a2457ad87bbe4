#include "fleet/shed_registry.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace holdfast::dsql {

ShedRegistry::Id ShedRegistry::join(int target, Shed shed) {
    const std::lock_guard lock(mutex_);
    const Id holder{++births_};
    holders_[holder] = {.target = target, .shed = std::move(shed)};
    return holder;
}

void ShedRegistry::leave(Id holder) {
    const std::lock_guard not_now(telling_);
    const std::lock_guard lock(mutex_);
    holders_.erase(holder);
}

int ShedRegistry::wanted() const {
    const std::lock_guard lock(mutex_);
    int all = 0;
    for (const auto& [id, holder] : holders_) {
        all += holder.target;
    }
    return all;
}

void ShedRegistry::tell(int excess) {
    const bool before = std::exchange(told_, excess > 0);
    if (excess == 0 && !before) {
        return;
    }
    const int all = wanted();
    const std::lock_guard telling(telling_);
    std::vector<std::pair<Shed, int>> calls;
    {
        const std::lock_guard lock(mutex_);
        calls.reserve(holders_.size());
        for (const auto& [id, holder] : holders_) {
            calls.emplace_back(holder.shed, (excess * holder.target + all - 1) / std::max(all, 1));
        }
    }
    for (const auto& [shed, part] : calls) {
        shed(part);
    }
}

}  // namespace holdfast::dsql
