#include <holdfast/testing/dsql.hpp>

#include <chrono>
#include <cstdlib>
#include <memory>

#include "outside.hpp"
#include <fmt/core.h>
#include <unistd.h>

#include <holdfast/base/assert.hpp>
#include <holdfast/base/error.hpp>
#include <holdfast/base/random.hpp>
#include <holdfast/dsql/certificates.hpp>
#include <holdfast/dsql/credentials.hpp>
#include <holdfast/dsql/source.hpp>
#include <holdfast/dsql/token.hpp>
#include <holdfast/testing/crash.hpp>
#include <holdfast/testing/postgres.hpp>
#include <holdfast/testing/temp_dir.hpp>

namespace holdfast::test {

namespace {

using namespace std::chrono_literals;

constexpr int id_size = 26;
constexpr const char* early_variable = "HOLDFAST_TEST_EARLY_ABORT";

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

// Requires: no other thread reads the environment yet.
void export_keys() {
    // NOLINTBEGIN(concurrency-mt-unsafe): required.
    ::setenv("AWS_ACCESS_KEY_ID", gateway_key().access_key_id.c_str(), 1);
    ::setenv("AWS_SECRET_ACCESS_KEY", gateway_key().secret.c_str(), 1);
    ::unsetenv("AWS_SESSION_TOKEN");
    // NOLINTEND(concurrency-mt-unsafe)
}

// Empty: the shared gateway is in this process, or nowhere yet.
std::unique_ptr<Victim>& gateway_beside() {
    static std::unique_ptr<Victim> process;
    return process;
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
                                      .secret = "secretOfTheTests/of+no=other+use"};
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
    // NOLINTNEXTLINE(concurrency-mt-unsafe): the environment does not change.
    options.early_abort = std::getenv(early_variable) != nullptr;
    return options;
}

dsql::Gateway& shared_gateway() {
    static dsql::Gateway gateway = [] {
        HOLDFAST_ASSERT(!gateway_beside());
        export_keys();
        return dsql::Gateway(gateway_options());
    }();
    return gateway;
}

void fork_gateway() {
    if (gateway_beside()) {
        return;
    }
    const dsql::GatewayOptions options = gateway_options();  // Our certificates, our PostgreSQL.
    export_keys();
    gateway_beside() = std::make_unique<Victim>([&](Witness& witness) {
        const dsql::Gateway gateway(options);
        witness.acknowledged(gateway.port());
        for (;;) {
            ::pause();
        }
    });
    gateway_beside()->wait_for(1, Deadline::after(30s));
}

int shared_gateway_port() {
    return gateway_beside() ? static_cast<int>(gateway_beside()->reports().front())
                            : shared_gateway().port();
}

DsqlCluster::DsqlCluster() : DsqlCluster(empty_database) {}

DsqlCluster::DsqlCluster(const std::string& original)
    : DsqlCluster(shared_gateway_port(), original) {}

DsqlCluster::DsqlCluster(const dsql::Gateway& gateway)
    : DsqlCluster(gateway.port(), empty_database) {}

DsqlCluster::DsqlCluster(int port, const std::string& original)
    : id_(new_cluster_id()), port_(port) {
    copy_database(shared_postgres(), original, id_);
}

DsqlCluster::~DsqlCluster() {
    drop_database(shared_postgres(), id_);
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
    constexpr int no_limit = 100'000;  // Tests cut connections by the hundred.
    return dsql::dsql_source(
        {.credentials = dsql::fixed_credentials({.access_key_id = gateway_key().access_key_id,
                                                 .secret_access_key = gateway_key().secret}),
         .fleet = {.rate = no_limit, .burst = no_limit, .reservoir = {.enabled = false}}});
}

}  // namespace holdfast::test
