#include <holdfast/base/metrics.hpp>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <sstream>

#include <fmt/core.h>
#include <prometheus/check_names.h>
#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <holdfast/base/error.hpp>
#include <holdfast/base/utf8.hpp>

namespace holdfast {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricType;

// The library's own histogram takes a mutex for every observation; this one never waits. The count
// is the sum of the buckets, so the two always agree; the sum may run a moment ahead or behind.
class Buckets {
public:
    explicit Buckets(const std::vector<double>& bounds)
        : bounds_(bounds), counts_(bounds.size() + 1) {}

    void observe(double value) noexcept {
        if (std::isnan(value)) {
            return;
        }  // It would stick to the sum for ever.
        const auto bucket = std::lower_bound(bounds_.begin(), bounds_.end(), value);
        const auto index = static_cast<std::size_t>(bucket - bounds_.begin());
        counts_[index].fetch_add(1, std::memory_order_relaxed);
        sum_.fetch_add(value, std::memory_order_relaxed);
    }

    [[nodiscard]] ClientMetric::Histogram collect() const {
        ClientMetric::Histogram histogram;
        for (std::size_t i = 0; i < counts_.size(); ++i) {
            histogram.sample_count += counts_[i].load(std::memory_order_relaxed);
            const double bound =
                i < bounds_.size() ? bounds_[i] : std::numeric_limits<double>::infinity();
            histogram.bucket.push_back({histogram.sample_count, bound});
        }
        histogram.sample_sum = sum_.load(std::memory_order_relaxed);
        return histogram;
    }

private:
    std::vector<double> bounds_;
    std::vector<std::atomic<std::uint64_t>> counts_;
    std::atomic<double> sum_ = 0;
};

// One label set of one metric. Which of the three it is, its family knows.
struct Series {
    std::unique_ptr<prometheus::Counter> counter;
    std::unique_ptr<prometheus::Gauge> gauge;
    std::unique_ptr<Buckets> histogram;
};

// Label values in the order of their names.
using LabelValues = std::vector<std::string>;

struct Family {
    MetricType type = MetricType::Untyped;
    std::string help;
    std::vector<std::string> label_names{};  // Sorted.
    std::vector<double> bounds{};            // Of a histogram.
    std::map<LabelValues, Series> series{};
};

struct SortedLabels {
    std::vector<std::string> names;
    LabelValues values;
};

SortedLabels sorted(Labels labels) {
    std::vector<std::pair<std::string_view, std::string_view>> pairs(labels);
    std::sort(pairs.begin(), pairs.end());
    SortedLabels result;
    for (const auto& [name, value] : pairs) {
        result.names.emplace_back(name);
        // One value that is not UTF-8 makes Prometheus refuse the whole page.
        result.values.push_back(valid_utf8(value));
    }
    return result;
}

void check_names(const std::string& name, MetricType type, const std::vector<std::string>& labels) {
    if (!prometheus::CheckMetricName(name)) {
        throw InvalidArgument(fmt::format(
            "'{}' is not a metric name; use letters, digits, '_' and ':', with no digit at the "
            "start",
            name));
    }
    for (const std::string& label : labels) {
        const bool reserved = type == MetricType::Histogram && label == "le";
        if (reserved || !prometheus::CheckLabelName(label)) {
            throw InvalidArgument(fmt::format(
                "'{}' is not a label name for the metric '{}'; use letters, digits and '_', "
                "not beginning with a digit or '__', and not 'le' for a histogram",
                label,
                name));
        }
    }
    if (std::adjacent_find(labels.begin(), labels.end()) != labels.end()) {
        throw InvalidArgument(
            fmt::format("the metric '{}' got one label twice; name each once", name));
    }
}

void check_bounds(const std::string& name, const std::vector<double>& bounds) {
    const auto not_ascending = [](double a, double b) { return !(a < b); };
    const auto finite = [](double bound) { return std::isfinite(bound); };
    if (bounds.empty() || !std::all_of(bounds.begin(), bounds.end(), finite) ||
        std::adjacent_find(bounds.begin(), bounds.end(), not_ascending) != bounds.end()) {
        throw InvalidArgument(fmt::format(
            "the histogram '{}' needs finite bounds, each greater than the one before", name));
    }
}

void check_same(const std::string& name, const Family& first, const Family& again) {
    if (first.type != again.type || first.label_names != again.label_names ||
        first.bounds != again.bounds) {
        throw InvalidArgument(
            fmt::format("the metric '{}' exists already with another type, other labels or other "
                        "bounds; one name has one meaning",
                        name));
    }
}

Series make_series(const Family& family) {
    Series series;
    switch (family.type) {
        case MetricType::Counter:
            series.counter = std::make_unique<prometheus::Counter>();
            break;
        case MetricType::Gauge:
            series.gauge = std::make_unique<prometheus::Gauge>();
            break;
        default:
            series.histogram = std::make_unique<Buckets>(family.bounds);
            break;
    }
    return series;
}

ClientMetric collect(const Series& series) {
    if (series.counter) {
        return series.counter->Collect();
    }
    if (series.gauge) {
        return series.gauge->Collect();
    }
    ClientMetric metric;
    metric.histogram = series.histogram->collect();
    return metric;
}

}  // namespace

