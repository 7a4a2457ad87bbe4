// Roles: made, granted and dropped by the gateway for `admin`, and how their sessions log in below.
#include <fstream>

#include "gateway/test/gateway_fixture.hpp"
#include <fmt/core.h>

#include <holdfast/testing/check.hpp>
#include <holdfast/testing/postgres.hpp>

namespace holdfast::dsql::tests {

namespace {

class GatewayRoles : public GatewayStory {
protected:
    ~GatewayRoles() override {
        for (const char* name : {"a", "b"}) {
            c.exec(fmt::format("DROP ROLE IF EXISTS {}", role(name)));
        }
    }

    // Of this test alone: roles belong to the whole server below.
    [[nodiscard]] std::string role(const std::string& name) const {
        return fmt::format("\"{}_{}\"", name, cluster.id());
    }
    [[nodiscard]] std::string count(const std::string& name) const {
        return c
            .exec(fmt::format(
                "SELECT count(*) FROM pg_roles WHERE rolname = '{}_{}'", name, cluster.id()))
            .cell();
    }

    const Client c = client();
};

TEST_F(GatewayRoles, AreMadeGrantedAndDroppedByAdmin) {
    const std::vector<std::pair<std::string, std::string>> steps{
        {"CREATE ROLE {a} WITH LOGIN", "CREATE ROLE"},
        {"CREATE ROLE {b}", "CREATE ROLE"},
        {"CREATE ROLE {a}", "42710"},
        {"GRANT {b} TO {a}", "GRANT ROLE"},
        {"ALTER ROLE {b} LOGIN", "ALTER ROLE"},
        {"ALTER ROLE {a} SET search_path TO public, x", "ALTER ROLE"},
        {"COMMENT ON ROLE {a} IS 'a test''s'", "COMMENT"},
        {"GRANT {b} TO nobody_at_all", "42704"},
        {"REVOKE {b} FROM {a}", "REVOKE ROLE"},
        {"AWS IAM GRANT {a} TO 'arn:x'", "GRANT"},
        {"AWS IAM GRANT nobody_at_all TO 'arn:x'", "42704"},
        {"AWS IAM REVOKE {a} FROM 'arn:x'", "REVOKE"},
        {"DROP ROLE {a}, {b}", "DROP ROLE"},
    };
    for (const bool extended : {false, true}) {
        for (const auto& [text, outcome] : steps) {
            std::string sql = text;
            for (const char* name : {"a", "b"}) {
                const std::string hole = fmt::format("{{{}}}", name);
                for (auto at = sql.find(hole); at != std::string::npos; at = sql.find(hole)) {
                    sql.replace(at, hole.size(), role(name));
                }
            }
            const Said said = extended ? c.exec(sql, {}) : c.exec(sql);
            EXPECT_EQ(said.code.empty() ? said.tag : said.code, outcome) << sql << said.message;
        }
    }
}

// One change is all that such a transaction may hold, and it goes with the transaction.
TEST_F(GatewayRoles, AChangeGoesWithItsTransaction) {
    c.exec("BEGIN");
    EXPECT_EQ(c.exec("CREATE ROLE " + role("a")).tag, "CREATE ROLE");
    c.exec("ROLLBACK");
    EXPECT_EQ(count("a"), "0");
    c.exec("BEGIN");
    EXPECT_EQ(c.exec("CREATE ROLE " + role("a")).tag, "CREATE ROLE");
    EXPECT_EQ(c.exec("COMMIT").tag, "COMMIT");
    EXPECT_EQ(count("a"), "1");
    c.exec("BEGIN");
    EXPECT_EQ(c.exec("CREATE ROLE " + role("b")).tag, "CREATE ROLE");
    EXPECT_EQ(c.exec("DROP ROLE " + role("a")).code, "0A000");  // Two in one transaction.
    EXPECT_EQ(c.exec("COMMIT").tag, "ROLLBACK");
    EXPECT_EQ(count("a") + count("b"), "10");
    c.exec("BEGIN");
    EXPECT_EQ(c.exec("CREATE ROLE " + role("a")).code, "42710");
    EXPECT_EQ(c.exec("SELECT 1").code, "25P02");
    c.exec("ROLLBACK");
    EXPECT_EQ(c.pipeline({"BEGIN", "DROP ROLE IF EXISTS nobody_at_all", "COMMIT"}),
              (std::vector<std::string>{"BEGIN", "DROP ROLE", "COMMIT"}));
}

// The server below may want passwords: the gateway sets them itself.
TEST(GatewayLogin, WorksWhereTheServerBelowWantsPasswords) {
    const test::PrivatePostgres server;
    const Client owner(server.address().conninfo());
    const std::string rules = owner.exec("SHOW hba_file").cell();
    std::ofstream(rules) << "local all postgres trust\nlocal all all scram-sha-256\n";
    ASSERT_EQ(owner.exec("SELECT pg_reload_conf()").code, "");
    GatewayOptions options = test::gateway_options();
    options.upstream = server.address().conninfo();
    // The server may take a moment to read its rules; until then it asks for nothing.
    const auto wants_password = [&] {
        const Client stranger(fmt::format("host={} user=admin dbname=postgres",
                                          server.address().socket_folder.string()));
        return !stranger.connected() && PQconnectionNeedsPassword(stranger.raw()) != 0;
    };
    {
        const Gateway first(options);
    }
    const auto deadline = Deadline::after(std::chrono::seconds(30));
    while (!wants_password()) {
        ASSERT_FALSE(deadline.passed());
    }
    for (int i = 0; i < 2; ++i) {  // The second one does not know what the first has set.
        const Gateway gateway(options);
        const test::DsqlCluster name(gateway);  // Any name will do: there is one database.
        const Client in(name.params());
        ASSERT_TRUE(in.connected()) << in.response();
        EXPECT_EQ(in.exec("SELECT session_user").cell(), "admin");
        EXPECT_EQ(in.exec(fmt::format("CREATE ROLE app{} LOGIN", i)).code, "");
        EXPECT_EQ(
            in.exec(fmt::format("AWS IAM GRANT app{} TO '{}'", i, test::gateway_key().arn)).code,
            "");
        const Client app(name.params(fmt::format("app{}", i)));
        ASSERT_TRUE(app.connected()) << app.response();
        EXPECT_EQ(app.exec("SELECT current_user").cell(), fmt::format("app{}", i));
    }
}

// A server that lets in its own superuser only is told at the start, with what to do.
TEST(GatewayLogin, AServerThatLetsNoRoleInIsToldAtOnce) {
    const test::PrivatePostgres server;
    const Client owner(server.address().conninfo());
    GatewayOptions options = test::gateway_options();
    options.upstream = server.address().conninfo();
    ASSERT_EQ(owner.exec("CREATE ROLE admin SUPERUSER LOGIN").code, "");
    EXPECT_EQ(test::code_of([&] { const Gateway gateway(options); }), Code::invalid_argument);
    ASSERT_EQ(owner.exec("ALTER ROLE admin NOSUPERUSER NOLOGIN").code, "");
    EXPECT_EQ(test::code_of([&] { const Gateway gateway(options); }), Code::unavailable);
}

}  // namespace

}  // namespace holdfast::dsql::tests
