// Counters, gauges and histograms with labels, and their Prometheus text.
//
// A registry is handed in; there is no global one. The number of label sets of one metric is
// bounded: beyond the bound everything is counted under the label value "other", so that a careless
// label cannot eat the process's memory.
#pragma once

#include <cstddef>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast {

// Handles are cheap to copy, safe to share between threads, and stay valid while the registry
// lives. A default-constructed handle counts nothing.
class Counter {
public:
    Counter() = default;
    explicit Counter(void* series) noexcept : series_(series) {}
    void add(double by = 1) const noexcept;  // Requires: `by` is not negative.

private:
    void* series_ = nullptr;
};

class Gauge {
public:
    Gauge() = default;
    explicit Gauge(void* series) noexcept : series_(series) {}
    void set(double value) const noexcept;
    void add(double by) const noexcept;

private:
    void* series_ = nullptr;
};

class Histogram {
public:
    Histogram() = default;
    explicit Histogram(void* series) noexcept : series_(series) {}
    void observe(double value) const noexcept;

private:
    void* series_ = nullptr;
};

using Labels = std::initializer_list<std::pair<std::string_view, std::string_view>>;

// Keeps what was given to Metrics::refresh_with in force while it, or a copy of it, lives.
class Refresher {
public:
    Refresher() = default;
    explicit Refresher(std::shared_ptr<void> entry) noexcept : entry_(std::move(entry)) {}

private:
    std::shared_ptr<void> entry_;
};

// Safe to share between threads. Asking again for the same name and labels gives the same series.
class Metrics {
public:
    static constexpr std::size_t series_per_metric_max = 512;

    Metrics();
    ~Metrics();
    Metrics(const Metrics&) = delete;
    Metrics& operator=(const Metrics&) = delete;

    // Requires: `name` and label names match Prometheus' rules; one name has one type and one set
    // of label names. Else invalid_argument.
    [[nodiscard]] Counter counter(std::string_view name, std::string_view help, Labels labels = {});
    [[nodiscard]] Gauge gauge(std::string_view name, std::string_view help, Labels labels = {});
    [[nodiscard]] Histogram histogram(std::string_view name,
                                      std::string_view help,
                                      const std::vector<double>& bounds,
                                      Labels labels = {});

    // For series that change too often to report each change: `refresh` updates them before every
    // read, on the reader's thread, until the handle is destroyed, which waits for a call under
    // way. Requires: the handle goes before the registry; `refresh` does not
    // throw, and uses handles of series but nothing else of the registry.
    [[nodiscard]] Refresher refresh_with(std::function<void()> refresh);

    // The Prometheus text format, version 0.0.4.
    [[nodiscard]] std::string expose() const;

    // The value of one counter or gauge, or a histogram's count; zero if there is no such series.
    [[nodiscard]] double value(std::string_view name, Labels labels = {}) const;

private:
    struct State;
    std::unique_ptr<State> state_;
};

// 0.1 ms to 30 s: what transactions and waits take.
[[nodiscard]] const std::vector<double>& latency_bounds();

}  // namespace holdfast
