#include <holdfast/bench/suite.hpp>

#include <algorithm>
#include <array>
#include <ctime>

#include "suites/flow_suite.hpp"
#include "suites/gateway_suite.hpp"
#include "suites/locks_suite.hpp"
#include "suites/pool_suite.hpp"
#include "suites/poolsim_suite.hpp"
#include "suites/sql_suite.hpp"
#include "suites/store_suite.hpp"
#include <fmt/chrono.h>
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <holdfast/base/error.hpp>

namespace holdfast::bench {
namespace {

constexpr std::array all_suites{
    SuiteEntry{"sql", "one durable write: PostgreSQL and SQLite", &make_sql_suite},
    SuiteEntry{"flow", "workflows: chains, fan-outs, timers, payloads", &make_flow_suite},
    SuiteEntry{"locks", "locks: taken and released, on many keys and on one", &make_locks_suite},
    SuiteEntry{"store", "the store: runs, histories, tasks, on three databases", &make_store_suite},
    SuiteEntry{"gateway", "one durable write through the gateway of DSQL", &make_gateway_suite},
    SuiteEntry{"pool", "borrowing a connection that is open already", &make_pool_suite},
    SuiteEntry{"poolsim", "the pool simulator: events and seeds", &make_poolsim_suite},
};

// "sqlite" and "sqlite.commit" choose sqlite.commit.w8; "sql" and "sqlite.commit.w" do not.
bool chooses(std::string_view only, std::string_view name) {
    return name.starts_with(only) &&
           (name.size() == only.size() || only.ends_with('.') || name[only.size()] == '.');
}

std::vector<Pair> choose(std::vector<Pair> pairs, std::span<const std::string> only) {
    std::vector<std::string> names;
    names.reserve(pairs.size());
    for (const Pair& pair : pairs) {
        names.push_back(pair.name);
    }
    for (const std::string& wanted : only) {
        const bool known = std::ranges::any_of(
            names, [&wanted](const std::string& name) { return chooses(wanted, name); });
        if (!known) {
            throw InvalidArgument(fmt::format(
                "no benchmark is called '{}'; choose from {}", wanted, fmt::join(names, ", ")));
        }
    }
    std::erase_if(pairs, [only](const Pair& pair) {
        return !only.empty() && std::ranges::none_of(only, [&pair](const std::string& wanted) {
            return chooses(wanted, pair.name);
        });
    });
    return pairs;
}

}  // namespace

std::span<const SuiteEntry> suites() {
    return all_suites;
}

const SuiteEntry& suite(std::string_view name) {
    const auto found = std::ranges::find(all_suites, name, &SuiteEntry::name);
    if (found != all_suites.end()) {
        return *found;
    }
    std::vector<std::string_view> names;
    names.reserve(all_suites.size());
    for (const SuiteEntry& entry : all_suites) {
        names.push_back(entry.name);
    }
    throw InvalidArgument(
        fmt::format("there is no benchmark '{}'; choose from {}", name, fmt::join(names, ", ")));
}

Report run_suite(std::string_view name,
                 Suite& suite,
                 const WaitTicket& place,
                 std::span<const std::string> only,
                 const DriverOptions& options,
                 Progress& progress) {
    std::vector<Pair> chosen = choose(suite.pairs(), only);
    Report report{.bench = std::string(name),
                  .time = {},
                  .machine = describe_machine(place.directory),
                  .durability = suite.prepare(chosen),
                  .results = {},
                  .failed = {},
                  .peak_memory_bytes = 0};
    std::erase_if(chosen, [&suite](const Pair& pair) { return !suite.able(pair); });
    Measured measured = measure_all(chosen, options, progress);
    report.results = std::move(measured.results);
    report.failed = std::move(measured.failed);
    report.time = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
    report.peak_memory_bytes = peak_memory_bytes();
    return report;
}

}  // namespace holdfast::bench
