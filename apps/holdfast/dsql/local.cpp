#include "dsql/local.hpp"

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "cli/answer.hpp"
#include "cli/terminal.hpp"
#include "dsql/serve.hpp"
#include "signals.hpp"
#include "temp_folder.hpp"
#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <holdfast/base/error.hpp>
#include <holdfast/base/exit_code.hpp>
#include <holdfast/base/percent.hpp>
#include <holdfast/base/random.hpp>
#include <holdfast/base/unique_fd.hpp>
#include <holdfast/dsql/certificates.hpp>
#include <holdfast/dsql/private_postgres.hpp>

namespace holdfast::app {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view local_region = "us-east-1";
constexpr std::string_view endpoint = "localclusterofholdfast0001.dsql.us-east-1.on.aws";

constexpr int secret_size = 40;
constexpr int id_size = 16;

using Environment = std::vector<std::pair<std::string, std::string>>;

// An empty session token replaces the user's own, which does not fit our keys.
Environment environment_of(const dsql::GatewayKey& key) {
    return {{"AWS_ACCESS_KEY_ID", key.access_key_id},
            {"AWS_SECRET_ACCESS_KEY", key.secret},
            {"AWS_SESSION_TOKEN", key.session_token},
            {"AWS_REGION", std::string(local_region)}};
}

std::string random_word(std::string_view alphabet, int size) {
    std::string word;
    for (int i = 0; i < size; ++i) {
        word += alphabet[secure_seed() % alphabet.size()];
    }
    return word;
}

bool only_its_owner_may_read(const fs::path& file) {
    std::error_code failure;
    const fs::perms others = fs::perms::group_all | fs::perms::others_all;
    const fs::file_status status = fs::symlink_status(file, failure);
    return fs::is_regular_file(status) && (status.permissions() & others) == fs::perms::none;
}

void write_privately(const fs::path& file, const std::string& text) {
    std::error_code ignored;
    fs::remove(file, ignored);
    const UniqueFd fd(::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!fd || ::write(fd.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
        throw Error(Code::unavailable,
                    Outcome::not_applied,
                    fmt::format("cannot write {}: {}; give --data a writable folder",
                                file.string(),
                                std::system_category().message(errno)));
    }
}

// Made once for a folder that keeps the data, else at each start.
std::vector<dsql::GatewayKey> keys_in_folder(const fs::path& file) {
    if (!only_its_owner_may_read(file)) {
        write_privately(
            file,
            fmt::format("AKID{}:{}\n",
                        random_word("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", id_size),
                        random_word("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                    "0123456789",
                                    secret_size)));
    }
    return given_keys(file.string());
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
                    fmt::format("cannot create {}: {}; give --data a writable folder",
                                folder.string(),
                                failure.message()));
    }
    return fs::canonical(folder);
}

// What a user needs to connect to the cluster.
struct Invitation {
    std::string url;
    std::string psql;
    int port;
    fs::path authority;
    fs::path credentials;  // Empty if the keys were given.
    Environment environment;
};

Invitation invitation(int port, const fs::path& authority) {
    const std::string root = percent_encoded(authority.string(), "/");
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
            .authority = authority,
            .credentials = {},
            .environment = {}};
}

Json as_json(const Invitation& invitation) {
    Json variables = Json::object();
    for (const auto& [name, value] : invitation.environment) {
        variables[name] = value;
    }
    return {{"url", invitation.url},
            {"endpoint", endpoint},
            {"port", invitation.port},
            {"root_certificate", invitation.authority.string()},
            {"credentials", invitation.credentials.string()},
            {"environment", variables},
            {"psql", invitation.psql}};
}

std::string as_text(const Invitation& invitation, const std::string& data) {
    std::string text =
        fmt::format("A local cluster. {}\n\n  {}\n\n{}\n\n",
                    data.empty() ? "Its data is removed when it ends; --data DIR keeps it."
                                 : fmt::format("Its data is in {}.", data),
                    bold(invitation.url),
                    "A client needs these keys in its environment:");
    for (const auto& [name, value] : invitation.environment) {
        text += fmt::format("  export {}={}\n", name, value);
    }
    if (!invitation.credentials.empty()) {
        text += fmt::format("\nThe keys are also in {}, readable only by you.\n",
                            invitation.credentials.string());
    }
    return text +
           fmt::format("\nThen connect with psql:\n\n  {}\n\nCtrl-C ends it.", invitation.psql);
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
                                  .fsync = !request.data.empty(),
                                  .stop = context.stop});
    progress.clear();

    dsql::GatewayOptions options = gateway_options(context, request.behaviour);
    options.port = request.port;
    options.upstream = server.address().conninfo();
    options.certificate = certificates.server;
    options.certificate_key = certificates.key;
    options.keys = given_keys(request.credentials);
    const fs::path made_keys = options.keys.empty() ? home / "credentials" : fs::path{};
    if (!made_keys.empty()) {
        options.keys = keys_in_folder(made_keys);
    }
    const Environment environment = environment_of(options.keys.front());
    options.region = local_region;
    dsql::Gateway gateway(std::move(options));
    const auto control = serve_control(gateway, request.control);

    Invitation offer = invitation(gateway.port(), certificates.authority);
    offer.credentials = made_keys;
    offer.environment = environment;
    Json json = as_json(offer);
    std::string text = as_text(offer, request.data);
    if (control) {
        json["control_port"] = control->port();
        text += fmt::format(" Control port: http://{}:{}.",
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
