// Queries that workers have as tasks, by the id in the token of the task.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

namespace holdfast::server::frontend {

class LiveQuery;

// Safe to share between threads. What it hands out is destroyed without its lock.
class QueryTasks {
public:
    // Of queries that wait at the same time, whatever they wait for.
    static constexpr std::size_t waiting_max = 10'000;

    // A place among those that wait. It is given back when it is destroyed.
    class Place {
    public:
        ~Place();
        Place(const Place&) = delete;
        Place& operator=(const Place&) = delete;

    private:
        friend class QueryTasks;
        explicit Place(std::shared_ptr<QueryTasks> tasks) : tasks_(std::move(tasks)) {}
        const std::shared_ptr<QueryTasks> tasks_;
    };
    // Empty if all are taken.
    [[nodiscard]] static std::unique_ptr<Place> take_place(std::shared_ptr<QueryTasks> tasks);

    void add(const std::string& id, std::weak_ptr<LiveQuery> query);
    // The query, once; empty if it is not known, or over.
    [[nodiscard]] std::shared_ptr<LiveQuery> take(const std::string& id);
    void forget(const std::string& id);

private:
    std::mutex mutex_;
    std::size_t waiting_ = 0;
    std::map<std::string, std::weak_ptr<LiveQuery>> with_workers_;
};

}  // namespace holdfast::server::frontend