struct Metrics::State {
    mutable std::mutex mutex;  // Guards the maps; the series themselves are atomic.
    std::map<std::string, Family, std::less<>> families;

    std::mutex refresh_mutex;  // Held while they run: one that has ended is not called any more.
    std::list<std::function<void()>> refreshers;

    void refresh() {
        const std::lock_guard lock(refresh_mutex);
        for (const auto& refresher : refreshers) {
            refresher();
        }
    }

    Series& series(std::string_view name, Family wanted, Labels labels) {
        SortedLabels by_name = sorted(labels);
        const std::string key(name);
        check_names(key, wanted.type, by_name.names);
        wanted.label_names = std::move(by_name.names);

        const std::lock_guard lock(mutex);
        auto found = families.find(key);
        if (found == families.end()) {
            found = families.emplace(key, std::move(wanted)).first;
        } else {
            check_same(key, found->second, wanted);
        }
        return series_of(found->second, std::move(by_name.values));
    }

private:
    static Series& series_of(Family& family, LabelValues values) {
        // The last place is kept for "other", so the bound holds for all series together.
        const bool full = family.series.size() >= series_per_metric_max - 1;
        if (full && !family.series.contains(values)) {
            std::fill(values.begin(), values.end(), "other");
        }
        const auto found = family.series.find(values);
        if (found != family.series.end()) {
            return found->second;
        }
        return family.series.emplace(std::move(values), make_series(family)).first->second;
    }
};

void Counter::add(double by) const noexcept {
    if (series_ != nullptr) {
        static_cast<prometheus::Counter*>(series_)->Increment(by);
    }
}

void Gauge::set(double value) const noexcept {
    if (series_ != nullptr) {
        static_cast<prometheus::Gauge*>(series_)->Set(value);
    }
}

void Gauge::add(double by) const noexcept {
    if (series_ != nullptr) {
        static_cast<prometheus::Gauge*>(series_)->Increment(by);
    }
}

void Histogram::observe(double value) const noexcept {
    if (series_ != nullptr) {
        static_cast<Buckets*>(series_)->observe(value);
    }
}

Metrics::Metrics() : state_(std::make_unique<State>()) {}
Metrics::~Metrics() = default;

Counter Metrics::counter(std::string_view name, std::string_view help, Labels labels) {
    Family wanted{.type = MetricType::Counter, .help = std::string(help)};
    return Counter(state_->series(name, std::move(wanted), labels).counter.get());
}

Gauge Metrics::gauge(std::string_view name, std::string_view help, Labels labels) {
    Family wanted{.type = MetricType::Gauge, .help = std::string(help)};
    return Gauge(state_->series(name, std::move(wanted), labels).gauge.get());
}

Histogram Metrics::histogram(std::string_view name,
                             std::string_view help,
                             const std::vector<double>& bounds,
                             Labels labels) {
    check_bounds(std::string(name), bounds);
    Family wanted{.type = MetricType::Histogram, .help = std::string(help), .bounds = bounds};
    return Histogram(state_->series(name, std::move(wanted), labels).histogram.get());
}

Refresher Metrics::refresh_with(std::function<void()> refresh) {
    State& state = *state_;
    const std::lock_guard lock(state.refresh_mutex);
    const auto entry = state.refreshers.insert(state.refreshers.end(), std::move(refresh));
    return Refresher(std::shared_ptr<void>(&*entry, [&state, entry](void*) {
        const std::lock_guard lock_to_end(state.refresh_mutex);
        state.refreshers.erase(entry);
    }));
}

std::string Metrics::expose() const {
    state_->refresh();
    std::vector<prometheus::MetricFamily> page;
    {
        const std::lock_guard lock(state_->mutex);
        for (const auto& [name, family] : state_->families) {
            auto& section = page.emplace_back();
            section.name = name;
            section.help = family.help;
            section.type = family.type;
            for (const auto& [values, series] : family.series) {
                ClientMetric& metric = section.metric.emplace_back(collect(series));
                for (std::size_t i = 0; i < values.size(); ++i) {
                    metric.label.push_back({family.label_names[i], values[i]});
                }
            }
        }
    }
    return prometheus::TextSerializer().Serialize(page);
}

double Metrics::value(std::string_view name, Labels labels) const {
    state_->refresh();
    const SortedLabels by_name = sorted(labels);
    const std::lock_guard lock(state_->mutex);
    const auto family = state_->families.find(name);
    if (family == state_->families.end() || family->second.label_names != by_name.names) {
        return 0;
    }
    const auto series = family->second.series.find(by_name.values);
    if (series == family->second.series.end()) {
        return 0;
    }
    const ClientMetric metric = collect(series->second);
    switch (family->second.type) {
        case MetricType::Counter:
            return metric.counter.value;
        case MetricType::Gauge:
            return metric.gauge.value;
        default:
            return static_cast<double>(metric.histogram.sample_count);
    }
}

const std::vector<double>& latency_bounds() {
    static const std::vector<double> bounds = {0.0001,
                                               0.00025,
                                               0.0005,
                                               0.001,
                                               0.0025,
                                               0.005,
                                               0.01,
                                               0.025,
                                               0.05,
                                               0.1,
                                               0.25,
                                               0.5,
                                               1,
                                               2.5,
                                               5,
                                               10,
                                               30};
    return bounds;
}

}  // namespace holdfast
