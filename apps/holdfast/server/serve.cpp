#include "server/serve.hpp"

#include <memory>
#include <utility>
#include <vector>

#include "cli/answer.hpp"
#include "database.hpp"
#include "signals.hpp"
#include "version.hpp"
#include <fmt/format.h>

#include <holdfast/base/exit_code.hpp>
#include <holdfast/base/redact.hpp>
#include <holdfast/sql/database.hpp>

namespace holdfast::app {
namespace {

// This machine is shown as people type it.
std::string shown(const std::string& host, int port) {
    if (host == "127.0.0.1" || host == "::1" || host == "localhost") {
        return fmt::format("localhost:{}", port);
    }
    return host.find(':') == std::string::npos ? fmt::format("{}:{}", host, port)
                                               : fmt::format("[{}]:{}", host, port);
}

using Lines = std::vector<std::pair<std::string, std::string>>;

// Labels as launchers of such servers expect them.
std::string banner(const Lines& lines) {
    std::string text =
        fmt::format("H{} (API {})\n\n", version_text().substr(1), server::api_version);
    for (const auto& [label, value] : lines) {
        text += fmt::format("{:<21} {}\n", label, value);
    }
    return text;
}

Lines lines_of(const Json& json) {
    Lines lines{{"Temporal Server:", json["address"].get<std::string>()},
                {"Temporal Persistence:", json["database"].get<std::string>()}};
    if (lines.back().second == memory_url) {
        lines.back().second = "in-memory";
    }
    if (json["tls"] != "none") {
        lines.front().second +=
            json["tls"] == "mutual" ? " (TLS, clients show a certificate)" : " (TLS)";
    }
    if (json.contains("http")) {
        lines.emplace_back("Temporal HTTP:", json["http"].get<std::string>());
    }
    if (json.contains("metrics")) {
        lines.emplace_back("Temporal Metrics:", json["metrics"].get<std::string>());
    }
    return lines;
}

std::string tls_of(const server::ServerOptions& options) {
    if (!options.tls) {
        return "none";
    }
    return options.tls->client_authorities.empty() ? "server" : "mutual";
}

}  // namespace

int serve(const Context& context, const Serving& serving) {
    sql::Database db(serving.database, database_options(context, Stay::service));
    server::ServerOptions options = serving.options;
    options.metrics = &context.metrics;
    server::Server server(db, context.logger, options);
    std::unique_ptr<HttpEndpoint> metrics;
    if (serving.metrics) {
        metrics = std::make_unique<HttpEndpoint>(
            *serving.metrics,
            context.metrics,
            [&server] { return server.health(); },
            HttpLimits{},
            serving.metrics_setting);
    }
    Json json{{"address", shown(options.address, server.port())},
              {"port", server.port()},
              {"database", without_password(serving.database)},
              {"tls", tls_of(options)}};
    if (options.http && serving.shows_http) {
        json["http"] = shown(options.http->address, server.http_port());
    }
    if (metrics) {
        json["metrics"] =
            fmt::format("http://{}/metrics", shown(serving.metrics->host, metrics->port()));
    }
    say(context, json, banner(lines_of(json)));
    wait_for_signal(context);
    server.stop();
    (void)context.signals.take();  // A server that was told to stop has done its work.
    return exit_done;
}

}  // namespace holdfast::app
