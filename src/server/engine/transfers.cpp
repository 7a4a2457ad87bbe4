#include "engine/transfers.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::server::engine {

namespace {

namespace state = history::state;
using Kind = history::Task::Kind;

bool workflow_task_stands(const state::Run& run, const history::Task& task) {
    return run.has_workflow_task() && run.workflow_task().started_event_id() == 0 &&
           run.workflow_task().scheduled_event_id() == task.event_id &&
           run.workflow_task().stamp() == task.stamp;
}

bool activity_stands(const state::Run& run, const history::Task& task) {
    const auto found = run.activities().find(task.event_id);
    return found != run.activities().end() && !found->second.started() &&
           !found->second.in_backoff() && found->second.stamp() == task.stamp;
}

}  // namespace

bool stands(const state::Run& run, const history::Task& task) {
    const bool open = run.phase() != state::PHASE_COMPLETED;
    switch (task.kind) {
        case Kind::workflow_task:
            return open && workflow_task_stands(run, task);
        case Kind::activity:
            return open && activity_stands(run, task);
        case Kind::start_child:
        case Kind::close:
            return true;
        case Kind::cancel_external:
            return open && run.external_cancels().contains(task.event_id);
        case Kind::signal_external:
            return open && run.external_signals().contains(task.event_id);
    }
    return false;
}

void Transfers::add(const std::string& run_id, std::int64_t row, std::vector<history::Task> tasks) {
    const std::lock_guard lock(mutex_);
    rows_[run_id].push_back({.id = row, .tasks = std::move(tasks)});
}

void Transfers::finish(const std::string& run_id, std::int64_t row, const history::Task& task) {
    const std::lock_guard lock(mutex_);
    for (Row& listed : rows_[run_id]) {
        if (listed.id == row) {
            std::erase(listed.tasks, task);
        }
    }
}

std::vector<std::int64_t> Transfers::done(const state::Run& run) const {
    std::vector<std::int64_t> ids;
    const std::lock_guard lock(mutex_);
    const auto found = rows_.find(run.run_id());
    if (found == rows_.end()) {
        return ids;
    }
    for (const Row& row : found->second) {
        if (std::ranges::none_of(row.tasks, [&](const auto& task) { return stands(run, task); })) {
            ids.push_back(row.id);
        }
    }
    return ids;
}

std::vector<std::int64_t> Transfers::of(const std::string& run_id) const {
    std::vector<std::int64_t> ids;
    const std::lock_guard lock(mutex_);
    const auto found = rows_.find(run_id);
    if (found != rows_.end()) {
        for (const Row& row : found->second) {
            ids.push_back(row.id);
        }
    }
    return ids;
}

void Transfers::remove(const std::string& run_id, const std::vector<std::int64_t>& rows) {
    const std::lock_guard lock(mutex_);
    const auto found = rows_.find(run_id);
    if (found == rows_.end()) {
        return;
    }
    std::erase_if(found->second,
                  [&](const Row& row) { return std::ranges::find(rows, row.id) != rows.end(); });
    if (found->second.empty()) {
        rows_.erase(found);
    }
}

std::size_t Transfers::size() const {
    const std::lock_guard lock(mutex_);
    return rows_.size();
}

}  // namespace holdfast::server::engine
