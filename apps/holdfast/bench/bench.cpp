#include "bench/bench.hpp"

#include "bench/show.hpp"
#include "database.hpp"
#include "metrics.hpp"
#include "server/server.hpp"
#include "temp_folder.hpp"
#include <fmt/core.h>

#include <holdfast/base/error.hpp>
#include <holdfast/bench/suite.hpp>
#include <holdfast/sql/url.hpp>

namespace holdfast::app {
namespace {

std::vector<const bench::SuiteEntry*> chosen(const BenchRequest& request) {
    if (!request.name.empty()) {
        return {&bench::suite(request.name)};
    }
    std::vector<const bench::SuiteEntry*> all;
    for (const bench::SuiteEntry& entry : bench::suites()) {
        all.push_back(&entry);
    }
    return all;
}

void refuse_foreign_flags(const BenchRequest& request) {
    if (!request.targets.empty() || !request.pids.empty()) {
        throw InvalidArgument("--target and --pid belong to 'holdfast bench server'");
    }
    if (!request.scenario.empty() && request.name != "flow") {
        throw InvalidArgument("--scenario belongs to 'holdfast bench flow'");
    }
    if ((!request.keys.empty() || request.clients != 0) && request.name != "locks") {
        throw InvalidArgument("--keys and --clients belong to 'holdfast bench locks'");
    }
    if (!request.keys.empty() && request.keys != "distinct" && request.keys != "one") {
        throw InvalidArgument("--keys must be 'distinct' or 'one'");
    }
    if (request.clients < 0 || request.clients > clients_max) {
        throw InvalidArgument(fmt::format("--clients must be from 1 to {}", clients_max));
    }
}

// The prefixes that match both lists of prefixes.
std::vector<std::string> both(const std::vector<std::string>& some,
                              const std::vector<std::string>& others) {
    std::vector<std::string> names;
    for (const std::string& one : some) {
        for (const std::string& other : others) {
            if (one.starts_with(other) || other.starts_with(one)) {
                names.push_back(one.size() > other.size() ? one : other);
            }
        }
    }
    if (names.empty()) {
        throw InvalidArgument("--only matches no measurement of --scenario; leave one of them out");
    }
    return names;
}

// A scenario of flow or a kind of locks by its own name, on the database that was named, or on all.
std::vector<std::string> wanted(const Context& context, const BenchRequest& request) {
    refuse_foreign_flags(request);
    if (request.scenario.empty() && request.keys.empty()) {
        return request.only;
    }
    const std::string& url = database_url(context);
    const bool file = url.empty() || sql::parse_url(url).embedded();
    const bool locks = request.name == "locks";
    const std::string name = locks ? "cycle." + request.keys : request.scenario;
    std::vector<std::string> names;
    if (file) {
        names.push_back("sqlite." + name);
    }
    if (url.empty() || !file) {
        names.push_back((locks ? "pg." : "postgres.") + name);
    }
    return request.only.empty() ? names : both(names, request.only);
}

}  // namespace

int bench(const Context& context, const BenchRequest& request) {
    if (request.name == server_suite) {
        become("holdfast-server-bench");
    }
    const bench::DriverOptions options = driver_options(context, request);
    const auto suites = chosen(request);
    const std::vector<std::string> only = wanted(context, request);
    const auto endpoint = serve_metrics(context);
    const TempFolder scratch{scratch_parent(context, request)};
    const bench::WaitTicket place{.db = database_url(context),
                                  .directory = scratch.path(),
                                  .database = database_options(context),
                                  .stop = context.stop,
                                  .clients = request.clients};
    Show show{context, request};
    for (const bench::SuiteEntry* suite : suites) {
        show.run([&](bench::Progress& progress) {
            return bench::run_suite(
                suite->name, *suite->make(place), place, only, options, progress);
        });
    }
    return show.exit_code();
}

}  // namespace holdfast::app
