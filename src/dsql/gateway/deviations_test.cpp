// Where the gateway is known to be otherwise than the service. What is asserted is what the gateway
// does; docs/dsql-gateway.md tells both.
#include <chrono>

#include "gateway/test/gateway_fixture.hpp"

#include <holdfast/base/clock.hpp>

namespace holdfast::dsql::tests {

namespace {

using testing::HasSubstr;

class GatewayDeviations : public GatewayStory {
protected:
    void SetUp() override {
        const Client maker = client();
        for (const char* sql :
             {"CREATE TABLE t (id integer PRIMARY KEY, v integer)",
              "CREATE TABLE child (id integer PRIMARY KEY, tid integer REFERENCES t)",
              "INSERT INTO t VALUES (1, 10), (2, 20), (3, 30)"}) {
            ASSERT_EQ(maker.exec(sql).code, "") << sql;
        }
    }
};

// The service: the KEY SHARE that a child's insert implies conflicts with FOR UPDATE, in both
// orders. Below, a shared lock leaves no trace; a touched row does.
TEST_F(GatewayDeviations, AChildsInsertDoesNotDoomALaterForUpdateOfItsParent) {
    for (const bool insert_first : {true, false}) {
        const Client reader = client();
        const Client writer = client();
        ASSERT_EQ(reader.exec("BEGIN").code, "");
        ASSERT_EQ(writer.exec("BEGIN").code, "");
        ASSERT_EQ(reader.exec("SELECT v FROM t WHERE id = 1 FOR UPDATE").cell(), "10");
        ASSERT_EQ(writer.exec("INSERT INTO child SELECT count(*), 1 FROM child").tag, "INSERT 0 1");
        EXPECT_EQ((insert_first ? writer : reader).exec("COMMIT").tag, "COMMIT");
        EXPECT_EQ((insert_first ? reader : writer).exec("COMMIT").code,
                  insert_first ? "" : "40001");
    }
}

// The service: own writes are readable until the commit that fails.
TEST_F(GatewayDeviations, WhoHasLostIsToldWhenItLooksForItsOwnWrites) {
    const Client a = client();
    const Client b = client();
    ASSERT_EQ(a.exec("BEGIN").code, "");
    ASSERT_EQ(a.exec("UPDATE t SET v = 11 WHERE id = 1").tag, "UPDATE 1");
    EXPECT_EQ(a.exec("SELECT v FROM t WHERE id = 1").cell(), "11");
    ASSERT_EQ(b.exec("UPDATE t SET v = 12 WHERE id = 1").tag, "UPDATE 1");
    EXPECT_EQ(a.exec("SELECT v FROM t WHERE id = 1").code, "40001");
    EXPECT_EQ(a.exec("COMMIT").tag, "ROLLBACK");
}

// The service: 42P01, since the table is not in the snapshot.
TEST_F(GatewayDeviations, ATableMadeAfterTheSnapshotIsASchemaConflict) {
    const Client a = client();
    const Client b = client();
    ASSERT_EQ(a.exec("BEGIN").code, "");
    ASSERT_EQ(a.exec("SELECT 1 FROM t WHERE id = 1").cell(), "1");
    ASSERT_EQ(b.exec("CREATE TABLE later (id integer PRIMARY KEY)").code, "");
    EXPECT_THAT(a.exec("SELECT count(*) FROM later").message, HasSubstr("OC001"));
}

// In the service no statement waits.
TEST_F(GatewayDeviations, ALongWritingStatementHoldsUpOthers) {
    const Client slow = client();
    const Client quick = client();
    ASSERT_EQ(slow.exec("BEGIN").code, "");
    ASSERT_EQ(quick.exec("BEGIN").code, "");
    ASSERT_EQ(
        PQsendQuery(slow.raw(),
                    "UPDATE t SET v = 11 WHERE id = 1 AND (SELECT pg_sleep(0.5)) IS NOT NULL"),
        1);
    const auto deadline = Deadline::after(std::chrono::seconds{30});
    while (!is_running(cluster, "pg_sleep(0.5)")) {
        ASSERT_FALSE(deadline.passed());
    }
    EXPECT_EQ(quick.exec("UPDATE t SET v = 21 WHERE id = 2").tag, "UPDATE 1");
    EXPECT_FALSE(is_running(cluster, "pg_sleep(0.5)")) << "then the page is wrong";
    EXPECT_EQ(Client::said(PQgetResult(slow.raw())).outcome(), "UPDATE 1");
}

// The service takes it.
TEST_F(GatewayDeviations, CopyFromStdinTravelsOnlyAsASimpleQuery) {
    const Client c = client();
    EXPECT_EQ(c.exec("COPY t FROM STDIN", {}).code, "0A000");
    EXPECT_EQ(c.exec("SELECT count(*) FROM t").cell(), "3");
}

}  // namespace

}  // namespace holdfast::dsql::tests
