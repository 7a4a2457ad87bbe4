#include "matching/ended_workers.hpp"

namespace holdfast::server::matching {

void EndedWorkers::add(const std::string& worker_instance_key, Steady now) {
    if (worker_instance_key.empty()) {
        return;
    }
    const std::lock_guard lock(mutex_);
    while (!by_time_.empty() && (by_time_.front().until <= now || by_time_.size() >= keys_max)) {
        forget_first();
    }
    const auto known = by_key_.find(worker_instance_key);
    if (known != by_key_.end()) {
        by_time_.erase(known->second);
        by_key_.erase(known);
    }
    const auto place = by_time_.insert(by_time_.end(), {worker_instance_key, now + kept});
    by_key_.emplace(worker_instance_key, place);
}

bool EndedWorkers::has(const std::string& worker_instance_key, Steady now) const {
    if (worker_instance_key.empty()) {
        return false;
    }
    const std::lock_guard lock(mutex_);
    const auto known = by_key_.find(worker_instance_key);
    return known != by_key_.end() && now < known->second->until;
}

void EndedWorkers::forget_first() {
    by_key_.erase(by_time_.front().key);
    by_time_.pop_front();
}

}  // namespace holdfast::server::matching
