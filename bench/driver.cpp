#include <holdfast/bench/driver.hpp>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>

#include <fmt/core.h>
#include <sys/resource.h>

#include <holdfast/base/error.hpp>

namespace holdfast::bench {
namespace {

double seconds_of(const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

// Of this process and of children that have been waited for, such as pgbench.
double cpu_seconds() {
    double total = 0;
    for (const int who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
        rusage usage{};
        ::getrusage(who, &usage);
        total += seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
    }
    return total;
}

std::chrono::nanoseconds time_of(const Pair& pair, const DriverOptions& options) {
    return std::chrono::ceil<std::chrono::nanoseconds>(options.round_time * pair.time_share);
}

// One side of a pair over all its rounds.
class Side {
public:
    explicit Side(const Arm& arm) : arm_(arm) {}

    // The rate of one round.
    double run(const Pair& pair, const DriverOptions& options) {
        const double cpu_before = cpu_seconds();
        const Work work = arm_(time_of(pair, options), options.stop);
        cpu_seconds_ += cpu_seconds() - cpu_before;
        if (options.stop.stop_requested()) {
            throw Error(Code::cancelled, Outcome::not_applied, "the benchmark was interrupted");
        }
        if (work.operations <= 0 || work.seconds <= 0) {
            throw Error(Code::internal,
                        Outcome::not_applied,
                        fmt::format("{} did nothing in a round; give it more time with --seconds",
                                    pair.name));
        }
        operations_ += work.operations;
        for (const Count& count : work.counts) {
            totals_[count.name] += count.value;
        }
        for (const Count& figure : work.figures) {
            figures_[figure.name].push_back(figure.value);
        }
        rates_.push_back(work.operations / work.seconds);
        return rates_.back();
    }

    [[nodiscard]] Spread rates() const { return spread_of(rates_); }
    [[nodiscard]] double cpu_us() const { return cpu_seconds_ * 1e6 / operations_; }
    [[nodiscard]] std::vector<Count> counts() const {
        std::vector<Count> counts;
        counts.reserve(totals_.size() + figures_.size());
        for (const auto& [name, total] : totals_) {
            counts.push_back({name, total / operations_});
        }
        std::ranges::move(figures(), std::back_inserter(counts));
        return counts;
    }
    [[nodiscard]] std::vector<Count> figures() const {
        std::vector<Count> medians;
        medians.reserve(figures_.size());
        for (const auto& [name, rounds] : figures_) {
            medians.push_back({name, spread_of(rounds).median});
        }
        return medians;
    }

private:
    const Arm& arm_;
    std::vector<double> rates_;
    double operations_ = 0;
    double cpu_seconds_ = 0;
    std::map<std::string, double> totals_;
    std::map<std::string, std::vector<double>> figures_;
};

double quantile(const std::vector<double>& sorted, double q) {
    const double at = q * static_cast<double>(sorted.size() - 1);
    const auto below = static_cast<std::size_t>(std::floor(at));
    const std::size_t above = std::min(below + 1, sorted.size() - 1);
    return std::lerp(sorted[below], sorted[above], at - std::floor(at));
}

}  // namespace

Spread spread_of(std::vector<double> rounds) {
    if (rounds.empty()) {
        return {};
    }
    std::vector<double> sorted = rounds;
    std::ranges::sort(sorted);
    return {.median = quantile(sorted, 0.5),
            .lower = quantile(sorted, 0.25),
            .upper = quantile(sorted, 0.75),
            .rounds = std::move(rounds)};
}

Result measure(const Pair& pair, const DriverOptions& options, Progress& progress) {
    if (options.rounds < 1 || options.rounds > DriverOptions::rounds_max) {
        throw InvalidArgument(
            fmt::format("rounds is {}; give 1 to {}", options.rounds, DriverOptions::rounds_max));
    }
    if (options.round_time <= std::chrono::nanoseconds{0}) {
        throw InvalidArgument("a round has no time; give more than 0 seconds");
    }

    // Opens connections, prepares statements, fills caches: the first round is like the others.
    progress.round(pair, 0, options.rounds, 0);
    const auto warm_up = time_of(pair, options) / 5;
    (void)pair.ours(warm_up, options.stop);
    (void)pair.limit(warm_up, options.stop);

    Side ours{pair.ours};
    Side limit{pair.limit};
    std::vector<double> ratios;
    for (int round = 1; round <= options.rounds; ++round) {
        const double ours_rate = ours.run(pair, options);
        ratios.push_back(ours_rate / limit.run(pair, options));
        progress.round(pair, round, options.rounds, spread_of(ratios).median);
    }

    Result result{.name = pair.name,
                  .unit = pair.unit,
                  .ours = ours.rates(),
                  .limit = limit.rates(),
                  .ratio = spread_of(ratios),
                  .floor = pair.floor,
                  .ours_cpu_us = ours.cpu_us(),
                  .limit_cpu_us = limit.cpu_us(),
                  .counts = ours.counts()};
    for (Count& figure : limit.figures()) {
        if (figure.name.starts_with("limit_")) {
            result.counts.push_back(std::move(figure));
        }
    }
    progress.finished(result);
    return result;
}

Measured measure_all(std::span<const Pair> pairs,
                     const DriverOptions& options,
                     Progress& progress) {
    Measured measured;
    for (const Pair& pair : pairs) {
        try {
            measured.results.push_back(measure(pair, options, progress));
        } catch (const Error& error) {
            if (error.code() == Code::cancelled || error.code() == Code::invalid_argument) {
                throw;
            }
            measured.failed.push_back({pair.name, error.what()});
            progress.failed(pair, error);
        }
    }
    return measured;
}

}  // namespace holdfast::bench
