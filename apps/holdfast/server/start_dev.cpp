#include <utility>

#include "database.hpp"
#include "server/dynamic_values.hpp"
#include "server/serve.hpp"
#include "server/server.hpp"
#include <fmt/core.h>

#include <holdfast/base/error.hpp>
#include <holdfast/base/percent.hpp>

namespace holdfast::app {
namespace {

std::string url_of(const Context& context, const ServerRequest& request) {
    const std::string& url = database_url(context);
    if (request.db_filename.empty()) {
        return url.empty() ? memory_url : url;
    }
    if (!url.empty()) {
        throw InvalidArgument("both --db and --db-filename name a database; leave one of them out");
    }
    return "sqlite:" + percent_encoded(request.db_filename, "/") + "?create=1";
}

std::pair<std::string, std::string> attribute_of(const std::string& text) {
    const std::size_t equals = text.rfind('=');
    if (equals == std::string::npos || equals == 0) {
        throw InvalidArgument(
            fmt::format("--search-attribute '{}' is not NAME=TYPE, such as City=Keyword", text));
    }
    return {text.substr(0, equals), text.substr(equals + 1)};
}

void print_settings(const Context& context) {
    for (const Config::Effective& setting : context.config.effective()) {
        fmt::print(stderr, "{}: {}  # {}\n", setting.key, setting.value, setting.source);
    }
}

}  // namespace

int server_start_dev(const Context& context, const ServerRequest& request) {
    const std::string ip = request.ip == "localhost" ? "127.0.0.1" : request.ip;
    Serving serving{.database = url_of(context, request),
                    .options = {.address = ip,
                                .port = request.port,
                                .http = server::ServerHttp{.address = ip,
                                                           .port = request.http_port.value_or(0)},
                                .namespaces = request.namespaces},
                    .metrics = HttpAddress{.host = ip, .port = request.metrics_port.value_or(0)},
                    .metrics_setting = "--metrics-port",
                    .shows_http = request.http_port.has_value()};
    for (const std::string& attribute : request.search_attributes) {
        serving.options.search_attributes.insert(attribute_of(attribute));
    }
    for (const std::string& key : apply_dynamic_values(request.dynamic_values, serving.options)) {
        context.logger.warn("dynamic value has no effect", {{"key", key}});
    }
    if (!request.sqlite_pragmas.empty()) {
        context.logger.info("--sqlite-pragma has no effect: every commit is durable");
    }
    if (request.log_config) {
        print_settings(context);
    }
    return serve(context, serving);
}

}  // namespace holdfast::app
