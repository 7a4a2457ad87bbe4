#include "frontend/query/query_tasks.hpp"

#include <utility>

namespace holdfast::server::frontend {

QueryTasks::Place::~Place() {
    const std::lock_guard lock(tasks_->mutex_);
    --tasks_->waiting_;
}

std::unique_ptr<QueryTasks::Place> QueryTasks::take_place(std::shared_ptr<QueryTasks> tasks) {
    {
        const std::lock_guard lock(tasks->mutex_);
        if (tasks->waiting_ == waiting_max) {
            return nullptr;
        }
        ++tasks->waiting_;
    }
    return std::unique_ptr<Place>(new Place(std::move(tasks)));
}

void QueryTasks::add(const std::string& id, std::weak_ptr<LiveQuery> query) {
    const std::lock_guard lock(mutex_);
    with_workers_.emplace(id, std::move(query));
}

std::shared_ptr<LiveQuery> QueryTasks::take(const std::string& id) {
    const std::lock_guard lock(mutex_);
    const auto found = with_workers_.extract(id);
    return found.empty() ? nullptr : found.mapped().lock();
}

void QueryTasks::forget(const std::string& id) {
    const std::lock_guard lock(mutex_);
    with_workers_.erase(id);
}

}  // namespace holdfast::server::frontend
