#include <filesystem>

#include "bench/bench.hpp"
#include "bench/show.hpp"
#include "database.hpp"
#include "temp_folder.hpp"
#include <fmt/core.h>

#include <holdfast/base/error.hpp>
#include <holdfast/server_bench/server_suite.hpp>

namespace holdfast::app {
namespace {

constexpr std::int64_t open_max = 1'000'000;

void refuse_foreign_flags(const BenchRequest& request) {
    if (request.name != server_suite) {
        throw InvalidArgument("this program has the suite server only; run holdfast bench");
    }
    if (!request.scenario.empty() || !request.keys.empty()) {
        throw InvalidArgument(
            "--scenario and --keys belong to other suites; choose with --only sqlite.hello");
    }
    if (request.clients < 0 || request.clients > clients_max) {
        throw InvalidArgument(fmt::format("--clients must be from 1 to {}", clients_max));
    }
    if (request.open < 1 || request.open > open_max) {
        throw InvalidArgument(fmt::format("--open must be from 1 to {}", open_max));
    }
}

}  // namespace

int bench_server(const Context& context, const BenchRequest& request) {
    refuse_foreign_flags(request);
    const bench::DriverOptions options = driver_options(context, request);
    const TempFolder scratch{scratch_parent(context, request)};
    const bench::WaitTicket place{.db = database_url(context),
                                  .directory = scratch.path(),
                                  .database = database_options(context),
                                  .stop = context.stop,
                                  .clients = request.clients};
    Show show{context, request};
    show.run([&](bench::Progress& progress) {
        const auto suite = server_bench::make_server_suite(
            place,
            {.targets = request.targets,
             .pids = request.pids,
             .name_space = request.name_space,
             .open = request.open,
             .program = std::filesystem::read_symlink("/proc/self/exe"),
             .round_time = options.round_time});
        return bench::run_suite(server_suite, *suite, place, request.only, options, progress);
    });
    return show.exit_code();
}

}  // namespace holdfast::app
