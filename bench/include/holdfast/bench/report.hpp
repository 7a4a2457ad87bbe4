// What a benchmark run leaves: one JSON object, or one page with pictures.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <holdfast/bench/driver.hpp>

namespace holdfast::bench {

struct Machine {
    int cores = 0;
    std::string cpu;
    std::string kernel;
    std::int64_t memory_bytes = 0;
    double flush_us = 0;  // One small write that waits for the disk; the median of many.
    // Programs that wanted a processor in the last minute, ours not yet among them. If others keep
    // the machine busy, a limit of one thread suffers more than many of ours, and ratios flatter.
    double load = 0;
    std::string filesystem;  // Under the files that are measured: "ext4", "tmpfs".

    [[nodiscard]] bool busy() const { return load > 0.5 * cores; }
    friend bool operator==(const Machine&, const Machine&) = default;
};

// Writes and flushes a small file in `directory` for at most a third of a second.
[[nodiscard]] Machine describe_machine(const std::filesystem::path& directory);

// The kernel's figure for this process (VmHWM).
[[nodiscard]] std::int64_t peak_memory_bytes();
// At this moment (VmRSS).
[[nodiscard]] std::int64_t resident_memory_bytes();

// Per database, what its settings say: {"postgres": {"fsync": "on", ...}}.
using Durability = std::map<std::string, std::map<std::string, std::string>>;

struct Report {
    std::string bench;
    std::string time;  // When it ended, UTC, ISO 8601.
    Machine machine;
    Durability durability;
    std::vector<Result> results;
    std::vector<Unmeasured> failed;
    std::int64_t peak_memory_bytes = 0;
    friend bool operator==(const Report&, const Report&) = default;
};

// A number as people read it: "12,345", with digits after the point only where they mean something.
[[nodiscard]] std::string grouped(double value);

// One JSON object, without a newline at its end.
[[nodiscard]] std::string to_json(const Report& report);
// Throws invalid_argument if it is not what to_json writes.
[[nodiscard]] Report report_from_json(std::string_view text);

// One page that needs nothing else: the pictures are inside, and so is the data of the reports, so
// that a later run can replace one of them.
[[nodiscard]] std::string to_page(std::span<const Report> reports);
// The reports inside a page; none if it is not a page of ours.
[[nodiscard]] std::vector<Report> reports_in_page(std::string_view page);
// Writes the page, or replaces this bench's report in the page that is there. A file that is there
// and not a page of ours is refused and left alone.
void merge_into_page(const std::filesystem::path& file, const Report& report);

}  // namespace holdfast::bench
