// Tasks that wait for a poll: by priority, and first in, first out within one.
#pragma once

#include <array>
#include <cstddef>
#include <list>
#include <optional>
#include <vector>

#include "matching/task.hpp"

namespace holdfast::server::matching {

inline constexpr int priority_levels = 5;

// 0, which is unset, counts as the default, and what is beyond the last as the last.
[[nodiscard]] int level_of(int priority) noexcept;

class Backlog {
public:
    void add(QueuedTask task);
    // Before those that are younger, as it was before it left.
    void put_back(QueuedTask task);

    // The level of the first task; nothing if none waits. Tasks that are found expired are dropped.
    [[nodiscard]] std::optional<int> first_level(Time now);
    // Requires: the level has a task.
    [[nodiscard]] QueuedTask take(int level);

    [[nodiscard]] std::size_t size() const noexcept;
    [[nodiscard]] std::vector<std::size_t> sizes() const;
    // When the first task of a level was made, and of these the earliest.
    [[nodiscard]] std::optional<Time> oldest() const;

private:
    using Level = std::list<QueuedTask>;

    [[nodiscard]] Level& of(const QueuedTask& task);

    std::array<Level, priority_levels> levels_;
};

}  // namespace holdfast::server::matching
