#include "matching/pollers.hpp"

#include <iterator>
#include <ranges>

namespace holdfast::server::matching {

void Pollers::saw(const PollInfo& info, Steady now, Wall wall) {
    const auto known = by_identity_.find(info.identity);
    if (known != by_identity_.end()) {
        by_time_.splice(by_time_.end(), by_time_, known->second);
    } else {
        while (!by_time_.empty() &&
               (by_time_.size() >= identities_max || by_time_.front().at + kept_ <= now)) {
            by_identity_.erase(by_time_.front().poller.identity);
            by_time_.pop_front();
        }
        by_time_.push_back(
            {.poller = {.identity = info.identity, .last_access = wall, .tasks_per_second = {}},
             .worker_instance_key = {},
             .at = now});
        by_identity_.emplace(info.identity, std::prev(by_time_.end()));
    }
    Seen& seen = by_time_.back();
    seen.poller.last_access = wall;
    seen.poller.tasks_per_second = info.tasks_per_second;
    seen.poller.worker_version = info.worker_version;
    seen.worker_instance_key = info.worker_instance_key;
    seen.at = now;
}

void Pollers::forget_worker(const std::string& worker_instance_key) {
    for (auto each = by_time_.begin(); each != by_time_.end();) {
        if (each->worker_instance_key == worker_instance_key) {
            by_identity_.erase(each->poller.identity);
            each = by_time_.erase(each);
        } else {
            ++each;
        }
    }
}

void Pollers::clear() {
    by_identity_.clear();
    by_time_.clear();
}

bool Pollers::any(Steady now) const {
    return !by_time_.empty() && now < by_time_.back().at + kept_;
}

std::vector<PollerView> Pollers::view(Steady now) const {
    std::vector<PollerView> pollers;
    for (const Seen& seen : std::views::reverse(by_time_)) {
        if (seen.at + kept_ <= now) {
            break;
        }
        pollers.push_back(seen.poller);
    }
    return pollers;
}

}  // namespace holdfast::server::matching
