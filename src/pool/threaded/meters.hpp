// The metrics of a pool.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include <holdfast/base/metrics.hpp>
#include <holdfast/pool/config.hpp>
#include <holdfast/pool/machine.hpp>
#include <holdfast/pool/open_phases.hpp>

namespace holdfast::pool {

// Count nothing if there is no registry.
struct Meters {
    Meters(Metrics* metrics, const MeterNames& names, const std::string& pool);
    // What changes with every borrow; published when the metrics are read, not each time.
    void publish(const Counts& counts, std::uint64_t lent_so_far);
    // Counts a failed opening by the last phase that it entered, if any.
    void open_failed(FailureClass failure, std::optional<OpenPhase> at);

    Gauge opening, ready, in_use, retiring, waiting, target;
    Gauge wanted, open;
    Gauge oldest_age_seconds, warm_up_seconds;
    Counter lent, empty, opened, warm_up_failures;
    std::array<Counter, reasons> closed;
    Histogram wait_seconds, open_seconds, age_seconds;
    std::array<Histogram, open_phase_count> phase_seconds;

private:
    static constexpr std::size_t failure_reasons = 4;

    std::array<std::array<Counter, failure_classes>, failure_reasons> open_failures_;
    std::uint64_t lent_published_ = 0;
};

}  // namespace holdfast::pool
