#include "cli/answer.hpp"
#include "database.hpp"
#include "server/server.hpp"
#include "signals.hpp"
#include <fmt/format.h>

#include <holdfast/base/exit_code.hpp>
#include <holdfast/server/server.hpp>
#include <holdfast/sql/database.hpp>

namespace holdfast::app {

int server_start_test(const Context& context, const ServerRequest& request) {
    sql::Database db("sqlite::memory:", database_options(context, Stay::service));
    server::Server server(db,
                          context.logger,
                          {.port = request.port,
                           .time_skipping = request.time_skipping ? server::TimeSkipping::unlocked
                                                                  : server::TimeSkipping::locked});
    const std::string address = fmt::format("localhost:{}", server.port());
    say(context,
        {{"address", address}, {"port", server.port()}},
        fmt::format("Test server: {}, time skipping {}\n",
                    address,
                    request.time_skipping ? "unlocked" : "locked until a client unlocks it"));
    wait_for_signal(context);
    server.stop();
    (void)context.signals.take();  // A server that was told to stop has done its work.
    return exit_done;
}

}  // namespace holdfast::app
