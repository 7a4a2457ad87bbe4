#include <chrono>
#include <csignal>
#include <string>

#include "database.hpp"
#include "demo/demo.hpp"
#include "demo/shop.hpp"
#include <fmt/core.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <holdfast/base/clock.hpp>
#include <holdfast/base/exit_code.hpp>

namespace holdfast::app {
namespace {

using namespace std::chrono_literals;

constexpr auto hold_max = 60s;  // After that the parent is not going to kill us.
constexpr auto life_max = 5min;

DemoWorkerRequest role;  // The hook is a plain function, so this is global.

void hold(std::string_view moment, const std::string& order) {
    if (moment != role.hold_at || order != role.hold_order) {
        return;
    }
    const std::string line = fmt::format("at {}\n", moment);
    (void)!::write(STDOUT_FILENO, line.data(), line.size());
    system_clock().sleep_until(std::chrono::steady_clock::now() + hold_max, {});
}

}  // namespace

int demo_worker(const Context& context, const DemoWorkerRequest& request) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // The parent cannot kill us when it is gone.
    role = request;
    shop::begin_work(request.number, &hold);
    sql::Database db{required_database_url(context), database_options(context, Stay::service)};
    flow::Store store{db};
    // Short leases: what a killed process held is free again after two seconds.
    flow::Runtime runtime{store,
                          shop::registry(),
                          {.workflow_lease = 2s,
                           .activity_lease = 2s,
                           .poll_max = 200ms,
                           .logger = &context.logger,
                           .metrics = &context.metrics}};
    system_clock().sleep_until(std::chrono::steady_clock::now() + life_max, context.stop);
    return runtime.drain(10s).clean() ? exit_done : exit_unavailable;
}

}  // namespace holdfast::app
