// Which clients are admitted, and what the others are told.
#include "gateway/test/gateway_fixture.hpp"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <holdfast/base/clock.hpp>
#include <holdfast/base/manual_clock.hpp>
#include <holdfast/base/unique_fd.hpp>
#include <holdfast/dsql/token.hpp>
#include <holdfast/dsql/wire.hpp>
#include <holdfast/testing/check.hpp>

namespace holdfast::dsql::tests {

namespace {

using namespace std::chrono_literals;

class GatewayConnect : public GatewayStory {
protected:
    [[nodiscard]] TokenRequest request() const {
        return {.host = cluster.endpoint(), .region = std::string(test::gateway_region)};
    }
    [[nodiscard]] Credentials keys() const {
        return {.access_key_id = test::gateway_key().access_key_id,
                .secret_access_key = test::gateway_key().secret};
    }
    [[nodiscard]] Client with_token(const std::string& token, std::string_view user = "admin") {
        sql::ConnectParams params = cluster.params(user);
        params["password"] = token;
        return Client(params);
    }
    // It is refused, with both the reason and the hint.
    void expect_refused(const std::string& token,
                        const std::string& hint,
                        std::string_view user = "admin") {
        const Client refused = with_token(token, user);
        EXPECT_FALSE(refused.connected());
        EXPECT_THAT(refused.response(),
                    testing::HasSubstr("FATAL:  unable to accept connection, access denied"));
        EXPECT_THAT(refused.response(), testing::HasSubstr(hint));
        EXPECT_EQ(refused.response().find(token), std::string::npos);
    }
    const Wall now = system_clock().wall_now();
};

TEST_F(GatewayConnect, AGoodTokenOpensTheDatabaseThatTheServiceReports) {
    const Client in = client();
    EXPECT_EQ(in.parameter("server_version"), "16.15");
    EXPECT_EQ(PQserverVersion(in.raw()), 160015);
    EXPECT_EQ(in.exec("SHOW server_version").cell(), "16.15");
    EXPECT_EQ(in.exec("SHOW server_version").tag, "SHOW");
    EXPECT_EQ(in.exec("SHOW server_version_num").cell(), "160015");
    EXPECT_EQ(in.exec("SELECT version()").cell(), "PostgreSQL 16");
    EXPECT_EQ(in.exec("SELECT current_user, Version(), 'version()'").rows.at(0),
              (std::vector<std::string>{"admin", "PostgreSQL 16", "version()"}));
    EXPECT_EQ(in.exec("SHOW transaction_isolation").cell(), "repeatable read");
    EXPECT_EQ(in.exec("SHOW timezone").cell(), "UTC");
    EXPECT_EQ(in.exec("SELECT current_schema()").cell(), "public");
    EXPECT_EQ(in.exec("SELECT current_user").cell(), "admin");
    EXPECT_EQ(in.exec("SELECT rolsuper FROM pg_roles WHERE rolname = current_user").cell(), "f");
    EXPECT_TRUE(PQsslInUse(in.raw()));
}

TEST_F(GatewayConnect, AnExpiredTokenIsRefusedAndTheHintSaysSo) {
    TokenRequest shorter = request();
    shorter.life = 60s;
    expect_refused(make_token(shorter, keys(), now - 10min), "Signature expired");
}

TEST_F(GatewayConnect, ATokenOfAnotherRegionIsRefused) {
    TokenRequest elsewhere = request();
    elsewhere.region = "eu-west-1";
    expect_refused(make_token(elsewhere, keys(), now), "HINT");
}

TEST_F(GatewayConnect, ATokenForTheWrongActionIsRefused) {
    TokenRequest wrong = request();
    wrong.action = Action::connect;
    expect_refused(make_token(wrong, keys(), now),
                   "Wrong user to action mapping. user: admin, action: DbConnect");
}

TEST_F(GatewayConnect, ATamperedTokenIsRefused) {
    std::string token = make_token(request(), keys(), now);
    const std::size_t at = token.find("X-Amz-Signature=") + 16;
    token[at] = token[at] == 'a' ? 'b' : 'a';
    expect_refused(token, "HINT");
}

TEST_F(GatewayConnect, ATokenOfAnotherClusterIsRefused) {
    TokenRequest other = request();
    other.host = "abcdefghijklmnopqrstuvwxyz.dsql.us-east-1.on.aws";
    expect_refused(make_token(other, keys(), now), "HINT");
}

TEST_F(GatewayConnect, UnknownKeysAndAnyOtherTextAreRefused) {
    Credentials unknown = keys();
    unknown.access_key_id = "AKIDNOBODY";
    expect_refused(make_token(request(), unknown, now), "HINT");
    expect_refused("secret", "HINT");
}

TEST_F(GatewayConnect, ARoleNeedsAGrantOfItsOwn) {
    const Client admin = client();
    ASSERT_EQ(admin.exec("CREATE ROLE \"" + cluster.id() + "\" WITH LOGIN").code, "");
    TokenRequest plain = request();
    plain.action = Action::connect;
    const std::string token = make_token(plain, keys(), now);
    expect_refused(token, "is not authorized to", cluster.id());

    const std::string arn = test::gateway_key().arn;
    const Said granted = admin.exec("AWS IAM GRANT \"" + cluster.id() + "\" TO '" + arn + "'");
    ASSERT_EQ(granted.code, "") << granted.message;
    EXPECT_EQ(
        admin.exec("SELECT pg_role_name FROM sys.iam_pg_role_mappings WHERE arn = '" + arn + "'")
            .cell(),
        cluster.id());
    EXPECT_TRUE(with_token(token, cluster.id()).connected());
    expect_refused(make_token(request(), keys(), now),
                   "Wrong user to action mapping. user: " + cluster.id(),
                   cluster.id());

    ASSERT_EQ(admin.exec("AWS IAM REVOKE \"" + cluster.id() + "\" FROM '" + arn + "'").code, "");
    expect_refused(token, "is not authorized to", cluster.id());
    EXPECT_EQ(admin.exec("DROP ROLE \"" + cluster.id() + "\"").code, "");
}

TEST_F(GatewayConnect, WithoutTlsNobodyGetsIn) {
    sql::ConnectParams params = cluster.params();
    params["sslmode"] = "disable";
    const Client refused(params);
    EXPECT_FALSE(refused.connected());
    EXPECT_THAT(refused.response(), testing::HasSubstr("unable to accept connection"));
}

TEST_F(GatewayConnect, WithoutAServerNameNobodyGetsIn) {
    sql::ConnectParams params = cluster.params();
    params["sslsni"] = "0";
    const Client refused(params);
    EXPECT_FALSE(refused.connected());
    EXPECT_THAT(refused.response(),
                testing::HasSubstr("unable to accept connection, sni was not received"));
}

TEST_F(GatewayConnect, TheClusterMayBeNamedInTheOptions) {
    sql::ConnectParams params = cluster.params();
    params["sslsni"] = "0";
    params["options"] = "-c amzn-cluster-id=" + cluster.id();
    const Client in(params);
    EXPECT_TRUE(in.connected()) << in.response();
}

TEST_F(GatewayConnect, ACertificateOfAnUnknownAuthorityIsNotTrusted) {
    sql::ConnectParams params = cluster.params();
    params["host"] = cluster.id() + ".dsql.eu-west-1.on.aws";  // Not a name of the certificate.
    const Client refused(params);
    EXPECT_FALSE(refused.connected());
}

TEST_F(GatewayConnect, OnlyTheDatabasePostgresExists) {
    sql::ConnectParams params = cluster.params();
    params["dbname"] = "orders";
    const Client refused(params);
    EXPECT_FALSE(refused.connected());
    EXPECT_THAT(refused.response(), testing::HasSubstr("database \"orders\" does not exist"));
}

TEST_F(GatewayConnect, StartupOptionsFollowTheListOfParameters) {
    sql::ConnectParams params = cluster.params();
    params["application_name"] = "a story";
    params["options"] = R"(-c search_path=public -c extra_float_digits=2)";
    const Client in(params);
    ASSERT_TRUE(in.connected()) << in.response();
    EXPECT_EQ(in.exec("SHOW application_name").cell(), "a story");
    EXPECT_EQ(in.parameter("application_name"), "a story");

    params["options"] = "-c statement_timeout=5";
    const Client refused(params);
    EXPECT_FALSE(refused.connected());
    EXPECT_THAT(
        refused.response(),
        testing::HasSubstr("setting configuration parameter \"statement_timeout\" not supported"));
}

TEST(GatewayDoor, OpensAsOftenAsTheRateAllows) {
    ManualClock clock;
    GatewayOptions options = test::gateway_options();
    options.limits.openings_burst = 3;
    options.limits.openings_per_second = 1;
    options.clock = &clock;
    const Gateway gateway(options);
    const test::DsqlCluster cluster(gateway);
    const auto knock = [&] {
        sql::ConnectParams params = cluster.params();
        const TokenRequest request{.host = cluster.endpoint(),
                                   .region = std::string(test::gateway_region)};
        params["password"] = make_token(request,
                                        {.access_key_id = test::gateway_key().access_key_id,
                                         .secret_access_key = test::gateway_key().secret},
                                        clock.wall_now());
        return Client(params).response();
    };
    for (int i = 0; i < 3; ++i) {
        EXPECT_EQ(knock(), "");
    }
    EXPECT_THAT(knock(), testing::HasSubstr("Unable to accept connection, rate exceeded."));
    clock.advance(1s);
    EXPECT_EQ(knock(), "");
    EXPECT_THAT(knock(), testing::HasSubstr("Unable to accept connection, rate exceeded."));
}

TEST(GatewayDoor, LetsInAsManyAsThereMayBe) {
    GatewayOptions options = test::gateway_options();
    options.limits.connections = 2;
    const Gateway gateway(options);
    const test::DsqlCluster cluster(gateway);
    auto first = std::make_unique<Client>(cluster.params());
    const Client second(cluster.params());
    EXPECT_THAT(Client(cluster.params()).response(),
                testing::HasSubstr("Unable to accept connection, too many open connections."));
    first.reset();
    // Its place is free once the gateway has seen it go, which cannot be observed.
    const auto deadline = Deadline::after(30s);
    bool let_in = false;
    while (!let_in && !deadline.passed()) {
        let_in = Client(cluster.params()).connected();
    }
    EXPECT_TRUE(let_in);
}

TEST(GatewayDoor, AConnectionEndsWhenItIsAnHourOld) {
    ManualClock clock(system_clock().wall_now());
    GatewayOptions options = test::gateway_options();
    options.clock = &clock;
    const Gateway gateway(options);
    const test::DsqlCluster cluster(gateway);
    const Client in(cluster.params());
    ASSERT_EQ(in.exec("SELECT 1").cell(), "1");
    ASSERT_EQ(in.exec("BEGIN").tag, "BEGIN");
    clock.advance(61min);
    EXPECT_EQ(in.exec("ROLLBACK").tag, "ROLLBACK");  // Not in the midst of a transaction.
    EXPECT_EQ(in.exec("SELECT 1").code, "broken");
}

// Bytes that no client sends, each on a connection of its own: the gateway hangs up or says no, and
// serves the next one.
TEST(GatewayDoor, AStopDoesNotWaitForALongStatement) {
    Gateway gateway(test::gateway_options());
    const test::DsqlCluster cluster(gateway);
    const Client c(cluster.params());
    ASSERT_EQ(PQsendQuery(c.raw(), "SELECT pg_sleep(600)"), 1);
    const auto deadline = Deadline::after(30s);
    while (!is_running(cluster, "pg_sleep(600)")) {
        ASSERT_FALSE(deadline.passed());
    }
    gateway.stop();
    EXPECT_NE(Client::said(PQgetResult(c.raw())).code, "");
}

TEST(GatewayDoor, AnUpstreamThatWillNotDoIsToldAtOnce) {
    GatewayOptions options = test::gateway_options();
    options.upstream = "host=127.0.0.1 port=1 user=postgres";
    EXPECT_EQ(test::code_of([&] { const Gateway gateway(options); }), Code::unavailable);
}

TEST_F(GatewayConnect, GarbageHurtsNobody) {
    const std::string startup("\0\0\0\x08\0\x03\0\0", 8);
    for (const std::string& bytes : {std::string("GET / HTTP/1.1\r\n\r\n"),
                                     std::string("\0\0\0\0", 4),
                                     std::string("\x7f\xff\xff\xff\x7f\xff\xff\xff"),
                                     std::string("\0\0\0\x08\x04\xd2\x16\x2f", 8) + startup,
                                     startup}) {
        const UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_port = htons(static_cast<std::uint16_t>(test::shared_gateway().port()));
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        ASSERT_EQ(::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
        ASSERT_GT(::send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL), 0);
        ::shutdown(fd.get(), SHUT_WR);
        std::array<char, 1024> answer{};
        while (::recv(fd.get(), answer.data(), answer.size(), 0) > 0) {
        }
    }
    EXPECT_EQ(client().exec("SELECT 1").cell(), "1");
}

}  // namespace

}  // namespace holdfast::dsql::tests
