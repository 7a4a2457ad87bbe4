#include "conflict_watch.hpp"

#include <utility>

#include <fmt/core.h>

namespace holdfast::sql {
namespace {

constexpr std::chrono::minutes window{1};
constexpr std::size_t operations_max = 64;

}  // namespace

ConflictWatch::ConflictWatch(int per_minute, Logger& logger, Gauge gauge, std::string database)
    : per_minute_(per_minute), logger_(logger), gauge_(gauge), database_(std::move(database)) {}

void ConflictWatch::record(std::string_view operation, Steady now) {
    std::string operations;
    int count = 0;
    {
        const std::lock_guard lock(mutex_);
        if (now - window_ >= window) {
            gauge_.set(now - window_ < 2 * window ? count_ : 0);
            window_ = now;
            count_ = 0;
            warned_ = false;
            by_operation_.clear();
        }
        count = ++count_;
        const auto found = by_operation_.find(operation);
        if (found != by_operation_.end()) {
            ++found->second;
        } else if (by_operation_.size() < operations_max) {
            by_operation_.emplace(operation, 1);
        }
        if (count <= per_minute_ || warned_) {
            return;
        }
        warned_ = true;
        operations = busiest();
    }
    gauge_.set(count);
    logger_.warn("many conflicts",
                 {{"db", database_}, {"conflicts", count}, {"operations", operations}});
}

std::string ConflictWatch::busiest() const {
    std::string text;
    for (const auto& [operation, count] : by_operation_) {
        text += fmt::format("{}{}={}", text.empty() ? "" : ",", operation, count);
    }
    return text;
}

}  // namespace holdfast::sql
