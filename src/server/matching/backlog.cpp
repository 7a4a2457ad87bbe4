#include "matching/backlog.hpp"

#include <algorithm>
#include <utility>

#include <holdfast/base/assert.hpp>

namespace holdfast::server::matching {

int level_of(int priority) noexcept {
    return priority <= 0 ? default_priority : std::min(priority, priority_levels);
}

FairLevel& Backlog::of(const QueuedTask& task) {
    return levels_[static_cast<std::size_t>(level_of(task.priority) - 1)];
}

void Backlog::add(QueuedTask task, double weight) {
    FairLevel& level = of(task);
    level.add(std::move(task), weight);
}

void Backlog::put_back(QueuedTask task) {
    FairLevel& level = of(task);
    level.put_back(std::move(task));
}

std::optional<int> Backlog::first_level(Time now) {
    for (int number = 1; number <= priority_levels; ++number) {
        FairLevel& level = levels_[static_cast<std::size_t>(number - 1)];
        while (!level.empty() && level.first().expiry && *level.first().expiry <= now) {
            static_cast<void>(level.take());
        }
        if (!level.empty()) {
            return number;
        }
    }
    return std::nullopt;
}

QueuedTask Backlog::take(int level) {
    FairLevel& tasks = levels_[static_cast<std::size_t>(level - 1)];
    HOLDFAST_ASSERT(!tasks.empty());
    return tasks.take();
}

std::size_t Backlog::size() const noexcept {
    std::size_t all = 0;
    for (const FairLevel& level : levels_) {
        all += level.size();
    }
    return all;
}

std::vector<std::size_t> Backlog::sizes() const {
    std::vector<std::size_t> sizes;
    sizes.reserve(levels_.size());
    for (const FairLevel& level : levels_) {
        sizes.push_back(level.size());
    }
    return sizes;
}

std::optional<Time> Backlog::oldest() const {
    std::optional<Time> oldest;
    for (const FairLevel& level : levels_) {
        const std::optional<Time> of_level = level.oldest();
        if (of_level && (!oldest || *of_level < *oldest)) {
            oldest = of_level;
        }
    }
    return oldest;
}

std::optional<Time> Backlog::next_made() const {
    for (const FairLevel& level : levels_) {
        if (!level.empty()) {
            return level.first().created;
        }
    }
    return std::nullopt;
}

}  // namespace holdfast::server::matching
