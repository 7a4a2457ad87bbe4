// History tasks: work that a shard's owner owes to itself, such as a timer, a transfer or indexing.
//
// A task is written in the same transaction as the state it follows from, and read in the order of
// its key. Ids come from the shard's range, so a task that would slip in behind a newer owner is
// refused: the queue is already read beyond it.
#pragma once

#include <compare>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <holdfast/store/shard.hpp>
#include <holdfast/store/types.hpp>

namespace holdfast::store {

// Stored as these numbers. Tasks of timer, archival and memory_timer are scheduled: they have a
// time. The others are immediate: their time is always zero.
enum class Category : std::int32_t {
    transfer = 1,
    timer,
    replication,
    visibility,
    archival,
    memory_timer,
    outbound,
};
[[nodiscard]] constexpr bool is_scheduled(Category category) noexcept {
    return category == Category::timer || category == Category::archival ||
           category == Category::memory_timer;
}

struct TaskKey {
    sql::Timestamp fire{};
    std::int64_t id = 0;

    friend auto operator<=>(const TaskKey&, const TaskKey&) = default;
};

struct Task {
    TaskKey key{};
    Blob blob{};

    friend bool operator==(const Task&, const Task&) = default;
};

// A task of which the work is done: its row is deleted, or keeps what is left to do. One that is
// gone already is done.
struct TaskChange {
    Category category{};
    TaskKey key{};
    std::optional<Blob> rewritten{};

    friend bool operator==(const TaskChange&, const TaskChange&) = default;
};

using Tasks = std::map<Category, std::vector<Task>>;

// From `min` on, and before `max`. Of `max` only the time counts for scheduled tasks.
struct TaskRange {
    TaskKey min{};
    TaskKey max{};
};

struct TaskPage {
    std::vector<Task> tasks{};      // In the order of their keys.
    std::optional<TaskKey> next{};  // Where the next page begins; empty after the last.
};

// Safe to share between threads. Every write proves its lease in each of its transactions: a lost
// one throws ShardOwnershipLost. On PostgreSQL such a transaction makes two round trips at most.
class HistoryTasks {
public:
    // Requires: `shards` outlives this object.
    explicit HistoryTasks(Shards& shards) noexcept : shards_(shards) {}
    HistoryTasks(const HistoryTasks&) = delete;
    HistoryTasks& operator=(const HistoryTasks&) = delete;

    // All of them or none. Throws ShardOwnershipLost, or already_exists if a key is taken.
    void add(const ShardLease& lease, const Tasks& tasks, const Call& call = {});

    // Requires: page_size from 1. To go on, set range.min to `next`.
    [[nodiscard]] TaskPage read(ShardId shard,
                                Category category,
                                const TaskRange& range,
                                std::int64_t page_size,
                                const Call& call = {}) const;

    // A task that is gone already is complete. Of several keys all in one transaction.
    // Requires: completed_at_once_max keys at most. Else InvalidPersistenceRequest.
    void complete(const ShardLease& lease,
                  Category category,
                  const TaskKey& key,
                  const Call& call = {});
    void complete(const ShardLease& lease,
                  Category category,
                  std::span<const TaskKey> keys,
                  const Call& call = {});
    static constexpr std::size_t completed_at_once_max = 1'000;
    // Returns how many there were. For scheduled tasks only the times of the range count. In
    // several transactions: what was deleted before an error stays deleted.
    std::int64_t complete_range(const ShardLease& lease,
                                Category category,
                                const TaskRange& range,
                                const Call& call = {});

    // Replication tasks that could not be applied, by the cluster they came from. A task never
    // changes, so to put one again is nothing.
    void put_to_dlq(const ShardLease& lease,
                    const std::string& source_cluster,
                    const Task& task,
                    const Call& call = {});
    [[nodiscard]] TaskPage read_dlq(ShardId shard,
                                    const std::string& source_cluster,
                                    const TaskRange& range,
                                    std::int64_t page_size,
                                    const Call& call = {}) const;
    void delete_from_dlq(const ShardLease& lease,
                         const std::string& source_cluster,
                         std::int64_t task_id,
                         const Call& call = {});
    std::int64_t delete_range_from_dlq(const ShardLease& lease,
                                       const std::string& source_cluster,
                                       const TaskRange& range,
                                       const Call& call = {});
    // Whether there is none from task `min` on.
    [[nodiscard]] bool is_dlq_empty(ShardId shard,
                                    const std::string& source_cluster,
                                    std::int64_t min,
                                    const Call& call = {}) const;

private:
    Shards& shards_;
};

}  // namespace holdfast::store
