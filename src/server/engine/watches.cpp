#include "engine/watches.hpp"

#include <utility>
#include <vector>

namespace holdfast::server::engine {

Watches::Watch::Watch(Watches& watches,
                      std::string run_id,
                      std::int64_t event_id,
                      std::function<void()> told)
    : watches_(watches), run_id_(std::move(run_id)), event_id_(event_id), told_(std::move(told)) {
    const std::lock_guard lock(watches_.mutex_);
    watches_.waiting_[run_id_].insert(this);
}

Watches::Watch::~Watch() {
    std::function<void()> told;  // Destroyed without the lock: it may own a reply.
    const std::lock_guard lock(watches_.mutex_);
    told = std::move(told_);
    const auto found = watches_.waiting_.find(run_id_);
    if (found != watches_.waiting_.end()) {
        found->second.erase(this);
        if (found->second.empty()) {
            watches_.waiting_.erase(found);
        }
    }
}

void Watches::tell(const std::string& run_id, std::int64_t next_event_id, bool closed) {
    std::vector<std::function<void()>> told;
    {
        const std::lock_guard lock(mutex_);
        const auto found = waiting_.find(run_id);
        if (found == waiting_.end()) {
            return;
        }
        std::erase_if(found->second, [&](Watch* watch) {
            if (!closed && watch->event_id_ >= next_event_id) {
                return false;
            }
            told.push_back(std::exchange(watch->told_, nullptr));
            return true;
        });
        if (found->second.empty()) {
            waiting_.erase(found);
        }
    }
    for (const auto& call : told) {
        call();
    }
}

}  // namespace holdfast::server::engine
