// `holdfast server check`: every stored history, looked at.
#include <holdfast/server/check.hpp>

#include "cli/answer.hpp"
#include "cli/terminal.hpp"
#include "database.hpp"
#include "server/server.hpp"
#include <fmt/format.h>

#include <holdfast/base/error.hpp>
#include <holdfast/base/exit_code.hpp>
#include <holdfast/sql/database.hpp>
#include <holdfast/sql/schema.hpp>
#include <holdfast/store/catalogue.hpp>

namespace holdfast::app {
namespace {

constexpr std::int64_t runs_between_updates = 100;

struct Tally {
    std::int64_t runs = 0;
    std::int64_t events = 0;
    std::int64_t wrong = 0;  // Runs.
};

// A line for each problem, or one JSON object for each run that is wrong.
void show(const Context& context, const server::CheckedRun& run) {
    if (context.json) {
        print(json_line({{"namespace", run.namespace_name},
                         {"workflow_id", run.workflow_id},
                         {"run_id", run.run_id},
                         {"problems", run.problems}}) +
              "\n");
        return;
    }
    for (const std::string& problem : run.problems) {
        print(fmt::format("{} {} {}: {}\n",
                          shortened(run.namespace_name, 100),
                          shortened(run.workflow_id, 100),
                          run.run_id,
                          shortened(problem, 1000)));
    }
}

}  // namespace

int server_check(const Context& context, const ServerRequest& request) {
    sql::Database db(required_database_url(context), database_options(context));
    sql::schema_require(db, store::schema_part(), {});
    const std::int64_t total = server::count_runs(db);
    Progress progress(context.quiet);
    Tally tally;
    server::check_runs(db, [&](const server::CheckedRun& run) {
        ++tally.runs;
        tally.events += run.events;
        if (tally.runs % runs_between_updates == 0) {
            progress.show(fmt::format("{} of {} runs", tally.runs, total));
        }
        if (!run.problems.empty()) {
            ++tally.wrong;
            progress.clear();
            show(context, run);
        }
        return tally.wrong < request.problems_max && !context.stop.stop_requested();
    });
    progress.clear();
    say(context,
        {{"runs", tally.runs}, {"events", tally.events}, {"wrong_runs", tally.wrong}},
        fmt::format("{} runs with {} events: {}",
                    tally.runs,
                    tally.events,
                    tally.wrong == 0 ? "all right" : fmt::format("{} not right", tally.wrong)));
    return tally.wrong == 0 ? exit_done : exit_refused;
}

}  // namespace holdfast::app
