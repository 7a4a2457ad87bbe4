#include <holdfast/testing/dsql.hpp>

#include <cstdlib>

#include "outside.hpp"
#include <fmt/core.h>

#include <holdfast/base/error.hpp>
#include <holdfast/base/random.hpp>
#include <holdfast/dsql/certificates.hpp>
#include <holdfast/dsql/credentials.hpp>
#include <holdfast/dsql/source.hpp>
#include <holdfast/dsql/token.hpp>
#include <holdfast/testing/postgres.hpp>
#include <holdfast/testing/temp_dir.hpp>

namespace holdfast::test {

namespace {

constexpr int id_size = 26;

const dsql::Certificates& certificates() {
    static const TempDir folder;
    static const dsql::Certificates made = dsql::make_certificates(
        folder.path(), {fmt::format("*.dsql.{}.on.aws", gateway_region), "localhost"});
    return made;
}

std::string new_cluster_id() {
    constexpr std::string_view alphabet = "abcdefghijklmnopqrstuvwxyz234567";
    Random random(secure_seed());
    std::string id;
    for (int i = 0; i < id_size; ++i) {
        id += alphabet[random.below(i == 0 ? 26 : alphabet.size())];
    }
    return id;
}

sql::ConnectParams params_of(const std::string& endpoint, int port, std::string_view user) {
    const dsql::TokenRequest request{
        .host = endpoint, .region = std::string(gateway_region), .action = dsql::action_of(user)};
    const dsql::Credentials keys{.access_key_id = gateway_key().access_key_id,
                                 .secret_access_key = gateway_key().secret};
    return {{"host", endpoint},
            {"hostaddr", "127.0.0.1"},
            {"port", std::to_string(port)},
            {"user", std::string(user)},
            {"dbname", "postgres"},
            {"password", dsql::make_token(request, keys, system_clock().wall_now())},
            {"sslmode", "verify-full"},
            {"sslrootcert", gateway_root_certificate()}};
}

}  // namespace

const dsql::GatewayKey& gateway_key() {
    static const dsql::GatewayKey key{.access_key_id = "AKIDHOLDFASTTEST",
                                      .secret = "secretOfTheTests/that+nobody=needs"};
    return key;
}

const std::string& gateway_root_certificate() {
    static const std::string path = certificates().authority.string();
    return path;
}

dsql::GatewayOptions gateway_options() {
    dsql::GatewayOptions options;
    options.upstream =
        fmt::format("host={} user=postgres", shared_postgres().socket_folder.string());
    options.certificate = certificates().server;
    options.certificate_key = certificates().key;
    options.keys = {gateway_key()};
    return options;
}

dsql::Gateway& shared_gateway() {
    static dsql::Gateway gateway = [] {
        ::setenv("AWS_ACCESS_KEY_ID", gateway_key().access_key_id.c_str(), 1);
        ::setenv("AWS_SECRET_ACCESS_KEY", gateway_key().secret.c_str(), 1);
        ::unsetenv("AWS_SESSION_TOKEN");
        return dsql::Gateway(gateway_options());
    }();
    return gateway;
}

DsqlCluster::DsqlCluster(const dsql::Gateway& gateway)
    : id_(new_cluster_id()), port_(gateway.port()) {
    run_on_postgres(shared_postgres().conninfo(),
                    fmt::format("CREATE DATABASE {} STRATEGY FILE_COPY", id_));
}

DsqlCluster::~DsqlCluster() {
    try {
        run_on_postgres(shared_postgres().conninfo(),
                        fmt::format("DROP DATABASE IF EXISTS {} WITH (FORCE)", id_));
    } catch (const Error&) {
        // The test has ended its server; the data go with the server's folder.
    }
}

std::string DsqlCluster::endpoint() const {
    return fmt::format("{}.dsql.{}.on.aws", id_, gateway_region);
}

std::string DsqlCluster::url() const {
    return fmt::format("dsql://{}?hostaddr=127.0.0.1&port={}&sslrootcert={}",
                       endpoint(),
                       port_,
                       gateway_root_certificate());
}

sql::ConnectParams DsqlCluster::params(std::string_view user) const {
    return params_of(endpoint(), port_, user);
}

std::string DsqlCluster::outside(std::string_view user) const {
    return fmt::format("{} options='-c role={}'", shared_postgres().conninfo(id_), user);
}

sql::SourceFactory gateway_source() {
    return dsql::dsql_source(
        {.credentials = dsql::fixed_credentials({.access_key_id = gateway_key().access_key_id,
                                                 .secret_access_key = gateway_key().secret})});
}

}  // namespace holdfast::test
