// Warns when conflicts are frequent.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include <holdfast/base/clock.hpp>
#include <holdfast/base/log.hpp>
#include <holdfast/base/metrics.hpp>

namespace holdfast::sql {

// Counts conflicts in windows of a minute. Above the threshold it writes one warning a minute that
// names the operations; the last full minute's count is a gauge. Safe to share between threads.
class ConflictWatch {
public:
    ConflictWatch(int per_minute, Logger& logger, Gauge gauge, std::string database);

    void record(std::string_view operation, Steady now);

private:
    [[nodiscard]] std::string busiest() const;

    const int per_minute_;
    Logger& logger_;
    const Gauge gauge_;
    const std::string database_;

    std::mutex mutex_;
    Steady window_{};
    int count_ = 0;
    bool warned_ = false;
    std::map<std::string, int, std::less<>> by_operation_;
};

}  // namespace holdfast::sql
