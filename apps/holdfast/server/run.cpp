// `holdfast server run`: a server as its configuration says.
#include <algorithm>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <string_view>
#include <system_error>

#include "database.hpp"
#include "server/serve.hpp"
#include "server/server.hpp"
#include <fmt/format.h>

#include <holdfast/base/error.hpp>

namespace holdfast::app {
namespace {

std::string contents_of(const Config& config, const std::string& key) {
    const std::string& path = config.text(key);
    std::ifstream file(path, std::ios::binary);
    std::string text{std::istreambuf_iterator<char>(file), {}};
    if (!file.is_open() || file.bad()) {
        throw Error(
            Code::unavailable,
            Outcome::not_applied,
            fmt::format(
                "{}: cannot read {}: {}", key, path, std::system_category().message(errno)));
    }
    if (text.find("-----BEGIN ") == std::string::npos) {
        throw InvalidArgument(fmt::format("{}: {} holds nothing in PEM", key, path));
    }
    return text;
}

std::optional<server::ServerTls> tls_of(const Config& config) {
    const bool certificate = !config.text("server.tls.certificate_file").empty();
    const bool key = !config.text("server.tls.key_file").empty();
    const bool clients = !config.text("server.tls.client_authorities_file").empty();
    if (certificate != key || (clients && !key)) {
        throw InvalidArgument(
            "TLS needs both server.tls.certificate_file and server.tls.key_file; without TLS leave "
            "all of server.tls out");
    }
    if (!certificate) {
        return std::nullopt;
    }
    server::ServerTls tls{.certificate = contents_of(config, "server.tls.certificate_file"),
                          .key = contents_of(config, "server.tls.key_file")};
    if (clients) {
        tls.client_authorities = contents_of(config, "server.tls.client_authorities_file");
    }
    return tls;
}

HttpAddress address_of(const Config& config, const std::string& key) {
    try {
        return HttpAddress::parse(config.text(key));
    } catch (Error& error) {
        error.add_context(key);
        throw;
    }
}

std::string ip_of(const HttpAddress& address) {
    return address.host == "localhost" ? "127.0.0.1" : address.host;
}

bool is_loopback(const std::string& host) {
    return host == "localhost" || host == "::1" || host.starts_with("127.");
}

std::vector<std::string> with_commas(std::string_view list) {
    std::vector<std::string> names;
    while (!list.empty()) {
        const std::size_t end = std::min(list.find(','), list.size());
        std::string name(list.substr(0, end));
        std::erase(name, ' ');
        if (!name.empty()) {
            names.push_back(std::move(name));
        }
        list.remove_prefix(std::min(end + 1, list.size()));
    }
    return names;
}

std::optional<server::ServerHttp> http_of(const Config& config, bool has_tls) {
    if (config.text("server.http_address").empty()) {
        return std::nullopt;
    }
    const HttpAddress address = address_of(config, "server.http_address");
    if (has_tls && !is_loopback(address.host)) {
        throw InvalidArgument(
            "server.http_address: HTTP has no TLS and no client certificates, so beside server.tls "
            "it may listen on this machine only; write 127.0.0.1, and put a proxy in front of it");
    }
    return server::ServerHttp{.address = ip_of(address),
                              .port = static_cast<std::uint16_t>(address.port),
                              .hosts = with_commas(config.text("server.http_hosts"))};
}

}  // namespace

int server_run(const Context& context, const ServerRequest& /*request*/) {
    const Config& config = context.config;
    if (context.config_file.empty()) {
        throw InvalidArgument(
            "server run needs --config FILE, with the database and the addresses; see "
            "docs/server.md for one, or use server start-dev");
    }
    const HttpAddress address = address_of(config, "server.address");
    Serving serving{.database = required_database_url(context),
                    .options = {.address = ip_of(address),
                                .port = static_cast<std::uint16_t>(address.port),
                                .tls = tls_of(config)},
                    .metrics = {},
                    .metrics_setting = "metrics.address"};
    server::ServerOptions& options = serving.options;
    options.http = http_of(config, options.tls.has_value());
    options.threads = static_cast<std::size_t>(config.integer("server.threads"));
    options.drain =
        std::chrono::duration_cast<std::chrono::milliseconds>(config.duration("server.drain"));
    for (const std::string& name : config.names("server.namespaces")) {
        options.namespaces.push_back(name);
        options.retention[name] = std::chrono::duration_cast<std::chrono::seconds>(
            config.duration(fmt::format("server.namespaces.{}.retention", name)));
    }
    for (const std::string& name : config.names("server.search_attributes")) {
        options.search_attributes[name] =
            config.text(fmt::format("server.search_attributes.{}.type", name));
    }
    if (!config.text("metrics.address").empty()) {
        serving.metrics = address_of(config, "metrics.address");
    }
    return serve(context, serving);
}

}  // namespace holdfast::app
