#include "limits/measured_gateway.hpp"

#include <fmt/core.h>

#include <holdfast/base/clock.hpp>
#include <holdfast/dsql/certificates.hpp>
#include <holdfast/dsql/source.hpp>
#include <holdfast/dsql/token.hpp>

namespace holdfast::bench {
namespace {

constexpr std::string_view region = "us-east-1";
constexpr std::string_view endpoint = "benchmarkbenchmarkbenchmar.dsql.us-east-1.on.aws";

}  // namespace

MeasuredGateway::MeasuredGateway(const WaitTicket& place, const std::string& upstream)
    : keys_{.access_key_id = "AKIDHOLDFASTBENCH",
            .secret_access_key = "not+a/secret=only/for+this"} {
    const auto certificates =
        dsql::make_certificates(place.directory, {fmt::format("*.dsql.{}.on.aws", region)});
    root_ = certificates.authority;
    dsql::GatewayOptions options;
    options.upstream = upstream;
    options.certificate = certificates.server;
    options.certificate_key = certificates.key;
    options.keys = {{.access_key_id = keys_.access_key_id, .secret = keys_.secret_access_key}};
    options.logger = place.database.logger;
    gateway_ = std::make_unique<dsql::Gateway>(std::move(options));
}

MeasuredGateway::~MeasuredGateway() = default;

std::string MeasuredGateway::postgres_url() const {
    return fmt::format(
        "postgres://admin@{}:{}/postgres?hostaddr=127.0.0.1&sslmode=verify-full&sslrootcert={}",
        endpoint,
        gateway_->port(),
        root_.string());
}

std::string MeasuredGateway::token() const {
    const dsql::TokenRequest request{.host = std::string(endpoint), .region = std::string(region)};
    return dsql::make_token(request, keys_, system_clock().wall_now());
}

std::string MeasuredGateway::dsql_url() const {
    return fmt::format("dsql://{}?hostaddr=127.0.0.1&port={}&sslrootcert={}",
                       endpoint,
                       gateway_->port(),
                       root_.string());
}

sql::SourceFactory MeasuredGateway::source() const {
    constexpr int no_limit = 100'000;  // How fast connections are opened is not what is measured.
    return dsql::dsql_source({.credentials = dsql::fixed_credentials(keys_),
                              .fleet = {.rate = no_limit, .burst = no_limit}});
}

}  // namespace holdfast::bench
