// A cluster of Aurora DSQL for one test: a gateway, of this process or beside it, in front of the
// shared PostgreSQL.
#pragma once

#include <string>
#include <string_view>

#include <holdfast/dsql/gateway.hpp>
#include <holdfast/sql/source.hpp>

namespace holdfast::test {

// The keys that sign for every test cluster.
[[nodiscard]] const dsql::GatewayKey& gateway_key();

// Trusted by `sslrootcert`, good for every name in the region.
inline constexpr std::string_view gateway_region = "us-east-1";
[[nodiscard]] const std::string& gateway_root_certificate();

// What a gateway of a test's own starts with: the shared PostgreSQL, certificates, the keys. It
// tells of conflicts early if the environment has HOLDFAST_TEST_EARLY_ABORT.
[[nodiscard]] dsql::GatewayOptions gateway_options();

// The gateway that the tests of this process share. From its first use on, the environment holds
// the keys that open it, for this process and its children.
[[nodiscard]] dsql::Gateway& shared_gateway();

// Puts the gateway that tests share into a process of its own, which ends with this one: for tests
// that fork, and so must have one thread. A repeat does nothing.
// Requires: this process has one thread, and shared_gateway() was not called.
void fork_gateway();

// Where the gateway that tests share listens, in whichever process it is.
[[nodiscard]] int shared_gateway_port();

// Opens dsql:// URLs of such clusters.
[[nodiscard]] sql::SourceFactory gateway_source();

// A new cluster, empty or a copy of another's data, gone with its object. Tests that run at the
// same time do not see each other.
class DsqlCluster {
public:
    DsqlCluster();
    explicit DsqlCluster(const std::string& original);  // The name of a database.
    explicit DsqlCluster(const dsql::Gateway& gateway);
    ~DsqlCluster();
    DsqlCluster(const DsqlCluster&) = delete;
    DsqlCluster& operator=(const DsqlCluster&) = delete;

    [[nodiscard]] const std::string& id() const noexcept { return id_; }  // Also its database.
    [[nodiscard]] std::string endpoint() const;
    [[nodiscard]] std::string url() const;  // dsql://...
    // For libpq, with a fresh token.
    [[nodiscard]] sql::ConnectParams params(std::string_view user = "admin") const;
    // The way past the gateway, as libpq understands it.
    [[nodiscard]] std::string outside(std::string_view user = "admin") const;

private:
    DsqlCluster(int port, const std::string& original);

    std::string id_;
    int port_;
};

}  // namespace holdfast::test
