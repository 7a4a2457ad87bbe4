#include "cli/answer.hpp"
#include "database.hpp"
#include "server/server.hpp"
#include "signals.hpp"
#include "version.hpp"
#include <fmt/format.h>

#include <holdfast/base/error.hpp>
#include <holdfast/base/exit_code.hpp>
#include <holdfast/base/percent.hpp>
#include <holdfast/base/redact.hpp>
#include <holdfast/server/server.hpp>
#include <holdfast/sql/database.hpp>

namespace holdfast::app {
namespace {

constexpr const char* in_memory = "sqlite::memory:";

std::string url_of(const Context& context, const ServerRequest& request) {
    const std::string& url = database_url(context);
    if (request.db_filename.empty()) {
        return url.empty() ? in_memory : url;
    }
    if (!url.empty()) {
        throw InvalidArgument("both --db and --db-filename name a database; leave one of them out");
    }
    return "sqlite:" + percent_encoded(request.db_filename, "/") + "?create=1";
}

// The names of this machine are shown as people type them.
std::string shown(const std::string& ip) {
    if (ip == "127.0.0.1" || ip == "::1") {
        return "localhost";
    }
    return ip.find(':') == std::string::npos ? ip : "[" + ip + "]";
}

std::string banner(const std::string& address, const std::string& url) {
    return fmt::format(
        "H{} (API {})\n\n"
        "{:<21} {}\n"
        "{:<21} {}\n",
        version_text().substr(1),
        server::api_version,
        "Temporal Server:",
        address,
        "Temporal Persistence:",
        url == in_memory ? "in-memory" : url);
}

}  // namespace

int server_start_dev(const Context& context, const ServerRequest& request) {
    const std::string url = url_of(context, request);
    if (!request.sqlite_pragmas.empty()) {
        context.logger.info("--sqlite-pragma has no effect: every commit is durable");
    }
    sql::Database db(url, database_options(context, Stay::service));
    server::Server server(db,
                          context.logger,
                          {.address = request.ip == "localhost" ? "127.0.0.1" : request.ip,
                           .port = request.port,
                           .namespaces = request.namespaces});
    const std::string address = fmt::format("{}:{}", shown(request.ip), server.port());
    say(context,
        {{"address", address}, {"port", server.port()}, {"database", without_password(url)}},
        banner(address, without_password(url)));
    wait_for_signal(context);
    server.stop();
    (void)context.signals.take();  // A server that was told to stop has done its work.
    return exit_done;
}

}  // namespace holdfast::app
