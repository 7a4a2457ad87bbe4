// A server that is measured: one of ours, or one that listens somewhere.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "load.hpp"
#include "measured_child.hpp"

#include <holdfast/bench/bare_database.hpp>
#include <holdfast/bench/driver.hpp>

namespace holdfast::server_bench {

struct TargetOptions {
    std::string name_space;
    int in_flight = 64;
    std::int64_t open = 0;  // Of a whole round of `backlog` and `idle`.
    std::chrono::nanoseconds round_time{};
};

class Target {
public:
    // Ours, as a child process on an empty database of `database`, which outlives this object.
    Target(const std::filesystem::path& program,
           bench::BareDatabase& database,
           const TargetOptions& options);
    // One that runs already; without a process nothing is known of its time and memory.
    Target(std::string address, std::optional<std::int64_t> pid, const TargetOptions& options);

    // Registers the namespace. Unavailable if there is no such server.
    void prepare(const std::stop_token& stop);
    // Known after prepare().
    [[nodiscard]] bool has_updates() const noexcept { return has_updates_; }

    // Counts, per workflow where they are known: server_cpu_us, run_commits, other_commits,
    // commits, statements, disk_bytes. Figures: resident_mb, and those of the scenario.
    [[nodiscard]] bench::Work run(std::string_view scenario,
                                  std::chrono::nanoseconds time,
                                  const std::stop_token& stop);

private:
    struct Reading {
        double cpu_seconds = 0;
        ChildCounts counts;
        double disk_bytes = 0;
    };
    [[nodiscard]] Reading read();
    [[nodiscard]] bench::Work load(std::string_view scenario,
                                   std::chrono::nanoseconds time,
                                   const LoadOptions& options) const;

    const TargetOptions options_;
    bench::BareDatabase* database_ = nullptr;  // Of ours.
    std::unique_ptr<MeasuredChild> child_;
    std::string address_;
    std::optional<std::int64_t> pid_;
    bool has_updates_ = false;
};

// What one side of a pair found, as the figures limit_... of the other: totals per workflow, and
// how many times our processor time and memory it took.
void tell_as_limit(bench::Work& limit, const bench::Work& ours);

}  // namespace holdfast::server_bench
