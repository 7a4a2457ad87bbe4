// What a workflow service does to its store, over and over, by a number of clients.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include <holdfast/base/metrics.hpp>
#include <holdfast/bench/driver.hpp>
#include <holdfast/sql/database.hpp>

namespace holdfast::bench {

// Each is one transaction of the store.
enum class StoreWork : std::uint8_t {
    create,     // A run with its pointer and one task.
    update,     // A run that goes on: a node of its history, its row and two tasks.
    add_task,   // One task into a queue.
    get_tasks,  // A page of ten from a queue.
};
[[nodiscard]] std::string_view to_string(StoreWork work) noexcept;

// Whether every client owns a shard, as the hosts of a service do, or all write for one.
enum class Sharing : std::uint8_t { own_shards, one_shard };

// One database under load. Not safe to share between threads.
class StoreLoad {
public:
    // The database gets the tables of the store, if it has none.
    StoreLoad(std::string url, sql::DatabaseOptions options, const std::stop_token& stop);
    ~StoreLoad();
    StoreLoad(const StoreLoad&) = delete;
    StoreLoad& operator=(const StoreLoad&) = delete;

    // Each client does `work` until the time is over. Counts are per transaction; `retries_share`
    // is the share of transactions that had to be repeated because of a conflict.
    [[nodiscard]] Work run(StoreWork work,
                           Sharing sharing,
                           int clients,
                           std::chrono::nanoseconds time,
                           const std::stop_token& stop);

    [[nodiscard]] sql::Database& database() { return *db_; }

private:
    class Client;
    struct Store;

    // The clients and their work; they continue where the previous round ended.
    struct Crowd {
        StoreWork work{};
        Sharing sharing{};
        std::vector<std::unique_ptr<Client>> clients{};
    };

    // One handle per number of clients: idle connections would slow down what is measured.
    void open(int clients);
    void gather(StoreWork work, Sharing sharing, int count);
    [[nodiscard]] double conflicts(StoreWork work) const;

    std::string url_;
    sql::DatabaseOptions options_;
    Metrics metrics_;  // Of this load alone.
    std::unique_ptr<sql::Database> db_;
    std::unique_ptr<Store> store_;
    Crowd crowd_;
    std::int32_t shards_ = 0;  // Taken so far; every client that begins takes a new one.
};

}  // namespace holdfast::bench
