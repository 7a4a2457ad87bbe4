// Clients that start workflows and wait for their ends, and the worker that serves them.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>

#include "link.hpp"
#include "plan.hpp"

#include <holdfast/bench/driver.hpp>

namespace holdfast::server_bench {

struct LoadOptions {
    std::string name_space = "default";
    int in_flight = 64;
    std::stop_token stop{};
    // Resident memory of the server, and its processor time in seconds, where they are known.
    std::function<double()> resident_bytes{};
    std::function<double()> cpu_seconds{};
    // Called when the first workflow is over, which is not measured: every poll waits by then.
    std::function<void()> warm{};
};

// Starts `in_flight` workflows, and for each that ends another one until the time is over; all of
// them end. Figures: p50_us, p99_us from the start to the result, as a client sees them.
[[nodiscard]] bench::Work run_plan(Link& link,
                                   const Plan& plan,
                                   const LoadOptions& options,
                                   std::chrono::nanoseconds time);

// Starts so many without a worker. Operations and seconds are those of the worker that comes then
// and completes them. Figures: starts_per_s, waiting_resident_mb.
[[nodiscard]] bench::Work run_backlog(Link& link, const LoadOptions& options, std::int64_t count);

// Starts so many that stay open; then all are ended. Operations and seconds are those of the
// starts, each with its first task. Figures: open_resident_mb, bytes_per_open, open_cpu_percent.
[[nodiscard]] bench::Work run_open(Link& link, const LoadOptions& options, std::int64_t count);

// Registers the namespace where it is missing, and waits until it can be used.
void require_namespace(Link& link, const std::string& name, const std::stop_token& stop);

// Whether the server has this method at all; `request` names nothing that exists.
[[nodiscard]] bool has_updates(Link& link, const std::string& name, const std::stop_token& stop);

}  // namespace holdfast::server_bench
