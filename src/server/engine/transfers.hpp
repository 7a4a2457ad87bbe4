// The rows that list what runs asked for and is not done yet: tasks for queues, and work of the
// server itself.
//
// A row is written by the transition that makes its tasks, and goes with the commit after which
// none of them stands any more. Most are read off the run's state, so that nothing has to be told
// when a task is done; what has steps in other runs stands until finish().
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "history/transition.hpp"

namespace holdfast::server::engine {

// Whether the run, in this state, still wants the task to be done.
[[nodiscard]] bool stands(const history::state::Run& run, const history::Task& task);

// Safe to share between threads. The rows of one run change in its turns only.
class Transfers {
public:
    void add(const std::string& run_id, std::int64_t row, std::vector<history::Task> tasks);

    // The last step of a task is committed.
    void finish(const std::string& run_id, std::int64_t row, const history::Task& task);

    // Rows of the run of which no task stands in this state.
    [[nodiscard]] std::vector<std::int64_t> done(const history::state::Run& run) const;
    // All rows of the run.
    [[nodiscard]] std::vector<std::int64_t> of(const std::string& run_id) const;
    void remove(const std::string& run_id, const std::vector<std::int64_t>& rows);

    [[nodiscard]] std::size_t size() const;

private:
    struct Row {
        std::int64_t id = 0;
        std::vector<history::Task> tasks;
    };

    mutable std::mutex mutex_;
    std::map<std::string, std::vector<Row>> rows_;  // By run.
};

}  // namespace holdfast::server::engine
