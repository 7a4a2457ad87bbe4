// The benchmarks of one floor, and the list of all floors that have some.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include <holdfast/bench/driver.hpp>
#include <holdfast/bench/report.hpp>
#include <holdfast/sql/database.hpp>

namespace holdfast::bench {

// Where to measure.
struct WaitTicket {
    std::string db;                   // A database's URL, or empty: private ones.
    std::filesystem::path directory;  // For files, on the disk that is to be measured.
    sql::DatabaseOptions database;    // Metrics, logger, retry policy of what is opened.
    std::stop_token stop;
    int clients = 0;  // How many at once, where a suite can choose; 0: its own numbers.
};

// Owns what its arms need, so it must outlive its pairs. Leaves nothing behind.
class Suite {
public:
    virtual ~Suite() = default;

    // All that it can measure. Opens nothing.
    [[nodiscard]] virtual std::vector<Pair> pairs() = 0;

    // Opens what `chosen` needs and says how durable it is. Refuses, with condition_failed, a
    // database that does not flush its commits: its figures would be about something else.
    [[nodiscard]] virtual Durability prepare(std::span<const Pair> chosen) = 0;

    // Whether what was prepared can do this at all; what it cannot do is left out.
    [[nodiscard]] virtual bool able(const Pair& /*pair*/) { return true; }
};

struct SuiteEntry {
    std::string_view name;
    std::string_view about;
    std::unique_ptr<Suite> (*make)(const WaitTicket& place);
};

[[nodiscard]] std::span<const SuiteEntry> suites();

// Requires: `name` is one of suites(). Else invalid_argument, which lists them.
[[nodiscard]] const SuiteEntry& suite(std::string_view name);

// Runs a suite, which is called `name` in the report. `only` chooses pairs by name or by the
// beginning of a name that ends before a dot; empty means all, and one that chooses nothing is
// invalid_argument. What could not be measured is in the report.
[[nodiscard]] Report run_suite(std::string_view name,
                               Suite& suite,
                               const WaitTicket& place,
                               std::span<const std::string> only,
                               const DriverOptions& options,
                               Progress& progress);

}  // namespace holdfast::bench
