// Task queues: named work that pollers wait for.
//
// A queue is a row with a range, which its owner in the matching service holds as a lease: it reads
// the queue and takes it by writing a greater range. Tasks are added only under the range that the
// queue has. Plain queues order their tasks by id, fair ones by pass and then by id.
#pragma once

#include <compare>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <holdfast/store/error.hpp>
#include <holdfast/store/types.hpp>

namespace holdfast::sql {
class Database;
}

namespace holdfast::store {

enum class TaskQueueType : std::uint8_t { workflow = 1, activity, nexus };

struct TaskQueueKey {
    NamespaceId ns{};
    std::string name{};  // 1 to id_bytes_max bytes.
    TaskQueueType type = TaskQueueType::workflow;
    std::int32_t subqueue = 0;  // 0 is the queue itself, which has the lease of all.

    friend auto operator<=>(const TaskQueueKey&, const TaskQueueKey&) = default;
};

// A key as it is stored. The id is the namespace, the name, the type and the subqueue; in the key
// of rows stands a digest of it, which cannot be turned back.
struct StoredQueueKey {
    std::int64_t range_hash = 0;  // 32 bits, spread evenly.
    Uuid digest{};
    sql::Bytes id{};

    friend bool operator==(const StoredQueueKey&, const StoredQueueKey&) = default;
};
[[nodiscard]] StoredQueueKey stored_key(const TaskQueueKey& key);

struct TaskQueue {
    RangeId range{};
    Blob info{};

    friend bool operator==(const TaskQueue&, const TaskQueue&) = default;
};
struct ListedTaskQueue {
    StoredQueueKey key{};
    TaskQueue queue{};
};

// The order of tasks. Plain queues have only pass 0, fair ones count passes from 1.
struct TaskPlace {
    std::int64_t pass = 0;
    std::int64_t id = 0;

    friend auto operator<=>(const TaskPlace&, const TaskPlace&) = default;
};
struct QueueTask {
    TaskPlace place{};
    Blob blob{};
    std::int32_t subqueue = 0;

    friend bool operator==(const QueueTask&, const QueueTask&) = default;
};
struct QueueTaskPage {
    std::vector<QueueTask> tasks{};
    std::optional<TaskPlace> next{};  // Where the next page begins; empty after the last.
};

enum class Fairness : std::uint8_t { plain, fair };

// Safe to share between threads. On PostgreSQL every call makes two round trips at most.
class TaskQueues {
public:
    // Requires: `db` outlives this object, and its schema holds the part `store`.
    explicit TaskQueues(sql::Database& db, Fairness fairness = Fairness::plain) noexcept
        : db_(db), fairness_(fairness) {}
    TaskQueues(const TaskQueues&) = delete;
    TaskQueues& operator=(const TaskQueues&) = delete;

    // Throws ConditionFailed if it is there already.
    void create(const TaskQueueKey& key, const TaskQueue& queue, const Call& call = {});
    [[nodiscard]] std::optional<TaskQueue> find(const TaskQueueKey& key,
                                                const Call& call = {}) const;
    // To take, to renew, to acknowledge: stores the queue if its range is still `previous`, else
    // throws ConditionFailed.
    void update(const TaskQueueKey& key,
                const TaskQueue& queue,
                RangeId previous,
                const Call& call = {});
    // Throws ConditionFailed if the range is another, or the queue is gone. Its tasks stay.
    void remove(const TaskQueueKey& key, RangeId range, const Call& call = {});
    // All queues, after the last one of the page before.
    [[nodiscard]] std::vector<ListedTaskQueue> list(std::int64_t page_size,
                                                    const std::optional<StoredQueueKey>& after = {},
                                                    const Call& call = {}) const;

    // All of them or none. Throws ConditionFailed unless the queue has this range.
    void add(const TaskQueueKey& key,
             RangeId range,
             const std::vector<QueueTask>& tasks,
             const Call& call = {});
    // From `min` on, and before `max_id`, which only plain queues have.
    [[nodiscard]] QueueTaskPage read(const TaskQueueKey& key,
                                     const TaskPlace& min,
                                     std::int64_t page_size,
                                     std::int64_t max_id = std::numeric_limits<std::int64_t>::max(),
                                     const Call& call = {}) const;
    // Deletes up to `limit` of those before `max`, the first first, and says how many. Many go in
    // several transactions: what was deleted before an error stays deleted. Throws ConditionFailed
    // unless the queue itself, of which `key` may name a subqueue, has this range.
    std::int64_t complete_before(const TaskQueueKey& key,
                                 RangeId range,
                                 const TaskPlace& max,
                                 std::int64_t limit,
                                 const Call& call = {});

private:
    sql::Database& db_;
    Fairness fairness_;
};

// What users have set for the queues of a name, with a version that grows by one with every write;
// 0 is a queue for which nothing was set. And which queues know a build.
struct UserData {
    Blob blob{};
    std::int64_t version = 0;

    friend bool operator==(const UserData&, const UserData&) = default;
};
struct UserDataUpdate {
    UserData data{};  // With the version that it has before.
    std::set<std::string> added_builds{};
    std::set<std::string> removed_builds{};
};

// Some queue has another version than was expected; nothing was applied to any of them.
class UserDataConflict : public ConditionFailed {
public:
    explicit UserDataConflict(std::set<std::string> queues,
                              std::source_location where = std::source_location::current());
    [[nodiscard]] const std::set<std::string>& queues() const noexcept { return queues_; }

private:
    std::set<std::string> queues_;
};

// Safe to share between threads. On PostgreSQL every call makes two round trips at most.
class TaskQueueUserData {
public:
    // Requires: `db` outlives this object, and its schema holds the part `store`.
    explicit TaskQueueUserData(sql::Database& db) noexcept : db_(db) {}
    TaskQueueUserData(const TaskQueueUserData&) = delete;
    TaskQueueUserData& operator=(const TaskQueueUserData&) = delete;

    [[nodiscard]] std::optional<UserData> find(NamespaceId ns,
                                               const std::string& queue,
                                               const Call& call = {}) const;
    // All queues or none, by their names. Throws UserDataConflict.
    void update(NamespaceId ns,
                const std::map<std::string, UserDataUpdate>& queues,
                const Call& call = {});
    // In an order that stays the same, after `after`, which is the last name of the page before.
    [[nodiscard]] std::vector<std::pair<std::string, UserData>> list(NamespaceId ns,
                                                                     std::int64_t page_size,
                                                                     const std::string& after = {},
                                                                     const Call& call = {}) const;
    [[nodiscard]] std::vector<std::string> queues_of_build(NamespaceId ns,
                                                           const std::string& build,
                                                           const Call& call = {}) const;
    [[nodiscard]] std::int64_t count_queues_of_build(NamespaceId ns,
                                                     const std::string& build,
                                                     const Call& call = {}) const;

private:
    sql::Database& db_;
};

}  // namespace holdfast::store
