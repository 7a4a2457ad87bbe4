#include "matching/backlog.hpp"

#include <algorithm>
#include <utility>

#include <holdfast/base/assert.hpp>

namespace holdfast::server::matching {

int level_of(int priority) noexcept {
    return priority <= 0 ? default_priority : std::min(priority, priority_levels);
}

Backlog::Level& Backlog::of(const QueuedTask& task) {
    return levels_[static_cast<std::size_t>(level_of(task.priority) - 1)];
}

void Backlog::add(QueuedTask task) {
    Level& level = of(task);
    level.push_back(std::move(task));
}

void Backlog::put_back(QueuedTask task) {
    // Only tasks that were put back too can be before it. The bound is for a queue whose tasks were
    // added in another order.
    constexpr int steps_max = 16;
    Level& level = of(task);
    auto place = level.begin();
    for (int step = 0; step < steps_max; ++step) {
        if (place == level.end() || place->created >= task.created) {
            break;
        }
        ++place;
    }
    level.insert(place, std::move(task));
}

std::optional<int> Backlog::first_level(Time now) {
    for (int number = 1; number <= priority_levels; ++number) {
        Level& level = levels_[static_cast<std::size_t>(number - 1)];
        while (!level.empty() && level.front().expiry && *level.front().expiry <= now) {
            level.pop_front();
        }
        if (!level.empty()) {
            return number;
        }
    }
    return std::nullopt;
}

QueuedTask Backlog::take(int level) {
    Level& tasks = levels_[static_cast<std::size_t>(level - 1)];
    HOLDFAST_ASSERT(!tasks.empty());
    QueuedTask task = std::move(tasks.front());
    tasks.pop_front();
    return task;
}

std::size_t Backlog::size() const noexcept {
    std::size_t all = 0;
    for (const Level& level : levels_) {
        all += level.size();
    }
    return all;
}

std::vector<std::size_t> Backlog::sizes() const {
    std::vector<std::size_t> sizes;
    sizes.reserve(levels_.size());
    for (const Level& level : levels_) {
        sizes.push_back(level.size());
    }
    return sizes;
}

std::optional<Time> Backlog::oldest() const {
    std::optional<Time> oldest;
    for (const Level& level : levels_) {
        if (!level.empty() && (!oldest || level.front().created < *oldest)) {
            oldest = level.front().created;
        }
    }
    return oldest;
}

}  // namespace holdfast::server::matching
