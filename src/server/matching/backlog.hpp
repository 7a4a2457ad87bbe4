// Tasks that wait for a poll: by priority, and fair between the keys of one priority.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <vector>

#include "matching/fair_level.hpp"
#include "matching/task.hpp"

namespace holdfast::server::matching {

inline constexpr int priority_levels = 5;

// 0, which is unset, counts as the default, and what is beyond the last as the last.
[[nodiscard]] int level_of(int priority) noexcept;

class Backlog {
public:
    // Requires: `weight`, that of its key, is positive.
    void add(QueuedTask task, double weight);
    // Before those that are younger, as it was before it left.
    void put_back(QueuedTask task);

    // The level of the first task; nothing if none waits. Tasks that are found expired are dropped.
    [[nodiscard]] std::optional<int> first_level(Time now);
    // Requires: the level has a task.
    [[nodiscard]] QueuedTask take(int level);

    [[nodiscard]] std::size_t size() const noexcept;
    [[nodiscard]] std::vector<std::size_t> sizes() const;
    // When the first task of a key of a level was made, and of these the earliest. Looks at all
    // keys.
    [[nodiscard]] std::optional<Time> oldest() const;
    // When the next task was made.
    [[nodiscard]] std::optional<Time> next_made() const;

private:
    [[nodiscard]] FairLevel& of(const QueuedTask& task);

    std::array<FairLevel, priority_levels> levels_;
};

}  // namespace holdfast::server::matching
