// One shape for every benchmark: ours against a limit, in turns.
//
// A rate by itself says more about the machine and the minute than about the code. So each
// benchmark is a pair: our code, and the limit, which does the same work with nothing of ours in
// the way. The two are measured in turns (ours, limit, ours, limit, ...), and what counts is the
// median of the ratios of the rounds: a neighbour that slows the machine slows both.
#pragma once

#include <chrono>
#include <cstddef>
#include <exception>
#include <functional>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

namespace holdfast::bench {

struct Count {
    std::string name;
    double value = 0;
    friend bool operator==(const Count&, const Count&) = default;
};

// What one side did in one round.
struct Work {
    double operations = 0;
    double seconds = 0;
    std::vector<Count> counts;  // Totals of the round: commits, statements, round trips.
    // What is not a total: a percentile, a share, memory.
    std::vector<Count> figures{};
};

// Works for about the given time and says what it did; ends early when the token fires. May throw.
using Arm = std::function<Work(std::chrono::nanoseconds, const std::stop_token&)>;

// More operations per second must mean better.
struct Pair {
    std::string name;  // "pg.update.c8": who, what, how many at once.
    std::string unit;  // "tx/s"
    Arm ours;
    Arm limit;
    std::optional<double> floor;  // The least ratio that we promise.
    // Of a round's time, up to 1: where many are measured, those that promise nothing may be brief.
    double time_share = 1;
};

// Of all rounds. Quartiles are the lower and the upper one.
struct Spread {
    double median = 0;
    double lower = 0;
    double upper = 0;
    std::vector<double> rounds;  // In the order they were measured.
    friend bool operator==(const Spread&, const Spread&) = default;
};

// Quartiles interpolate between neighbours. All zero if there are no values.
[[nodiscard]] Spread spread_of(std::vector<double> rounds);

struct Result {
    std::string name;
    std::string unit;
    Spread ours;
    Spread limit;
    Spread ratio;
    std::optional<double> floor;
    double ours_cpu_us = 0;  // Processor time per operation: this process and those it waited for.
    double limit_cpu_us = 0;
    // Ours: totals per operation, and the medians of the figures. Then what the limit says of how
    // it was measured: its figures that are called limit_...
    std::vector<Count> counts;

    [[nodiscard]] bool below_floor() const { return floor && ratio.median < *floor; }
    friend bool operator==(const Result&, const Result&) = default;
};

struct DriverOptions {
    static constexpr int rounds_max = 1000;

    int rounds = 9;
    std::chrono::nanoseconds round_time = std::chrono::seconds{1};  // For each side.
    std::stop_token stop{};
};

// Watches the measuring; called on the measuring thread.
class Progress {
public:
    virtual ~Progress() = default;
    // Before the first round (`done` is 0) and after each one.
    virtual void round(const Pair& pair, int done, int rounds, double ratio) = 0;
    virtual void finished(const Result& result) = 0;
    virtual void failed(const Pair& pair, const std::exception& error) = 0;
};

// Warms both sides up, then measures. Throws Error with Code::cancelled if the token fires, and
// what an arm throws.
// Requires: rounds is 1 to rounds_max, round_time is positive. Else invalid_argument.
[[nodiscard]] Result measure(const Pair& pair, const DriverOptions& options, Progress& progress);

struct Unmeasured {
    std::string name;
    std::string error;
    friend bool operator==(const Unmeasured&, const Unmeasured&) = default;
};
struct Measured {
    std::vector<Result> results;
    std::vector<Unmeasured> failed;
};

// One after another. A pair that fails is named, and costs the others nothing; what is cancelled or
// refused at the door throws.
[[nodiscard]] Measured measure_all(std::span<const Pair> pairs,
                                   const DriverOptions& options,
                                   Progress& progress);

}  // namespace holdfast::bench
