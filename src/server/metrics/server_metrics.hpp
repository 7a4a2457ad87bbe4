// What a server tells Prometheus beside its calls: what ends, what waits, what it holds.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>

#include <holdfast/base/metrics.hpp>

namespace holdfast::server {

// What is read when the metrics are.
struct ServerLevels {
    std::uint64_t run_commits = 0;
    std::uint64_t other_commits = 0;
    std::size_t cached_workflows = 0;
    std::size_t cached_bytes = 0;
    std::size_t queues = 0;
    std::size_t parked_polls = 0;
    std::size_t backlog = 0;
    double backlog_age_s = 0;
    std::size_t long_http_calls = 0;
};

// Safe to share between threads.
class ServerMetrics {
public:
    // Requires: `metrics` outlives this object; `levels` may be called from any thread until this
    // object goes, and `name_of` gives the name of a namespace, without blocking.
    ServerMetrics(Metrics& metrics,
                  std::function<ServerLevels()> levels,
                  std::function<std::string(const std::string& namespace_id)> name_of);

    // A run was closed; `status` is the API's.
    void count_closed(const std::string& namespace_id, int status);

private:
    void refresh();

    Metrics& metrics_;
    const std::function<ServerLevels()> levels_;
    const std::function<std::string(const std::string&)> name_of_;

    std::mutex mutex_;
    using Outcomes = std::array<Counter, 8>;        // By status.
    std::map<std::string, Outcomes> by_namespace_;  // By id.

    ServerLevels before_;  // Of the counters, when they were last read.
    Counter run_commits_;
    Counter other_commits_;
    Gauge cached_workflows_;
    Gauge cached_bytes_;
    Gauge queues_;
    Gauge parked_polls_;
    Gauge backlog_;
    Gauge backlog_age_;
    Gauge long_http_calls_;
    Refresher refresher_;  // Last: it uses all of the above.
};

}  // namespace holdfast::server
