// The protocol as clients speak it: prepared statements, pipelines, COPY, failed transactions.
#include "gateway/test/gateway_fixture.hpp"

#include <holdfast/dsql/wire.hpp>

namespace holdfast::dsql::tests {

namespace {

class GatewayProtocol : public GatewayStory {
protected:
    void SetUp() override {
        ASSERT_EQ(c.exec("CREATE TABLE t (id integer PRIMARY KEY, v integer)").code, "");
        ASSERT_EQ(c.exec("INSERT INTO t VALUES (1, 10), (2, 20), (3, 30)").code, "");
    }

    Said run_prepared(const char* name, const std::vector<const char*>& args) const {
        return Client::said(PQexecPrepared(
            c.raw(), name, static_cast<int>(args.size()), args.data(), nullptr, nullptr, 0));
    }

    ExecStatusType status_of(const char* sql) const {
        PGresult* result = PQexec(c.raw(), sql);
        const ExecStatusType status = PQresultStatus(result);
        PQclear(result);
        return status;
    }

    const Client c = client();
};

TEST_F(GatewayProtocol, PreparedStatementsLiveAsLongAsTheConnection) {
    ASSERT_EQ(
        Client::said(PQprepare(c.raw(), "up", "UPDATE t SET v = $2 WHERE id = $1", 0, nullptr))
            .code,
        "");
    EXPECT_EQ(run_prepared("up", {"1", "11"}).tag, "UPDATE 1");
    ASSERT_EQ(c.exec("BEGIN").code, "");
    EXPECT_EQ(run_prepared("up", {"1", "12"}).tag, "UPDATE 1");
    EXPECT_EQ(run_prepared("up", {"no number", "12"}).code, "22P02");
    EXPECT_EQ(run_prepared("up", {"1", "12"}).code, "25P02");
    EXPECT_EQ(c.exec("ROLLBACK").code, "");
    EXPECT_EQ(run_prepared("up", {"2", "22"}).tag, "UPDATE 1");
    EXPECT_EQ(c.exec("SELECT sum(v) FROM t").cell(), "63");
    EXPECT_EQ(run_prepared("unknown", {}).code, "26000");
}

TEST_F(GatewayProtocol, AStatementPreparedInAnAbortedTransactionStays) {
    const Client other = client();
    ASSERT_EQ(c.exec("BEGIN").code, "");
    ASSERT_EQ(
        Client::said(PQprepare(c.raw(), "up", "UPDATE t SET v = $2 WHERE id = $1", 0, nullptr))
            .code,
        "");
    ASSERT_EQ(run_prepared("up", {"1", "11"}).tag, "UPDATE 1");
    ASSERT_EQ(other.exec("UPDATE t SET v = 0 WHERE id = 1").tag, "UPDATE 1");  // Moves it aside.
    EXPECT_EQ(c.exec("COMMIT").code, "40001");
    EXPECT_EQ(run_prepared("up", {"1", "11"}).outcome(), "UPDATE 1");
}

// BEGIN, statements and COMMIT in one flush, as our own driver sends them.
TEST_F(GatewayProtocol, APipelineMayHoldAWholeTransaction) {
    const auto pipeline = [&](const std::vector<const char*>& statements) {
        return c.pipeline(statements);
    };
    using Outcomes = std::vector<std::string>;
    EXPECT_EQ(pipeline({"BEGIN", "UPDATE t SET v = 1 WHERE id = 1", "SELECT v FROM t", "COMMIT"}),
              (Outcomes{"BEGIN", "UPDATE 1", "SELECT 3", "COMMIT"}));
    EXPECT_EQ(pipeline({"BEGIN", "INSERT INTO t VALUES (1, 1)", "SELECT 1"}),
              (Outcomes{"BEGIN", "23505", "skipped"}));
    EXPECT_EQ(c.status(), 'E');
    EXPECT_EQ(c.exec("ROLLBACK").code, "");
    // Without BEGIN, everything up to the Sync is one transaction.
    EXPECT_EQ(pipeline({"UPDATE t SET v = 2 WHERE id = 1", "INSERT INTO t VALUES (1, 1)"}),
              (Outcomes{"UPDATE 1", "23505"}));
    EXPECT_EQ(c.exec("SELECT v FROM t WHERE id = 1").cell(), "1");
    EXPECT_EQ(pipeline({"UPDATE t SET v = 2 WHERE id = 1", "UPDATE t SET v = 3 WHERE id = 2"}),
              (Outcomes{"UPDATE 1", "UPDATE 1"}));
    EXPECT_EQ(c.status(), 'I');
    EXPECT_EQ(pipeline({"TRUNCATE t", "SELECT 1"}), (Outcomes{"0A000", "skipped"}));
    EXPECT_EQ(c.exec("SELECT sum(v) FROM t").cell(), "35");
}

TEST_F(GatewayProtocol, CopyTakesRowsAndGivesThem) {
    ASSERT_EQ(status_of("COPY t FROM STDIN"), PGRES_COPY_IN);
    const std::string rows = "7\t70\n8\t80\n";
    ASSERT_EQ(PQputCopyData(c.raw(), rows.data(), static_cast<int>(rows.size())), 1);
    ASSERT_EQ(PQputCopyEnd(c.raw(), nullptr), 1);
    EXPECT_EQ(Client::said(PQgetResult(c.raw())).tag, "COPY 2");
    EXPECT_EQ(PQgetResult(c.raw()), nullptr);
    EXPECT_EQ(c.exec("SELECT count(*) FROM t").cell(), "5");

    ASSERT_EQ(status_of("COPY (SELECT * FROM t ORDER BY id) TO STDOUT"), PGRES_COPY_OUT);
    std::string copied;
    char* line = nullptr;
    while (PQgetCopyData(c.raw(), &line, 0) > 0) {
        copied += line;
        PQfreemem(line);
    }
    EXPECT_EQ(copied, "1\t10\n2\t20\n3\t30\n7\t70\n8\t80\n");
    while (PGresult* result = PQgetResult(c.raw())) {
        PQclear(result);
    }

    ASSERT_EQ(status_of("COPY t FROM STDIN"), PGRES_COPY_IN);
    ASSERT_EQ(PQputCopyEnd(c.raw(), "changed my mind"), 1);
    EXPECT_EQ(Client::said(PQgetResult(c.raw())).code, "57014");
    while (PGresult* result = PQgetResult(c.raw())) {
        PQclear(result);
    }
    EXPECT_EQ(c.exec("COPY t FROM '/etc/passwd'").code, "0A000");
    EXPECT_EQ(c.exec("SELECT count(*) FROM t").cell(), "5");
}

// Drivers encode as the answer to COPY tells them, whatever they have asked for.
TEST_F(GatewayProtocol, ABinaryCopyIsAnsweredAsBinary) {
    const auto format_of = [&](const char* sql) {
        PGresult* result = PQexec(c.raw(), sql);
        std::string formats = std::to_string(PQbinaryTuples(result));
        for (int i = 0; i < PQnfields(result); ++i) {
            formats += std::to_string(PQfformat(result, i));
        }
        PQclear(result);
        return formats;
    };
    const auto end = [&](const std::string& rows) {
        EXPECT_EQ(PQputCopyData(c.raw(), rows.data(), static_cast<int>(rows.size())), 1);
        EXPECT_EQ(PQputCopyEnd(c.raw(), nullptr), 1);
        const Said said = Client::said(PQgetResult(c.raw()));
        EXPECT_EQ(PQgetResult(c.raw()), nullptr);
        return said.outcome();
    };
    BodyWriter rows;
    rows.bytes(std::string_view("PGCOPY\n\377\r\n\0", 11)).int32(0).int32(0);
    rows.int16(2).int32(4).int32(7).int32(4).int32(70).int16(-1);
    EXPECT_EQ(format_of("COPY t FROM STDIN (FORMAT binary)"), "111");
    EXPECT_EQ(end(rows.body()), "COPY 1");
    EXPECT_EQ(c.exec("SELECT v FROM t WHERE id = 7").cell(), "70");

    BodyWriter one;
    one.bytes(std::string_view("PGCOPY\n\377\r\n\0", 11)).int32(0).int32(0);
    one.int16(1).int32(4).int32(8).int16(-1);
    EXPECT_EQ(format_of("COPY t (id) FROM STDIN WITH BINARY"), "11");
    EXPECT_EQ(end(one.body()), "COPY 1");
    EXPECT_EQ(format_of("COPY t (id) FROM STDIN (FORMAT csv)"), "00");
    EXPECT_EQ(end("9\n"), "COPY 1");
    EXPECT_EQ(c.exec("SELECT count(*) FROM t").cell(), "6");
}

TEST_F(GatewayProtocol, ACopyOfTooManyRowsLeavesNothing) {
    ASSERT_EQ(status_of("COPY t FROM STDIN"), PGRES_COPY_IN);
    for (int i = 0; i < 3001; ++i) {
        const std::string row = std::to_string(1000 + i) + "\t0\n";
        ASSERT_EQ(PQputCopyData(c.raw(), row.data(), static_cast<int>(row.size())), 1);
    }
    ASSERT_EQ(PQputCopyEnd(c.raw(), nullptr), 1);
    EXPECT_EQ(Client::said(PQgetResult(c.raw())).message, "transaction row limit exceeded");
    while (PGresult* result = PQgetResult(c.raw())) {
        PQclear(result);
    }
    EXPECT_EQ(c.exec("SELECT count(*) FROM t").cell(), "3");
}

TEST_F(GatewayProtocol, ARefusalLeavesNothingBehindOutsideAndAbortsInside) {
    EXPECT_EQ(c.exec("TRUNCATE t").message, "unsupported statement: Truncate");
    EXPECT_EQ(c.status(), 'I');
    ASSERT_EQ(c.exec("BEGIN").code, "");
    EXPECT_EQ(c.exec("SAVEPOINT s").message, "unsupported transaction statement: SAVEPOINT");
    EXPECT_EQ(c.exec("TRUNCATE t").code, "25P02");
    EXPECT_EQ(c.exec("COMMIT").tag, "ROLLBACK");
    EXPECT_EQ(c.status(), 'I');
}

TEST_F(GatewayProtocol, ASyntaxErrorIsTheServers) {
    EXPECT_EQ(c.exec("SELEC 1").code, "42601");
    EXPECT_EQ(c.exec("SELECT * FROM nowhere").code, "42P01");
    EXPECT_EQ(c.exec("").code, "");
    EXPECT_EQ(c.exec("SELECT 1").cell(), "1");
}

TEST_F(GatewayProtocol, ALargeResultComesWhole) {
    const Said said = c.exec("SELECT n, repeat('x', 1000) FROM generate_series(1, 5000) n");
    EXPECT_EQ(said.rows.size(), 5000U);
    ASSERT_EQ(c.exec("BEGIN").code, "");
    EXPECT_EQ(c.exec("SELECT n, repeat('x', 1000) FROM generate_series(1, 5000) n").rows.size(),
              5000U);
    EXPECT_EQ(c.exec("COMMIT").tag, "COMMIT");
}

TEST_F(GatewayProtocol, SettingsStayWithinTheirTransaction) {
    ASSERT_EQ(c.exec("SET application_name = 'outside'").code, "");
    EXPECT_EQ(c.parameter("application_name"), "outside");
    ASSERT_EQ(c.exec("BEGIN").code, "");
    ASSERT_EQ(c.exec("SET LOCAL application_name = 'inside'").code, "");
    EXPECT_EQ(c.exec("SHOW application_name").cell(), "inside");
    ASSERT_EQ(c.exec("COMMIT").code, "");
    EXPECT_EQ(c.exec("SHOW application_name").cell(), "outside");
    EXPECT_EQ(c.exec("SET statement_timeout = 5").message,
              "setting configuration parameter \"statement_timeout\" not supported");
}

TEST_F(GatewayProtocol, AnIndexIsMadeAtOnceIfTheClientSaysSo) {
    EXPECT_EQ(c.exec("CREATE INDEX i ON t (v)").code, "0A000");
    EXPECT_EQ(c.exec("SHOW disable_sync_create_index").cell(), "on");
    ASSERT_EQ(c.exec("SET disable_sync_create_index = off").outcome(), "SET");
    EXPECT_EQ(c.exec("SHOW disable_sync_create_index").cell(), "off");
    EXPECT_EQ(c.exec("CREATE INDEX i ON t (v)").outcome(), "CREATE INDEX");
    ASSERT_EQ(c.exec("BEGIN").code, "");
    ASSERT_EQ(c.exec("SET LOCAL \"disable_sync_create_index\" TO on").outcome(), "SET");
    EXPECT_EQ(c.exec("CREATE INDEX j ON t (v)").code, "0A000");
    ASSERT_EQ(c.exec("ROLLBACK").code, "");
    EXPECT_EQ(c.exec("CREATE INDEX j ON t (v)", {}).outcome(), "CREATE INDEX");
    ASSERT_EQ(c.exec("RESET ALL").code, "");
    EXPECT_EQ(c.exec("CREATE INDEX k ON t (v)").code, "0A000");
}

// Whatever the gateway knows of a table must be of the table that is meant.
TEST_F(GatewayProtocol, ABareNameIsLookedForWhereTheClientSays) {
    auto params = cluster.params();
    params["options"] = "-c search_path=s,public";
    const Client other(params);
    for (const char* sql : {"CREATE SCHEMA s",
                            "CREATE TABLE s.u (id integer PRIMARY KEY, v integer)",
                            "INSERT INTO s.u VALUES (1, 10)",
                            "SET search_path TO s, public"}) {
        ASSERT_EQ(c.exec(sql).code, "") << sql;
    }
    ASSERT_EQ(other.exec("SELECT v FROM u").code, "40001");  // OC001: the table is new to it.
    ASSERT_EQ(c.exec("BEGIN").code, "");
    ASSERT_EQ(other.exec("BEGIN").code, "");
    ASSERT_EQ(c.exec("SELECT v FROM u WHERE id = 1 FOR UPDATE").cell(), "10");
    ASSERT_EQ(other.exec("UPDATE u SET v = 11 WHERE id = 1", {}).tag, "UPDATE 1");
    EXPECT_EQ(c.exec("COMMIT").tag, "COMMIT");
    EXPECT_EQ(other.exec("COMMIT").code, "40001");
    EXPECT_EQ(c.exec("SELECT v FROM t WHERE id = 1 FOR UPDATE").cell(), "10");
}

}  // namespace

}  // namespace holdfast::dsql::tests
