// Tasks of the history service that travel between clusters, or could not be carried out: a named
// queue for each category and each pair of clusters.
//
// A task is kept as it comes, with the shard it belongs to. Everything else is the queue's: ids
// count from 0, and never go back.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <holdfast/store/history_tasks.hpp>
#include <holdfast/store/queue.hpp>
#include <holdfast/store/types.hpp>

namespace holdfast::store {

// Stored as these numbers, which are types of named queues.
enum class HistoryQueueKind : std::int32_t { normal = 1, dead_letters };

// The names of both clusters together have 230 bytes at most.
struct HistoryTaskQueue {
    HistoryQueueKind kind = HistoryQueueKind::dead_letters;
    Category category = Category::transfer;
    std::string source_cluster{};
    std::string target_cluster{};

    friend bool operator==(const HistoryTaskQueue&, const HistoryTaskQueue&) = default;
};
// Differs if anything of the queue does.
[[nodiscard]] QueueName stored_name(const HistoryTaskQueue& queue);

struct QueuedHistoryTask {
    std::int64_t id = 0;  // Of the message.
    ShardId shard{};
    Blob task{};

    friend bool operator==(const QueuedHistoryTask&, const QueuedHistoryTask&) = default;
};

// Safe to share between threads. Errors of the queue below come out as they are.
class HistoryTaskQueues {
public:
    // Requires: `db` outlives this object, and its schema holds the part `store`.
    explicit HistoryTaskQueues(sql::Database& db) noexcept : queues_(db) {}

    // Throws QueueAlreadyExists. All that follow throw NotFound for a queue that was not created.
    void create(const HistoryTaskQueue& queue, const Call& call = {});
    // The message's id. Requires: a shard from 1, and a task that is not empty.
    std::int64_t enqueue(const HistoryTaskQueue& queue,
                         ShardId shard,
                         const Blob& task,
                         const Call& call = {});
    // After `after`, which is the last id of the page before. Throws DamagedData if a message is
    // not a task: a reader must not go past it.
    [[nodiscard]] std::vector<QueuedHistoryTask> read(const HistoryTaskQueue& queue,
                                                      std::int64_t page_size,
                                                      std::optional<std::int64_t> after = {},
                                                      const Call& call = {}) const;
    // Deletes all tasks up to `last`, and says how many. Requires: last >= 0.
    std::int64_t remove_up_to(const HistoryTaskQueue& queue,
                              std::int64_t last,
                              const Call& call = {});

private:
    NamedQueues queues_;
};

}  // namespace holdfast::store
