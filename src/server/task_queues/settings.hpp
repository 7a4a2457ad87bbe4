// What operators have set for task queues: a rate, and weights of fairness keys.
//
// It is stored, kept in memory for descriptions, and handed to the queues: those that wait are
// served by the new settings at once.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <vector>

#include "matching/matching.hpp"
#include <temporal/api/taskqueue/v1/message.pb.h>

#include <holdfast/store/task_queue.hpp>

namespace holdfast::server::task_queues {

using Config = temporal::api::taskqueue::v1::TaskQueueConfig;

// Safe to share between threads.
class Settings {
public:
    // Requires: both outlive this object; the schema of `db` holds the part `store`.
    Settings(sql::Database& db, matching::Matching& matching) : store_(db), matching_(matching) {}
    Settings(const Settings&) = delete;
    Settings& operator=(const Settings&) = delete;

    // ---- These block.

    // Reads what is stored for the queues of this namespace. Before its first poll.
    void open(const std::string& namespace_id);
    // Stores what `change` makes of the settings of a queue, and returns them. If `change` returns
    // false, nothing is stored. It may be called again, with what was written meanwhile.
    Config change(const matching::QueueKey& queue, const std::function<bool(Config&)>& change);

    // ---- This does not. Empty if nothing was set.

    [[nodiscard]] Config find(const matching::QueueKey& queue) const;

private:
    void put(const matching::QueueKey& queue, const Config& config);

    store::TaskQueueUserData store_;
    matching::Matching& matching_;

    std::mutex writing_;  // Held by those who block.
    mutable std::shared_mutex mutex_;
    std::map<matching::QueueKey, Config> held_;
};

}  // namespace holdfast::server::task_queues
