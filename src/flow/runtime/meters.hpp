// What a runtime counts: for its own stats, and as metrics.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

#include <holdfast/base/metrics.hpp>
#include <holdfast/flow/provider.hpp>

namespace holdfast::flow {

class Execution;

// A count that is also a metric, if metrics are collected.
class Meter {
public:
    Meter() = default;
    explicit Meter(Counter counter) : counter_(counter) {}
    void operator++() noexcept { *this += 1; }
    void operator+=(std::int64_t by) noexcept {
        value_ += by;
        counter_.add(static_cast<double>(by));
    }
    // NOLINTNEXTLINE(google-explicit-constructor): it is a number.
    operator std::int64_t() const noexcept { return value_; }

private:
    std::atomic<std::int64_t> value_ = 0;
    Counter counter_;
};

// docs/workflows.md lists the metrics. Their labels are names of code, never of instances.
class Meters {
public:
    // `metrics` may be null; else it outlives this object.
    explicit Meters(Metrics* metrics = nullptr);

    Meter turns;
    Meter from_cache;
    Meter lost;
    Meter events_replayed;
    Meter history_bytes_read;
    Meter commits;
    Meter activities;  // As a metric it has labels: see ran().
    Meter shadow_replays;
    Meter poisoned;

    // A turn is in the store. `execution` is what it was a turn of; null if it could not be loaded.
    void committed(const TurnCommit& turn, const Execution* execution, Moment now) const;
    // An activity has run here.
    void ran(const ClaimedActivity& claim,
             std::string_view outcome,
             std::chrono::nanoseconds took) const;
    // A message is about to be taken: records how late it is, if it is a timer.
    void taking(const Message& message, Moment now) const;
    // The store failed.
    void failed(std::string_view operation) const;
    void blocked(BlockKind kind) const;
    // What is in the store. False: metrics are not collected.
    [[nodiscard]] bool wanted() const noexcept { return metrics_ != nullptr; }
    void measured(const SystemStats& stats, std::size_t cached_instances) const;

private:
    void started(std::string_view name, std::string_view version, std::string_view by) const;

    Metrics* metrics_;
};

}  // namespace holdfast::flow
