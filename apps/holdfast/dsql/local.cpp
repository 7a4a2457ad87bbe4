#include "dsql/local.hpp"

#include <array>
#include <cctype>
#include <filesystem>
#include <system_error>
#include <utility>

#include "cli/answer.hpp"
#include "cli/terminal.hpp"
#include "dsql/serve.hpp"
#include "temp_folder.hpp"
#include <fmt/core.h>

#include <holdfast/base/error.hpp>
#include <holdfast/base/exit_code.hpp>
#include <holdfast/dsql/certificates.hpp>
#include <holdfast/dsql/private_postgres.hpp>

namespace holdfast::app {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view local_region = "us-east-1";
constexpr std::string_view endpoint = "localclusterofholdfast0001.dsql.us-east-1.on.aws";

// Not secret, and good for nothing but such a cluster.
constexpr std::string_view key_id = "AKIDHOLDFASTLOCAL";
constexpr std::string_view key_secret = "local+clusters/need/no+secret+keys";

// An empty session token is none; one of the user's own keys would spoil ours.
constexpr std::array environment{std::pair{"AWS_ACCESS_KEY_ID", key_id},
                                 std::pair{"AWS_SECRET_ACCESS_KEY", key_secret},
                                 std::pair{"AWS_SESSION_TOKEN", std::string_view{}},
                                 std::pair{"AWS_REGION", local_region}};

// As a value in a URL.
std::string escaped(const std::string& text) {
    std::string result;
    for (const char c : text) {
        const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 ||
                           std::string_view("-._~/").find(c) != std::string_view::npos;
        result +=
            plain ? std::string(1, c)
                  : fmt::format("%{:02X}", static_cast<unsigned>(static_cast<unsigned char>(c)));
    }
    return result;
}

dsql::Certificates certificates_in(const fs::path& folder) {
    const dsql::Certificates kept{.authority = folder / "authority.pem",
                                  .server = folder / "server.pem",
                                  .key = folder / "server.key"};
    // The key is written last.
    return fs::exists(kept.key)
               ? kept
               : dsql::make_certificates(folder, {fmt::format("*.dsql.{}.on.aws", local_region)});
}

fs::path made(const fs::path& folder) {
    std::error_code failure;
    fs::create_directories(folder, failure);
    if (failure) {
        throw Error(Code::unavailable,
                    Outcome::not_applied,
                    fmt::format("cannot make {}: {}; give --data a folder that may be written",
                                folder.string(),
                                failure.message()));
    }
    return fs::canonical(folder);
}

// What somebody needs to use the cluster.
struct Invitation {
    std::string url;
    std::string psql;
    int port;
    fs::path authority;
};

Invitation invitation(int port, const fs::path& authority) {
    const std::string root = escaped(authority.string());
    const std::string program = fs::read_symlink("/proc/self/exe").string();
    return {.url = fmt::format(
                "dsql://{}?hostaddr=127.0.0.1&port={}&sslrootcert={}", endpoint, port, root),
            .psql = fmt::format("PGPASSWORD=\"$('{}' dsql token --admin --endpoint {})\" psql "
                                "'postgresql://admin@{}:{}/postgres?hostaddr=127.0.0.1"
                                "&sslmode=verify-full&sslrootcert={}'",
                                program,
                                endpoint,
                                endpoint,
                                port,
                                root),
            .port = port,
            .authority = authority};
}

Json as_json(const Invitation& invitation) {
    Json variables = Json::object();
    for (const auto& [name, value] : environment) {
        variables[name] = value;
    }
    return {{"url", invitation.url},
            {"endpoint", endpoint},
            {"port", invitation.port},
            {"root_certificate", invitation.authority.string()},
            {"environment", variables},
            {"psql", invitation.psql}};
}

std::string as_text(const Invitation& invitation, const std::string& data) {
    std::string text = fmt::format("A cluster of your own. {}\n\n  {}\n\n{}\n\n",
                                   data.empty() ? "Its data go when it ends; --data DIR keeps them."
                                                : fmt::format("Its data are in {}.", data),
                                   bold(invitation.url),
                                   "Whoever connects needs these keys in the environment:");
    for (const auto& [name, value] : environment) {
        text += fmt::format("  export {}={}\n", name, value);
    }
    return text +
           fmt::format("\nWith them, psql finds it:\n\n  {}\n\nCtrl-C ends it.", invitation.psql);
}

}  // namespace

int dsql_local(const Context& context, const DsqlLocalRequest& request) {
    const TempFolder scratch;
    const fs::path home = request.data.empty() ? scratch.path() : made(request.data);
    const dsql::Certificates certificates = certificates_in(home);

    Progress progress{context.quiet};
    progress.show("starting PostgreSQL");
    dsql::PrivatePostgres server({.folder = scratch.path(),
                                  .data = request.data.empty() ? fs::path{} : home / "postgres",
                                  .fsync = !request.data.empty()});
    progress.clear();

    dsql::GatewayOptions options = gateway_options(context, request.behaviour);
    options.port = request.port;
    options.upstream = server.address().conninfo();
    options.certificate = certificates.server;
    options.certificate_key = certificates.key;
    options.keys = {{.access_key_id = std::string(key_id), .secret = std::string(key_secret)}};
    options.region = local_region;
    dsql::Gateway gateway(std::move(options));
    const auto control = serve_control(gateway, request.control);

    const Invitation offer = invitation(gateway.port(), certificates.authority);
    Json json = as_json(offer);
    std::string text = as_text(offer, request.data);
    if (control) {
        json["control_port"] = control->port();
        text += fmt::format(" Faults and figures: http://{}:{}.",
                            HttpAddress::parse(request.control).host,
                            control->port());
    }
    say(context, json, text);
    wait_for_signal(context);
    gateway.stop();
    server.stop();
    return exit_done;
}

}  // namespace holdfast::app
