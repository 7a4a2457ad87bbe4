// Queues of messages that are numbered without a gap.
//
// Ids count from 0 and never go back: the message with the highest one stays until a higher one
// comes. Adding a message locks the queue, so that no id is taken twice.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <holdfast/store/error.hpp>
#include <holdfast/store/types.hpp>

namespace holdfast::sql {
class Database;
}

namespace holdfast::store {

struct Message {
    std::int64_t id = 0;
    Blob blob{};

    friend bool operator==(const Message&, const Message&) = default;
};

// From 1. Each has a twin for messages that could not be delivered.
enum class QueueType : std::int32_t {};
inline constexpr QueueType namespace_replication{1};
enum class Letters : std::uint8_t { live, dead };

// A queue that is read by clusters, each of which says how far it has come. Safe to share between
// threads. On PostgreSQL every call makes two round trips at most.
class Queue {
public:
    // Requires: `db` outlives this object, and its schema holds the part `store`.
    Queue(sql::Database& db, QueueType type, Letters letters = Letters::live);
    Queue(const Queue&) = delete;
    Queue& operator=(const Queue&) = delete;

    // Before all else, once or more often.
    void init(const Call& call = {});
    // The message's id. Throws NotFound if the queue was not initialised.
    std::int64_t enqueue(const Blob& blob, const Call& call = {});
    // Messages after `after`, and up to `last`, in order.
    [[nodiscard]] std::vector<Message> read(
        std::int64_t after,
        std::int64_t page_size,
        std::int64_t last = std::numeric_limits<std::int64_t>::max(),
        const Call& call = {}) const;
    void remove(std::int64_t id, const Call& call = {});
    // Deletes messages after `after` and up to `last`, but never the highest of all. Says how many.
    std::int64_t remove_range(std::int64_t after, std::int64_t last, const Call& call = {});

    // A level never moves back: an older one changes nothing.
    void acknowledge(const std::string& cluster, std::int64_t level, const Call& call = {});
    [[nodiscard]] std::map<std::string, std::int64_t> ack_levels(const Call& call = {}) const;

private:
    sql::Database& db_;
    std::int32_t type_;  // As it is stored: below 0 for dead letters.
};

// Named queues, many of a type.
struct QueueName {
    std::int32_t type = 0;
    std::string name{};  // 1 to name_bytes_max bytes.
};
struct ListedQueue {
    std::string name{};
    std::int64_t messages = 0;  // That were not deleted.
    std::int64_t last_id = -1;  // -1: there was none yet.

    friend bool operator==(const ListedQueue&, const ListedQueue&) = default;
};

// Stored bytes have an encoding that is none of those that are known. The message names them.
class UnknownEncodingType : public DamagedData {
public:
    UnknownEncodingType(std::string message,
                        std::string encoding,
                        std::source_location where = std::source_location::current())
        : DamagedData(std::move(message), where), encoding_(std::move(encoding)) {}

    [[nodiscard]] const std::string& encoding() const noexcept { return encoding_; }

private:
    std::string encoding_;
};

class QueueAlreadyExists : public Error {
public:
    explicit QueueAlreadyExists(const QueueName& queue,
                                std::source_location where = std::source_location::current());
};

// Safe to share between threads.
class NamedQueues {
public:
    // Requires: `db` outlives this object, and its schema holds the part `store`.
    explicit NamedQueues(sql::Database& db) noexcept : db_(db) {}
    NamedQueues(const NamedQueues&) = delete;
    NamedQueues& operator=(const NamedQueues&) = delete;

    // All that follow throw NotFound for a queue that was not created.
    void create(const QueueName& queue, const Call& call = {});
    std::int64_t enqueue(const QueueName& queue, const Blob& blob, const Call& call = {});
    // After `after`, which is the last id of the page before; from the first that was not deleted.
    // Throws UnknownEncodingType if one of them is neither Proto3 nor Json.
    [[nodiscard]] std::vector<Message> read(const QueueName& queue,
                                            std::int64_t page_size,
                                            std::optional<std::int64_t> after = {},
                                            const Call& call = {}) const;
    // Deletes all messages up to `last`, and says how many. Requires: last >= 0.
    std::int64_t remove_up_to(const QueueName& queue, std::int64_t last, const Call& call = {});
    // By name, after the last of the page before.
    [[nodiscard]] std::vector<ListedQueue> list(std::int32_t type,
                                                std::int64_t page_size,
                                                const std::string& after = {},
                                                const Call& call = {}) const;

private:
    sql::Database& db_;
};

}  // namespace holdfast::store
