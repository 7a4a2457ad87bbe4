#include "workers/registry.hpp"

#include <iterator>
#include <utility>

namespace holdfast::server::workers {

void Registry::record(const std::string& namespace_id, Heartbeat heartbeat) {
    const std::string key = heartbeat.worker_instance_key();
    if (key.empty()) {
        return;
    }
    const bool over = heartbeat.status() == temporal::api::enums::v1::WORKER_STATUS_SHUTDOWN;
    const std::size_t bytes = heartbeat.ByteSizeLong();
    auto kept_heartbeat = over ? nullptr : std::make_shared<const Heartbeat>(std::move(heartbeat));

    const std::lock_guard lock(mutex_);
    forget(namespace_id, key);
    if (over || bytes > limits_.bytes_max) {
        return;
    }
    const auto where = by_time_.insert(by_time_.end(), {.namespace_id = namespace_id, .key = key});
    namespaces_[namespace_id].emplace(key,
                                      Entry{.heartbeat = std::move(kept_heartbeat),
                                            .bytes = bytes,
                                            .at = clock_.steady_now(),
                                            .where = where});
    bytes_ += bytes;
    forget_silent();
}

HeartbeatPtr Registry::find(const std::string& namespace_id, const std::string& key) {
    const std::lock_guard lock(mutex_);
    forget_silent();
    const auto workers = namespaces_.find(namespace_id);
    if (workers == namespaces_.end()) {
        return nullptr;
    }
    const auto found = workers->second.find(key);
    return found == workers->second.end() ? nullptr : found->second.heartbeat;
}

std::vector<HeartbeatPtr> Registry::list(const std::string& namespace_id,
                                         const std::string& after) {
    std::vector<HeartbeatPtr> listed;
    const std::lock_guard lock(mutex_);
    forget_silent();
    const auto workers = namespaces_.find(namespace_id);
    if (workers == namespaces_.end()) {
        return listed;
    }
    for (auto each = workers->second.upper_bound(after); each != workers->second.end(); ++each) {
        listed.push_back(each->second.heartbeat);
    }
    return listed;
}

void Registry::forget(const std::string& namespace_id, const std::string& key) {
    const auto workers = namespaces_.find(namespace_id);
    if (workers == namespaces_.end()) {
        return;
    }
    const auto found = workers->second.find(key);
    if (found == workers->second.end()) {
        return;
    }
    bytes_ -= found->second.bytes;
    by_time_.erase(found->second.where);
    workers->second.erase(found);
    if (workers->second.empty()) {
        namespaces_.erase(workers);
    }
}

void Registry::forget_silent() {
    const Steady now = clock_.steady_now();
    while (!by_time_.empty()) {
        const Place oldest = by_time_.front();
        const Entry& entry = namespaces_.at(oldest.namespace_id).at(oldest.key);
        if (now < entry.at + kept && by_time_.size() <= limits_.workers_max &&
            bytes_ <= limits_.bytes_max) {
            return;
        }
        forget(oldest.namespace_id, oldest.key);
    }
}

}  // namespace holdfast::server::workers
