// The bounds of one run. The defaults are those of the API's reference server; a namespace or a
// test may set others.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "history/times.hpp"

namespace holdfast::server::history {

inline constexpr std::size_t kib = 1024;
inline constexpr std::size_t mib = 1024 * kib;

struct Limits {
    std::size_t id_bytes_max = 1000;
    std::size_t blob_bytes_max = 2 * mib;
    std::size_t summary_bytes_max = 400;
    std::size_t details_bytes_max = 20'000;
    std::int64_t history_bytes_max = 50 * mib;
    std::int64_t history_events_max = 51'200;
    std::int64_t history_bytes_suggest = 4 * mib;
    std::int64_t history_events_suggest = 4096;
    std::size_t pending_max = 2000;  // Of activities, children, external signals, external cancels.
    std::int64_t signals_max = 10'000;
    std::size_t updates_suggest = 1800;
    std::size_t updates_max = 2000;          // Of a run, without those that were rejected.
    std::size_t updates_in_flight_max = 10;  // Those that are not completed.
    std::size_t updates_in_flight_bytes_max = 20 * mib;  // Of the requests that are not accepted.
    std::size_t buffered_events_max = 100;
    std::size_t buffered_bytes_max = 2 * mib;
    std::size_t last_failure_bytes_max = 4 * kib;
    Span workflow_task_timeout = std::chrono::seconds{10};
    Span workflow_task_timeout_max = std::chrono::seconds{120};
    Span heartbeats_max = std::chrono::minutes{30};   // Of one workflow task, all together.
    Span run_interval_min = std::chrono::seconds{1};  // Between starts of the runs of a chain.
    int timers_per_transition = 500;
};

// Ids that stand for an event which has none yet.
inline constexpr std::int64_t buffered_event_id = -123;

}  // namespace holdfast::server::history
