// Which rows FOR UPDATE may lock: any, as the service was seen to do, or those that its guide
// names.
#include "gateway/test/gateway_fixture.hpp"

namespace holdfast::dsql::tests {

namespace {

constexpr const char* outside_the_guide[] = {
    "SELECT v FROM t WHERE id > 1 ORDER BY id FOR UPDATE",
    "SELECT v FROM t WHERE v = 20 FOR UPDATE",
    "SELECT v FROM t WHERE id IN (2, 3) ORDER BY id FOR UPDATE",
    "SELECT v FROM t ORDER BY id OFFSET 1 FOR UPDATE",
    "SELECT a.v FROM t a JOIN t b ON a.id = b.id WHERE a.id = 2 FOR UPDATE OF a"};

class GatewayForUpdate : public testing::TestWithParam<bool> {
protected:
    static GatewayOptions options() {
        GatewayOptions options = test::gateway_options();
        options.documented_for_update = GetParam();
        return options;
    }

    void SetUp() override {
        for (const char* sql : {"CREATE TABLE t (id integer PRIMARY KEY, v integer)",
                                "INSERT INTO t VALUES (1, 10), (2, 20), (3, 30)"}) {
            ASSERT_EQ(c.exec(sql).code, "") << sql;
        }
    }

    const Gateway gateway{options()};
    const test::DsqlCluster cluster{gateway};
    const Client c{cluster.params()};
};

TEST_P(GatewayForUpdate, TheWholeKeyIsAlwaysEnough) {
    EXPECT_EQ(c.exec("SELECT v FROM t WHERE id = 2 FOR UPDATE").cell(), "20");
    EXPECT_EQ(c.exec("SELECT v FROM t WHERE id = $1 FOR UPDATE", {"2"}).cell(), "20");
}

TEST_P(GatewayForUpdate, OtherRowsAreRefusedOnlyAsDocumented) {
    for (const char* const sql : outside_the_guide) {
        for (const Said& said : {c.exec(sql), c.exec(sql, {})}) {
            EXPECT_EQ(said.code, GetParam() ? "0A000" : "") << sql << said.message;
            EXPECT_EQ(said.cell(), GetParam() ? "" : "20") << sql;
        }
    }
}

// The key that counts is that of the table that is meant.
TEST_P(GatewayForUpdate, ABareNameIsLookedForWhereTheClientSays) {
    for (const char* const sql : {"CREATE SCHEMA s",
                                  "CREATE TABLE s.t (v integer PRIMARY KEY, id integer)",
                                  "INSERT INTO s.t VALUES (10, 1)",
                                  "SET search_path TO s, public"}) {
        ASSERT_EQ(c.exec(sql).code, "") << sql;
    }
    EXPECT_EQ(c.exec("SELECT id FROM t WHERE v = 10 FOR UPDATE").cell(), "1");
    EXPECT_EQ(c.exec("SELECT id FROM t WHERE id = 1 FOR UPDATE").code, GetParam() ? "0A000" : "");
}

INSTANTIATE_TEST_SUITE_P(Both, GatewayForUpdate, testing::Bool(), [](const auto& chosen) {
    return chosen.param ? "Documented" : "Seen";
});

// Rows that were locked by something other than their key count as written, like any others.
TEST(GatewayForUpdateRange, DoomsAWriterThatCommitsLater) {
    const test::DsqlCluster cluster;
    const Client reader{cluster.params()};
    const Client writer{cluster.params()};
    ASSERT_EQ(reader.exec("CREATE TABLE t (id integer PRIMARY KEY, v integer)").code, "");
    ASSERT_EQ(reader.exec("INSERT INTO t VALUES (1, 10), (2, 20), (3, 30)").code, "");
    ASSERT_EQ(writer.exec("SELECT 1 FROM t").code, "40001");  // OC001: the table is new to it.
    for (const bool inside : {true, false}) {
        ASSERT_EQ(reader.exec("BEGIN").code, "");
        ASSERT_EQ(writer.exec("BEGIN").code, "");
        ASSERT_EQ(reader.exec("SELECT v FROM t WHERE id > 1 FOR UPDATE").rows.size(), 2U);
        const char* const id = inside ? "3" : "1";
        ASSERT_EQ(writer.exec("UPDATE t SET v = 0 WHERE id = $1", {id}).outcome(), "UPDATE 1");
        EXPECT_EQ(reader.exec("COMMIT").outcome(), "COMMIT");
        EXPECT_EQ(writer.exec("COMMIT").code, inside ? "40001" : "");
    }
}

}  // namespace

}  // namespace holdfast::dsql::tests
